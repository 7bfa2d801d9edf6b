"""Choose which steps are counted, by what that costs and what may be spent."""

from __future__ import annotations

from syncscope.collect.count.account import Account
from syncscope.collect.count.phase_tally import PhaseTally
from syncscope.collect.count.switch import Switch
from syncscope.collect.count.tally import Tally


class Choice:
    """Chooses which blocks of steps of a phase are counted, and when counting pauses. It switches nothing itself.

    ``account`` says what may be spent, ``tally`` since when there are phases, and ``switch`` whether the wrappers are
    in the way of steps that are not counted, which is booked as well.
    """

    def __init__(self, tally: Tally, account: Account, switch: Switch) -> None:
        self._tally = tally
        self._account = account
        self._switch = switch
        self.passing_ns = 0.0
        """Passing through the wrappers took so long in the steps since the last counted one."""

    def choose_block(self, state: PhaseTally, steps: int, paused: bool) -> None:
        """Choose whether the next block is counted, as far as the one of so many ``steps`` tells that is over. One that
        lasted tells nothing of others. ``paused``: counting had stopped in it."""
        account, sampling = self._account, state.sampling
        length, cost = state.block_ns, state.block_cost_ns
        share = 1.0
        if paused:
            share = state.block_counted_ns / max(length, 1)
            cost /= share or 1.0  # the rest would have cost as much
        if state.block_counted_ns:
            self.passing_ns = 0.0
        elif self._switch.wrapped:
            passing_ns = steps * sampling.averages.gate
            account.cost_ns += passing_ns
            self.passing_ns += passing_ns
        spare = max(account.rare_left_ns, state.fresh_ns(self._phases_ns)) if self._may_be_rare(state) else 0.0
        sampling.next_block(
            steps,
            length,
            cost,
            state.block_gate_ns,
            prices=account.prices,
            outs=self._switch.outs,
            spare_ns=spare,
            share=share,
            followed_ns=state.block_followed_ns,
        )
        if sampling.on and sampling.one_in > 1:
            account.cost_ns += sampling.run_ns

    def postpone(self, state: PhaseTally) -> None:
        """Let drawn steps wait until they can be afforded."""
        sampling = state.sampling
        if sampling.one_in > 1 and sampling.on:
            needed = sampling.left * sampling.averages.cost
            lacking = needed - self._account.allow(needed)
            if lacking > 0:
                prices = self._account.prices
                sampling.postpone(state.steps_until(lacking + prices.step + prices.switch))

    def pauses(self, state: PhaseTally, paused: bool, begins: bool, tail: bool = False) -> bool:
        """Whether counting has to stop in the phase of ``state``, in which the program is. Else it is limited to what
        may be spent. Where it has ``paused``, it goes on when a step ``begins``, and never inside of one, which would
        be counted in part. ``tail``: this follows a loop, of which something was not counted."""
        account, sampling = self._account, state.sampling
        expected = sampling.left * sampling.averages.cost
        allowed = account.allow(expected, state.block_ns, state.block_cost_ns, self.is_rare(state))
        fresh_ns = state.fresh_ns(self._phases_ns)
        fresh = allowed < fresh_ns
        if fresh:
            allowed = account.limit_to(fresh_ns)
        if tail and allowed < account.tail_left_ns:
            allowed = account.limit_to(account.tail_left_ns)
        if not paused:
            return allowed <= 0
        inside = not (begins or state.stepless or not state.phase.steps)
        enough = 1 if tail else expected if sampling.counts_last else 1 if fresh else state.enough_ns
        return inside or allowed < enough

    def stay_paused(self, state: PhaseTally) -> None:
        """Let steps pass until counting may go on, but look at them again now and then."""
        lacking = state.enough_ns - self._account.allow(0, rare=self.is_rare(state))
        state.sampling.left = state.steps_until(lacking)
        state.choose_weight()

    def is_rare(self, state: PhaseTally) -> bool:
        """Whether counting ``state`` may take what is kept for what is rare. A phase that may be rare and is counted in
        every step takes of it what it lacks: another phase may have spent all else."""
        return state.rare or (state.sampling.one_in == 1 and self._may_be_rare(state))

    def _may_be_rare(self, state: PhaseTally) -> bool:
        return state.may_be_rare(self._phases_ns)

    @property
    def _phases_ns(self) -> int:
        """The time since the first phase began."""
        return self._account.time_ns - self._tally.start_ns
