"""The books of a run: how long the program was in each phase, what counting cost there, and which steps are over."""

from __future__ import annotations

from collections.abc import Callable

from syncscope.collect.count.account import Account
from syncscope.collect.count.choice import Choice
from syncscope.collect.count.counted import Counted
from syncscope.collect.count.parts import without_cost
from syncscope.collect.count.phase import Tracker
from syncscope.collect.count.phase_tally import PhaseTally
from syncscope.collect.count.tally import Tally


class Books(Counted):
    """Books what passes to the phase that the program is in."""

    def __init__(
        self, tally: Tally, account: Account, clock: Callable[[], int], tracker: Tracker, choice: Choice
    ) -> None:
        super().__init__(tally, account, clock)
        self._tracker = tracker
        self._choice = choice
        self._followed_ns = tracker.followed_ns
        """What following took until ``_mark``."""
        self._tail = False
        """What is counted now follows a loop."""

    def _settle(self) -> None:
        """Book the time and the cost since the last call to the current phase."""
        now, account, state = self._clock(), self._account, self._state
        elapsed, self._mark = now - self._mark, now
        followed, self._followed_ns = self._tracker.followed_ns - self._followed_ns, self._tracker.followed_ns
        if self._suspended:
            self._bins.add(now, state.phase.number, windows=True)
            return
        self._bins.add(now, state.phase.number, waits=account.warnings + account.calls)
        state.block_gate_ns += (account.calls + account.passed + account.copied) * account.prices.gate
        cost = account.settle(elapsed, state.rare)
        account.cost_ns += account.prices.settle + followed
        account.followed_ns += followed
        if not state.rare and self._choice.is_rare(state):  # what the others left is spent first
            account.rare_ns += min(max(-account.allow(0), 0.0), cost, account.rare_left_ns)
        if self._tail:
            account.book_tail(cost, booked=True)
        state.block_followed_ns += followed
        state.block_ns += elapsed
        state.block_cost_ns += cost
        state.cost_ns += cost
        state.time_ns += elapsed
        if account.on:
            state.counted_ns += elapsed
            state.block_counted_ns += elapsed
            state.heard_ns += elapsed
            state.on_ns += without_cost(elapsed, elapsed, cost)[0]
        else:
            state.missed_ns += elapsed

    def _end_block(self, state: PhaseTally) -> None:
        """Book the steps of the phase of ``state`` that are over."""
        steps = state.phase.steps - state.since
        if steps <= 0:
            return
        counted = state.counted_of(steps)
        state.end_steps(counted, steps - counted)
        self._bins.add(self._mark, state.phase.number, steps=steps, counted=counted)

    def _end_blocks(self) -> None:
        """Book the steps of all phases that are over."""
        for state in list(self.tally.phases.values()):
            self._end_block(state)

    def _pause_blocks(self, current: PhaseTally, paused: bool) -> None:
        """Counting is ``paused``, or goes on. Book the steps that are over, and that others are counted in part. The
        program is in the phase of ``current``."""
        for state in list(self.tally.phases.values()):
            between = state is not current and state.told_at_begin
            if between and not paused:
                state.go_on_elsewhere()
                continue
            self._end_block(state)
            if between:
                continue
            if paused:
                state.cut_step()
            elif state is current:
                state.go_on()
            else:
                state.skip_step()
