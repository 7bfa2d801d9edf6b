"""Shares of a device's time: of the recorded step, or of all of it where the trace has no steps."""

from __future__ import annotations

from syncscope.schema.report import TraceInfo


def find_whole(info: TraceInfo) -> float | None:
    """The time that figures are shares of, in ms: that of a recorded step, or from the device's first work to its
    last."""
    overlap = info.overlap
    seen = overlap.device_busy_ms + overlap.idle_ms if overlap else None
    recorded = info.steps.profiled_ms if info.steps.count else None
    if recorded is not None and (overlap is None or recorded >= overlap.idle_ms):
        return recorded
    return seen


def share_of_idle(info: TraceInfo) -> float | None:
    """For which share the device is idle."""
    whole = find_whole(info)
    return info.overlap.idle_ms / whole if info.overlap is not None and whole else None


def share_of_cause(cause: str, info: TraceInfo) -> float:
    """For which share the device is idle for one cause."""
    whole = find_whole(info)
    return info.overlap.idle_by_cause.get(cause, 0.0) / whole if info.overlap and whole else 0.0


def share_of_compute(info: TraceInfo) -> float | None:
    """For which share the device computes; of the step without the profiler where that was timed, which makes the host
    slower, and not the device."""
    whole = find_whole(info)
    if info.overlap is None or not whole:
        return None
    bare = info.steps.bare_ms if info.steps.count else None
    return min(info.overlap.compute_ms / (whole if bare is None else min(bare, whole)), 1.0)
