"""A trace's tables for pandas and Arrow, and what every column of them means."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd

if TYPE_CHECKING:
    import pyarrow as pa

    from syncscope.trace.model import Trace

_TIMES = {
    "ts": "begin, ns since the trace's base_ns",
    "dur": "length, ns",
    "end": "ts + dur",
}
_HOST = {
    **_TIMES,
    "pid": "process that ran it",
    "tid": "thread that ran it",
    "name": "what it is called",
}
_PLACE = {
    "device": "number of the device, -1 unknown",
    "stream": "number of the stream, -1 unknown",
}
_CORRELATION = {"correlation": "joins a runtime call and what it launched on a device, -1 none"}
_EXTERNAL = {"external_id": "of the op it belongs to, -1 none"}
_ROW = {"row": "place in the file's own list of events, metadata counted"}

TABLES: dict[str, tuple[str, dict[str, str]]] = {
    "ops": (
        "PyTorch's operators on the host (cpu_op)",
        {
            **_HOST,
            "external_id": "the op's own id, -1 none",
            "sequence": "autograd sequence number, which a backward op shares with its forward op, -1 none",
            "forward_tid": "thread of the forward op, in the profiler's own numbering, -1 none",
            **_ROW,
        },
    ),
    "runtime": (
        "calls of the runtime and the driver (CUDA, HIP, XPU)",
        {
            **_HOST,
            **_CORRELATION,
            **_EXTERNAL,
            "bytes": "copied, where HIP says so, -1 unknown",
            "copy_kind": "HIP's direction: 0 HtoH, 1 HtoD, 2 DtoH, 3 DtoD, 4 default, -1 none",
            **_ROW,
        },
    ),
    "device": (
        "what the devices ran",
        {
            **_TIMES,
            "name": "what it is called",
            "kind": "kernel, memcpy or memset",
            **_PLACE,
            **_CORRELATION,
            **_EXTERNAL,
            "bytes": "of a copy or memset, or the larger side of a collective, -1 unknown",
            "direction": "of a copy: HtoD, DtoH, DtoD, HtoH or PtoP, else empty",
            "memory": "a copy's host side: pageable or pinned, else empty",
            "collective": "which one a kernel runs (allreduce, ...), else empty",
            "group": "process group of a collective, empty unknown",
            "graph": "number of the CUDA graph it is part of, -1 none",
            **_ROW,
        },
    ),
    "sync": (
        "what waits waited for (cuda_sync)",
        {
            **_TIMES,
            "name": "Stream Sync, Event Sync, Context Sync or Stream Wait Event",
            **_PLACE,
            **_CORRELATION,
            "wait_on_stream": "stream on which the event waited for was recorded, -1 unknown",
            "wait_on_event_correlation": "correlation of the call that recorded it, -1 unknown",
            **_ROW,
        },
    ),
    "frames": (
        "Python's calls (python_function)",
        {
            **_HOST,
            "id": "of the call",
            "parent": "id of the caller's, -1 at a root",
            "file": "of the function, <built-in> or <nn.Module> where it has none",
            "line": "of the def, -1 for a built-in",
            "function": "its name",
            **_ROW,
        },
    ),
    "annotations": ("record_function and the profiler's own steps, on the host (user_annotation)", {**_HOST, **_ROW}),
    "device_annotations": (
        "the same on the device: from the first to the last that was launched inside (gpu_user_annotation)",
        {**_TIMES, "name": "what it is called", **_PLACE, **_ROW},
    ),
    "steps": (
        "the recorded steps",
        {**_TIMES, "number": "of the step", "tid": "thread that steps, -1 unknown"},
    ),
}
"""By table: what a row is, and what each column holds, in their order. Strings are categories (Arrow: dictionaries)."""


class ArrowMissing(ImportError):
    """pyarrow is not installed."""

    def __init__(self) -> None:
        super().__init__("pyarrow is not installed: pip install 'syncscope[arrow]'")


def to_pandas(trace: Trace) -> dict[str, pd.DataFrame]:
    """Every table by name; ``frame.attrs["columns"]`` says what its columns hold. Copies only what is written to."""
    found = {}
    for name, (what, columns) in TABLES.items():
        table: pd.DataFrame = getattr(trace, name).copy(deep=False)
        table.attrs = {"about": what, "columns": dict(columns)}
        found[name] = table
    return found


def to_arrow(trace: Trace) -> dict[str, pa.Table]:
    """Every table by name; a field's metadata says under ``description`` what it holds. Raises :class:`ArrowMissing`
    without the extra ``arrow``."""
    try:
        import pyarrow as pa
    except ImportError:
        raise ArrowMissing from None
    found = {}
    for name, (what, columns) in TABLES.items():
        made = pa.Table.from_pandas(getattr(trace, name), preserve_index=False)
        fields: list[Any] = [field.with_metadata({"description": columns[field.name]}) for field in made.schema]
        found[name] = made.cast(pa.schema(fields, metadata={"about": what}))
    return found
