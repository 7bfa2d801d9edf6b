"""The hooks of a count taken out and put in again between two steps, as if no time had passed for it."""

from __future__ import annotations

import time
from typing import Any

from torch.optim.optimizer import register_optimizer_step_post_hook

from syncscope.collect.count.counter import Counter
from syncscope.collect.counting import RunCount
from syncscope.collect.phases.signals import Signals
from syncscope.collect.phases.tracker import PhaseTracker


class Hooks:
    """All that ``count`` has in the program's way. In a user's program it stays: there is nothing public for this.

    ``take_out`` and ``put_in`` take a few microseconds and change no state of the count, so that steps are drawn as in
    a program that is never interrupted.
    """

    def __init__(self, count: RunCount) -> None:
        assert count.counter is not None and count.signals is not None and count.tracker is not None, count.notes
        self.counter: Counter = count.counter
        self.signals: Signals = count.signals
        self.tracker: PhaseTracker = count.tracker
        self._out_since = 0
        self._counting = self._wrapping = False
        # Ticks come by the clock, and would find that the program stands still.
        setattr(self.counter, "tick", lambda: None)  # noqa: B010

    def take_out(self) -> None:
        counter, signals = self.counter, self.signals
        self._counting, self._wrapping = counter._account.on, counter._switch.wrapped
        if self._counting:
            counter._switch.set_mode(False)
        if self._wrapping:
            counter._switch._wrappers.take_out()
        for patches in self._patches():
            patches.take_out()
        for handle in signals._handles:
            handle.remove()
        self._out_since = time.perf_counter_ns()

    def put_in(self) -> None:
        counter, signals = self.counter, self.signals
        out_ns = time.perf_counter_ns() - self._out_since
        counter._mark += out_ns
        self.tracker._now += out_ns
        signals._handles = [register_optimizer_step_post_hook(signals.after_optimizer)]
        for patches in reversed(self._patches()):
            patches.put_in()
        if self._wrapping:
            counter._switch._wrappers.put_in()
        if self._counting:
            counter._switch.set_mode(True)

    def _patches(self) -> list[Any]:
        modules = self.signals._modules
        watched = modules._narrow if modules._narrow_since else modules._wide
        return [watched, modules._modes, self.signals._patches]

    def look_at_all(self) -> None:
        """Watch all modules again, as the count does now and then."""
        self.signals._modules._widen()

    @property
    def settled(self) -> bool:
        """Whether only the classes that the program calls are watched."""
        return bool(self.signals._modules._narrow_since)

    @property
    def spent_ns(self) -> tuple[float, float]:
        """What the count believes that it cost so far, and the time in which it did, both in ns."""
        account = self.counter._account
        return account.cost_ns, account.time_ns
