"""How long a step takes without a profiler."""

from __future__ import annotations

from collections.abc import Sequence

from syncscope.schema.recording import Bare
from syncscope.trace.quantiles import median


def runs_ahead(bare: Bare) -> bool:
    """Whether the host may have run ahead of the device, so that only the mean of its steps is a step's length."""
    return bare.drain_ns is None or bare.drain_ns > median(bare.steps_ns)


def waits_for_loader(bare: Bare) -> bool:
    """Whether the loader sets the pace. Its workers end their batches in bursts: a short step follows a long one."""
    return bare.loader is not None and bool(bare.loader.interval_ns) and not bare.loader.ready


def typical_ns(bare: Bare, lengths: Sequence[int]) -> float:
    """Of some lengths, one a bare step, that of a step: the median where steps are alike, else the mean."""
    unlike = runs_ahead(bare) or waits_for_loader(bare)
    return sum(lengths) / len(lengths) if unlike else median(lengths)


def bare_step_ns(bare: Bare) -> float | None:
    """How long a bare step is; ``None`` without any, and for lengths that are none."""
    length = typical_ns(bare, bare.steps_ns) if bare.steps_ns else 0.0
    return length if length > 0 else None
