"""Waits of PyTorch's own account: it compiles, tunes and captures before the program runs what it made."""

from collections.abc import Iterable
from typing import Final, Literal

Part = Literal["preparing", "running", "neutral"]

_PREPARING = (
    "_dynamo/", "_inductor/", "_functorch/_aot_autograd/", "_functorch/aot_autograd.py", "_export/", "export/",
    "cuda/graphs.py",
)  # fmt: skip
"""PyTorch's code that prepares."""

_RUNNING = ("_inductor/cudagraph_trees.py", "_inductor/runtime/", "_inductor/utils.py")
"""Of it, what also runs with the program. Only explicit waits there are preparation."""


TUNING_FILE: Final = "<site-packages>/torch/_inductor/runtime/triton_heuristics.py"
TUNING: Final = ("autotune_to_one_config", "benchmark_all_configs", "coordinate_descent_tuning")
"""Methods there in which a compiled kernel tries its configurations when it first runs."""


def part_of(package: str, file: str) -> Part:
    """What a file does that is ``file`` in the folder of ``package``, ``torch`` or ``triton``."""
    if package == "triton":
        return "preparing"
    if file.startswith(_RUNNING):
        return "running"
    return "preparing" if file.startswith(_PREPARING) else "neutral"


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
