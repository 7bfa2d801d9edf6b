"""The timeline's tables: a frozen dataclass of equally long numpy arrays each, one row an event.

Times are nanoseconds since the trace's base. ``row`` is a row's number in the whole table, so a part of a table still
says where its rows came from. A number that is unknown or does not apply is −1, a text ``""``.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from syncscope.timeline.idle import CAUSES
from syncscope.timeline.intervals import Bools, Ints

if TYPE_CHECKING:
    import pandas as pd
    from typing_extensions import Self

    from syncscope.timeline.timeline import Timeline

Objects: TypeAlias = npt.NDArray[np.object_]
"""Texts, or tuples of texts."""


@dataclass(frozen=True)
class Table:
    """Columns of one length."""

    row: Ints

    def __len__(self) -> int:
        return len(self.row)

    def take(self, rows: Ints | Bools | list[int]) -> Self:
        """Some rows: by number, in that order, or those for which a mask is true."""
        wanted = rows if isinstance(rows, np.ndarray) else np.array(rows, dtype=np.int64)
        return type(self)(**{field.name: getattr(self, field.name)[wanted] for field in fields(self)})

    def to_pandas(self) -> pd.DataFrame:
        """A frame with a column for each field."""
        import pandas as pd

        return pd.DataFrame({field.name: getattr(self, field.name) for field in fields(self)})


@dataclass(frozen=True)
class Steps(Table):
    """The recorded steps, in order."""

    ts: Ints
    end: Ints
    number: Ints
    tid: Ints

    @property
    def dur(self) -> Ints:
        return self.end - self.ts


@dataclass(frozen=True)
class Activities(Table):
    """What the devices ran, in order of ``ts``. ``row`` is a row of ``Trace.device``."""

    ts: Ints
    end: Ints
    name: Objects
    kind: Objects
    """``kernel``, ``memcpy`` or ``memset``."""
    device: Ints
    stream: Ints
    correlation: Ints
    bytes: Ints
    direction: Objects
    memory: Objects
    collective: Objects
    """Of a collective's kernel its name, else ``""``."""
    launch: Ints
    """Row in ``calls`` of the call that launched it, −1 not in the trace."""

    @property
    def dur(self) -> Ints:
        return self.end - self.ts


@dataclass(frozen=True)
class Calls(Table):
    """The runtime calls of the traced process, in order of ``ts``."""

    ts: Ints
    end: Ints
    tid: Ints
    name: Objects
    role: Objects
    """What the call does (``names.Role``), ``""`` for one that the table of names does not hold."""
    correlation: Ints

    @property
    def dur(self) -> Ints:
        return self.end - self.ts


@dataclass(frozen=True)
class Waits(Table):
    """The waits of the traced process, the profiler's own left out, in order of ``ts``.

    A copy put on a stream from or to pageable memory blocks inside its call too. It is no row here, since the wait that
    follows it in a blocking copy is, and takes over its blocked time. A copy with no wait behind it keeps its own: the
    length of its launch.
    """

    ts: Ints
    end: Ints
    begin: Ints
    """When the host began to be blocked: where the wait completes a pageable copy, the begin of that copy's call."""
    call: Ints
    """Row in ``calls``."""
    name: Objects
    """The runtime call."""
    kind: Objects
    """``stream``, ``device``, ``event``, ``copy`` (a copy that blocks by itself), ``alloc`` or ``free`` (of memory)."""
    tid: Ints
    step: Ints
    """Row in ``steps``, −1 outside."""
    correlation: Ints
    op: Ints
    """Innermost enclosing row of ``Trace.ops``, −1 none."""
    ops: Objects
    """Names of the enclosing ops, outermost first; ``()`` none or unknown."""
    ops_known: Bools
    """Whether ``()`` means none: the trace holds ops of this thread, or they are known otherwise."""
    copy_call: Ints
    """Row in ``calls`` of the copy that the wait completes, −1 none."""
    copy: Ints
    """Row in ``copies`` of that copy, −1 none or not in the trace."""
    pending: Ints
    """Nanoseconds of device work still ahead when the wait began; 0 the queue was empty; −1 unknown."""
    place: Ints
    """Index in ``Timeline.places``."""

    @property
    def dur(self) -> Ints:
        """The call itself."""
        return self.end - self.ts

    @property
    def stall(self) -> Ints:
        """Nanoseconds blocked."""
        return self.end - self.begin


