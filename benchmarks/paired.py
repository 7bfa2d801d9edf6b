"""Two ways of running a loop, compared by short blocks of steps in pairs: what the host's clock does hits both."""

from __future__ import annotations

import random
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

DEAREST = 20.0
"""A rare step that took longer than so many usual ones was another process."""

RESAMPLES = 2000


def midmean(values: Sequence[float]) -> float:
    """The mean of the middle half: little is lost where nothing disturbs, and what does is left out."""
    ordered = sorted(values)
    cut = len(ordered) // 4
    return statistics.fmean(ordered[cut : len(ordered) - cut])


@dataclass(frozen=True)
class Pair:
    """A block of steps with what is measured, and one without. Lengths in seconds.

    ``usual`` are steps that do what most do; ``rare`` ones do more, such as those drawn to be counted: they are few,
    and their cost is a mean and no median.
    """

    off: tuple[float, ...]
    usual: tuple[float, ...]
    rare: tuple[float, ...] = ()

    @property
    def ratio(self) -> float | None:
        """A usual step's length, as a multiple of one without."""
        return midmean(self.usual) / midmean(self.off) if self.usual else None

    @property
    def rare_ratio(self) -> float:
        """The lengths of the rare steps, all together, as a multiple of one without."""
        return sum(min(length / midmean(self.off), DEAREST) for length in self.rare)


@dataclass(frozen=True)
class Estimate:
    """The mean length of a step, as a multiple of one without, and its 95 % bootstrap interval."""

    ratio: float
    low: float
    high: float


def estimate(pairs: Sequence[Pair], seed: int = 0) -> Estimate:
    """Of all ``pairs``. Raises ``ValueError`` where none has a usual step."""
    rows = [(pair.ratio, pair.rare_ratio, len(pair.rare), len(pair.usual) + len(pair.rare)) for pair in pairs]
    whole = _ratio(rows)
    if whole is None:
        raise ValueError("no pair has a usual step")
    draw = random.Random(seed)
    drawn = (_ratio(draw.choices(rows, k=len(rows))) for _ in range(RESAMPLES))
    found = sorted(ratio for ratio in drawn if ratio is not None)
    return Estimate(whole, found[round(0.025 * len(found))], found[round(0.975 * len(found)) - 1])


def _ratio(rows: Sequence[tuple[float | None, float, int, int]]) -> float | None:
    ratios = [row[0] for row in rows if row[0] is not None]
    if not ratios:
        return None
    usual = midmean(ratios)
    longer = sum(row[1] for row in rows) - usual * sum(row[2] for row in rows)
    return usual + longer / sum(row[3] for row in rows)


def plain_ratio(pairs: Sequence[Pair]) -> float:
    """The means of all steps, with whatever disturbed them."""
    on = [length for pair in pairs for length in (*pair.usual, *pair.rare)]
    return statistics.fmean(on) / statistics.fmean([length for pair in pairs for length in pair.off])
