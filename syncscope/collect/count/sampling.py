"""Which steps are counted: all of them where waits are rare or the phase is, else steps drawn at random."""

from __future__ import annotations

import math
import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from syncscope.collect.count.account import Prices

EVERY_STEP = 0.005
"""Up to this share of a phase's time, all its steps are counted."""

SAMPLED = 0.003
"""The share of a phase's time that counting drawn steps takes."""

ALL = 0.007
"""Of it, following the phase and counting take so much together: where steps are so short that following them takes
most of it, fewer are counted, ..."""

LEAST = 0.001
"""... but some are."""

SLACK_NS = 1_000_000
"""What a phase may cost beyond it before steps are drawn: a wait in one of ten short steps is not dense."""

RETURN_NS = 5_000_000
"""Once steps of a rare phase are drawn, so much more must be left for what is rare before all are counted again."""

NEW_STEPS = 3
"""The first steps of a phase are counted, whatever they cost."""

MEMORY = 0.1
"""Weight of the last block of steps in the averages."""

BLOCK_NS = 5_000_000
"""Steps are looked at again after so long while they are new, ..."""

LONGEST_BLOCK = 64

STEADY_NS = 200_000_000
"""... and after so long once their waits turned out to be rare: looking takes some thirty calls of Python's, which each
step of a few milliseconds would pay for. Where waits become dense, counting pauses inside of the block."""

STEADY_BLOCKS = 16
"""Blocks in a row of which all steps are counted, because their waits are rare, before they are longer."""

GATED = 0.4
"""Wrappers stay in steps that are not counted while passing through them takes at most this part of what counting may
take. Else they are taken out."""

LONGEST_RUN = 16
"""Drawn steps come in runs of so many at most, where putting wrappers in costs as much as counting several steps."""

FREE_OUTS = 100
OUTS_PER_DOUBLING = 25
"""From then on, runs are twice as long after every so many times that wrappers were taken out: since Python 3.13 a
class whose attributes changed a thousand times loses its cache for attributes."""


LAST = 0.001
"""The share of the time that may go into counting the last step of each stay in a phase, and as much into its first
one, besides drawn steps."""

FEW_RUNS = 7
"""Runs of counted steps that are compared with the steps around them before that is believed."""

RUNS_KEPT = 15

SURELY = 2.33
"""Of a normal distribution: in 99 of 100 cases the median of runs is above the bound that is taken. Where steps differ
by milliseconds, half of all medians tell of a cost that is not there, and once one is believed, few runs tell better.
"""

DEAREST = 8.0
"""A run is not taken to cost more than so many times what its prices say."""


class Draw:
    """Random numbers of our own: never those of the program. ``uniform`` is between 0 and 1."""

    def __init__(self, uniform: Callable[[], float] | None = None) -> None:
        self._uniform = uniform or random.Random().random

    def about(self, number: int) -> int:
        """``number`` on average: half as many to half as many more."""
        return number // 2 + int(self._uniform() * (number + 1))

    def gap(self, one_in: float, together: int) -> int:
        """Steps to leave out before the next ``together`` ones, so that one in ``one_in`` is counted on average."""
        away = together * (one_in - 1)  # the mean of the gap
        if away <= 0:
            return 0
        return int(math.log(1 - self._uniform()) / math.log(away / (1 + away)))


@dataclass(slots=True)
class Averages:
    """Of the steps of one phase, in ns: their length without counting, what counting one costs, and what one costs that
    is not counted while wrappers are in. ``following`` it costs so much more, counted or not."""

    length: float = 0.0
    cost: float = 0.0
    gate: float = 0.0
    following: float = 0.0
    lengths: int = 0
    costs: int = 0
    whole: bool = False

    def add_length(self, total: float, steps: int, following: float = 0.0) -> None:
        """Of a block of ``steps``. The first steps of all, each a block, load kernels: they weigh no more than they
        are."""
        self.lengths += steps
        weight = max(MEMORY, steps / self.lengths)
        self.length += weight * (total / steps - self.length)
        self.following += weight * (following / steps - self.following)

    def add_cost(self, total: float, gate: float, steps: int, whole: bool = True) -> None:
        """Of a block of steps; not ``whole`` if that is but an estimate, which tells only while none is known whole."""
        if self.whole and not whole:
            return
        self.costs = self.costs + 1 if self.whole is whole else 1
        self.whole = whole
        weight = max(MEMORY, 1 / self.costs)
        self.cost += weight * (total / steps - self.cost)
        self.gate += weight * (gate / steps - self.gate)


