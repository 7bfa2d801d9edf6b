"""Choose which steps are counted, by what that costs and what may be spent."""

from __future__ import annotations

from syncscope.collect.count.account import Account
from syncscope.collect.count.phase_tally import LISTEN_AFTER, PhaseTally
from syncscope.collect.count.spending import Spending, enough_ns, steps_until
from syncscope.collect.count.stays import FEWEST, LONG
from syncscope.collect.count.switch import Switch
from syncscope.collect.count.tally import Tally

REST = 0.25
"""The part of what last steps of stays may take that the rest of a step may take after an evaluation, say: it lacks in
the evaluations themselves."""


class Choice:
    """Chooses which blocks of steps of a phase are counted, which steps are by themselves, and when counting pauses. It
    switches nothing itself.

    ``account`` says what may be spent, ``tally`` since when there are phases, and ``switch`` whether the wrappers are
    in the way of steps that are not counted, which is booked as well.
    """

    def __init__(self, tally: Tally, account: Account, switch: Switch) -> None:
        self._account = account
        self._spending = Spending(tally, account)
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
        spending = self._spending
        spare = max(account.rare_left_ns, spending.fresh_ns(state)) if spending.may_be_rare(state) else 0.0
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
                sampling.postpone(steps_until(state, lacking + prices.step + prices.switch))

    def pauses(self, state: PhaseTally, paused: bool, begins: bool, tail: bool = False) -> bool:
        """Whether counting has to stop in the phase of ``state``, in which the program is. Else it is limited to what
        may be spent. Where it has ``paused``, it goes on when a step ``begins``, and never inside of one, which would
        be counted in part. ``tail``: this follows a loop, of which something was not counted."""
        account, sampling = self._account, state.sampling
        expected = sampling.left * sampling.averages.cost
        allowed = account.allow(expected, state.block_ns, state.block_cost_ns, self.is_rare(state))
        fresh_ns = self._spending.fresh_ns(state)
        fresh = allowed < fresh_ns
        if fresh:
            allowed = account.limit_to(fresh_ns)
        if tail and allowed < account.tail_left_ns:
            allowed = account.limit_to(account.tail_left_ns)
        if not paused:
            return allowed <= 0
        inside = not (begins or state.stepless or not state.phase.steps)
        enough = 1 if tail else expected if sampling.counts_last else 1 if fresh else enough_ns(state)
        return inside or allowed < enough

    def stay_paused(self, state: PhaseTally) -> None:
        """Let steps pass until counting may go on, but look at them again now and then."""
        lacking = enough_ns(state) - self._account.allow(0, rare=self.is_rare(state))
        state.sampling.left = steps_until(state, lacking)
        state.choose_weight()

    def is_rare(self, state: PhaseTally) -> bool:
        """Whether counting ``state`` may take what is kept for what is rare. A phase that may be rare and is counted in
        every step takes of it what it lacks: another phase may have spent all else."""
        return state.rare or (state.sampling.one_in == 1 and self._spending.may_be_rare(state))

    def leave(
        self, state: PhaseTally, follower: int, now_ns: int, paused: bool, listened: bool = False,
        by_visits: bool = False,
    ) -> None:  # fmt: skip
        """The program leaves the phase of ``state`` for the one with the number ``follower``. Choose whether the last
        step before it does so again is counted by itself. ``paused``: counting has stopped, also for phases of which
        all steps are counted. ``listened``: only the end of its loop told so. ``by_visits``: what waits before the
        other phase is told by how often that began."""
        brief = not listened and state.phase.steps - state.entered_at < LONG
        state.listen_after = LONG if brief else LISTEN_AFTER

        def affords(steps: int, round_ns: int) -> bool:
            return _leaves_out(state, paused) and self._spending.affords(state, steps, round_ns)

        state.stays.leave(state.phase.steps, follower, now_ns, affords, in_some=by_visits and not state.told_at_begin)

    def counts_first(self, state: PhaseTally, now_ns: int, paused: bool) -> bool:
        """A stay in the phase of ``state`` begins with the step that begins now. Returns whether that is to be counted
        by itself: where steps are left out, are told when they begin, and are so many in a stay that its first one is
        unlike the others. A prompt is read in the first step of a generation, and in no other one."""
        before = state.stays.begin(state.phase.steps, now_ns)
        if before is None or not state.told_at_begin or before[0] < FEWEST:
            return False
        return _leaves_out(state, paused) and self._spending.affords(state, 1, before[1])

    def counts_rest(self, state: PhaseTally, now_ns: int, paused: bool) -> bool:
        """The program is back in the midst of a step, after an evaluation, say. Returns whether the rest of it is to be
        counted by itself: what is done with the results comes once an evaluation, and in no step that is left out."""
        sampling, often = state.sampling, state.rests.come_back(state.phase.steps)
        if state.told_at_begin and not state.phase.steps:
            return False  # it begins
        if sampling.counts_last:
            return paused  # by what came in between
        if often and (sampling.one_in > 1 or not paused or state.told_at_begin):
            return False  # steps like it are drawn, or all are counted, or it begins a step
        left = sampling.left - (state.phase.steps - state.since)
        return left > 0 and self._spending.affords(state, 1, state.rests.since_ns(state.phase.steps, now_ns), REST)


def _leaves_out(state: PhaseTally, paused: bool) -> bool:
    """Whether steps are left out. ``paused``: counting has stopped."""
    return paused or state.sampling.counts_last or state.sampling.one_in > 1
