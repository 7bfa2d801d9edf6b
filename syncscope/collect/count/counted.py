"""What was counted so far, and what that cost."""

from __future__ import annotations

from collections.abc import Callable

from syncscope.collect.count.account import Account, Prices
from syncscope.collect.count.bins import Bins
from syncscope.collect.count.parts import times_as_long
from syncscope.collect.count.phase import Phase
from syncscope.collect.count.phase_tally import PhaseTally
from syncscope.collect.count.tally import Tally
from syncscope.collect.count.visits import HARDLY
from syncscope.schema.counting import CountedWait, RunBin


class Counted:
    """Tells what ``tally`` and ``account`` hold. It may be asked from any thread, also while waits are counted.

    ``clock`` counts nanoseconds.
    """

    _state: PhaseTally
    """Of the current phase, from the begin of counting on."""

    def __init__(self, tally: Tally, account: Account, clock: Callable[[], int]) -> None:
        self.tally = tally
        self._account = account
        self._clock = clock
        self._bins = Bins(0)
        self._opened = self._suspended = False
        self._mark = 0
        """The time up to which all is booked."""

    def waits(self) -> tuple[CountedWait, ...]:
        """All places so far."""
        found = []
        for state in list(self.tally.phases.values()):
            most = max(self.counted_steps(state.phase) + 1, 1)
            sampled = state.sampled(self._counts(state))
            waits = (place.waits(state.phase.number, most, sampled) for place in state.places)
            found += [wait for wait in waits if wait is not None]
        return tuple(found)

    def counted_steps(self, phase: Phase) -> int:
        """Steps of ``phase`` whose waits were counted."""
        state = self.tally.phases.get(phase.number)
        if state is None:
            return 0
        here = 0 if self._suspended or not self._opened else phase.steps - state.since
        counted = state.counted_steps + max(here, 0) * self._counts(state) - state.lacking
        return counted or min(state.parts, phase.steps)

    def _counts(self, state: PhaseTally) -> bool:
        """Whether the steps of a phase since its last block are counted."""
        return state.sampling.on and self._account.on if state is self._state else state.counts

    def one_in(self, phase: Phase) -> float:
        """One step of ``phase`` in so many was counted. Where counting stopped inside steps: the time instead."""
        state, counted = self.tally.phases.get(phase.number), self.counted_steps(phase)
        if state is None:
            return 1.0
        if state.stepless:
            scale = times_as_long(state.time_ns, state.counted_ns, state.cost_ns)
            return scale if scale > HARDLY else 1.0
        by_steps = (phase.steps - state.first) / counted if counted else 1.0
        since = self._unsettled_ns() if state is self._state else 0
        counted_ns = state.counted_ns + since * self._account.on
        by_time = (state.time_ns + since) / counted_ns if state.cut and counted_ns else 1.0
        return max(by_steps, by_time, 1.0)

    @property
    def failure(self) -> str:
        """Why some waits are missing; empty where none is."""
        return self.tally.failure

    @property
    def dropped(self) -> int:
        """Waits at further places, once there were too many to keep."""
        return self.tally.dropped

    @property
    def prices(self) -> Prices:
        """What counting costs here, in the midst of the program."""
        return self._account.prices

    @property
    def coldness(self) -> float:
        """How many times slower our code is in the program than in a loop."""
        return self._account.coldness

    @property
    def overhead_share(self) -> float | None:
        """What counting cost so far, as a share of the time outside windows."""
        time_ns = self._account.time_ns + self._unsettled_ns()
        return self._account.cost_ns / time_ns if time_ns else None

    @property
    def bins(self) -> tuple[RunBin, ...]:
        return self._bins.taken()

    def _unsettled_ns(self) -> int:
        return self._clock() - self._mark if self._opened and not self._suspended else 0
