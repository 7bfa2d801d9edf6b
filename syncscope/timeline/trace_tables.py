"""The tables of one trace, each found once, when first asked for."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from syncscope.timeline.attribution import fill_ops
from syncscope.timeline.bubbles import HOST_HOLDS, NO_BUBBLES, Unseen, find_bubbles, when_busy
from syncscope.timeline.calls import COMMANDS, find_activities, find_calls
from syncscope.timeline.collectives import (
    count_once,
    exposed_at_the_end,
    find_collectives,
    launched_before,
    name_collectives,
)
from syncscope.timeline.compiled_rows import read_compiled
from syncscope.timeline.compiling import Compiled, find_compiled
from syncscope.timeline.copies import HOST_COPIES, find_copies
from syncscope.timeline.copy_ops import CopyOps
from syncscope.timeline.host_idle import find_host_idle
from syncscope.timeline.intervals import Bools, Ints, Union
from syncscope.timeline.kernel_lines import Lines, find_kernel_lines
from syncscope.timeline.late_peers import find_waiting
from syncscope.timeline.launching import LAUNCHES
from syncscope.timeline.loads import find_loads
from syncscope.timeline.matching import Warned
from syncscope.timeline.overlap import busiest, compute_unions
from syncscope.timeline.pauses import set_apart_pauses
from syncscope.timeline.pins import fed_copies, find_pins
from syncscope.timeline.places import Place, Places, RecordedCalls, first_place
from syncscope.timeline.prints import find_prints
from syncscope.timeline.python_stacks import PythonStacks, is_user
from syncscope.timeline.samples import Samples
from syncscope.timeline.steps import find_drained, find_lag, find_outlasting, find_span, step_of
from syncscope.timeline.tables import (
    Activities,
    Bubbles,
    Calls,
    Collectives,
    Copies,
    Loads,
    Marks,
    Objects,
    Ops,
    Pins,
    Steps,
    SyncRecords,
    Waits,
    WarmUps,
)
from syncscope.timeline.waits import find_waits, in_profiler, is_wait, join_copies, pending_work, waited_streams
from syncscope.timeline.warm_up import find_warm_ups, warming_up
from syncscope.timeline.witnesses_of_launches import find_unmade
from syncscope.trace.model import Trace
from syncscope.trace.names import is_direct_collective


class TraceTables:
    """The tables of a trace, and what they need to know of it as a whole."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace

    @cached_property
    def steps(self) -> Steps:
        return Steps.of(self.trace.rows["steps"])

    @cached_property
    def calls(self) -> Calls:
        return find_calls(self.trace)

    @cached_property
    def last_command(self) -> int:
        """When the last call that gives the device something to do begins, ns; −1 without one."""
        return int(self.calls.ts[self.calls.do(COMMANDS)].max(initial=-1))

    @cached_property
    def launch_times(self) -> Ints:
        """When the calls begin that launch kernels, ns, in order."""
        return np.sort(self.calls.ts[self.calls.do(LAUNCHES)])

    @cached_property
    def activities(self) -> Activities:
        return find_activities(self.trace, self.calls)

    @cached_property
    def unmade(self) -> Ints:
        """Launches and copies that made no row of the device (``witnesses_of_launches``)."""
        return find_unmade(self.calls, self.activities)

    @cached_property
    def ops(self) -> Ops:
        return Ops.of(self.trace.rows["ops"])

    @cached_property
    def annotations(self) -> Marks:
        """``row`` is a row of ``Trace.annotations``."""
        return Marks.of(self.trace.rows["annotations"])

    @cached_property
    def sync_records(self) -> SyncRecords:
        return SyncRecords.of(self.trace.rows["sync"])

    @cached_property
    def stacks(self) -> PythonStacks:
        """Python frames of the trace and what encloses them."""
        return PythonStacks(self.trace.rows["frames"])

    @property
    def waits(self) -> Waits:
        return self._waits_and_copies[0]

    @property
    def copies(self) -> Copies:
        return self._waits_and_copies[1]

    @cached_property
    def collectives(self) -> Collectives:
        table = find_collectives(self.activities, self.calls, self.ops, self.annotations, self._compute)
        launched = table.launch >= 0
        around = self._places.around(table.launch_ts, table.launch_end, table.tid)
        backward = self._places.of_backward(table.launch_ts, table.launch_end)
        # What starts a collective in a thread of autograd is no line of the user's: theirs is the call of backward.
        sites = [place.site for place in self._places.all]
        by_user = np.array([site is not None and is_user(site.file) for site in sites], dtype=bool)[around]
        place = np.where(by_user | (backward == 0), around, backward)
        step = step_of(self.steps, np.where(launched, table.launch_ts, table.ts))
        return name_collectives(table.replace(step=step, place=np.where(launched, place, 0)), self._places.all)

    @cached_property
    def groups_of_collectives(self) -> Objects:
        """For each of ``collectives`` (n,) its process group: as the trace has it, else as the recorded call around its
        launch says, ``""`` unknown. Ranks may know it differently, so it is no part of how they are compared."""
        table = self.collectives
        told = self._places.groups_of(table.launch_ts, table.launch_end, table.tid)
        return np.where((table.group == "") & (table.launch >= 0), told, table.group)

    @cached_property
    def collectives_here(self) -> Collectives:
        """The collectives of ``device``."""
        return self.collectives.take(self.collectives.device == (-1 if self.device is None else self.device))

    @cached_property
    def collectives_once(self) -> Collectives:
        """The collectives of ``device`` inside the steps, with exposed time that counts once
        (``collectives.count_once``)."""
        mine = self.collectives_here
        return mine if self.span is None else count_once(mine, self._compute, self.span)

    @cached_property
    def launched_before(self) -> Bools:
        """Which of ``collectives`` (n,) were launched before the recording (``collectives.launched_before``)."""
        of_rows = self.trace.rows["device"]["correlation"]
        return launched_before(self.collectives, of_rows[self.collectives.device_row], self.calls.correlation)

    @cached_property
    def exposed_at_the_end(self) -> Ints:
        """For each of ``collectives`` (n, 8) the exposed ns of its last parts (``collectives.exposed_at_the_end``)."""
        return exposed_at_the_end(self.collectives, self._compute)

    @cached_property
    def waiting_for_peers(self) -> Ints:
        """For each of ``collectives`` (n,) the ns in which it surely waits for another rank
        (``late_peers.find_waiting``)."""
        names = self.trace.rows["device"].texts["name"]
        direct = np.array([is_direct_collective(name) for name in names.names], dtype=bool)
        # A process sees the devices of its host: a world of no more ranks than these is most likely there, too.
        ranks, devices = self.trace.world_size, len(self.trace.devices)
        inside = ranks is not None and ranks <= devices
        return find_waiting(self.collectives, direct[names.codes[self.collectives.device_row]] | inside)

    @cached_property
    def pins(self) -> Pins:
        pins = find_pins(self.ops, self._places.calls)
        return pins.replace(
            step=step_of(self.steps, pins.ts),
            copy=fed_copies(pins, self.calls, self.copies),
            place=self._places.around(pins.ts, pins.end, pins.tid),
        )

    @cached_property
    def loads(self) -> Loads:
        return find_loads(self._places, self.annotations)

    @cached_property
    def compiled(self) -> Compiled | None:
        """What ``torch.compile`` did in the phases that this trace speaks for; in a trace of others, what its rows say
        of it. ``None`` where nothing says."""
        if self.trace.recording is None:
            return read_compiled(self.ops, self.annotations, self.calls, self.steps, self._places)
        return find_compiled(self.trace.recording, self.trace.base_ns, self.steps)

    @cached_property
    def kernel_lines(self) -> Lines:
        """The lines that compiled kernels come from, by the name of the kernel."""
        return find_kernel_lines(self.trace.recording)

    @cached_property
    def warm_ups(self) -> WarmUps:
        spans = self.compiled.spans if self.compiled is not None else ()
        tables = self.calls, self.ops, self.activities, self.stacks, self.annotations, self.steps
        return find_warm_ups(*tables, spans, self._places.calls if self.trace.recording is not None else None)

    def warming_up(self, ts: Ints, end: Ints, tid: Ints) -> Objects:
        """For each interval (n,) of a thread, the kind of the warm-up that it is part of, ``""`` for none."""
        return warming_up(self.warm_ups, ts, end, tid)

    @cached_property
    def bubbles(self) -> Bubbles:
        """The bubbles of ``device``."""
        if self.device is None or self.span is None:
            return NO_BUBBLES
        waits = self.waits
        once = self.warming_up(waits.ts, waits.end, waits.tid) != ""
        waits = waits.take(is_wait(waits.kind) & (waits.pending != 0) & ~once)
        marks, idle = (self._places.calls, self.annotations), find_host_idle(self.calls, self.stacks)
        host = when_busy(self.calls, self.waits, self.copies, self.loads, self.warm_ups, idle, *marks)
        bubbles = find_bubbles(self.on_device, self.calls, self.ops, self.span, waits, host, self._unseen)
        return set_apart_pauses(bubbles, self.steps, self.on_device)

    @cached_property
    def _unseen(self) -> Unseen:
        rows = self.activities
        others = rows.take(rows.device != self.device)
        ordered = bool(self.calls.do(["stream-wait-event"]).any()) and len(others) > 0
        return Unseen(
            lost=self.calls.ts[self.unmade],
            repeated=len(self.steps) > 1,
            others=Union(others.ts, others.end) if ordered else None,
            shared=bool(self.processes_on_device),
            by_host=bool(self.calls.named(HOST_HOLDS.search).any()),
        )

    @cached_property
    def prints(self) -> Ints:
        """For each wait (n,) the number of the print it belongs to, −1 none (``prints.find_prints``)."""
        return find_prints(self.waits, self.places, self.ops)

    @property
    def places(self) -> tuple[Place, ...]:
        """The places that the tables name by index; the first is nowhere."""
        _ = self._waits_and_copies, self.pins, self.loads, self.collectives
        return self._places.all

    @property
    def warnings_without_wait(self) -> tuple[Warned, ...]:
        """PyTorch's warnings that no wait of the trace is behind."""
        _ = self._waits_and_copies
        return self._places.warnings_without_wait

    def busiest_places(self, ts: Ints, end: Ints, tid: Ints) -> Ints:
        """For each interval (n,) of a thread, which of ``places`` has most of it: that of the innermost frame that
        takes half of it or more, else of the call around it, else of the innermost annotation that takes half."""
        places = self._places
        return first_place(
            places.of_busiest_frames(ts, end, tid),
            places.of_calls(ts, end, tid),
            places.of_frames(ts, end, tid),
            places.of_busiest_annotations(ts, end, tid),
        )

    @cached_property
    def bubble_places(self) -> Ints:
        """For each bubble (n,) which of ``places`` has most of what the host does in it, −1 where nobody asked yet. Who
        asks keeps it here, since one bubble is asked for under several causes."""
        return np.full(len(self.bubbles), -1, dtype=np.int64)

    @cached_property
    def idle_places(self) -> dict[tuple[str, ...], Any]:
        """What the rules found of the host while the device is idle, by causes: who asks keeps it here, since several
        rules ask for the same."""
        return {}

    def annotations_around(self, ts: Ints, end: Ints, tid: Ints) -> list[tuple[str, ...]]:
        """For each interval (n,) of a thread, the innermost annotation that takes half of it, and those around that,
        outermost first."""
        return self._places.annotations_around(ts, end, tid)

    def annotated(self, name: str) -> Union:
        """When annotations that are places of this name are open."""
        return self._places.annotated(name)

    def backward_places(self, ts: Ints) -> Ints:
        """Which of ``places`` is the call of backward that runs at each time (n,), 0 where none does."""
        return self._places.of_backward(ts, ts)

    @cached_property
    def samples(self) -> Samples:
        """At which lines the host was, every so often, in a recording of ours."""
        return Samples(self.trace.recording, self.trace.base_ns)

    @property
    def recorded_calls(self) -> RecordedCalls:
        """The calls that the collector recorded."""
        return self._places.calls

    @cached_property
    def device(self) -> int | None:
        """The busiest device. Overlap and idle time are about this device only. ``None`` without device activity."""
        return busiest(self.activities)

    @cached_property
    def on_device(self) -> Activities:
        """The activities of ``device``."""
        mine = self.activities.device == (-1 if self.device is None else self.device)
        return self.activities if mine.all() else self.activities.take(mine)

    @cached_property
    def span(self) -> tuple[int, int] | None:
        """Begin and end of the part of the trace that is analysed, in ns (``steps.find_span``, ``steps.find_lag``)."""
        if self.outlasted is None and self._lag is not None:
            return self._lag
        drained = self.drained if self.outlasted is None else self.outlasted
        return find_span(self.steps, self.activities, drained, self._seen_from)

    @cached_property
    def _seen_from(self) -> int | None:
        """When the host's rows begin, ns; ``None`` where the trace holds none."""
        host = self.calls.ts, *(self.trace.rows[name]["ts"] for name in ("ops", "annotations", "frames"))
        return min((int(ts.min()) for ts in host if len(ts)), default=None)

    @cached_property
    def drained(self) -> int | None:
        """When the device had finished the last step's work, ns; ``None`` where that was not recorded."""
        recording = self.trace.recording
        if recording is None or recording.steps.drained_ns is None or not len(self.steps):
            return None
        launched = np.append(self.calls.ts, -1)[self.activities.launch]
        return find_drained(self.steps, self.activities, launched, recording.steps.drained_ns - self.trace.base_ns)

    @cached_property
    def outlasted(self) -> int | None:
        """When the device had finished the work of the steps, ns, in somebody else's recording in which it needs longer
        for it than the steps take on the host (``steps.find_outlasting``); else ``None``."""
        if self.trace.recording is not None:
            return None
        launched = np.append(self.calls.ts, -1)[self.on_device.launch]
        return find_outlasting(self.steps, self.on_device, launched)

    @cached_property
    def _lag(self) -> tuple[int, int] | None:
        """When the device does what the steps launch, in somebody else's recording (``steps.find_lag``)."""
        if self.trace.recording is not None:
            return None
        launched = np.append(self.calls.ts, -1)[self.on_device.launch]
        return find_lag(self.steps, self.on_device, launched)

    @property
    def processes_on_device(self) -> int | None:
        """How many other processes used the device, ``None`` where the recording does not say."""
        run = self.trace.recording.run if self.trace.recording else None
        others = run.processes_on_device if run else None
        return None if others is None else max(0, others)

    @cached_property
    def _places(self) -> Places:
        return Places(self.stacks, self.trace.recording, self.trace.base_ns, self.annotations)

    @cached_property
    def _compute(self) -> dict[int, Union]:
        return compute_unions(self.activities)

    @cached_property
    def _copy_ops(self) -> CopyOps:
        return CopyOps(self.calls, self.ops)

    @cached_property
    def _waits_and_copies(self) -> tuple[Waits, Copies]:
        """Waits and copies, each naming the other."""
        waits, copies = join_copies(
            self._program_waits,
            find_copies(self.activities, self.calls, self.ops, self._copy_ops, self._compute),
            self.calls,
        )
        streams = waited_streams(waits, copies, self.sync_records)
        waits = waits.replace(pending=pending_work(waits, self.calls, self.activities, streams))
        launched = copies.launch >= 0
        place = np.append(waits.place, 0)[copies.wait]
        rows = np.flatnonzero((place == 0) & launched & np.isin(copies.direction, HOST_COPIES))
        place[rows] = self._places.around(copies.launch_ts[rows], copies.launch_end[rows], copies.tid[rows])
        step = step_of(self.steps, np.where(launched, copies.launch_ts, copies.ts))
        return fill_ops(waits, copies.replace(step=step, place=place), self._places.all, self.trace.recording)

    @property
    def _program_waits(self) -> Waits:
        """The waits without the profiler's own."""
        waits = find_waits(self.calls, self.ops, self._copy_ops)
        waits = waits.replace(step=step_of(self.steps, waits.ts), place=self._places.of_waits(waits))
        return waits.take(~in_profiler(waits, self.calls, self._places)).numbered()