class Sampling:
    """The choice for one phase. ``on``: the steps of this block are counted; ``left``: how many they are."""

    def __init__(self, draw: Draw, always: bool) -> None:
        self._draw = draw
        self._always = always
        self._blocks = 0
        self.new = True
        """So few steps were counted that it is not known how dense their waits are."""
        self._next_on = False
        self.averages = Averages()
        self.one_in = 1.0
        """One step in so many is drawn now."""
        self.on = True
        self.left = 1
        self.spared = False
        """All steps are counted though their waits are dense, because the phase is rare."""
        self.out = False
        """Wrappers are in the way of steps that are not counted."""
        self._together = 1
        self._runs: deque[float] = deque(maxlen=RUNS_KEPT)
        """By how much the latest runs of counted steps were longer than as many others, ns."""
        self._run_price = 0.0
        """What a run costs by the prices, ns."""
        self._before = 0.0
        """How long each of the latest steps took that were not counted, ns; 0 where none were."""
        self._run = 0, 0.0, 0
        """Steps that were counted since, how long they took, ns, and in how many blocks."""
        self._length_ns = self._cost_ns = 0.0
        """Of the steps since all of them are counted."""
        self._calm_blocks = 0
        """Blocks in a row whose waits are rare."""
        self.counts_last = False
        """Whether the last step of a stay is being counted."""
        self._planned = (False, 0, False)
        """What comes after it: ``on``, ``left`` and ``_next_on``."""
        self._last_ns = 0.0
        """What counting such a step costs, on average; 0 where none was counted."""

    def next_block(
        self, steps: int, length_ns: float, cost_ns: float, gate_ns: float, *, prices: Prices, outs: int,
        spare_ns: float = 0.0, followed_ns: float = 0.0, share: float = 1.0,
    ) -> None:  # fmt: skip
        """A block of ``steps`` is over, which took ``length_ns``. Choose the next one.

        If it was counted, it cost ``cost_ns``, and would have cost ``gate_ns`` otherwise. Wrappers were taken out
        ``outs`` times so far. ``spare_ns`` may be spent on a phase that is rare, however dense its waits are. Following
        the phase took ``followed_ns``. Counting stopped after ``share`` of the block, if not at its end.
        """
        counted = self.on and share > 0
        averages = self.averages
        if steps:
            averages.add_length(max(length_ns - cost_ns, 0.0), steps, followed_ns)
            if counted:
                begun = self._blocks > 0  # else the phase was told in the midst of the step
                averages.add_cost(cost_ns, gate_ns, steps, whole=share == 1 and begun)
            if self.one_in == 1:
                if counted:
                    self._length_ns += length_ns
                    self._cost_ns += cost_ns
            elif counted:
                counted_steps, counted_ns, blocks = self._run
                self._run = counted_steps + steps, counted_ns + length_ns, blocks + 1
            elif not self.on:
                self._end_run(length_ns / steps)
        self._blocks += counted or not self.on
        self.new = self._blocks < NEW_STEPS
        if self._always or self.new:
            self.on, self.left = True, 1
            return
        self._choose_rate(prices, outs, spare_ns)
        if self.one_in == 1:
            self.on, self.left = True, self._block()
            return
        if self._next_on:
            self.on, self.left, self._next_on = True, self._together, False
            return
        gap = self._draw.gap(self.one_in, self._together)
        if gap:
            self.on, self.left, self._next_on = False, gap, True
        else:
            self.on, self.left = True, self._together

    def _end_run(self, after: float) -> None:
        """Steps that are not counted took ``after`` each. Those that were counted before are compared with them and
        with the ones before: a host that gets slower would make them look dear beside the latter alone."""
        steps, length, blocks = self._run
        if steps and self._before:
            self._runs.append((length - steps * (self._before + after) / 2) / blocks)
        self._before, self._run = after, (0, 0.0, 0)

    def last_price(self, steps: int, prices: Prices) -> float:
        """What it costs to count the first step of a stay or its last ``steps`` by themselves, in ns."""
        return (self._last_ns or steps * self.averages.cost) + prices.switch + prices.out * self.out

    def count_last(self, left: int, steps: int = 1) -> None:
        """Count the ``steps`` that begin now, and after them ``left`` more of those that are planned."""
        self._planned = self.on, left, self._next_on
        self.on, self.left, self.counts_last = True, steps, True

    def end_last(self, cost_ns: float) -> None:
        """The last step of a stay is over. Counting it cost so much, 0 where it was not counted."""
        if cost_ns:
            self._last_ns += (cost_ns - self._last_ns) * (MEMORY if self._last_ns else 1)
        if self.counts_last:
            self.on, self.left, self._next_on = self._planned
            self.counts_last = False

    def count_this(self) -> None:
        """Count the step that is under way."""
        self.on, self.left, self._next_on, self.counts_last = True, 1, False, False

    def postpone(self, steps: int) -> None:
        """Do not count this block, but the one after ``steps``."""
        self.on, self.left, self._next_on, self.counts_last = False, max(steps, 1), True, False

    @property
    def run_ns(self) -> float:
        """What a run of counted steps costs beyond its prices at least, by the lengths of the latest ones. Where
        wrappers are taken out afterwards, Python learns as much anew in the steps behind it as in the run."""
        kept = len(self._runs)
        if kept < FEW_RUNS:
            return 0.0
        longer = sorted(self._runs)[max(int((kept - SURELY * math.sqrt(kept)) / 2), 0)]
        counting = self.averages.cost * self._together
        seen = counting + 2 * (longer - counting) if self.out else longer
        return min(max(seen - self._run_price, 0.0), (DEAREST - 1) * self._run_price)

    def _choose_rate(self, prices: Prices, outs: int, spare_ns: float) -> None:
        averages = self.averages
        length = max(averages.length, 1.0)
        all_now = self.one_in == 1
        if all_now and not self.spared:
            rare = self._cost_ns <= _share(EVERY_STEP, averages) * self._length_ns + SLACK_NS
        elif rare := averages.cost <= _share(SAMPLED, averages) * length:
            self._length_ns = self._cost_ns = 0.0
        self._calm_blocks = self._calm_blocks + 1 if rare else 0
        self.spared = not rare and spare_ns >= self._block() * averages.cost + RETURN_NS * (not all_now)
        if rare or self.spared:
            self.one_in, self._together, self.out = 1.0, 1, False
            return
        budget = _share(SAMPLED, averages) * length
        self.out = averages.gate > GATED * budget
        if self.out:
            self._together = min(math.ceil(prices.out / averages.cost), LONGEST_RUN)
            self._together <<= min(max(outs - FREE_OUTS, 0) // OUTS_PER_DOUBLING, 20)
            self._run_price = averages.cost * self._together + prices.out + prices.switch
            self.one_in = (self._run_price + self.run_ns) / self._together / budget
        else:
            self._together = 1
            self._run_price = averages.cost + prices.switch
            self.one_in = (self._run_price + self.run_ns - averages.gate) / (budget - averages.gate)
        self.one_in = max(self.one_in, 1.001)

    def _block(self) -> int:
        length = max(self.averages.length, 1.0)
        steady = int(STEADY_NS / length) if self._calm_blocks >= STEADY_BLOCKS else 0
        return max(1, steady, min(LONGEST_BLOCK, int(BLOCK_NS / length)))


def _share(most: float, averages: Averages) -> float:
    """The share of such steps that counting may take: at most ``most``."""
    return max(min(most, ALL - averages.following / max(averages.length, 1.0)), LEAST)
