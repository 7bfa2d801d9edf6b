"""What a trace is once read: typed columns in frames, names interned, times in int64 nanoseconds.

All ``ts`` and ``end`` are nanoseconds since ``Trace.base_ns`` (which is nanoseconds since the Unix epoch, 0 when
the file's own times are absolute). ``dur`` is ``end - ts`` and keeps every nanosecond the file gives.
Every frame is sorted by ``ts`` (longest first among equals) and has a plain 0..n-1 index.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pandas as pd

from syncscope.schema.recording import Recording

if TYPE_CHECKING:
    import pyarrow as pa

ROW = {"row": "int64"}
"""The last column of every table but ``STEPS``: the event's place in the file's own list, metadata counted."""

HOST = {"ts": "int64", "dur": "int64", "end": "int64", "pid": "int64", "tid": "int64", "name": "category"}
"""Columns every host table has: times, the process and the thread that ran it, and the interned name."""

OPS = {**HOST, "external_id": "int64", "sequence": "int64", "forward_tid": "int64", **ROW}
"""``cpu_op`` rows. ``external_id`` −1 none. ``sequence`` the autograd sequence number, −1 none. ``forward_tid`` the
thread that ran the forward of a backward op (the profiler's own numbering), −1 none."""

RUNTIME = {**HOST, "correlation": "int64", "external_id": "int64", "bytes": "int64", "copy_kind": "int64", **ROW}
"""Runtime and driver calls (CUDA, HIP, XPU). ``correlation`` joins the call to its device rows, −1 none.
``bytes`` (−1 none) and ``copy_kind`` (−1 none; 0 HtoH, 1 HtoD, 2 DtoH, 3 DtoD, 4 default) are HIP's."""

DEVICE = {
    "ts": "int64", "dur": "int64", "end": "int64", "name": "category",
    "kind": "category",  # kernel | memcpy | memset
    "device": "int64", "stream": "int64",  # −1 unknown
    "correlation": "int64", "external_id": "int64",  # −1 none
    "bytes": "int64",  # memcpy, memset, and a collective that says so: the larger of what goes in and out; −1 none
    "direction": "category",  # memcpy: HtoD | DtoH | DtoD | HtoH | PtoP | "" (unknown, or not a copy)
    "memory": "category",  # memcpy, the host side: pageable | pinned | "" (unknown, or no host side)
    "collective": "category",  # kernels of a collective: its name ("allreduce", …), else ""
    "group": "category",  # the process group of a collective, "" unknown
    "graph": "int64",  # CUDA graph id, −1 none
    **ROW,
}  # fmt: skip
"""What the device ran."""

SYNC = {
    "ts": "int64", "dur": "int64", "end": "int64", "name": "category",
    "device": "int64", "stream": "int64", "correlation": "int64",
    "wait_on_stream": "int64", "wait_on_event_correlation": "int64", **ROW,
}  # fmt: skip
"""``cuda_sync`` records: what a wait waited for (−1 unknown). Trust the runtime call's name for what blocks."""

FRAMES = {**HOST, "id": "int64", "parent": "int64", "file": "category", "line": "int64", "function": "category", **ROW}
"""``python_function`` rows. ``line`` is the line of the ``def`` (−1 for built-ins); ``parent`` −1 at a root."""

ANNOTATIONS = {**HOST, **ROW}
"""The host's ``user_annotation`` rows (``ProfilerStep#3``, ``Optimizer.step#SGD.step``, ``enumerate(DataLoader)…``)."""

DEVICE_ANNOTATIONS = {
    "ts": "int64", "dur": "int64", "end": "int64", "name": "category", "device": "int64", "stream": "int64", **ROW,
}  # fmt: skip
"""``gpu_user_annotation`` rows: from the first to the last that an annotation's launches ran on a stream."""

STEPS = {"ts": "int64", "dur": "int64", "end": "int64", "number": "int64", "tid": "int64"}
"""The recorded steps, from the recording or ``ProfilerStep#`` rows, the last one included. ``tid`` −1 unknown."""

CONTRACTS = {
    "ops": OPS,
    "runtime": RUNTIME,
    "device": DEVICE,
    "sync": SYNC,
    "frames": FRAMES,
    "annotations": ANNOTATIONS,
    "device_annotations": DEVICE_ANNOTATIONS,
    "steps": STEPS,
}
"""The columns of each table of a :class:`Trace`."""


@dataclass(frozen=True)
class Device:
    """A row of the trace's ``deviceProperties``."""

    id: int
    name: str
    copy_engines: int | None = None
    total_memory: int | None = None


@dataclass(frozen=True)
class Trace:
    """One rank's trace as columns; the tables are documented by the constants of this module."""

    path: str
    base_ns: int
    ops: pd.DataFrame
    runtime: pd.DataFrame
    device: pd.DataFrame
    sync: pd.DataFrame
    frames: pd.DataFrame
    annotations: pd.DataFrame
    device_annotations: pd.DataFrame
    steps: pd.DataFrame
    step_source: str
    """``profiler`` for ``ProfilerStep#`` rows, else the recording's own source, else ``none``."""
    devices: tuple[Device, ...] = ()
    rank: int | None = None
    world_size: int | None = None
    pid: int | None = None
    """The traced process: the pid with the most runtime calls."""
    thread_names: dict[int, str] = field(default_factory=dict)
    recording: Recording | None = None
    """The collector's own key, ``None`` for a foreign trace."""
    warnings: tuple[str, ...] = ()
    """What was lost or guessed while reading, one sentence each."""

    def to_pandas(self) -> dict[str, pd.DataFrame]:
        """The tables by name; every column is documented in ``frame.attrs["columns"]`` (:mod:`.export`)."""
        from syncscope.trace import export

        return export.to_pandas(self)

    def to_arrow(self) -> dict[str, pa.Table]:
        """The tables by name, each field documented in its metadata (:mod:`.export`).

        Raises :class:`.export.ArrowMissing`, an ``ImportError``, without the extra ``arrow``.
        """
        from syncscope.trace import export

        return export.to_arrow(self)
