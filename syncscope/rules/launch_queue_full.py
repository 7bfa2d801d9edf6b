from __future__ import annotations

import numpy as np

from syncscope.advice import Advice
from syncscope.rules.base.groups import Group
from syncscope.rules.base.occurrences import of_calls
from syncscope.rules.base.question import NoQuestion
from syncscope.rules.base.rule import Hit, Inspection, RankRule
from syncscope.timeline import Timeline
from syncscope.timeline.intervals import Ints
from syncscope.timeline.launching import LAUNCHES
from syncscope.trace.quantiles import median
from syncscope.trace.sets import either_of

FULL = 900
"""If the device is at least this many calls behind, the queue may be full. It holds 1,024 entries; events take some of
them, so that launches block at 1,022 kernels (H200) or at 966 (an A100 that records events too)."""

LONG_NS = 50_000
"""A launch of at least this many nanoseconds may have been blocked."""

LONG_TIMES = 10
"""How many times as long as the trace's median launch it must have taken as well."""


class LaunchQueueFull(RankRule):
    """A launch blocks because the launch queue is full: the host is a thousand launches ahead.

    Why it costs: mostly it does not. The device has all the work it can do, and a host that is so far ahead may as
    well wait. It costs where the host had something else to do meanwhile: fill another stream, load the next batch,
    answer a request. All of that stands still until the device has made room.

    Bad:
        for p in parameters:                 # thousands of small launches behind a large kernel,
            p.mul_(0.9)
        batch = next(loader)                 # and the loading starts only when they are through

    Good:
        torch._foreach_mul_(parameters, 0.9)   # one launch
        batch = next(loader)                   # loaded by other processes, num_workers=8

    Fine:
        a training loop that is bound by the device and never reads a value

    There is one finding a trace, and it is never more than a note: the launch that meets the full queue is no worse
    than those before it. The first launch of a kernel may take as long, since its code is loaded then; it is not
    counted. Copies and fills that meet the full queue are.
    """

    code = "SYN107"
    name = "launch-queue-full"
    severity = "note"
    needs = ("runtime", "device")
    gated = False
    question = NoQuestion("the host is ahead of the device there, so nothing is lost")
    counts_as_wait = True
    advice = (
        Advice(
            "",
            "Nothing, if the host has nothing else to do; else load and log on other threads, or launch fewer and "
            "larger kernels (CUDA graphs, fused ops).",
        ),
    )

    def find(self, inspection: Inspection) -> list[Hit]:
        timeline = inspection.timeline
        return self.hits(timeline, of_calls(_blocked_launches(timeline), timeline))

    def message(self, group: Group) -> str:
        behind = int(group.timeline.queued[group.rows.unit].max())
        launches = int(np.isin(group.timeline.calls.role[group.rows.unit], LAUNCHES).sum())
        others = "" if launches == len(group.rows) else " or copy"
        return f"a launch{others} waits for a place in the queue, with the device {behind:,} launches behind"


def _blocked_launches(timeline: Timeline) -> Ints:
    """The rows of ``calls`` that are launches, or copies and fills that wait for nothing else, which met a full
    queue."""
    calls = timeline.calls
    commands = calls.do(LAUNCHES)
    launches = np.flatnonzero(commands)
    least = max(LONG_NS, LONG_TIMES * median(calls.dur[launches])) if len(launches) else LONG_NS
    commands[_other_commands(timeline)] = True
    blocked = np.flatnonzero(commands & (timeline.queued >= FULL) & (calls.dur >= least))
    return blocked[~np.isin(blocked, _first_launches(timeline))] if len(blocked) else blocked


def _other_commands(timeline: Timeline) -> Ints:
    """The rows of ``calls`` that put a copy or a fill on a stream; copies from pageable memory take their own time."""
    calls, rows = timeline.calls, timeline.activities
    own = rows.launch[(rows.launch >= 0) & ((rows.direction == "DtoD") | (rows.memory == "pinned"))]
    fills = np.flatnonzero(calls.do(["fill"]))
    return either_of(fills, own[calls.role[own] == "copy"])


def _first_launches(timeline: Timeline) -> Ints:
    """The row of ``calls`` that launched each kernel for the first time, −1 not in the trace."""
    first: dict[str, int] = {}
    for row in np.flatnonzero(timeline.activities.kind == "kernel").tolist():
        first.setdefault(timeline.activities.name[row], row)
    return timeline.activities.launch[list(first.values())]
