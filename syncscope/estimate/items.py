"""The items of a program as columns: one item is a runtime call with the device activity that it launched.

Items are in the order of the host. Each class holds equally long arrays, one element an item. Times are nanoseconds
since the first step began.
"""

from __future__ import annotations

import numpy as np

from syncscope.timeline.intervals import Bools, Floats, Ints
from syncscope.trace.columns import Columns
from syncscope.trace.sets import different


class HostPart(Columns):
    """What the host did: calls inside the steps, the steps' ends, and launches that the trace lacks."""

    call: Ints
    """Row in ``Timeline.calls``, −1 none."""
    orphan: Ints
    """Row in ``Trace.device`` of an activity whose launch the trace lacks, −1 none."""
    step: Ints
    """Row in ``Timeline.steps``."""
    mark: Bools
    """No call, but the end of a step."""
    chain: Ints
    """The chain of host work that makes the call; −1 for device work that no call of the trace launched."""
    follows: Bools
    """The thread went on only after the last call of chain 0."""
    begin: Floats
    end: Floats
    """When the call ended in the trace."""
    pre: Floats
    """Host work before the call, ns."""
    own: Floats
    """Host work inside the call, ns."""

    def __len__(self) -> int:
        return len(self.call)


class DevicePart(Columns):
    """The activities that items launched. A launch of several (a graph) counts as one, from first begin to last end."""

    stream: Ints
    """Number of the stream, −1 for a call that launched nothing."""
    starts: Floats
    ends: Floats
    """When the activity ended in the trace, nan none."""
    dur: Floats
    """Length of the activity in ns, 0 none."""
    device: Ints
    """The device of the launch's first activity, −1 none."""
    kind: Ints
    """The kind of the launch's first activity: index in ``device.KINDS``, −1 none."""
    engine: Ints
    """``TO_DEVICE`` a copy to the device, ``TO_HOST`` a copy to the host, ``COLLECTIVE``, or −1 none of them."""
    kernel: Bools
    pageable: Bools
    """A copy from or to pageable memory."""
    alone: Bools
    """A kernel beside which no other stream computed."""
    blocks: Bools
    """The launching call returns only when the activity is done."""
    computes: Floats
    """Share of the launch's kernels, by time, that multiply matrices."""
    moves: Floats
    """Share of them that mostly move data. Of the rest nothing is known."""
    draws: Floats
    """Their power above idle, as a share of a matrix product's (``clocks.MATRIX``)."""


class Timing(Columns):
    """The distances between a launch, its activity and what that follows, ns."""

    lat: Floats
    """From the return of the launching call (its begin where it blocks) to the earliest start."""
    gap: Floats
    """What the stream needs between the activity before and this one."""
    hop: Floats
    """From the end of what an event made the activity wait for to its start."""


class Items(Timing, DevicePart, HostPart):
    """All that a replay needs to know of each item."""

    profiler: Floats
    """The profiler's share of ``pre`` and ``own``, ns."""
    wait: Bools
    """The host waits here for ``Program.targets.waits``."""
    back: Floats
    """From the end of what the host waited for to the return of the call, ns."""
    loading: Floats
    """How much of ``pre`` went into getting the next batch, ns; 0 none."""
    period: Floats
    """From the batch before to this one, ns."""
    later: Floats
    """By how much later than this rank the last of the other ranks came to the collective, ns; nan unknown."""


TO_DEVICE, TO_HOST, COLLECTIVE = 0, 1, 2
"""Values of ``DevicePart.engine``."""


def find_slack(items: Items) -> float:
    """Nanoseconds before the host's present from which on no moment matters to what the host launches: longer than
    anything that is added to a moment. Infinite where something runs that the host of the trace did not launch."""
    if (items.chain < 0).any():
        return np.inf
    longest = items.gap.max() + items.hop.max() + items.back.max() + max(-items.lat.min(), 0.0)
    return float(longest)


def are_one_by_one(items: Items, engine: int) -> bool:
    """Whether copies of several streams share an engine: there are some, and each began when those launched before it
    were done."""
    mine = items.engine == engine
    starts, ends = items.starts[mine], items.ends[mine]
    sooner = starts[1:] < np.maximum.accumulate(ends)[:-1]
    return len(different(items.stream[mine])) > 1 and not sooner.any()
