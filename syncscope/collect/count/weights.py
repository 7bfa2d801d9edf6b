"""What each counted step of a phase stands for: itself, and its part of the steps that were left out.

Were each to stand for just the gap before it, what waits in few steps would be told with twice the variance, and what
waits in the first hundred steps only would lack in the last of them. So each stands for the mean of the gaps, and for a
part of what the ones before it left.
"""

from __future__ import annotations

from syncscope.collect.count.sampled import ITSELF, Sampled

MOST_BESIDE = 2.0
"""Steps that one step stands for at most besides itself, in means of the gaps between counted ones: after a pause of
hundreds, the first step may be the first of an epoch, which is unlike the others. Steps that are left are those of the
next blocks, or of all."""

LEAST_BESIDE = 8
"""It may always be so many: where all steps are counted again, those that were left out before are left to them."""

EVEN = 4
"""Besides the mean of the gaps, a step stands for one in so many of the steps that none stands for so far. Where the
ones before it stand for more steps than there were, it stands for as many less."""

GAP_MEMORY = 0.1
"""Weight of the last gap in the mean."""

PAUSE = 8
"""A gap of so many times their mean was not drawn: counting paused. Its steps may be alike, and unlike all others."""


class Weights:
    """Of the steps of one phase. ``weight`` is that of each wait that is counted now: that of each step of the block
    that is under way, but for what follows a loop."""

    def __init__(self) -> None:
        self.forget_weights()

    def forget_weights(self) -> None:
        """Other steps begin."""
        self.counted_steps = 0
        self._set_weight(1.0)
        self.skipped = 0.0
        """Steps that none stands for so far. Negative: steps that are to come, for which those that were counted stand
        as well."""
        self._owed = 0.0
        """Of them, those that the steps of this block stand for, which may end before it has as many as it was to."""
        self._alone = 0
        """Steps that were counted, and for which none stands but themselves."""
        self._beside = 0.0
        """Steps that others stand for besides themselves."""
        self._spread = 0.0
        """The variance of what they tell of a place whose waits in a step have the variance 1."""
        self._gap = 0
        """Steps left out since the last counted one."""
        self._usual_gap = 0.0
        """The mean of the steps left out before each step that was counted, lately, ..."""
        self._expected = 0.0
        """... or what that is to be, where it is more."""

    def begin_weight(self, steps: int, usual: float) -> None:
        """So many ``steps`` are to be counted, or none. Before each, ``usual`` ones are left out on average."""
        self.skipped, self._owed = self.skipped + self._owed, 0.0
        weight = 1.0
        self._expected = usual = max(self._usual_gap, usual)
        if steps and (self.skipped or usual):
            beside = usual + self.skipped / steps / EVEN
            beside = min(max(beside, 0.0), MOST_BESIDE * usual + LEAST_BESIDE)
            self._owed = steps * beside
            self.skipped -= self._owed
            weight += beside
        self._set_weight(weight)

    def _set_weight(self, weight: float) -> None:
        self.weight = self._step_weight = weight
        self.tail: bool | None = None
        """What follows the loop is being counted, in a step that was counted before that, or not. ``None`` elsewhere.
        """

    def begin_tail(self, counted: bool) -> None:
        """What follows the loop is no part of what its last step stands for, which was ``counted`` so far or not."""
        self.tail, self.weight = counted, ITSELF

    def weigh_itself(self) -> None:
        """A step begins that stands for no other one."""
        self.skipped, self._owed = self.skipped + self._owed, 0.0
        self._set_weight(ITSELF)

    def weigh(self, counted: int, left_out: int, alone: int = 0) -> None:
        """Steps are over, of which some were counted, and others, too, that stand for themselves ``alone``."""
        self.counted_steps += counted + alone
        self._alone += alone
        self.skipped += left_out
        self._gap += left_out
        if self._step_weight == ITSELF:
            self._alone += counted
        elif counted:
            self._end_gap(counted)
            beside = counted * (self._step_weight - 1)
            self._owed -= beside
            if self._owed < 0:  # more steps came than the block was to have
                self.skipped, self._owed = self.skipped + self._owed, 0.0
            self._beside += beside
            self._spread += beside * self._step_weight

    def _end_gap(self, counted: int) -> None:
        gap, self._gap = float(self._gap), 0
        most = PAUSE * max(self._expected, 1.0)
        if gap > most:
            self._spread += gap * (gap + 1)
            gap = most
        self._usual_gap += GAP_MEMORY * (gap / counted - self._usual_gap)

    def told(self, every: int, counted: int, left_out: int, lacking: int = 0, under_way: int = 0) -> Sampled:
        """What the counted steps tell of ``every`` step. Those since the last block were ``counted``, or ``left_out``;
        ``lacking`` of all that were seemed to be, and so many that are ``under_way`` stand for others already. Steps
        that stand for themselves are no part of it."""
        left_out += lacking
        alone = self._alone + counted * (self._step_weight == ITSELF)
        beside_one = max(self._step_weight - 1, 0.0)
        pending = max(min((counted + under_way) * beside_one, self._owed), counted * beside_one)
        steps, told = every - alone, self._beside + pending
        untold = self.skipped + self._owed - pending + left_out
        share = beside = 1.0
        if told and 0 < told + untold <= MOST_BESIDE * told:
            beside = 1 + untold / told
        elif 0 < untold < steps:
            share = steps / (steps - untold)
        tail = self._gap + left_out
        return Sampled(
            share=share,
            beside=beside,
            mean=max(steps / max(self.counted_steps + counted - alone - lacking, 1), 1.0),
            spread=(share * beside) ** 2 * (self._spread + pending * self._step_weight) + tail * (tail + 1),
            stood_for=max(steps - untold, 1),
            all_steps=every,
        )
