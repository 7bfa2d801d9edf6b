"""PyTorch's own warnings of waits over a whole run, counted by line: the oracle.

On ``PYTHONPATH``, with ``ORACLE=DIR``, every Python process of a program writes ``DIR/PID.json``: how often PyTorch
said "called a synchronizing CUDA operation", by the innermost Python line, by the user's, and by whether the compiler
was at work between them. It knows nothing of syncscope. The warnings are counted instead of printed, whatever filters
the program sets.
"""

from __future__ import annotations

import atexit
import json
import os
import re
import sys
import sysconfig
import time
import warnings
from importlib.machinery import PathFinder
from pathlib import Path

MESSAGE = "called a synchronizing CUDA operation"
WRAPPERS = (os.path.join("torch", "utils", "_device.py"), os.path.join("torch", "overrides.py"))
"""Frames of a device context or a function mode around the call that waits."""
METHODS = ("__torch_function__", "__torch_dispatch__")
"""Methods of a library's own tensors, which pass on what was called with them."""
COMPILERS = {
    os.path.join("torch", "_dynamo", "convert_frame.py"): ("_compile",),
    os.path.join("torch", "_inductor", "compile_fx.py"): (
        "compile_fx", "compile_fx_inner", "compile_fx_backward", "bw_compiler", "codegen_and_compile",
        "fx_codegen_and_compile",
    ),
    os.path.join("torch", "_inductor", "runtime", "triton_heuristics.py"): (
        "autotune_to_one_config", "benchmark_all_configs", "coordinate_descent_tuning",
    ),
    os.path.join("triton", "runtime", "autotuner.py"): ("_bench", "benchmark"),
}  # fmt: skip
"""Functions of which one is under way while PyTorch compiles or tunes, and none while compiled code runs."""
LIBRARY = sysconfig.get_paths()["stdlib"]
EVERY_S = 0.5
"""Processes that are killed leave what they had counted so long before."""


def is_users(file: str) -> bool:
    return not (file.startswith(("<", LIBRARY)) or "site-packages" in file or "torchinductor" in file)


def passes_on(frame) -> bool:  # type: ignore[no-untyped-def]
    code = frame.f_code
    return code.co_filename.endswith(WRAPPERS) or (code.co_name in METHODS and "site-packages" in code.co_filename)


def compiles(frame, user) -> bool:  # type: ignore[no-untyped-def]
    """Whether a compiler is at work between ``frame`` and the user's around it."""
    while frame is not None and frame is not user:
        file = frame.f_code.co_filename
        if any(file.endswith(name) and frame.f_code.co_name in inside for name, inside in COMPILERS.items()):
            return True
        frame = frame.f_back
    return False


class Oracle:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.counts: dict[tuple[str, int, str, int, bool, bool], int] = {}
        self.written = 0.0

    def count(self, frame) -> None:  # type: ignore[no-untyped-def]
        """One warning that reached ``frame``."""
        while frame.f_back is not None and passes_on(frame):
            frame = frame.f_back
        user = frame
        while user.f_back is not None and not is_users(user.f_code.co_filename):
            user = user.f_back
        grad = sys.modules["torch"].is_grad_enabled()
        at, by = (frame.f_code.co_filename, frame.f_lineno), (user.f_code.co_filename, user.f_lineno)
        place = (*at, *by, grad, compiles(frame, user))
        self.counts[place] = self.counts.get(place, 0) + 1
        if time.monotonic() - self.written > EVERY_S:
            self.write()

    def write(self) -> None:
        self.written = time.monotonic()
        if self.counts:
            content = {"argv": sys.argv, "cwd": os.getcwd(), "counts": [[*at, n] for at, n in self.counts.items()]}
            target = self.folder / f"{os.getpid()}.json"
            target.with_suffix(".part").write_text(json.dumps(content))
            target.with_suffix(".part").replace(target)

    def listen(self) -> None:
        """Count from now on, and ask PyTorch to warn once CUDA is up."""
        plain, mutated, leave = warnings._showwarnmsg, warnings._filters_mutated, os._exit  # type: ignore[attr-defined]

        def show(message) -> None:  # type: ignore[no-untyped-def]
            if str(message.message).startswith(MESSAGE):
                self.count(sys._getframe(1))
            else:
                plain(message)

        def keep_first() -> None:
            if not warnings.filters or warnings.filters[0] is not ours:
                warnings.filters[:] = [ours, *(one for one in warnings.filters if one is not ours)]
            mutated()

        def write_and_leave(status: int) -> None:
            self.write()
            leave(status)

        ours = ("always", re.compile(re.escape(MESSAGE)), UserWarning, None, 0)
        warnings._showwarnmsg = show  # type: ignore[attr-defined]
        warnings._filters_mutated = keep_first  # type: ignore[attr-defined]
        os._exit = write_and_leave  # type: ignore[assignment]
        keep_first()
        atexit.register(self.write)
        os.register_at_fork(after_in_child=self.counts.clear)
        torch = sys.modules["torch"]
        torch.cuda._lazy_call(lambda: torch.cuda.set_sync_debug_mode("warn"))


class WhenTorchIsThere:
    """A finder that begins to count when the program has imported torch."""

    def __init__(self, oracle: Oracle) -> None:
        self.oracle = oracle

    def find_spec(self, name, path=None, target=None):  # type: ignore[no-untyped-def]
        if name != "torch":
            return None
        spec = PathFinder.find_spec(name, path)
        if spec is None or spec.loader is None:
            return spec
        execute = spec.loader.exec_module

        def execute_and_listen(module) -> None:  # type: ignore[no-untyped-def]
            sys.meta_path.remove(self)  # type: ignore[arg-type]
            execute(module)
            self.oracle.listen()

        spec.loader.exec_module = execute_and_listen  # type: ignore[method-assign]
        return spec


if "ORACLE" in os.environ:
    sys.meta_path.insert(0, WhenTorchIsThere(Oracle(Path(os.environ["ORACLE"]))))  # type: ignore[arg-type]
