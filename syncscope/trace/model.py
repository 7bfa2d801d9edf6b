"""What a trace is once it is read: a table for each kind of event, with typed columns.

``ts`` and ``end`` are nanoseconds since ``Trace.base_ns``, which is nanoseconds since the Unix epoch (0 when the file's
own times are absolute). Every table is sorted by ``ts``, the longest row first among equals, then by thread or stream
and by what a row holds; its index is 0..n-1.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from syncscope.schema.recording import Recording
from syncscope.trace.extras import require
from syncscope.trace.rows import Rows

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa


class Column(NamedTuple):
    """What one column holds."""

    meaning: str
    type: str = "int64"
    """The dtype: ``int64``, or ``category`` for strings (a dictionary in Arrow)."""


class Table(NamedTuple):
    """What one row of a table is, and its columns in order."""

    about: str
    columns: dict[str, Column]

    @property
    def types(self) -> dict[str, str]:
        """The dtype of each column."""
        return {name: column.type for name, column in self.columns.items()}


def _strings(meaning: str) -> Column:
    return Column(meaning, "category")


_TIMES = {
    "ts": Column("begin, ns since the trace's base_ns"),
    "dur": Column("length, ns"),
    "end": Column("ts + dur"),
}
_NAME = {"name": _strings("what it is called")}
_HOST = {
    **_TIMES,
    "pid": Column("process that ran it"),
    "tid": Column("thread that ran it"),
    **_NAME,
}
_STREAM = {
    "device": Column("number of the device, -1 unknown"),
    "stream": Column("number of the stream, -1 unknown"),
}
_CORRELATION = {"correlation": Column("joins a runtime call and what it launched on a device, -1 none")}
_EXTERNAL = {"external_id": Column("id of the op that it belongs to, -1 none")}
_ROW = {"row": Column("index in the file's own list of events, which counts metadata events too")}

OPS = Table(
    "PyTorch's operators on the host (cpu_op)",
    {
        **_HOST,
        "external_id": Column("the op's own id, -1 none"),
        "sequence": Column("autograd sequence number, which a backward op shares with its forward op, -1 none"),
        "forward_tid": Column("thread of the forward op, in the profiler's own numbering, -1 none"),
        **_ROW,
    },
)
RUNTIME = Table(
    "calls of the runtime and the driver (CUDA, HIP, XPU)",
    {
        **_HOST,
        **_CORRELATION,
        **_EXTERNAL,
        "bytes": Column("number of bytes copied, where HIP records it, -1 unknown"),
        "copy_kind": Column("HIP's direction: 0 HtoH, 1 HtoD, 2 DtoH, 3 DtoD, 4 default, -1 none"),
        **_ROW,
    },
)
DEVICE = Table(
    "what the devices ran",
    {
        **_TIMES,
        **_NAME,
        "kind": _strings("kernel, memcpy or memset"),
        **_STREAM,
        **_CORRELATION,
        **_EXTERNAL,
        "bytes": Column("size of a copy or memset, or of the larger side of a collective, -1 unknown"),
        "direction": _strings("of a copy: HtoD, DtoH, DtoD, HtoH or PtoP, else empty"),
        "memory": _strings("a copy's host side: pageable or pinned, else empty"),
        "collective": _strings("the collective that a kernel runs (allreduce, ...), else empty"),
        "group": _strings("process group of a collective, empty unknown"),
        "graph": Column("id of the CUDA graph that it is part of, -1 none"),
        **_ROW,
    },
)
SYNC = Table(
    "what waits waited for (cuda_sync)",
    {
        **_TIMES,
        "name": _strings("Stream Sync, Event Sync, Context Sync or Stream Wait Event"),
        **_STREAM,
        **_CORRELATION,
        "wait_on_stream": Column("stream on which the event waited for was recorded, -1 unknown"),
        "wait_on_event_correlation": Column("correlation of the call that recorded the event, -1 unknown"),
        **_ROW,
    },
)
FRAMES = Table(
    "Python's calls (python_function)",
    {
        **_HOST,
        "id": Column("id of the call"),
        "parent": Column("id of the caller's call, -1 at a root"),
        "file": _strings("file of the function, <built-in> or <nn.Module> where it has none"),
        "line": Column("line of the def, -1 for a built-in"),
        "function": _strings("name of the function"),
        **_ROW,
    },
)
ANNOTATIONS = Table(
    "record_function and the profiler's own steps, on the host (user_annotation)",
    {**_HOST, **_ROW},
)
DEVICE_ANNOTATIONS = Table(
    "the same on the device: from the first to the last that was launched inside (gpu_user_annotation)",
    {**_TIMES, **_NAME, **_STREAM, **_ROW},
)
STEPS = Table(
    "the recorded steps",
    {**_TIMES, "number": Column("number of the step"), "tid": Column("thread that steps, -1 unknown")},
)

TABLES = {
    "ops": OPS,
    "runtime": RUNTIME,
    "device": DEVICE,
    "sync": SYNC,
    "frames": FRAMES,
    "annotations": ANNOTATIONS,
    "device_annotations": DEVICE_ANNOTATIONS,
    "steps": STEPS,
}
"""The tables of a :class:`Trace`, by attribute."""


class Device(msgspec.Struct, frozen=True):
    """A row of the trace's ``deviceProperties``."""

    id: int
    name: str
    copy_engines: int | None = None