@dataclass(frozen=True)
class Copies(Table):
    """The copies that devices made, in order of ``ts``."""

    ts: Ints
    end: Ints
    device_row: Ints
    """Row in ``Trace.device``."""
    launch: Ints
    """Row in ``calls``, −1 not in the trace."""
    launch_ts: Ints
    launch_end: Ints
    tid: Ints
    """The launching thread, −1 not in the trace."""
    step: Ints
    """Row in ``steps`` of the launch (of the copy where the launch is missing), −1 outside."""
    bytes: Ints
    direction: Objects
    """``HtoD``, ``DtoH``, ``DtoD``, ``HtoH``, ``PtoP`` or ``""``."""
    memory: Objects
    """The host side: ``pageable``, ``pinned``, ``""`` unknown or none."""
    device: Ints
    stream: Ints
    op: Ints
    ops: Objects
    wait: Ints
    """Row in ``waits`` of the wait that completes the copy, −1 none."""
    exposed: Ints
    """Nanoseconds of the copy with no compute kernel on its device."""
    with_compute: Bools
    """Whether its stream runs a tenth or more of the device's compute."""
    place: Ints
    """Index in ``Timeline.places``; only copies between host and device have one of their own."""

    @property
    def dur(self) -> Ints:
        """On the device."""
        return self.end - self.ts

    @property
    def launch_dur(self) -> Ints:
        """Of the call that launched it, −1 not in the trace."""
        return np.where(self.launch >= 0, self.launch_end - self.launch_ts, -1)


@dataclass(frozen=True)
class Collectives(Table):
    """The collectives that devices ran, in order of ``ts``."""

    ts: Ints
    end: Ints
    device_row: Ints
    launch: Ints
    launch_ts: Ints
    launch_end: Ints
    tid: Ints
    name: Objects
    """``allreduce``, ``reduce_scatter`` …"""
    group: Objects
    """The process group, ``""`` unknown."""
    bytes: Ints
    """The larger of what goes in and out."""
    device: Ints
    stream: Ints
    step: Ints
    ops: Objects
    exposed: Ints
    beside: Objects
    """One of ``collectives.BESIDE``: why nothing computes beside it."""
    place: Ints

    @property
    def dur(self) -> Ints:
        return self.end - self.ts


@dataclass(frozen=True)
class Pins(Table):
    """Pinnings of tensors, in order of ``ts``: the host copies into pinned memory from ``ts`` to ``end``."""

    ts: Ints
    end: Ints
    tid: Ints
    step: Ints
    op: Ints
    ops: Objects
    copy: Ints
    """Row in ``copies`` of the copy to the device that follows at once, −1 none."""
    place: Ints

    @property
    def dur(self) -> Ints:
        return self.end - self.ts


@dataclass(frozen=True)
class Loads(Table):
    """The fetches of a next batch, in order of ``ts``."""

    ts: Ints
    end: Ints
    tid: Ints
    name: Objects
    place: Ints

    @property
    def dur(self) -> Ints:
        return self.end - self.ts


@dataclass(frozen=True)
class Bubbles(Table):
    """Gaps in a device's activity inside the span of the steps, in order of ``ts``."""

    ts: Ints
    end: Ints
    launch: Ints
    """Row in ``calls`` of the call that ended the gap, −1 none."""
    emptied_by: Ints
    """Row in ``waits`` of the wait that emptied the queue, −1 none."""
    cause: Objects
    """The greatest part of the gap, one of ``idle.CAUSES``."""
    by_cause: Ints
    """(n, causes) nanoseconds of the gap by cause, in the order of ``idle.CAUSES``; they sum to ``dur``."""

    @property
    def dur(self) -> Ints:
        return self.end - self.ts


