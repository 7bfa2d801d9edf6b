"""Two ways of running a loop, compared by short blocks of steps in pairs: what the host's clock does hits both."""

from __future__ import annotations

import random
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

DEAREST = 20.0
"""A step that took longer than so many usual ones was another process."""

RESAMPLES = 2000


def midmean(values: Sequence[float]) -> float:
    """The mean of the middle half: little is lost where nothing disturbs, and what does is left out."""
    ordered = sorted(values)
    cut = len(ordered) // 4
    return statistics.fmean(ordered[cut : len(ordered) - cut])


@dataclass(frozen=True)
class Pair:
    """A block of steps with what is measured, of those that do what most do, and one without. Lengths in seconds."""

    off: tuple[float, ...]
    usual: tuple[float, ...]

    @property
    def ratio(self) -> float | None:
        """A usual step's length, as a multiple of one without."""
        return midmean(self.usual) / midmean(self.off) if self.usual else None


@dataclass(frozen=True)
class Stretch:
    """Steps in a row with what is measured, of a loop that is not interrupted. Lengths in seconds.

    ``rare`` ones do more than ``usual`` ones, such as those drawn to be counted: they are few, and their cost is a mean
    and no median. What else makes a step longer meets both alike.
    """

    usual: tuple[float, ...]
    rare: tuple[float, ...]

    @property
    def sums(self) -> tuple[float, int, float, int]:
        """The lengths of the rare steps, all together, and their number; the same of usual ones. In usual steps."""
        length = midmean(self.usual)
        rare, usual = (sum(min(one / length, DEAREST) for one in steps) for steps in (self.rare, self.usual))
        return rare, len(self.rare), usual, len(self.usual)


@dataclass(frozen=True)
class Estimate:
    """The mean length of a step, as a multiple of one without, and its 95 % bootstrap interval."""

    ratio: float
    low: float
    high: float


def estimate(pairs: Sequence[Pair], stretches: Sequence[Stretch] = (), seed: int = 0) -> Estimate:
    """Usual steps are compared by ``pairs``; what rare ones have more is told by ``stretches``. Raises ``ValueError``
    where no pair has a usual step."""
    ratios = [pair.ratio for pair in pairs if pair.ratio is not None]
    if not ratios:
        raise ValueError("no pair has a usual step")
    sums = [one.sums for one in stretches if one.usual]
    draw = random.Random(seed)
    found = sorted(
        midmean(draw.choices(ratios, k=len(ratios))) * (1 + _more(draw.choices(sums, k=len(sums))))
        for _ in range(RESAMPLES)
    )
    whole = midmean(ratios) * (1 + _more(sums))
    return Estimate(whole, found[round(0.025 * len(found))], found[round(0.975 * len(found)) - 1])


def _more(sums: Sequence[tuple[float, int, float, int]]) -> float:
    """What rare steps have more than usual ones, over all steps, in usual steps."""
    rare, rares, usual, usuals = (sum(column) for column in zip(*sums, strict=True)) if sums else (0, 0, 0, 0)
    return (rare - usual / usuals * rares) / (rares + usuals) if usuals else 0.0
