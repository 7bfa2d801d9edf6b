"""Waits of PyTorch's own account: it compiles, tunes and captures before the program runs what it made."""

from collections.abc import Iterable
from typing import Final, Literal

Part = Literal["preparing", "running", "neutral"]

_PREPARING = (
    "_dynamo/", "_inductor/", "_functorch/_aot_autograd/", "_functorch/aot_autograd.py", "_export/", "export/",
    "cuda/graphs.py",
)  # fmt: skip
"""PyTorch's code that prepares."""

_AROUND = (
    "_dynamo/eval_frame.py", "_dynamo/external_utils.py", "_functorch/_aot_autograd/runtime_wrappers.py",
    "_functorch/_aot_autograd/utils.py",
)  # fmt: skip
"""Of it, what is around each call of a compiled function, and of one that Dynamo is kept out of, such as
``Optimizer.load_state_dict``: it tells nothing."""

_RUNNING = ("_inductor/cudagraph_trees.py", "_inductor/runtime/", "_inductor/utils.py")
"""Of it, what also runs with the program. Only explicit waits there are preparation."""


TUNING_FILE: Final = "<site-packages>/torch/_inductor/runtime/triton_heuristics.py"
TUNING: Final = ("autotune_to_one_config", "benchmark_all_configs", "coordinate_descent_tuning")
"""Methods there in which a compiled kernel tries its configurations when it first runs."""


COMPILING: Final[dict[str, tuple[str, ...]]] = {
    "torch/_dynamo/convert_frame.py": ("_compile",),
    "torch/_inductor/autotune_process.py": (),
    "torch/_inductor/compile_fx.py": (
        "compile_fx", "_compile_fx_main", "compile_fx_inner", "_compile_fx_inner", "compile_fx_forward",
        "compile_fx_backward", "fw_compiler_base", "fw_compiler_freezing", "bw_compiler", "partition_fn",
        "fx_codegen_and_compile", "codegen_and_compile",
    ),
    "torch/_inductor/constant_folding.py": (),
    "torch/_inductor/pattern_matcher.py": (),
    "torch/_inductor/runtime/triton_heuristics.py": (
        *TUNING, "_combo_sequential_autotune", "_coordinate_descent_tuning", "bench",
    ),
    "torch/_inductor/select_algorithm.py": (),
    "triton/runtime/autotuner.py": ("_bench", "benchmark"),
}  # fmt: skip
"""Functions that run only while something is compiled or tuned, in PyTorch 2.4 to 2.13; all of a file where none is
named. Not among them: what is around each call of a compiled function (``_dynamo/eval_frame.py``, ``wrapper`` and
``run`` in ``compile_fx.py``, AOTAutograd's runtime wrappers, ``run`` of a kernel), and ``triton/testing.py``, by which
programs time what they like. The compiler's own timing is inside of the functions here."""

PASSES: Final = "torch/_inductor/fx_passes/"
"""The folder of Inductor's passes over a graph. Some look at the values of constants."""


def part_of(package: str, file: str) -> Part:
    """What a file does that is ``file`` in the folder of ``package``, ``torch`` or ``triton``."""
    if package == "triton":
        return "preparing"
    if file.startswith(_RUNNING):
        return "running"
    return "preparing" if file.startswith(_PREPARING) and file not in _AROUND else "neutral"


def prepares(files: Iterable[str], explicit: bool) -> bool:
    """Whether a wait is PyTorch's own, to compile or to capture: once, and never to run the program.

    ``files`` are those of the frames from the wait outwards, normalised. The ones up to the first that is neither
    PyTorch's nor Triton's tell it: what Inductor wrote is the program's, too. ``explicit``: the wait is a call whose
    purpose is to wait.
    """
    for file in files:
        top, package, inside = (*file.split("/", 2), "", "")[:3]
        if top == "<python>":
            continue
        if top != "<site-packages>" or package not in ("torch", "triton"):
            return False
        part = part_of(package, inside)
        if part == "preparing" or (part == "running" and explicit):
            return True
    return False


def tunes(frames: Iterable[tuple[str, str]]) -> bool:
    """Whether a wait is Inductor's, to tune a kernel. ``frames`` are the normalised file and the function of each."""
    return any(file == TUNING_FILE and function.rpartition(".")[2] in TUNING for file, function in frames)


def compiles(frames: Iterable[tuple[str, str]]) -> bool:
    """Whether a wait is the compiler's: it happens once, whatever calls the compiled function later. ``frames`` are the
    normalised file and the function of each, from the wait out to the program's line, which is not among them: what the
    compiler calls of the program waits by itself."""
    for file, function in frames:
        top, _, inside = file.partition("/")
        if top != "<site-packages>":
            continue
        functions = COMPILING.get(inside)
        if inside.startswith(PASSES) or functions == () or (functions and function.rpartition(".")[2] in functions):
            return True
    return False
