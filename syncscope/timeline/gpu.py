"""What a recording says of the GPU's power and clock."""

from __future__ import annotations

from syncscope.schema.gpu import Gpu
from syncscope.schema.recording import GpuWindow, RecordedGpu

CAPPED = 0.5
"""Share of the samples that say ``power cap`` from which a GPU is at its limit."""

POWER_CAP = "power cap"

AT_LIMIT, BELOW_HIGHEST = 0.97, 0.98
"""Where no reasons were recorded: a GPU is at its limit from this share of its power, below this share of its clock."""


FEWEST = 6
"""Samples from which power is known. A reading may be a tenth of a second old: the first ones after a pause, such as a
profiler's start, were 158 to 760 W where the steps drew some 700 W."""


def settled_window(gpu: RecordedGpu | None) -> GpuWindow | None:
    """The window that shows the GPU as it is without a profiler, else the recorded one, which also counts where it
    alone came to the limit in so short a time; ``None`` without samples."""
    windows = [window for window in (gpu.bare, gpu.timed) if window is not None and window.samples] if gpu else []
    capped = (window for window in windows if windows[0].samples < FEWEST and _is_held_by_power(window))
    return next(capped, windows[0] if windows else None)


def is_capped(gpu: RecordedGpu, window: GpuWindow) -> bool | None:
    """Whether the power limit held the clock down during a window; ``None`` where nothing tells."""
    if window.throttled:
        return _is_held_by_power(window)
    if window.samples < FEWEST:
        return None
    power, limit, clock, highest = window.power_w, gpu.power_limit_w, window.sm_clock_mhz, gpu.max_sm_clock_mhz
    if not power or not limit:
        return None
    if power < AT_LIMIT * limit:
        return False
    return clock <= BELOW_HIGHEST * highest if clock and highest else None


def _is_held_by_power(window: GpuWindow) -> bool:
    return window.throttled.get(POWER_CAP, 0.0) >= CAPPED


def describe_gpu(gpu: RecordedGpu | None) -> Gpu | None:
    """The GPU in the report; ``None`` where the recording did not ask."""
    if gpu is None:
        return None
    window = settled_window(gpu)
    limit, highest = _as_float(gpu.power_limit_w), _as_float(gpu.max_sm_clock_mhz)
    if window is None:
        return Gpu(power_limit_w=limit, max_sm_clock_mhz=highest, missing=gpu.missing)
    return Gpu(
        power_limit_w=limit,
        power_w=_as_float(window.power_w),
        sm_clock_mhz=_as_float(window.sm_clock_mhz),
        max_sm_clock_mhz=highest,
        temperature_c=_as_float(window.temperature_c),
        throttled=dict(sorted(window.throttled.items())),
        at_limit=is_capped(gpu, window),
        missing=gpu.missing,
    )


def _as_float(recorded: float | None) -> float | None:
    """As the report has it: NVML tells whole numbers."""
    return None if recorded is None else float(recorded)
