"""Power, clock and throttling of a GPU in the report."""

import msgspec


class Gpu(msgspec.Struct, frozen=True, kw_only=True):
    """What NVML said of the GPU while the steps ran, those without a profiler where they were looked at. What is not
    known is ``None``."""

    power_limit_w: float | None = None
    """Enforced, watts."""
    power_w: float | None = None
    """Average, watts."""
    sm_clock_mhz: float | None = None
    """Median."""
    max_sm_clock_mhz: float | None = None
    temperature_c: float | None = None
    throttled: dict[str, float] = {}
    """Reason → share of the samples: ``power cap``, ``thermal``, ``hardware slowdown``, ``power brake``,
    ``sync boost``, ``clocks set by the user``."""
    at_limit: bool | None = None
    """Whether the power limit holds the clock down; ``None`` also where too few samples tell."""
    missing: str | None = None
    """Why nothing is known."""
