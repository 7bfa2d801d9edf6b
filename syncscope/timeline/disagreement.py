"""What rows of a trace say of others that are not there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import msgspec

from syncscope.timeline.intervals import Ints

if TYPE_CHECKING:
    from syncscope.timeline.timeline import Timeline

Lost = Literal["runtime", "device", "cpu_op", "steps"]


class Disagreement(msgspec.Struct, frozen=True):
    """What some rows of a trace say of others that are not there."""

    lost: Lost
    """The kind of rows that are not there, in the words of ``Rule.needs``; ``steps`` for steps that are not true."""
    text: str
    """One sentence."""
    at_start: bool = False
    """Whether they are all from before the first row of that kind, so that nothing is lost of what comes behind."""
    waits_alone: bool = False
    """Whether they are waits, so that no launch is lost for all that is known."""


def disagree(
    lost: Lost, number: int, one: str, many: str, *, at_start: bool = False, waits_alone: bool = False
) -> tuple[Disagreement, ...]:
    """A disagreement about a number of rows, none where it is 0."""
    text = one if number == 1 else many.format(f"{number:,}")
    return (Disagreement(lost, text, at_start, waits_alone),) if number else ()


def find_correlations(timeline: Timeline) -> Ints:
    """The correlation ids (n,) of all runtime calls, of other processes too."""
    return timeline.trace.rows["runtime"]["correlation"]
