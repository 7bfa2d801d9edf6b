"""The run in at most ``MAX_BINS`` stretches, for a picture of it."""

from __future__ import annotations

from syncscope.schema.counting import MAX_BINS, RunBin

FIRST_WIDTH_NS = 50_000_000
"""Length of a bin while there are few. It grows when there are too many."""


class _Bin:
    __slots__ = ("counted_steps", "end_ns", "phase", "start_ns", "steps", "waits", "windows")

    def __init__(self, start_ns: int, phase: int) -> None:
        self.start_ns = self.end_ns = start_ns
        self.phase = phase
        self.steps = self.counted_steps = self.waits = 0
        self.windows = False

    @property
    def length_ns(self) -> int:
        return self.end_ns - self.start_ns

    def join(self, later: _Bin) -> None:
        if later.length_ns > self.length_ns:
            self.phase = later.phase
        self.end_ns = later.end_ns
        self.steps += later.steps
        self.counted_steps += later.counted_steps
        self.waits += later.waits
        self.windows |= later.windows


class Bins:
    """Adds up what happens. ``most`` is the number of bins at which neighbours are joined."""

    def __init__(self, start_ns: int, most: int = MAX_BINS) -> None:
        self._start_ns = self._last_ns = start_ns
        self._most = most
        self._width_ns = FIRST_WIDTH_NS
        self._bins: list[_Bin] = []

    def add(
        self, now_ns: int, phase: int, *, steps: int = 0, counted: int = 0, waits: int = 0, windows: bool = False
    ) -> None:
        """What happened in ``phase`` from the last ``add`` to ``now_ns``, or at its end."""
        last = self._bins[-1] if self._bins else None
        full = last is not None and last.length_ns >= self._width_ns and now_ns > self._last_ns
        if last is None or last.phase != phase or last.windows != windows or full:
            last = _Bin(self._last_ns, phase)
            self._bins.append(last)
        last.end_ns = self._last_ns = max(now_ns, self._last_ns)
        last.steps += steps
        last.counted_steps += counted
        last.waits += waits
        last.windows |= windows
        if len(self._bins) >= self._most:
            self._halve()

    def fold(self, phase: int, into: int) -> None:
        """``phase`` turned out to be part of ``into``."""
        for each in self._bins:
            if each.phase == phase:
                each.phase = into

    def _halve(self) -> None:
        """Join neighbours until half are left: those of one phase first, then whatever is short."""
        # Of two neighbours that were not joined, the sum is longer than the width. So half are left, but for windows.
        self._width_ns = max(self._width_ns, 4 * (self._last_ns - self._start_ns) // self._most)
        for same in (True, False):
            if len(self._bins) > self._most // 2:
                self._join(same)
        if len(self._bins) >= self._most:
            for first, second in zip(self._bins[::2], self._bins[1::2], strict=False):
                first.join(second)
            self._bins = self._bins[::2]

    def _join(self, same: bool) -> None:
        kept = self._bins[:1]
        for later in self._bins[1:]:
            fits = kept[-1].length_ns + later.length_ns <= self._width_ns
            alike = kept[-1].windows == later.windows and (kept[-1].phase == later.phase or not same)
            if fits and alike:
                kept[-1].join(later)
            else:
                kept.append(later)
        self._bins = kept

    def taken(self) -> tuple[RunBin, ...]:
        """The bins so far, in order of time."""
        return tuple(
            RunBin(
                start_ns=each.start_ns - self._start_ns,
                length_ns=each.length_ns,
                phase=each.phase,
                steps=each.steps,
                counted_steps=each.counted_steps,
                waits=each.waits,
                windows=each.windows,
            )
            for each in self._bins
        )
