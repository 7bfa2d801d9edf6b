"""How long a step takes without a profiler."""

from __future__ import annotations

from collections.abc import Sequence

from syncscope.schema.recording import Bare
from syncscope.trace.quantiles import median, quantiles

MIXED = 1.5
"""Where the upper quartile of the lengths is so many times the lower one, steps are of several kinds, as where two
networks are trained in turn: the median is that of one kind, or lies between two."""


def typical_ns(bare: Bare, lengths: Sequence[int]) -> float:
    """Of some lengths, one a bare step, that of a step: the median where steps are alike, else the mean."""
    unlike = bare.runs_ahead or bare.waits_for_loader or _are_mixed(lengths)
    return sum(lengths) / len(lengths) if unlike else median(lengths)


def bare_step_ns(bare: Bare) -> float | None:
    """How long a bare step is; ``None`` without any, and for lengths that are none."""
    length = typical_ns(bare, bare.steps_ns) if bare.steps_ns else 0.0
    return length if length > 0 else None


def _are_mixed(lengths: Sequence[int]) -> bool:
    low, high = quantiles(lengths, (0.25, 0.75))
    return high >= MIXED * low
