from __future__ import annotations

import numpy as np

from syncscope.rules.grouping import Group
from syncscope.rules.rule import Case, Hit, Rule, call_occurrences
from syncscope.timeline import Timeline
from syncscope.timeline.intervals import Ints

FULL = 900
"""Calls that the device is behind from which on the queue may be full. It holds 1,024 entries; events take some of
them, so that launches block at 1,022 kernels (H200) or at 966 (an A100 that records events too)."""

LONG_NS = 50_000
"""Nanoseconds from which on a launch may have been blocked."""

LONG_TIMES = 10
"""How many times as long as the trace's median launch it must have taken as well."""


class LaunchQueueFull(Rule):
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

    One finding a trace, and never more than a note: the launch that meets the full queue is no worse than those
    before it. The first launch of a kernel may take as long, since its code is loaded then; that is not counted.
    """

    code = "SYN107"
    name = "launch-queue-full"
    severity = "note"
    needs = ("runtime", "device")
    intervention = "none"

    def run(self, case: Case) -> list[Hit]:
        return self.hits(case, call_occurrences(_blocked(case.timeline), case.timeline))

    def message(self, group: Group) -> str:
        ahead = int(group.timeline.queued[group.rows["unit"].to_numpy(np.int64)].max())
        return f"a launch waits for a place in the queue, with the device {ahead:,} launches behind"


def _blocked(timeline: Timeline) -> Ints:
    """The rows of ``calls`` that are launches which met a full queue."""
    calls, device = timeline.calls, timeline.trace.device
    launches = np.flatnonzero(calls["role"].isin(["launch", "graph-launch"]).to_numpy(bool))
    took = calls["dur"].to_numpy(np.int64)
    least = max(LONG_NS, LONG_TIMES * float(np.median(took[launches]))) if len(launches) else LONG_NS
    first = timeline.launch[(~device["name"].duplicated()).to_numpy(bool)]
    found: Ints = launches[(timeline.queued[launches] >= FULL) & (took[launches] >= least) & ~np.isin(launches, first)]
    return found