def _ints(frame: pd.DataFrame, *names: str) -> dict[str, Any]:
    return {name: frame[name].to_numpy(np.int64) for name in names}


def _objects(frame: pd.DataFrame, *names: str) -> dict[str, Any]:
    return {name: frame[name].astype(object).to_numpy(object) for name in names}


def _rows(frame: pd.DataFrame) -> Ints:
    return np.arange(len(frame), dtype=np.int64)


class Tables:
    """The typed tables of a timeline."""

    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline

    @cached_property
    def steps(self) -> Steps:
        frame = self._timeline.steps
        return Steps(row=_rows(frame), **_ints(frame, "ts", "end", "number", "tid"))

    @cached_property
    def activities(self) -> Activities:
        frame = self._timeline.trace.device
        return Activities(
            row=_rows(frame),
            launch=self._timeline.launch,
            **_ints(frame, "ts", "end", "device", "stream", "correlation", "bytes"),
            **_objects(frame, "name", "kind", "direction", "memory", "collective"),
        )

    @cached_property
    def calls(self) -> Calls:
        frame = self._timeline.calls
        ints, objects = _ints(frame, "ts", "end", "tid", "correlation"), _objects(frame, "name", "role")
        return Calls(row=_rows(frame), **ints, **objects)

    @cached_property
    def waits(self) -> Waits:
        frame = self._timeline.waits
        ints = _ints(
            frame, "ts", "end", "begin", "call", "tid", "step", "correlation", "op", "copy_call", "copy", "pending",
            "place",
        )  # fmt: skip
        objects = _objects(frame, "name", "kind", "ops")
        return Waits(row=_rows(frame), ops_known=frame["ops_known"].to_numpy(bool), **ints, **objects)

    @cached_property
    def copies(self) -> Copies:
        frame = self._timeline.copies
        ints = _ints(
            frame, "ts", "end", "launch", "launch_ts", "launch_end", "tid", "step", "bytes", "device", "stream", "op",
            "wait", "exposed", "place",
        )  # fmt: skip
        return Copies(
            row=_rows(frame),
            device_row=frame["row"].to_numpy(np.int64),
            with_compute=frame["with_compute"].to_numpy(bool),
            **ints,
            **_objects(frame, "direction", "memory", "ops"),
        )

    @cached_property
    def collectives(self) -> Collectives:
        frame = self._timeline.collectives
        ints = _ints(
            frame, "ts", "end", "launch", "launch_ts", "launch_end", "tid", "bytes", "device", "stream", "step",
            "exposed", "place",
        )  # fmt: skip
        objects = _objects(frame, "name", "group", "ops", "beside")
        return Collectives(row=_rows(frame), device_row=frame["row"].to_numpy(np.int64), **ints, **objects)

    @cached_property
    def pins(self) -> Pins:
        frame = self._timeline.pins
        ints = _ints(frame, "ts", "end", "tid", "step", "op", "copy", "place")
        return Pins(row=_rows(frame), **ints, **_objects(frame, "ops"))

    @cached_property
    def loads(self) -> Loads:
        frame = self._timeline.loads
        return Loads(row=_rows(frame), **_ints(frame, "ts", "end", "tid", "place"), **_objects(frame, "name"))

    @cached_property
    def bubbles(self) -> Bubbles:
        frame = self._timeline.idle
        by_cause = np.stack([frame[cause].to_numpy(np.int64) for cause in CAUSES], axis=1)
        ints = _ints(frame, "ts", "end", "launch", "emptied_by")
        return Bubbles(row=_rows(frame), by_cause=by_cause, **ints, **_objects(frame, "cause"))
