"""What may be spent on counting one phase, by how rare it is and what it has cost so far."""

from __future__ import annotations

import math

from syncscope.collect.count.account import CAP, FLOOR, Account
from syncscope.collect.count.phase_tally import PhaseTally
from syncscope.collect.count.sampling import LAST
from syncscope.collect.count.tally import Tally

PAUSE_NS, MOST_CUTS = 2_000_000, 4
"""Once counting has stopped because it cost too much, it goes on when so much may be spent again: twice as much after
each step in a row that could not be counted whole, so many times."""

FRESH_NS = 1_000_000
"""What counting a phase may cost, however much was spent before: a program may save a checkpoint just once, when all is
spent, or train for ten steps. Where all steps of a phase are not to be counted, that is so after its first one: all
that is made once, such as compiled code, is made in it."""

FRESH_SHARE = 0.0001
"""Of the time so far, where that is more, and the phase is rare: the first evaluation after an hour of training that
waits all the time is counted whole."""

SELDOM_NS, SELDOM_PART = 500_000_000, 1 / 16
"""What comes once in so long may take so much of what is left for what is rare: a program that makes a model every
other second moves a hundred weights each time."""

LOOK_NS = 500_000_000
"""Once counting has stopped, it is looked again after so long whether it may go on."""

RARE_SHARE = 0.05
"""Of the time since the first phase began: what a phase other than training takes at most where it is rare."""


class Spending:
    """Of what ``account`` leaves. ``tally`` says since when there are phases."""

    def __init__(self, tally: Tally, account: Account) -> None:
        self._tally = tally
        self._account = account

    def may_be_rare(self, state: PhaseTally) -> bool:
        """Whether all steps of the phase of ``state`` are to be counted, if that can be afforded."""
        return _may_be_rare(state, self._phases_ns)

    def fresh_ns(self, state: PhaseTally) -> float:
        """What may still be spent on the phase of ``state``, however much was spent before."""
        time_ns = self._phases_ns
        if _may_be_rare(state, time_ns):
            return max(max(FRESH_NS, FRESH_SHARE * time_ns) - state.cost_ns, 0.0)
        return max(FRESH_NS - (state.cost_ns - state.first_cost_ns), 0.0)

    def affords(self, state: PhaseTally, steps: int, round_ns: int, share: float = 1.0) -> bool:
        """Whether ``steps`` that come once in ``round_ns`` may be counted by themselves, and not drawn. That may take
        ``share`` of ``LAST``. Where it comes seldom, it may also take a part of what is left for what is rare."""
        account = self._account
        seldom_ns = SELDOM_PART * account.rare_left_ns if round_ns >= SELDOM_NS else 0.0
        return state.sampling.last_price(steps, account.prices) <= max(share * LAST * round_ns, seldom_ns)

    @property
    def _phases_ns(self) -> int:
        """The time since the first phase began."""
        return self._account.time_ns - self._tally.start_ns


def _may_be_rare(state: PhaseTally, time_ns: int) -> bool:
    """Phases took ``time_ns`` so far."""
    kind = state.phase.kind
    return state.stepless or kind == "evaluate" or (kind != "train" and state.time_ns <= RARE_SHARE * time_ns)


def enough_ns(state: PhaseTally) -> int:
    """What must be allowed for counting to go on in the phase of ``state`` once it has stopped."""
    return PAUSE_NS << min(state.cuts, MOST_CUTS)


def steps_until(state: PhaseTally, saved_ns: float) -> int:
    """Steps of the phase of ``state`` that pass until ``saved_ns`` more may be spent, or it is time to look again.
    Following the phase takes its part of what may be spent meanwhile. Few steps do not tell how long many take: the
    first may have been told in its midst."""
    averages = state.sampling.averages
    length = max(averages.length, 1.0)
    saved = max(CAP * length - averages.following, FLOOR * length)
    wanted = math.ceil(min(saved_ns / saved, LOOK_NS / length))
    return max(min(wanted, 2 * averages.lengths + 1), 1)
