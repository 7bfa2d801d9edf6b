"""The steps that pass before a window is timed: under the profiler, and until several ranks go on together."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Generator
from typing import Any

from syncscope.collect.bare.window import settle
from syncscope.collect.plan import Plan
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

FEW = 0.25
"""Share of the bare steps that may be long where a window that meets such a one begins anew."""

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


def longest_steps_ns(torch: Any, plan: Plan, recorded: Recorded) -> tuple[float, ...]:
    """What a step may take at most in the first, second and third try of a window: after a longer one, it begins anew.

    One step in ten may test something, or write a file: five steps show that too often, or not at all. Not so where
    many steps are long, where a loader that delivers in bursts sets the pace, and where there may be few steps.
    """
    bare, usual = recorded.bare, recorded.usual_step_ns
    if bare is None or not plan.settle or several_ranks(torch):
        return (math.inf,)
    paced = bare.loader is not None and not bare.loader.ready
    runs_ahead = bare.drain_ns is None or bare.drain_ns > usual
    long_ones = sum(length > LONG * usual for length in bare.steps_ns)
    if paced or runs_ahead or long_ones > FEW * len(bare.steps_ns):
        return (math.inf,)
    return (LONG * usual, LONG * usual, math.inf)


def pass_settling_steps(
    torch: Any, recorded: Recorded, most: int, least_s: float, passed: int, warming: list[int]
) -> Steps:
    """Let at most ``most`` steps pass under the profiler, which keeps nothing of them, until they are as long as
    the bare ones and ``least_s`` seconds are over, or as many steps as had ``passed`` before.

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
