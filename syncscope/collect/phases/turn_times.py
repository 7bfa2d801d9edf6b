"""How long the turns of one loop take, and what they do to the device."""

from __future__ import annotations

import statistics
from collections.abc import Callable

from syncscope.collect.phases.loops import Loop

LEAST_NS = 100_000
"""Turns that are steps take this long at least. Hearing of one takes a microsecond: in shorter ones that would be more
than 1 %."""

MOST_TURNS = 256
SHORT_TURNS = 32
"""Turns of a loop that are timed, and those after which one with turns that are too short is heard no more."""

REPLAYS_IN = 64
"""Turns that replay a graph once at least, where they are steps of a training that is silent."""


class Turns:
    """The turns of one loop, and how long they took."""

    def __init__(self, loop: Loop) -> None:
        self.loop = loop
        self.ident = id(loop)
        self.count = 0
        self.in_a_row = 0
        """Since the loop around began its last turn, ..."""
        self.longest = 0
        """... and the most of them."""
        self.last_ns = 0
        self.lengths_ns: list[int] = []
        self.around: set[Loop] = set()
        """Loops that it was seen in."""
        self.looks = 0
        """How often a look found the program in it."""
        self.first_used: int | None = None
        self.used: int | None = None
        """Allocations on the device, and waits for it, up to the first turn, and since then up to turn ``used_at``;
        ``None``: not known."""
        self.used_at = 0
        self.replayed_before = 0
        """CUDA graphs that were replayed up to the first turn, ..."""
        self.replayed = 0
        """... and since then, as far as that is counted."""
        self.tells_steps = False
        self.over = False
        """It is not timed any more."""

    @property
    def length_ns(self) -> float | None:
        """Of a turn, in the median; ``None`` before two were heard in a row."""
        return statistics.median(self.lengths_ns) if self.lengths_ns else None

    @property
    def uses_device(self) -> bool:
        """Whether the turns allocate memory of the device, as every operator with a result does, or wait for it. Also
        where that cannot be told."""
        return self.used is None or (self.used_at > 1 and self.used >= self.used_at - 1)

    @property
    def replays(self) -> bool:
        """Whether the turns replay CUDA graphs, or some of them."""
        return self.replayed >= max(self.count / REPLAYS_IN, 1)

    def turned(self, now_ns: int, used: Callable[[], int | None], replayed: int = 0) -> None:
        """A turn began. So many CUDA graphs were ``replayed`` so far."""
        if not self.count:
            self.replayed_before = replayed
        self.replayed = replayed - self.replayed_before
        if self.count & (self.count - 1) == 0:  # asking takes some microseconds
            found = used()
            if self.first_used is None:
                self.first_used = found
            self.used = found - self.first_used if found is not None and self.first_used is not None else None
            self.used_at = self.count
        self.count += 1
        if self.last_ns:
            self.lengths_ns.append(now_ns - self.last_ns)
        self.last_ns = now_ns
        self.in_a_row += 1
        self.longest = max(self.longest, self.in_a_row)
        short = self.count >= SHORT_TURNS and (self.length_ns or 0) < LEAST_NS
        self.over = short or self.count >= MOST_TURNS

    def let_go(self) -> None:
        """They are no steps after all."""
        self.tells_steps, self.over = False, True
        self.lengths_ns.clear()

    def left(self) -> None:
        """The loop around turned."""
        self.last_ns = self.in_a_row = 0
