"""How long a step takes without a profiler."""

from __future__ import annotations

import statistics

from syncscope.schema.recording import Bare


def runs_ahead(bare: Bare) -> bool:
    """Whether the host may have run ahead of the device, so that only the mean of its steps is a step's length."""
    return bare.drain_ns is None or bare.drain_ns > statistics.median(bare.steps_ns)


def bare_step_ns(bare: Bare) -> float | None:
    """The median of the bare steps where the host keeps pace with the device, else their mean; ``None`` without any,
    and for lengths that are none."""
    if not bare.steps_ns:
        return None
    length = float(statistics.mean(bare.steps_ns) if runs_ahead(bare) else statistics.median(bare.steps_ns))
    return length if length > 0 else None
