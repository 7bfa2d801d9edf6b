"""Steps that were counted in part: how long they were, and how much of that was counted."""

from __future__ import annotations

MOST = 16.0
"""What is counted is not told of more than so many times its time: of so small a part it may be unlike the rest."""


MOST_COST = 0.75
"""What is taken for the cost of counting is at most this part of the time in which it was done."""


def without_cost(time_ns: float, counted_ns: float, cost_ns: float) -> tuple[float, float]:
    """A time, and the part of it that was counted, as they were had counting cost nothing: in the rest of the time the
    program did more than in as much of what was counted."""
    cost_ns = min(cost_ns, MOST_COST * counted_ns)
    return time_ns - cost_ns, counted_ns - cost_ns


def times_as_long(time_ns: float, counted_ns: float, cost_ns: float) -> float:
    """How many times as long as it was counted something took, had that cost nothing; 1 where it was not counted."""
    time_ns, counted_ns = without_cost(time_ns, counted_ns, cost_ns)
    return time_ns / counted_ns if counted_ns else 1.0


class Parts:
    """All such steps of one phase. What was counted in them is told of all their time."""

    def __init__(self) -> None:
        self._time_ns = self._counted_ns = 0.0

    def add(self, time_ns: float, counted_ns: float) -> None:
        """So much more of the steps was seen, and so much of it counted."""
        self._time_ns += time_ns
        self._counted_ns += counted_ns

    def scale(self, time_ns: float = 0.0, counted_ns: float = 0.0) -> float:
        """How many times as long as what was counted the steps were, with ``time_ns`` of one that is under way."""
        counted_ns += self._counted_ns
        scale = (self._time_ns + time_ns) / counted_ns if counted_ns > 0 else 1.0
        return min(max(scale, 1.0), MOST)


class CutParts(Parts):
    """Steps in which counting stopped. Of one that is under way, what it took since then is not known yet."""

    def __init__(self) -> None:
        super().__init__()
        self._open = Parts()
        self._since_ns: float | None = None
        """Time of the block when counting stopped in the step that is under way; ``None`` where it did not."""

    def cut(self, counted_ns: float, block_ns: float) -> None:
        """Counting stops in a step of which ``counted_ns`` were counted, all so far. Its block took ``block_ns``."""
        self._open = Parts()
        self._since_ns = block_ns
        self._add(counted_ns, counted_ns)

    def end(self, steps: int, block_ns: float) -> None:
        """That step is over: one of ``steps`` that ended since. The block took ``block_ns``."""
        if self._since_ns is not None:
            self._add((block_ns - self._since_ns) / steps, 0.0)
            self._since_ns = None

    def take(self, block_ns: float) -> tuple[float, float] | None:
        """Forget the step that is under way. Returns its time and how much of that was counted; ``None`` where counting
        did not stop in it."""
        if self._since_ns is None:
            return None
        self._add(block_ns - self._since_ns, 0.0)
        time_ns, counted_ns = self._open._time_ns, self._open._counted_ns
        self.add(-time_ns, -counted_ns)
        self._since_ns = None
        return time_ns, counted_ns

    def _add(self, time_ns: float, counted_ns: float) -> None:
        self.add(time_ns, counted_ns)
        self._open.add(time_ns, counted_ns)
