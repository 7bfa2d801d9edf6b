"""Pieces of traces that several rules are tested on, each drawn once. Times in µs."""

from __future__ import annotations

from collections.abc import Sequence

from syncscope.rules import find
from syncscope.schema.findings import Finding
from syncscope.timeline import Timeline
from tests.builders import TraceBuilder

FILE = "train.py"


def line(number: int, expression: str) -> tuple[str, int, str, str]:
    """The user's frame in ``step`` at a line."""
    return (FILE, number, "step", expression)


def findings(builder: TraceBuilder, *codes: str) -> list[Finding]:
    """The findings of a trace, of some rules only."""
    found = (hit.finding for hit in find(Timeline(builder.trace()))[0])
    return [finding for finding in found if not codes or finding.rule in codes]


def codes(builder: TraceBuilder) -> list[str]:
    """The rules that found something, but for the two about overlap."""
    return sorted(finding.rule for finding in findings(builder) if not finding.rule.startswith("OVL"))


def blind(builder: TraceBuilder) -> dict[str, str]:
    """Rules that could not see, and why."""
    return {entry.rule: entry.why for entry in find(Timeline(builder.trace()))[1]}


def waiting(
    builder: TraceBuilder,
    at: float,
    *ops: str,
    copy: str | None = "DtoH",
    memory: str = "pinned",
    size: int = 4,
) -> TraceBuilder:
    """A wait of 20 µs inside nested ops, 60 µs in all, after a copy unless ``copy`` is ``None``."""
    for depth, op in enumerate(ops):
        builder.op(op, at + depth, 50 - 2 * depth)
    if copy is not None:
        builder.copy(copy, call=(at + 10, 4), runs=(at + 16, 2), memory=memory, bytes=size)
    return builder.stream_sync(at + 20, 20)


def chain(*ops: str, steps: int = 2, copy: str | None = "DtoH", memory: str = "pinned", size: int = 4) -> TraceBuilder:
    """A trace whose steps of 100 µs each wait once inside a chain of ops."""
    builder = TraceBuilder().steps(*(100 * i for i in range(steps + 1)))
    for step in range(steps):
        waiting(builder, 100 * step + 10, *ops, copy=copy, memory=memory, size=size)
    return builder


def lines_of(found: Sequence[Finding]) -> list[int | None]:
    return [finding.site.line if finding.site else None for finding in found]
