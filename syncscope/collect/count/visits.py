"""Visits to a phase without steps: how much of each was counted, and how many were."""

from __future__ import annotations

from typing import NamedTuple

from syncscope.collect.count.parts import without_cost

HARDLY = 1.01
"""What lasted at most so many times as long as it was counted was counted whole."""


class Visited(NamedTuple):
    """What is known of the visits to one phase."""

    scale: float = 1.0
    """The one that is under way lasted so many times as long as it was counted."""
    under_way_ns: int = 0
    """How long that is."""
    seen: int = 0
    """Visits that were counted, whole or in part."""
    missed: int = 0
    """Those of which nothing was counted, ..."""
    missed_ns: int = 0
    """... and how long they lasted, all together."""


class Visits:
    """Of one phase. Each time that the program enters it is a visit, as steps are of others: what was missed of one
    tells nothing of another."""

    def __init__(self) -> None:
        self._begun = 0, 0, 0.0
        """Time in the phase, what of it was counted and what that cost, when the visit that is under way began."""
        self._ended = Visited()

    def so_far(self, time_ns: int, counted_ns: int, cost_ns: float) -> Visited:
        """What is known with the visit that is under way. The phase has so much time, of which so much was counted, at
        this cost."""
        before_ns, before_counted_ns, before_cost_ns = self._begun
        length_ns, counted = time_ns - before_ns, counted_ns - before_counted_ns
        if length_ns <= 0:
            return self._ended
        seen, missed, missed_ns = self._ended[2:]
        if counted <= 0:
            return Visited(1.0, length_ns, seen, missed + 1, missed_ns + length_ns)
        time, part = without_cost(length_ns, counted, max(cost_ns - before_cost_ns, 0.0))
        scale = time / part
        return Visited(scale if scale > HARDLY else 1.0, length_ns, seen + 1, missed, missed_ns)

    def end(self, time_ns: int, counted_ns: int, cost_ns: float) -> Visited:
        """The visit is over. Returns what is known with it."""
        visited = self.so_far(time_ns, counted_ns, cost_ns)
        self._ended = visited._replace(scale=1.0, under_way_ns=0)
        self._begun = time_ns, counted_ns, cost_ns
        return visited