class Trace(msgspec.Struct, frozen=True, dict=True):
    """One rank's trace. :data:`TABLES` documents each table's columns."""

    path: str
    base_ns: int
    rows: dict[str, Rows]
    """The tables by name. The attributes of these names are the same as frames."""
    step_source: str
    """The recording's own source, ``profiler`` for ``ProfilerStep#`` rows, ``optimizer`` for steps between those of the
    optimizers, ``server`` for batches that vLLM or SGLang marks, ``kernels`` for what the device repeats, else
    ``none``."""
    devices: tuple[Device, ...] = ()
    rank: int | None = None
    world_size: int | None = None
    pid: int | None = None
    """The traced process: the pid with the most runtime calls."""
    thread_names: dict[int, str] = msgspec.field(default_factory=dict)
    recording: Recording | None = None
    """The collector's own key, ``None`` for a foreign trace."""
    warnings: tuple[str, ...] = ()
    """What was lost or guessed while reading, one sentence each."""
    lost: tuple[str, ...] = ()
    """Of ``warnings``, those that say what of the file is in no table."""
    group_names: dict[str, str] = msgspec.field(default_factory=dict)
    """What the program calls its process groups, by their names in the trace; those without a description left out."""
    ranks_in_file: int = 1
    """How many ranks whose traces were merged the file tells apart."""

    @cached_property
    def ops(self) -> pd.DataFrame:
        """:data:`OPS`"""
        return self._frame("ops")

    @cached_property
    def runtime(self) -> pd.DataFrame:
        """:data:`RUNTIME`"""
        return self._frame("runtime")

    @cached_property
    def device(self) -> pd.DataFrame:
        """:data:`DEVICE`"""
        return self._frame("device")

    @cached_property
    def sync(self) -> pd.DataFrame:
        """:data:`SYNC`"""
        return self._frame("sync")

    @cached_property
    def frames(self) -> pd.DataFrame:
        """:data:`FRAMES`"""
        return self._frame("frames")

    @cached_property
    def annotations(self) -> pd.DataFrame:
        """:data:`ANNOTATIONS`"""
        return self._frame("annotations")

    @cached_property
    def device_annotations(self) -> pd.DataFrame:
        """:data:`DEVICE_ANNOTATIONS`"""
        return self._frame("device_annotations")

    @cached_property
    def steps(self) -> pd.DataFrame:
        """:data:`STEPS`"""
        return self._frame("steps")

    def _frame(self, name: str) -> pd.DataFrame:
        return self.rows[name].to_pandas(list(TABLES[name].columns))

    def to_pandas(self) -> dict[str, pd.DataFrame]:
        """The tables by name. ``frame.attrs["about"]`` says what a row is, ``frame.attrs["columns"]`` what each column
        holds. The frames share the trace's data until they are written to."""
        frames = {}
        for name, table in TABLES.items():
            frame: pd.DataFrame = getattr(self, name).copy(deep=False)
            frame.attrs = {
                "about": table.about,
                "columns": {column: documented.meaning for column, documented in table.columns.items()},
            }
            frames[name] = frame
        return frames

    def to_arrow(self) -> dict[str, pa.Table]:
        """The tables by name; the metadata of each field says under ``description`` what it holds.

        Raises :class:`.MissingExtra`, an ``ImportError``, without the extra ``arrow``.
        """
        require("arrow")
        import pyarrow as pa

        tables = {}
        for name, table in TABLES.items():
            converted = pa.Table.from_pandas(getattr(self, name), preserve_index=False)
            fields: list[Any] = [
                field.with_metadata({"description": table.columns[field.name].meaning}) for field in converted.schema
            ]
            tables[name] = converted.cast(pa.schema(fields, metadata={"about": table.about}))
        return tables
