"""The timeline's tables: a record of equally long numpy arrays each, one row an event.

Times are nanoseconds since the trace's base. ``row`` is a row's number in the whole table, so a part of a table still
says where its rows came from. A number that is unknown or does not apply is −1, a text ``""``.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import cached_property
from typing import Any

import numpy as np

from syncscope.timeline.intervals import Bools, Ints
from syncscope.timeline.nesting import Nesting
from syncscope.timeline.row_groups import number_groups, number_texts
from syncscope.timeline.table import NamedTable as NamedTable
from syncscope.timeline.table import Objects as Objects
from syncscope.timeline.table import Table as Table
from syncscope.timeline.table import TimedTable as TimedTable

CAUSES = (
    "wait", "warm-up", "single pause", "data loading", "allocation", "pageable copy", "host collective", "collective",
    "host idle", "launching", "host work", "launch latency", "queued on device", "unknown",
)  # fmt: skip
"""Causes of idle time, as the report names them. *warm-up*: the host does what is done once (``warm_up``). *single
pause*: one step of several has it, whatever it is due to (``pauses``). *host collective*: the host is inside one of the
hosts' own (gloo), and waits for the other ranks. *collective*: the host is inside the call of another one, or the
device hands over between one and compute. *host idle*: the host sleeps, or waits for a thread or another process.
*launching*: the host launches one thing right after the other, and the device is done sooner. *launch latency*: from
the return of the launching call to the device's begin. *queued on device*: launched well before, held by the device
itself (another stream's event, or its own pace). *unknown*: the trace holds no runtime calls."""


class Steps(TimedTable):
    """The recorded steps, in order."""

    number: Ints
    tid: Ints


class Activities(TimedTable):
    """What the devices ran, in order of ``ts``. ``row`` is a row of ``Trace.device``."""

    name: Objects
    kind: Objects
    """``kernel``, ``memcpy`` or ``memset``."""
    device: Ints
    stream: Ints
    """−1 unknown."""
    correlation: Ints
    bytes: Ints
    """Bytes moved, set or sent; −1 unknown or none."""
    direction: Objects
    """The direction of a copy in the device row. ROCm may get it wrong, so use ``Copies.direction``."""
    memory: Objects
    """The host side of a copy: ``pageable``, ``pinned``, or ``""`` for unknown or none."""
    collective: Objects
    """The name of the collective that a kernel runs, else ``""``."""
    group: Objects
    """The process group of a collective, ``""`` unknown."""
    launch: Ints
    """Row in ``calls`` of the call that launched it, −1 not in the trace."""

    @cached_property
    def name_places(self) -> Ints:
        """For each row (n,) the place of its name in the order of the names of the whole table."""
        if "_part_of" in self.__dict__:
            whole, rows = self.__dict__["_part_of"]
            places: Ints = whole.name_places[rows]
            return places
        return number_groups(self.name)


class Calls(NamedTable):
    """The runtime calls of the traced process, in order of ``ts``."""

    role: Objects
    """What the call does (``names.Role``), ``""`` for one that the table of names does not hold."""
    correlation: Ints
    copy_kind: Ints
    """A key of ``names.HIP_COPY_KINDS`` for HIP's copies, −1 unknown or none."""

    def do(self, roles: Collection[str]) -> Bools:
        """Which calls (n,) have one of these roles."""
        number, known = self._roles
        among = np.array([one in roles for one in known], dtype=bool)
        found: Bools = among[number]
        return found

    @cached_property
    def _roles(self) -> tuple[Ints, list[str]]:
        """Each call's role as a number (n,), and the roles by number: a number is found faster than a text."""
        return number_texts(self.role)


class Marks(NamedTable):
    """Named stretches of time on host threads, such as annotations, in order of ``ts``."""

    @cached_property
    def nesting(self) -> Nesting:
        """Which of them encloses which."""
        return Nesting(self.ts, self.end, self.tid)

    def chain(self, row: int) -> tuple[str, ...]:
        """Names of one and of those around it, outermost first, without the profiler's step markers; ``()`` for
        row −1."""
        known, parent, new = self._chains, self.nesting.parent, []
        while row not in known:
            new.append(row)
            row = parent.item(row)
        chain = known[row]
        for row in reversed(new):
            name = self.name[row]
            chain = known[row] = chain if name.startswith("ProfilerStep#") else (*chain, name)
        return chain

    @cached_property
    def _chains(self) -> dict[int, tuple[str, ...]]:
        """``chain`` of each row that was asked for, and of those around it."""
        return {-1: ()}

    def chains(self, rows: Ints) -> Objects:
        """``chain`` of each of ``rows`` (n,)."""
        return objects(list(map(self.chain, rows.tolist())))


class Ops(Marks):
    """PyTorch's ops, in order of ``ts``. ``row`` is a row of ``Trace.ops``."""

    def around(self, calls: Calls) -> Ints:
        """For each of ``calls`` (n,) the innermost op around it, −1 none. It is found once for the same table."""
        of, around = self.__dict__.get("_around", (None, None))
        if of is not calls:
            around = self.nesting.innermost(calls.tid, calls.ts, calls.end)
            self.__dict__["_around"] = calls, around
        found: Ints = around
        return found


class SyncRecords(Table):
    """The profiler's own records of waits, in order of ``ts``. ``row`` is a row of ``Trace.sync``."""

    ts: Ints
    end: Ints
    name: Objects
    device: Ints
    stream: Ints
    correlation: Ints
    """The correlation of the runtime call that waits."""
    wait_on_stream: Ints
    wait_on_event_correlation: Ints
    """Correlation of the call that recorded the event."""


class Waits(TimedTable):
    """The waits of the traced process, the profiler's own left out, in order of ``ts``.

    A copy from or to pageable memory that is put on a stream also blocks inside its call. It is no row here: the wait
    that follows it in a blocking copy is one, and its blocked time includes the copy's. A copy with no wait after it
    has its own blocked time: the length of its launch.
    """

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
    def stall(self) -> Ints:
        """Nanoseconds blocked."""
        return self.end - self.begin


class Copies(TimedTable):
    """The copies that devices made, in order of ``ts``."""

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
    """−1 unknown."""
    direction: Objects
    """``HtoD``, ``DtoH``, ``DtoD``, ``HtoH``, ``PtoP`` or ``""``."""
    memory: Objects
    """The host side: ``pageable``, ``pinned``, ``""`` unknown or none."""
    device: Ints
    stream: Ints
    op: Ints
    """Innermost row of ``Trace.ops`` around the launch, −1 none."""
    ops: Objects
    """Names of the ops around the launch, outermost first; ``()`` none or unknown."""
    wait: Ints
    """Row in ``waits`` of the wait that completes the copy, −1 none."""
    exposed: Ints
    """Nanoseconds of the copy with no compute kernel on its device."""
    with_compute: Bools
    """Whether its stream runs a tenth or more of the device's compute."""
    place: Ints
    """Index in ``Timeline.places``; only copies between host and device have one of their own."""

    @property
    def launch_dur(self) -> Ints:
        """Of the call that launched it, −1 not in the trace."""
        return np.where(self.launch >= 0, self.launch_end - self.launch_ts, -1)


class Collectives(TimedTable):
    """The collectives that devices ran, in order of ``ts``."""

    device_row: Ints
    """Row in ``Trace.device``."""
    launch: Ints
    """Row in ``calls``, −1 not in the trace."""
    launch_ts: Ints
    launch_end: Ints
    tid: Ints
    """The launching thread, −1 not in the trace."""
    name: Objects
    """``allreduce``, ``reduce_scatter`` …"""
    group: Objects
    """The process group, ``""`` unknown."""
    bytes: Ints
    """The larger of what goes in and out, −1 unknown."""
    device: Ints
    stream: Ints
    step: Ints
    """Row in ``steps`` of the launch (of the collective where the launch is missing), −1 outside."""
    ops: Objects
    """Names of the ops around the launch, outermost first; ``()`` none or unknown."""
    marks: Objects
    """Names of the annotations (``record_function``) around the launch, outermost first; ``()`` none or unknown."""
    exposed: Ints
    """Nanoseconds with no compute kernel on its device."""
    beside: Objects
    """Why nothing computes beside it, one of ``collectives.BESIDE``."""
    in_graph: Bools
    """Whether a CUDA graph runs it."""
    place: Ints
    """Index in ``Timeline.places``."""


class Pins(TimedTable):
    """Pinnings of tensors, in order of ``ts``: the host copies into pinned memory from ``ts`` to ``end``."""

    tid: Ints
    step: Ints
    """Row in ``steps``, −1 outside."""
    op: Ints
    """Row in ``Trace.ops`` of the pinning itself, −1 where it is known from a recorded call."""
    ops: Objects
    """Names of that op and of those around it, outermost first."""
    copy: Ints
    """Row in ``copies`` of the copy to the device that follows at once, −1 none."""
    place: Ints
    """Index in ``Timeline.places``."""


class Loads(Marks):
    """The fetches of a next batch, in order of ``ts``."""

    place: Ints
    """Index in ``Timeline.places``."""


class WarmUps(Marks):
    """Stretches of host time that go to work that is done once, in order of ``ts``. ``name`` is one of
    ``warm_up.KINDS``."""

    @cached_property
    def by_kind(self) -> dict[str, Nesting]:
        """Those of each kind that there is, and which of them encloses which."""
        parts = {name: self.take(self.name == name) for name in self.names()}
        return {name: Nesting(own.ts, own.end, own.tid) for name, own in parts.items()}


class Bubbles(TimedTable):
    """Gaps in a device's activity inside the span of the steps, in order of ``ts``."""

    launch: Ints
    """Row in ``calls`` of the call that ended the gap, −1 none."""
    emptied_by: Ints
    """Row in ``waits`` of the wait that emptied the queue, −1 none."""
    cause: Objects
    """The greatest part of the gap, one of ``CAUSES``."""
    by_cause: Ints
    """Nanoseconds of the gap by cause (n, causes), in the order of ``CAUSES``. They sum to ``dur``."""
    late: Ints
    """Nanoseconds for which the device did not begin what was launched, though nothing of the trace keeps it; 0 where
    that is no longer than a device takes, or the trace may lack what it did."""

    def due_to(self, cause: str) -> Ints:
        """Nanoseconds of each gap (n,) that are due to one of ``CAUSES``."""
        return self.by_cause[:, CAUSES.index(cause)]


def objects(values: list[Any]) -> Objects:
    """An array of any objects (n,); tuples stay tuples."""
    return np.fromiter(values, dtype=object, count=len(values))
