"""Trace files for the command line, ten lines each."""

from __future__ import annotations

from typing import Any

from tests.builders import FrameSpec, TraceBuilder

READ: FrameSpec = ("train.py", 21, "train_step", "loss.item()")


def waiting(*, rank: int | None = None, frame: FrameSpec = READ, bare: bool = True) -> TraceBuilder:
    """Three steps of 100 µs, ``bare`` of 90; each launches a kernel of 50 µs and reads its result."""
    trace = TraceBuilder(rank=rank).recording(0, 100, 200, 300, bare_us=[90, 90, 90] if bare else None)
    for start in (0, 100, 200):
        trace.launch("gemm", call=(start + 5, 5), runs=(start + 12, 50))
        trace.op("aten::item", start + 20, 55).op("aten::_local_scalar_dense", start + 21, 53)
        trace.copy("DtoH", call=(start + 22, 4), runs=(start + 63, 2), memory="pinned", bytes=4)
        trace.stream_sync(start + 27, 45).warning(start + 80, ("train.py", 29, "<module>"), frame)
    return trace


def clean(*, rank: int | None = None, steps: int = 3, **recorded: Any) -> TraceBuilder:
    """Steps of 100 µs that never wait; ``recorded`` are fields of the recording."""
    starts = range(0, 100 * steps, 100)
    trace = TraceBuilder(rank=rank).recording(*starts, 100 * steps, **recorded)
    for start in starts:
        trace.launch("gemm", call=(start + 5, 5), runs=(start + 12, 80))
    return trace


def blind() -> TraceBuilder:
    """Kernels without the runtime calls that launched them."""
    trace = TraceBuilder().steps(0, 100, 200)
    for start in (0, 100):
        trace.kernel("gemm", start + 12, 80)
    return trace
