from __future__ import annotations

import numpy as np

from syncscope.timeline import Timeline
from syncscope.timeline.prints import strip_formatter
from tests.builders import FrameSpec, TraceBuilder

FORMATTER = "<site-packages>/torch/_tensor_str.py"
PRINT: list[FrameSpec] = [
    ("train.py", 14, "<module>", "print(t)"),
    ("<site-packages>/torch/_tensor.py", 590, "Tensor.__repr__"),
]
OUTER: list[FrameSpec] = [(FORMATTER, 726, "_str"), (FORMATTER, 462, "_str_intern")]
INIT = [*PRINT, *OUTER, (FORMATTER, 343, "_tensor_str")]
ROWS = [*PRINT, *OUTER, (FORMATTER, 350, "_tensor_str"), (FORMATTER, 290, "_tensor_str_with_formatter")]
STACKS: list[list[FrameSpec]] = [
    [*INIT, (FORMATTER, 130, "_Formatter.__init__")],
    [*INIT, (FORMATTER, 160, "_Formatter.__init__")],
    [*INIT, (FORMATTER, 182, "_Formatter.__init__")],
    [*INIT, (FORMATTER, 182, "_Formatter.__init__")],
    [*ROWS, (FORMATTER, 260, "_vector_str")],
    [*ROWS, (FORMATTER, 256, "_vector_str")],
]
"""What one print waits for, in order: masks and comparisons, values one by one, then rows."""


def hooked(prints: int) -> TraceBuilder:
    builder, at = TraceBuilder().recording(0, 100_000), 10.0
    for stack in STACKS * prints:
        builder.stream_sync(at, 10).warning(at + 40, *stack)
        at += 100
    return builder


def test_the_waits_of_a_print_share_one_number_and_each_print_has_its_own():
    assert Timeline(hooked(3).trace()).prints.tolist() == [1] * 6 + [2] * 6 + [3] * 6


def test_another_wait_between_belongs_to_no_print():
    builder = hooked(1).stream_sync(1000, 10).warning(1040, ("train.py", 15, "<module>", "t.item()"))
    assert Timeline(builder.trace()).prints.tolist() == [1] * 6 + [-1]


def test_a_print_seen_from_outside_ends_at_the_line_that_prints():
    view = Timeline(hooked(1).trace())
    outside = strip_formatter(view.places[view.waits.place[0]])
    assert outside.at is not None
    assert (outside.at.file, outside.at.line, len(outside.chain)) == ("train.py", 14, 1)


MASK = ["reshape", "isfinite", "ne", "__and__", "masked_select", "abs", "to", "min", "to", "max", "to", "unbind"]
COMPARE = ["ceil", "ne", "is_nonzero", "div", *["gt", "is_nonzero"] * 2, "lt", "is_nonzero", "unbind", "detach", "item"]
ROW = ["select", "resolve_conj", "resolve_neg", "to"]
FLOAT = [*MASK, *COMPARE, "detach", "item", *ROW, *ROW]
SCALAR = [*MASK, *COMPARE, "item"]
INTEGER = ["reshape", "unbind", *["detach", "item"] * 3, *ROW]
WAITING = {"masked_select", "is_nonzero", "item"}


def bare(*names: str) -> list[int]:
    """The prints of the waits inside a sequence of ops, without any Python stack."""
    builder, at, previous = TraceBuilder(), 0.0, ""
    for name in names:
        builder.op(f"aten::{name}", at, 10)
        if name in WAITING or (name == "to" and previous == "resolve_neg"):
            builder.stream_sync(at + 2, 6)
        at, previous = at + 20, name
    return Timeline(builder.trace()).prints.tolist()


def test_without_a_stack_the_formatters_ops_tell_a_print():
    for ops in (FLOAT, INTEGER, SCALAR):
        found = bare("mm", *ops, "mm", "item")
        assert found[-1] == -1
        assert set(found[:-1]) == {1}


def test_without_a_stack_two_prints_are_two():
    found = bare(*FLOAT, *FLOAT)
    assert (np.bincount(found)[1:] == len(found) // 2).all()


def test_a_programs_own_reads_are_no_print():
    assert set(bare("unbind", "item", "item", "item", "masked_select", "item")) == {-1}
    assert set(bare("isfinite", "mm", "masked_select", "item", "resolve_neg", "to")) == {-1}
