"""How fast copies are when they are pinned: from the trace where it holds such copies, else measured by device."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from syncscope.timeline import Timeline

MEASURED = {"H200": 55.0}
"""GB/s between pinned memory and a device, either way, by a part of its name."""

ANY_DEVICE = 25.0
"""GB/s where nothing was measured: what PCIe 4.0 carries."""

START = 1_500.0
"""Nanoseconds that a copy takes however small it is."""

LARGE = 1_000_000
"""Bytes from which on a copy shows the rate of its link."""


@dataclass(frozen=True)
class Rate:
    """Of copies from or to pinned memory."""

    bytes_per_ns: float
    assumed: str | None
    """What was taken for granted where the trace shows no such copy; ``None`` where it does."""

    def ns(self, size: int) -> float:
        """How long a copy of ``size`` bytes takes, to a tenth of a microsecond."""
        return round(START + size / self.bytes_per_ns, -2)


def pinned_rate(timeline: Timeline, direction: str) -> Rate:
    """The rate of a direction (``HtoD``, ``DtoH``)."""
    copies = timeline.copies
    shown = copies[(copies["direction"] == direction) & (copies["memory"] == "pinned") & (copies["bytes"] >= LARGE)]
    if len(shown):
        rates = shown["bytes"].to_numpy() / np.maximum(shown["dur"].to_numpy() - START, 1.0)
        return Rate(float(np.median(rates)), None)
    name = timeline.info().device or ""
    known = next((rate for part, rate in MEASURED.items() if part in name), None)
    what = f"pinned copies are taken to run at {known or ANY_DEVICE:.0f} GB/s"
    return Rate(known or ANY_DEVICE, f"{what}, as measured on {name}" if known else f"{what}: the trace has none")
