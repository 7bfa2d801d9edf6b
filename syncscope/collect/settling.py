"""The steps that pass before a window is timed: under the profiler, and until several ranks go on together."""

from __future__ import annotations

import itertools
import math
import statistics
import time
from collections.abc import Callable, Generator, Sequence
from typing import Any

from syncscope.collect.bare.window import settle
from syncscope.collect.ready_ranks import ReadyRanks
from syncscope.collect.recorded import Recorded
from syncscope.collect.relatives import several_ranks

SETTLE_S = 3.0
"""Seconds that may pass before a window is timed, until the program is as it was: Kineto keeps what it sees meanwhile,
some 20 MB a second of a program that launches all the time, until it starts."""

RANKS_STEPS = 8
"""Steps that pass instead where several ranks run: all of them must record the same steps."""

LONG = 3.0
"""A step lasts so many times as long as usual where the program did something else in it, or between two times of its
loop."""

FAR_NS = 20e6
"""By so many nanoseconds it is longer where a window is recorded again for it: the scheduler of a busy host makes a
step longer by a few milliseconds now and then."""

FEW = 0.25
"""Share of the bare steps that may be long where a window with such a one is recorded again."""

LONG_COMES = 40
"""Steps that may pass until a long one comes, after which the next may not come soon."""

TOGETHER_S = 0.1
"""Ranks reach the end of a step at times that differ by far less than this."""

Steps = Generator[None, None, None]


def steps_together(usual_ns: float) -> int:
    """Of so many steps of about ``usual_ns`` one is where ranks go on together: a power of two, since each measures its
    own."""
    return 1 << max(round(math.log2(TOGETHER_S * 1e9 / usual_ns)), 0) if usual_ns > 0 else 1


def go_on_together(
    ready: ReadyRanks | None, what: str, number: Callable[[], int], usual_ns: float, patience_s: float
) -> Steps:
    """Let steps pass until this rank goes on at the same one as the others, which are awaited for ``patience_s``.
    ``number()`` is that of the latest step.

    Ranks that do not hear of each other go on at a step that is likely the same.
    """
    first: int | None = -1
    if ready is not None:
        ready.come(what, number(), patience_s)
        while (first := ready.first_step(what)) is None:
            yield
        while number() < first:
            yield
    if first == -1:
        while number() % steps_together(usual_ns):
            yield


def has_long_step(recorded: Recorded, boundaries_ns: Sequence[int]) -> bool:
    """Whether one of the steps between ``boundaries_ns`` is far longer than the others, as few bare ones are.

    One step in ten may test something, or write a file: five steps show that too often, or not at all. Not so where
    many are long, where a loader that delivers in bursts sets the pace, and where the host runs ahead of the device.
    """
    bare, usual = recorded.bare, recorded.usual_step_ns
    lengths = [end - begin for begin, end in itertools.pairwise(boundaries_ns)]
    if bare is None or not usual or not lengths or bare.waits_for_loader or bare.runs_ahead:
        return False
    long_ones = sum(length > LONG * usual for length in bare.steps_ns)
    longest, others = max(lengths), max(usual, statistics.median(lengths))
    return long_ones <= FEW * len(bare.steps_ns) and longest > max(LONG * others, others + FAR_NS)


def pass_settling_steps(
    torch: Any, recorded: Recorded, most: int, least_s: float, passed: int, warming: list[int], *, uneven: bool
) -> Steps:
    """Let at most ``most`` steps pass under the profiler, which keeps nothing of them, until they are as long as
    the bare ones and ``least_s`` seconds are over, or as many steps as had ``passed`` before. Where steps are
    ``uneven``, go on until one was far longer than usual, but for ``LONG_COMES`` at most.

    Appends the end of each but the last to ``warming``, by ``time.time_ns``, and a note to ``recorded`` where they
    stayed too short.
    """
    bare = recorded.bare
    if bare is None or not bare.steps_ns:
        return
    if several_ranks(torch):
        for _ in range(min(most, RANKS_STEPS)):
            warming.append(time.time_ns())
            yield
        return
    steps = settle(bare, steps=most, seconds=SETTLE_S, least_s=least_s, passed=passed)
    try:
        while True:
            next(steps)
            warming.append(time.time_ns())
            yield
    except StopIteration as ended:
        if ended.value is not None:
            last, usual = ended.value / 1e6, statistics.median(bare.steps_ns) / 1e6
            recorded.notes.append(
                f"The recorded steps may be too short: the one before took {last:.3g} ms, the median bare step"
                f" {usual:.3g} ms. A loader may have had batches ready from a pause of ours."
            )
    began, longest_ns = time.time_ns(), LONG * recorded.usual_step_ns
    for _ in range(LONG_COMES if uneven else 0):
        warming.append(time.time_ns())
        yield
        now = time.time_ns()
        if now - warming[-1] > longest_ns or now - began > SETTLE_S * 1e9:
            return
