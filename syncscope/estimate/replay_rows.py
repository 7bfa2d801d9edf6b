"""What a replay reads of an item, what a collective in it waits for, and what took time in it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from syncscope.timeline.intervals import Floats

HOST = -1
"""In place of a stream's number: the host, while it is blocked."""


class Interval(NamedTuple):
    """Something that took time in the last step; times in ns since the first step began, (columns,)."""

    stream: int
    """Number of the stream, or ``HOST``."""
    begin: Floats
    end: Floats
    busy: Floats
    """How much of it was really taken: there are gaps between activities."""


class ReplayItem(NamedTuple):
    """What a replay reads of an item, as in ``Items``."""

    pre: float
    own: float
    chain: int
    mark: bool
    follows: bool
    wait: bool
    back: float
    stream: int
    lat: float
    gap: float
    dur: float
    hop: float
    engine: int
    alone: bool
    blocks: bool
    pageable: bool
    loading: float
    period: float
    later: float


class Meeting(NamedTuple):
    """What one collective waits for, (columns,) or the same for all."""

    theirs: Floats | None
    """When the last of the other ranks comes, where that does not depend on this rank; −inf where it does, and ``None``
    where it does in all columns."""
    late: Floats | float
    """How much later than this rank the last one comes, ns, where that depends on this rank."""
    length: float
    """From then to the end, ns."""

    def end(self, start: Floats) -> Floats:
        come = start + self.late
        end: Floats = (come if self.theirs is None else np.maximum(come, self.theirs)) + self.length
        return end
