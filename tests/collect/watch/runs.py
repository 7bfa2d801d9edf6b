"""Runs as the counter would give them, built in a few words."""

from __future__ import annotations

from syncscope.collect.watch.lines import Resolved
from syncscope.schema.counting import CountedWait, PhaseKind, RecordedPhase, RecordedRun
from syncscope.schema.recording import RecordedFrame


def phase(
    kind: PhaseKind = "train", name: str | None = None, steps: int = 10, seconds: float = 1, counted: int | None = None
) -> RecordedPhase:
    counted_steps = steps if counted is None else counted
    return RecordedPhase(
        name=name or kind, kind=kind, steps=steps, counted_steps=counted_steps, time_ns=int(seconds * 1e9)
    )


def wait(
    stack: int, phase: int = 0, count: int = 10, expected: str | None = None, may_wait: bool = False,
    compiling: bool = False,
) -> CountedWait:  # fmt: skip
    return CountedWait(
        phase=phase, stack=stack, kind="warning", count=count, expected=expected, may_wait=may_wait, compiling=compiling
    )


def run(phases: tuple[RecordedPhase, ...], *waits: CountedWait, complete: bool = False) -> RecordedRun:
    length = sum(one.time_ns for one in phases)
    return RecordedRun(id="r", started_ns=0, time_ns=length, complete=complete, phases=phases, waits=waits)


def lines_of(*expressions: str) -> Resolved:
    """One stack for each expression of ``train.py``: line 1, 2, …"""
    frames = tuple(
        RecordedFrame(file="train.py", line=number, function="step", expression=text, user=True)
        for number, text in enumerate(expressions, 1)
    )
    return frames, tuple((number,) for number in range(len(frames)))
