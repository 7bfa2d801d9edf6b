"""How late the host was for the device: when nothing was computed, since what comes next was not yet launched."""

from __future__ import annotations

import msgspec
import numpy as np

from syncscope.timeline import Timeline
from syncscope.timeline.calls import COMMANDS
from syncscope.timeline.intervals import Ints, Union

LOST_SHARE = 0.1
"""Share of the launches without a row of the device from which on what is left says how late the host was, not more."""

NO_TIME = Union(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64))


class Lateness(msgspec.Struct, frozen=True):
    """When a device computed nothing since what it computed next was not yet launched, kernel by kernel (n,)."""

    launched: Ints
    """When it, or one that ran before it, was launched at the latest, ns."""
    free: Ints
    """When the device had computed all before it, ns."""
    late: Ints
    """Nanoseconds without compute before its launch."""
    stretch: Ints
    """Number of the stretch of kernels that are all late, or all in time."""
    in_stretch: Ints
    """``late`` of each stretch in all, by number."""
    lost_much: bool
    """Whether so many launches have no row of the device that its replay would seem to have less to do than it had."""

    @classmethod
    def of(cls, timeline: Timeline) -> Lateness:
        every = timeline.activities
        begin, end = timeline.span or (0, 0)
        computing = (every.kind == "kernel") & (every.collective == "") & (every.device == timeline.device)
        kernels = every.take(computing & (every.ts >= begin) & (every.ts < end))
        returned = np.append(timeline.calls.end, 0)[kernels.launch]
        returned = np.minimum(np.where(kernels.launch >= 0, returned, kernels.ts), kernels.ts)
        free = np.maximum.accumulate(np.append(begin, kernels.end))[:-1]
        late = np.maximum(returned - free, 0)
        stretch = np.cumsum(np.diff(late > 0, prepend=False))
        return cls(np.maximum.accumulate(returned), free, late, stretch, _sums(stretch, late), _lost_much(timeline))

    def after(self, end: Ints, stall: Ints) -> int:
        """Nanoseconds that are late behind waits with some ends, and for no longer than they blocked. A kernel that is
        launched while the device still computes shows that the host has made up for all that came before."""
        if not len(self.late):
            return 0
        kernel = np.searchsorted(self.launched, end)
        behind = kernel < len(self.late)
        stretches, group = np.unique(self.stretch[kernel[behind]], return_inverse=True)
        return int(np.minimum(self.in_stretch[stretches], _sums(group, stall[behind])).sum())

    def between(self, begin: int, end: int, but: Union = NO_TIME) -> int:
        """Nanoseconds that are late before what is launched between two times, ``but`` for some times."""
        rows = slice(*np.searchsorted(self.launched, (begin, end)))
        free, late = self.free[rows], self.late[rows]
        return int(late.sum() - but.within(free, free + late).sum())


def _lost_much(timeline: Timeline) -> bool:
    commands = int(timeline.calls.do(COMMANDS).sum())
    return len(timeline.unmade) > LOST_SHARE * commands


def _sums(group: Ints, values: Ints) -> Ints:
    """The sum of the values of each group, whose numbers count from 0."""
    return np.bincount(group, weights=values).astype(np.int64)
