"""Run a user's script or module in this process, as ``python`` itself would.

The module stays ``__main__`` afterwards, so that ``atexit`` handlers, pickling and ``multiprocessing`` work as they do
without syncscope. What the script prints, raises and exits with stays its own. docs/promises.md lists all of it.
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
import os
import signal
import sys
import traceback
from importlib.machinery import ModuleSpec, SourceFileLoader
from types import CodeType, ModuleType, TracebackType
from typing import Any

from syncscope.collect.paths import OURS


class ScriptError(ValueError):
    """The script or module cannot be found or read. ``str`` is one line."""


def load_script(path: str) -> tuple[ModuleType, CodeType]:
    """Return the ``__main__`` module and code of a script file. Sets ``sys.argv[0]`` and ``sys.path[0]``.

    Raises ``ScriptError``; ``SyntaxError`` passes.
    """
    try:
        with io.open_code(path) as file:
            source = file.read()
    except OSError as error:
        raise ScriptError(f"{path}: {error.strerror or error}") from None
    absolute = os.path.abspath(path) if os.name == "nt" else os.path.join(os.getcwd(), path)
    module = ModuleType("__main__")
    module.__dict__.update(
        __file__=absolute,
        __builtins__=__builtins__,
        __cached__=None,
        __loader__=SourceFileLoader("__main__", absolute),
        **_annotations(),
    )
    _set_first_path(os.path.dirname(os.path.realpath(path)))
    sys.argv[0] = path
    return module, compile(source, absolute, "exec", dont_inherit=True)


def load_module(name: str, arguments: list[str]) -> tuple[ModuleType, CodeType]:
    """Return the ``__main__`` module and code for ``-m name``. Sets ``sys.argv`` and ``sys.path[0]``: the packages
    around the module are imported to find it, and may read them.

    Raises ``ScriptError``.
    """
    _set_first_path(os.getcwd())
    sys.argv[:] = ["-m", *arguments]
    spec = _find(name)
    if spec.submodule_search_locations is not None:
        spec = _find(f"{name}.__main__")
    loader: Any = spec.loader
    if not hasattr(loader, "get_code"):
        raise ScriptError(f"{name}: no code object available")
    code = loader.get_code(spec.name)
    if code is None:
        raise ScriptError(f"{name}: no code object available")
    module = ModuleType("__main__")
    module.__dict__.update(
        __file__=spec.origin,
        __builtins__=__builtins__,
        __cached__=spec.cached,
        __loader__=loader,
        **_annotations(),
        __package__=spec.parent,
        __spec__=spec,
    )
    sys.argv[0] = str(spec.origin)
    return module, code


def _annotations() -> dict[str, Any]:
    """What Python gives a script's module for its annotations. From 3.14 on it makes them when they are asked for."""
    return {} if sys.version_info >= (3, 14) else {"__annotations__": {}}


def _set_first_path(folder: str) -> None:
    """Let ``folder`` take the place of syncscope's own, unless Python was told to have none (``-P``, ``-I``)."""
    if not getattr(sys.flags, "safe_path", bool(sys.flags.isolated)):
        sys.path[0] = folder


def _find(name: str) -> ModuleSpec:
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError) as error:
        raise ScriptError(f"{name}: {error}") from None
    if spec is None:
        raise ScriptError(f"No module named {name}")
    return spec


def execute(module: ModuleType, code: CodeType, arguments: list[str]) -> int:
    """Run ``code`` as ``__main__`` with ``arguments`` after ``sys.argv[0]``, and return the exit status.

    Prints a traceback as Python would, without syncscope's frames. A program that an uncaught ``KeyboardInterrupt``
    ends has the status ``-SIGINT``: Python then dies by that signal.
    """
    sys.argv[1:] = arguments
    sys.modules["__main__"] = module
    try:
        exec(code, module.__dict__)
    except SystemExit as stop:
        return exit_status(stop.code)
    except BaseException as error:
        failed = error
    else:
        return 0
    return _report(failed)  # outside of the handler, like Python: what a hook raises has no context


def exit_status(code: object) -> int:
    """The status with which Python exits for ``SystemExit(code)``. Prints a message on stderr."""
    if code is None:
        return 0
    if isinstance(code, int):
        return code & 0xFF if -(1 << 63) <= code < 1 << 63 else 0xFF
    with contextlib.suppress(ValueError, OSError):
        if sys.stderr is None:
            os.write(2, f"{code}\n".encode())  # as Python does
        else:
            print(code, file=sys.stderr)
    return 1


def _report(error: BaseException) -> int:
    """Do with an uncaught exception what Python does, without syncscope's frames, and return the exit status."""
    _clean(error)
    sys.last_type, sys.last_value, sys.last_traceback = type(error), error, error.__traceback__
    if sys.version_info >= (3, 12):
        sys.last_exc = error
    status = -signal.SIGINT if type(error) is KeyboardInterrupt else 1
    try:
        sys.excepthook(type(error), error, error.__traceback__)
    except SystemExit as stop:
        return exit_status(stop.code)
    except BaseException as fault:
        fault.__traceback__ = without_ours(fault.__traceback__)
        _print("Error in sys.excepthook:", fault)
        _print("\nOriginal exception was:", error)
    return status


def _print(title: str, error: BaseException) -> None:
    with contextlib.suppress(AttributeError, ValueError, OSError):  # the script may have closed stderr
        sys.stderr.write(f"{title}\n")
        sys.__excepthook__(type(error), error, error.__traceback__)


def _clean(error: BaseException) -> None:
    """Take syncscope's frames out of ``error`` and the exceptions that led to it."""
    found: list[BaseException | None] = [error]
    seen: set[int] = set()
    while found:
        one = found.pop()
        if one is not None and id(one) not in seen:
            seen.add(id(one))
            one.__traceback__ = without_ours(one.__traceback__, all_of_them=isinstance(one, KeyboardInterrupt))
            found += [one.__cause__, one.__context__]


def without_ours(trace: TracebackType | None, *, all_of_them: bool = False) -> TracebackType | None:
    """``trace`` without the frames of syncscope that lie around frames of others.

    Those at its end stay, unless ``all_of_them`` go: an exception that syncscope itself raised says so.
    """
    entries: list[TracebackType] = []
    while trace is not None:
        entries.append(trace)
        trace = trace.tb_next
    ours = [entry.tb_frame.f_code.co_filename.startswith(OURS) for entry in entries]
    last = max((index for index, mine in enumerate(ours) if not mine), default=-1)
    kept = [
        entry
        for index, (entry, mine) in enumerate(zip(entries, ours, strict=True))
        if not mine or (index > last >= 0 and not all_of_them)
    ]
    following: TracebackType | None = None
    for entry in reversed(kept):
        entry.tb_next = following
        following = entry
    return following


def report_syntax_error(error: SyntaxError) -> None:
    """Print a syntax error of the script as Python does."""
    traceback.print_exception(type(error), error, None)
