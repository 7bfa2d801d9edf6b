"""What several outputs say of the GPU's power and clock."""

from __future__ import annotations

from collections.abc import Iterator

from syncscope.schema.gpu import Gpu

OFTEN = 0.1
"""Share of the samples from which a reason is named."""

REASONS = {
    "thermal": "it is hot",
    "hardware slowdown": "its hardware slows it down",
    "power brake": "the machine's power supply slows it down",
    "sync boost": "it keeps pace with other GPUs",
    "clocks set by the user": "its clocks were set by hand",
}
"""Why a clock is low, other than the power limit."""


def describe_gpu(gpu: Gpu | None) -> tuple[str, ...]:
    """What the reader must know of the GPU to read times and savings, one sentence each; mostly nothing."""
    return tuple(_sentences(gpu)) if gpu is not None else ()


def _sentences(gpu: Gpu) -> Iterator[str]:
    if gpu.at_limit:
        limit = f"its {gpu.power_limit_w:,.0f} W limit" if gpu.power_limit_w else "its power limit"
        yield f"The GPU is at {limit}{_clock(gpu)}: idle time that is filled comes back only in part."
    for reason, why in REASONS.items():
        share = gpu.throttled.get(reason, 0.0)
        if share >= OFTEN:
            at = f" ({gpu.temperature_c:.0f} °C)" if reason == "thermal" and gpu.temperature_c is not None else ""
            when = "" if share > 0.95 else f" for {100 * min(share, 1.0):.0f} % of the time"
            held = f"The GPU's clock is held down{when}{_clock(gpu)} because {why}{at}"
            yield f"{held}: kernels take longer than they could."


def _clock(gpu: Gpu) -> str:
    if not gpu.sm_clock_mhz or not gpu.max_sm_clock_mhz:
        return ""
    return f" ({gpu.sm_clock_mhz:,.0f} of {gpu.max_sm_clock_mhz:,.0f} MHz)"
