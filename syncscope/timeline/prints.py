"""Find which waits belong to the printing of a tensor, and to which print.

Formatting a device tensor reads it value by value. The file of the formatter in the Python stack shows it; without a
stack, the sequence of ops that the formatter runs does.
"""

from __future__ import annotations

import numpy as np
from msgspec.structs import replace

from syncscope.patterns import compile_later
from syncscope.schema.findings import Frame
from syncscope.timeline.intervals import Ints
from syncscope.timeline.places import Place
from syncscope.timeline.tables import Ops, Waits
from syncscope.trace.sets import different

FORMATTER = "torch/_tensor_str.py"
OUTSIDE = ("__repr__", "__str__", "__format__")
"""Functions of torch/_tensor.py between the user's line and the formatter."""


def strip_formatter(place: Place) -> Place:
    """The place of a print without the formatter: its stack ends at the frame that printed."""
    inner = [
        f.file.endswith(FORMATTER) or (f.file.endswith("torch/_tensor.py") and f.function.split(".")[-1] in OUTSIDE)
        for f in place.chain
    ]
    chain = place.chain[: inner.index(True)] if True in inner else place.chain
    return replace(place, chain=chain, at=chain[-1], stack=-1) if chain else place


def find_prints(waits: Waits, places: tuple[Place, ...], ops: Ops) -> Ints:
    """For each wait (n,) the number of its print, −1 for waits that belong to none."""
    prints = np.full(len(waits), -1, dtype=np.int64)
    number = 0
    for tid in different(waits.tid).tolist():
        rows = np.flatnonzero(waits.tid == tid)
        of_waits = [places[place] for place in waits.place[rows]]
        number = _number_by_stack(prints, rows, of_waits, number)
        bare = np.array([place.source == "op" for place in of_waits], dtype=bool)
        number = _number_by_ops(prints, rows[bare], waits, ops, tid, number)
    return prints


def _number_by_stack(prints: Ints, rows: Ints, places: list[Place], number: int) -> int:
    """Number the prints among the waits of one thread, from ``number`` on; returns the last number.

    A print runs through the lines of the formatter once. So an earlier line, or another place, begins the next print.
    """
    before: tuple[tuple[Frame, ...], tuple[int, ...]] | None = None
    for row, place in zip(rows, places, strict=True):
        if not place.runs_through(FORMATTER):
            before = None
            continue
        outside, progress = strip_formatter(place).chain, _progress(place)
        number += before is None or before[0] != outside or progress < before[1]
        prints[row] = number
        before = outside, progress
    return number


def _progress(place: Place) -> tuple[int, ...]:
    """How far a print has got: the line in ``_tensor_str``, then the line in the formatter's ``__init__``."""
    frames = [(f.function.split(".")[-1], f.line or 0) for f in place.chain if f.file.endswith(FORMATTER)]
    lines = {name: line for name, line in reversed(frames) if name in ("_tensor_str", "__init__")}
    return lines.get("_tensor_str", 0), lines.get("__init__", 0)


# One letter an op, so that the formatter's sequence is a regular expression.
_LETTERS = {
    "aten::isfinite": "F", "aten::ne": "n", "aten::__and__": "A", "aten::bitwise_and": "A", "aten::masked_select": "M",
    "aten::unbind": "U", "aten::detach": "d", "aten::item": "i", "aten::is_nonzero": "z",
    "aten::resolve_neg": "R", "aten::to": "t", "aten::cpu": "t",
    **dict.fromkeys([
        "aten::abs", "aten::min", "aten::max", "aten::ceil", "aten::div", "aten::gt", "aten::lt", "aten::select",
        "aten::slice", "aten::cat", "aten::stack", "aten::reshape", "aten::resolve_conj", "aten::view",
    ], "o"),
}  # fmt: skip
_ROWS = "(?:o*Rt?)+"
_PRINT = compile_later(f"FnAM(?:[nzotUdi]*?{_ROWS}|[nzotUd]*ii)|U(?:di)+(?:{_ROWS}|i)")
"""Floats begin with a mask of the finite values, integers with a loop that formats every value. Both end with the rows
as lists, a scalar with one more ``item``. An ``item`` of the program itself has no ``detach`` before it."""


def _number_by_ops(prints: Ints, rows: Ints, waits: Waits, ops: Ops, tid: int, number: int) -> int:
    """Number the prints among the waits of one thread that have no stack; returns the last number."""
    roots = ops.nesting.roots(tid)
    if not len(rows) or not len(roots):
        return number
    text = "".join(_LETTERS.get(ops.name[root], ".") for root in roots)
    chains = [list(ops.nesting.chain(int(op))) for op in waits.op[rows]]
    outermost = np.array([chain[-1] if chain else -1 for chain in chains], dtype=np.int64)
    position = np.where(outermost >= 0, np.searchsorted(roots, outermost), -1)
    for match in _PRINT.finditer(text):
        inside = (position >= match.start()) & (position < match.end())
        if inside.sum() > 1:
            number += 1
            prints[rows[inside]] = number
    return number
