"""Time steps with no profiler, and let steps pass until the program is as it is without us.

All of it is generators that each step boundary resumes.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Generator, Sequence

from msgspec import structs

from syncscope.collect.bare.loader import interval_ns, median_ready
from syncscope.collect.bare.moments import HostMoments
from syncscope.collect.bare.steps import Median, Step, set_aside, stamps
from syncscope.collect.clocks import ClockWatch
from syncscope.schema.recording import Bare

LONGEST = 4
"""The window ends after this many times its steps, even if something else intruded in most of them."""

MOST_STEPS = 200
"""Steps kept where it goes on until the median is known."""

CALM_STEPS, CALM_S = 20, 1.0
"""Steps and seconds that may pass before the first bare step."""

AFTER_S = 3.0
"""Seconds that may pass before they are timed again."""

CLOCK_S = 0.3
"""Seconds that the clock of a GPU at its power limit needs after a pause."""

NOTICED_S = 0.1
"""Seconds of recorded steps, and those before them, that give a few samples."""

SAMPLED_S = 1.0
"""Seconds of bare steps in which power and clock are sampled."""

SHORT = 0.9
"""Of the median bare step: what is shorter is worth a note."""

Steps = Generator[None, None, None]


class BareWindow:
    """``intruder()`` is the kind of the phase that came into the step that has just ended, ``None`` if none did."""

    def __init__(
        self,
        sync: Callable[[], None],
        host: HostMoments,
        intruder: Callable[[], str | None],
        clocks: ClockWatch | None = None,
    ) -> None:
        self._sync = sync
        self._host = host
        self._intruder = intruder
        self._clocks = clocks
        self.span_ns = 0, 0
        """Begin and end of the steps in which the GPU was watched, Unix time."""
        self.clock_s = 0.0
        """Seconds that should pass before the recorded steps, for the GPU's clock and its sensors."""
        self.clean = 0
        """Steps that nothing intruded in."""

    def before(self, least: int, *, settle: int) -> Generator[None, None, Bare]:
        """Time ``least`` steps before the windows. At most ``settle`` others pass first: files may have been written
        just now, so that a loader has filled its queue and the device has cooled down."""
        limited = self._clocks is not None and self._clocks.limited
        yield from self.calm(steps=min(CALM_STEPS, settle), seconds=CALM_S, least_s=CLOCK_S if limited else 0.0)
        began = time.time_ns()
        bare = yield from self.time(least)
        self.span_ns = began, time.time_ns()
        if self._clocks is not None and self._clocks.sampling:
            self.clock_s = CLOCK_S if self._clocks.limited else NOTICED_S
        return bare

    def after(self, least: int, *, seconds: float, settle: int) -> Generator[None, None, Bare | None]:
        """Time steps after the windows, until their median is known and the GPU was watched long enough; ``None`` where
        there were fewer than ``least``."""
        sampling = self._clocks is not None and self._clocks.sampling
        clock_s = CLOCK_S if sampling else 0.0
        yield from self.calm(steps=settle, seconds=AFTER_S, least_s=clock_s, least=min(settle, 2))
        began = time.time_ns()
        bare = yield from self.time(least, seconds)
        while sampling and time.time_ns() - began < SAMPLED_S * 1e9:
            yield
        self.span_ns = began, time.time_ns()
        return bare if self.clean >= least else None

    def time(self, least: int, seconds: float | None = None) -> Generator[None, None, Bare]:
        """Time steps between two device syncs: ``least`` of them that nothing intruded in, unless there are too few.

        With ``seconds``, go on until their median is known as well, but for so long at most.
        """
        sync, now, host, steps, median = self._sync, time.perf_counter_ns, self._host, list[Step](), Median()
        most = LONGEST * least if seconds is None else MOST_STEPS
        host.open()
        try:
            sync()
            host.take()
            first = begin = now()
            last = False
            while not last:
                yield
                intruder, waited = self._intruder(), now()
                if intruder is None:
                    median.add(waited - begin)
                # Where this step was the last one that is wanted, or waited for, its work ends in it.
                last = len(steps) + 1 >= most
                if seconds is None:
                    last |= len(median) >= least
                else:
                    last |= (len(median) >= least and median.known) or waited - first > seconds * 1e9
                waited = now()
                if last:
                    sync()
                end = now()
                steps.append(Step(begin, end - begin, intruder, *host.take()))
                if len(steps) == 1:
                    host.afford(steps[0].moments, end - begin)
                begin = end
        finally:
            host.close()
        self.clean = len(median)
        return self._describe(steps, end - waited)

    def _describe(self, steps: list[Step], drain_ns: int) -> Bare:
        kept, others = set_aside(steps, drain_ns)
        loader = self._host.loader
        if loader is not None and any(step.batches for step in kept):
            loader = structs.replace(loader, ready=median_ready(kept), interval_ns=interval_ns(kept))
        return Bare(
            steps_ns=tuple(step.length_ns for step in kept),
            set_aside=others,
            stamps=stamps(kept),
            loader=loader,
            drain_ns=drain_ns,
        )

    def calm(self, *, steps: int, seconds: float, least_s: float = 0.0, least: int = 0) -> Steps:
        """Let steps pass after a pause of ours, in which a loader filled its queue: until that no longer shrinks, but
        ``least`` steps and ``least_s`` seconds at least, and ``steps`` and ``seconds`` at most."""
        host, began = self._host, time.monotonic()
        ready: list[int] = []
        host.open(stamps=False)
        try:
            for number in range(steps):
                passed = time.monotonic() - began
                enough = number >= least and passed >= least_s and is_calm(ready, self._capacity())
                if passed > seconds or enough:
                    return
                yield
                ready += [batch.ready for batch in host.take()[1] if batch.ready is not None]
        finally:
            host.close()

    def _capacity(self) -> int:
        """How many batches the loader may have ready; 0 where there is no loader, or it was not asked yet."""
        loader = self._host.loader
        return loader.workers * (loader.prefetch or 0) if loader is not None else 0


def is_calm(ready: Sequence[int], capacity: int) -> bool:
    """Whether a loader's queue of ``capacity`` no longer shrinks, by the batches ``ready`` at each request."""
    if not capacity or ready[-2:] == [0, 0]:
        return True
    asked = max(capacity, 4)
    return len(ready) > asked and ready[-1] >= ready[-1 - asked]


def settle(
    bare: Bare, *, steps: int, seconds: float, least_s: float = 0.0, passed: int | None = None
) -> Generator[None, None, int | None]:
    """Let steps pass until one is as long as the bare ones: after a pause they are shorter for a while, behind a loader
    that has filled its queue or on a device that has cooled down. For ``least_s`` seconds at least, and so many
    ``steps`` and ``seconds`` at most.

    After ``passed`` steps, those that the program had made before, ``least_s`` no longer counts: a program of a few
    quick steps would end before the window.

    Returns ``None``, or the nanoseconds of the last step if they stayed too short.
    """
    usual = sorted(bare.steps_ns)
    enough = min(usual[len(usual) // 4], 0.97 * statistics.median(usual))
    began = before = time.perf_counter_ns()
    for number in range(1, steps + 1):
        yield
        now = time.perf_counter_ns()
        length, before = now - before, now
        long_enough = now - began >= least_s * 1e9 or (passed is not None and number >= passed)
        if length >= enough and long_enough:
            return None
        if now - began > seconds * 1e9:
            break
    return length if steps and length < SHORT * statistics.median(usual) else None
