"""The views of one trace, each computed once, when first asked for."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import pandas as pd

from syncscope.schema.recording import Attributed
from syncscope.schema.report import Coverage, EachStep, Meetings, Overlap, Steps, StepSource, TraceInfo
from syncscope.timeline.attribution import attributed, fill_ops, occurrences
from syncscope.timeline.calls import launches, runtime_calls
from syncscope.timeline.collectives import find_collectives, named
from syncscope.timeline.copies import find_copies
from syncscope.timeline.each_step import blocked, copy_exposed
from syncscope.timeline.idle import IDLE, by_cause, find_idle
from syncscope.timeline.intervals import Bools, Ints, Union
from syncscope.timeline.launching import LAUNCHES, Launching, find_launching
from syncscope.timeline.meetings import find_meetings, places_behind
from syncscope.timeline.nesting import Nesting
from syncscope.timeline.overlap import busiest, compute_unions, is_compute, overlap, union_of
from syncscope.timeline.pins import fed_copies, find_pins
from syncscope.timeline.places import Place, Places, located
from syncscope.timeline.prints import find_prints
from syncscope.timeline.queue import every_launch_waits, queued
from syncscope.timeline.stacks import PythonStacks, is_user
from syncscope.timeline.steps import span, step_of
from syncscope.timeline.tables import Tables
from syncscope.timeline.waits import (
    ALL_STREAMS,
    NO_STREAM,
    OpIndex,
    find_waits,
    is_wait,
    pending_work,
    profilers_own,
)
from syncscope.trace.model import Trace

HOST_COPIES = ("HtoD", "DtoH")
DATA_LOADING = r"DataLoader|DataPipe"
COLLECTIVE = r"^(?:nccl:|gloo:|mpi:|ucc:|xccl:|ProcessGroup\.)"


class Timeline:
    """What happened in a trace. Every table's columns are documented by the constant named beside it."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace

    @cached_property
    def tables(self) -> Tables:
        """The tables as typed columns."""
        return Tables(self)

    @property
    def steps(self) -> pd.DataFrame:
        """The recorded steps (``model.STEPS``)."""
        return self.trace.steps

    @cached_property
    def calls(self) -> pd.DataFrame:
        """Runtime calls of the traced process with their ``role`` (``calls.runtime_calls``)."""
        return runtime_calls(self.trace)

    @cached_property
    def launch(self) -> Ints:
        """For each row of ``trace.device``, the row of ``calls`` that launched it, −1 none."""
        return launches(self.trace.device, self.calls)

    @cached_property
    def queued(self) -> Ints:
        """For each of ``calls``, how many calls before it the device was still behind (``queue.queued``)."""
        return queued(self.calls, self.launch, self.trace.device)

    @cached_property
    def launch_blocking(self) -> bool:
        """Whether every launch waits for its kernel (``queue.every_launch_waits``)."""
        said = self.trace.recording is not None and self.trace.recording.launch_blocking
        return every_launch_waits(self.calls, self.launch, self.trace.device, said)

    @cached_property
    def ops(self) -> OpIndex:
        """PyTorch ops and what encloses them."""
        return OpIndex(self.trace.ops["name"].astype(str).tolist(), Nesting(self.trace.ops))

    @cached_property
    def stacks(self) -> PythonStacks:
        """Python frames of the trace and what encloses them."""
        return PythonStacks(self.trace.frames)

    @property
    def waits(self) -> pd.DataFrame:
        """The waits (``waits.WAITS``)."""
        return self._located[0]

    @property
    def copies(self) -> pd.DataFrame:
        """The copies (``copies.COPIES``)."""
        return self._located[1]

    @cached_property
    def collectives(self) -> pd.DataFrame:
        """The collectives (``collectives.COLLECTIVES``)."""
        device = self.trace.device
        found = find_collectives(device, self.launch, self.calls, self.ops, compute_unions(device))
        asked = np.where(found["launch"] >= 0, found["launch_ts"], found["ts"])
        found["step"] = step_of(self.steps, asked)
        launch = [found[c].to_numpy(np.int64) for c in ("launch_ts", "launch_end", "tid")]
        own, backward = self._around(*launch), self._places.of_backward(*launch[:2])
        # What starts a collective in a thread of autograd is no line of the user's: his is the call of backward.
        sites = [place.site for place in self._places.all]
        mine = np.array([site is not None and is_user(site.file) for site in sites], dtype=bool)[own]
        place = np.where(mine | (backward == 0), own, backward)
        found["place"] = np.where(found["launch"] >= 0, place, 0)
        entries = [self._places.all[number].entry for number in found["place"]]
        found["name"] = pd.Series(named(found["name"], found["ops"], entries), dtype=object)
        return found

    @cached_property
    def pins(self) -> pd.DataFrame:
        """Pinnings of host memory (``pins.PINS``)."""
        found = find_pins(self.trace.ops, self.ops, self._places.calls)
        found["step"] = step_of(self.steps, found["ts"].to_numpy(np.int64))
        found["copy"] = fed_copies(found, self.calls, self.copies)
        found["place"] = self._around(*(found[c].to_numpy(np.int64) for c in ("ts", "end", "tid")))
        return found

    @cached_property
    def loads(self) -> pd.DataFrame:
        """The fetches of a next batch: ``ts``, ``end`` (ns), ``tid``, ``name``, ``place``."""
        found = self._marked(DATA_LOADING)
        found["place"] = self._around(*(found[c].to_numpy(np.int64) for c in ("ts", "end", "tid")))
        return found

    @cached_property
    def prints(self) -> Ints:
        """For each row of ``waits`` the number of the print it belongs to, −1 none (``prints.find_prints``)."""
        return find_prints(self.waits, self.places, self.ops)

    def attributed(self) -> list[Attributed]:
        """The ops around each wait and copy by stack and ordinal in the step, for a window recorded without ops."""
        return attributed(occurrences(self.waits, self.copies, self.places))

    @property
    def places(self) -> tuple[Place, ...]:
        """The places that the other tables name by index; the first is nowhere."""
        _ = self._located, self.pins, self.loads, self.collectives
        return self._places.all

    @cached_property
    def device(self) -> int | None:
        """The busiest device: overlap and idle time speak of it alone. ``None`` without device activity."""
        return busiest(self.trace.device)

    @cached_property
    def span(self) -> tuple[int, int] | None:
        """Begin and end of what is looked at, in ns (``steps.span``)."""
        return span(self.steps, self.trace.device, self.drained)

    @cached_property
    def idle(self) -> pd.DataFrame:
        """Bubbles of ``device`` (``idle.IDLE``)."""
        if self.device is None or self.span is None:
            nothing: pd.DataFrame = pd.DataFrame({column: pd.Series(dtype=dtype) for column, dtype in IDLE.items()})
            return nothing
        mine = self._on_device
        waits = self.waits
        drains = waits[is_wait(waits["kind"]) & (waits["pending"] != 0).to_numpy(bool)]
        drains = drains[["begin", "end"]].rename(columns={"begin": "ts"})
        rows = self.trace.device[mine].reset_index(drop=True)
        return find_idle(rows, self.launch[mine], self.calls, self.span, drains, self._host_activities())

    @cached_property
    def launching(self) -> Launching | None:
        """How the launches of the steps keep up with ``device`` (``launching.Launching``); ``None`` without any."""
        if self.device is None or self.span is None:
            return None
        waits, steps = self.waits[is_wait(self.waits["kind"])], self.steps
        blocked = pd.concat([waits[["begin", "end", "tid"]].set_axis(["ts", "end", "tid"], axis=1), self._staged])
        host = (int(steps["ts"].min()), int(steps["end"].max())) if len(steps) else self.span
        mine = self._on_device
        step = step_of(steps, self.calls["ts"].to_numpy(np.int64))
        return find_launching(self.calls, self.trace.device[mine], self.launch[mine], step, blocked, host)

    @cached_property
    def overlap(self) -> Overlap | None:
        """Where the time of ``device`` goes; ``None`` without device activity."""
        if self.device is None or self.span is None:
            return None
        causes = by_cause(self.idle, len(self.steps))
        return overlap(self.trace.device[self._on_device], self.span, causes, len(self.steps))

    @cached_property
    def blocked_ms_per_step(self) -> float | None:
        """Milliseconds a step (in all where the trace has no steps) in which some thread is blocked; ``None`` without
        runtime calls."""
        if "runtime" not in self.has:
            return None
        steps = self.steps
        if not len(steps):
            steps = pd.DataFrame({"ts": [self.calls["ts"].min()], "end": [self.calls["end"].max()]})
        return float(blocked(steps, self.waits, self.copies).mean()) * 1e-6

    @cached_property
    def step_figures(self) -> Steps:
        """How many steps there are and how long they take, bare and profiled."""
        bare = self.trace.recording.bare if self.trace.recording else None
        source: StepSource = self.trace.step_source  # type: ignore[assignment]
        return Steps(
            count=len(self.steps),
            profiled_ms=self._step_ms(),
            bare_ms=round(sum(bare.steps_ns) / len(bare.steps_ns) * 1e-6, 6) if bare and bare.steps_ns else None,
            source=source,
        )

    def thread_name(self, tid: int) -> str | None:
        """What the program calls a thread."""
        return self.trace.thread_names.get(tid)

    def info(self) -> TraceInfo:
        """The trace in the report."""
        trace, recording = self.trace, self.trace.recording
        notes = recording.notes if recording else ()
        return TraceInfo(
            path=trace.path,
            rank=trace.rank,
            device=self._device_name() or (recording.device if recording else None),
            torch=recording.torch if recording else None,
            has=self.has,
            steps=self.step_figures,
            coverage=self._coverage(),
            overlap=self.overlap,
            each_step=self._each_step(),
            files=recording.files if recording else None,
            warnings=tuple(dict.fromkeys((*trace.warnings, *notes))),
            meetings=self._meetings(),
        )

    @cached_property
    def has(self) -> tuple[str, ...]:
        """What the trace holds, in the words of ``TraceInfo.has``."""
        trace, recording = self.trace, self.trace.recording
        present = {
            "runtime": len(self.calls) > 0,
            "cpu_op": len(trace.ops) > 0,
            "cuda_sync": len(trace.sync) > 0,
            "stacks": len(trace.frames) > 0,
            "sites": recording is not None,
            "steps": len(trace.steps) > 0,
            "attribution": recording is not None and recording.attribution is not None,
            "hazards": recording is not None and recording.hazards is not None,
        }
        return tuple(name for name, there in present.items() if there)

    # ------------------------------------------------------------------------------------------------- parts

    @cached_property
    def _places(self) -> Places:
        return Places(self.stacks, self.trace.recording, self.trace.base_ns)

    @cached_property
    def _on_device(self) -> Bools:
        found: Bools = (self.trace.device["device"] == self.device).to_numpy(bool)
        return found

    def _around(self, ts: Ints, end: Ints, tid: Ints) -> Ints:
        return located(self._places.of_calls(ts, end, tid), self._places.of_frames(ts, end, tid))

    @cached_property
    def _located(self) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Waits and copies, each naming the other."""
        device = self.trace.device
        copies = find_copies(device, self.launch, self.calls, self.ops, compute_unions(device))
        waits = self._waits(copies)
        completes = waits[waits["copy"] >= 0]
        wait = np.full(len(copies), -1, dtype=np.int64)
        wait[completes["copy"].to_numpy(np.int64)] = completes.index.to_numpy(np.int64)
        launched = copies["launch"].to_numpy(np.int64) >= 0
        place = np.append(waits["place"].to_numpy(np.int64), 0)[wait]
        rows = np.flatnonzero((place == 0) & launched & copies["direction"].isin(HOST_COPIES).to_numpy(bool))
        place[rows] = self._around(*(copies[c].to_numpy(np.int64)[rows] for c in ("launch_ts", "launch_end", "tid")))
        asked = np.where(launched, copies["launch_ts"], copies["ts"])
        copies = copies.assign(step=step_of(self.steps, asked), wait=wait, place=place)
        fill_ops(waits, copies, self._places.all, self.trace.recording)
        return waits, copies

    def _waits(self, copies: pd.DataFrame) -> pd.DataFrame:
        waits: pd.DataFrame = find_waits(self.calls, self.ops)
        waits["step"] = step_of(self.steps, waits["ts"].to_numpy(np.int64))
        waits["place"] = self._wait_places(waits)
        waits = waits[~self._profilers_own(waits)]
        waits = waits.reset_index(drop=True)
        first = {int(call): row for row, call in reversed(list(enumerate(copies["launch"]))) if call >= 0}
        waits["copy"] = np.array([first.get(int(call), -1) for call in waits["copy_call"]], dtype=np.int64)
        copy = waits["copy"].to_numpy(np.int64)
        pageable = np.append((copies["memory"] == "pageable").to_numpy(bool), False)[copy]
        began = np.append(copies["launch_ts"].to_numpy(np.int64), 0)[copy]
        waits["begin"] = np.where(pageable, np.minimum(began, waits["ts"]), waits["ts"])
        waits["stall"] = waits["end"] - waits["begin"]
        launched = np.where(self.launch >= 0, np.append(self.calls["ts"], 0)[self.launch], self.trace.device["ts"])
        waits["pending"] = pending_work(waits, self.trace.device, launched, self._waited_streams(waits, copies))
        return waits

    def _wait_places(self, waits: pd.DataFrame) -> Ints:
        ts, end, tid = (waits[c].to_numpy(np.int64) for c in ("ts", "end", "tid"))
        engine = np.array([any(op.startswith("autograd::engine") for op in ops) for ops in waits["ops"]], dtype=bool)
        in_backward = engine | ~waits["ops_known"].to_numpy(bool)
        warned = np.flatnonzero(waits["kind"].isin(["stream", "copy"]).to_numpy(bool))
        place = np.zeros(len(waits), dtype=np.int64)
        place[warned] = self._places.of_warnings(ts[warned], end[warned], tid[warned], in_backward[warned])
        # A thread without Python that waits during backward is autograd's.
        backward = np.where(np.isin(tid, self._python_threads), 0, self._places.of_backward(ts, end))
        return located(place, self._around(ts, end, tid), backward)

    @property
    def _python_threads(self) -> list[int]:
        recording = self.trace.recording
        return [*self.stacks.nesting.threads(), *map(int, recording.thread_names if recording else ())]

    def _profilers_own(self, waits: pd.DataFrame) -> Bools:
        ts, end, tid = (waits[c].to_numpy(np.int64) for c in ("ts", "end", "tid"))
        frames = self.stacks.nesting.innermost(tid, ts, end)
        own = profilers_own(waits, self.calls, self.stacks.in_profiler(frames), frames >= 0)
        if self.trace.recording is None:
            return own
        # The collector records every device sync that the program asks for.
        hooked = np.array([self._places.all[place].source == "hook" for place in waits["place"]], dtype=bool)
        bare = (waits["kind"] == "device").to_numpy(bool) & (waits["op"] < 0).to_numpy(bool)
        outside: Bools = (waits["step"] < 0).to_numpy(bool)
        found: Bools = (own | (bare & outside)) & ~hooked
        return found

    def _waited_streams(self, waits: pd.DataFrame, copies: pd.DataFrame) -> Ints:
        sync = self.trace.sync[self.trace.sync["stream"] >= 0]
        stream_of = dict(zip(sync["correlation"].tolist(), sync["stream"].tolist(), strict=True))
        noted = [stream_of.get(correlation, NO_STREAM) for correlation in waits["correlation"].tolist()]
        own = np.append(copies["stream"].to_numpy(np.int64), NO_STREAM)[waits["copy"].to_numpy(np.int64)]
        found = np.where(own >= 0, own, noted)
        kind = waits["kind"].to_numpy(object)
        return np.where(kind == "device", ALL_STREAMS, np.where(np.isin(kind, ["stream", "copy"]), found, NO_STREAM))

    def _host_activities(self) -> dict[str, Union]:
        memory = self.waits[~is_wait(self.waits["kind"])]
        launching = self.calls["tid"][self.calls["role"].isin(LAUNCHES).to_numpy(bool)].unique()
        return {
            "data loading": _union(self.loads[self.loads["tid"].isin(launching)], "ts", "end"),
            "allocation": _union(memory, "ts", "end"),
            "pageable copy": _union(self._staged, "ts", "end"),
            "collective": _union(self._marked(COLLECTIVE), "ts", "end"),
        }

    @cached_property
    def _staged(self) -> pd.DataFrame:
        """When threads sat in the call of a copy from or to pageable memory: ``ts``, ``end``, ``tid``."""
        copies = self.copies
        mine = copies[((copies["memory"] == "pageable") & (copies["launch"] >= 0)).to_numpy(bool)]
        found: pd.DataFrame = mine[["launch_ts", "launch_end", "tid"]].set_axis(["ts", "end", "tid"], axis=1)
        return found

    def _marked(self, pattern: str) -> pd.DataFrame:
        """Recorded calls and annotations (``ts``, ``end``, ``tid``) whose name fits ``pattern``."""
        columns = ["ts", "end", "tid", "name"]
        found: pd.DataFrame = pd.concat([self._places.calls[columns], self.trace.annotations[columns]])
        return found[found["name"].astype(str).str.contains(pattern).to_numpy(bool)].reset_index(drop=True)

    def _meetings(self) -> Meetings | None:
        """Where the rank meets the others, on ``device``; ``None`` in a program of one rank."""
        if self.trace.world_size == 1:
            return None
        mine = self.collectives[(self.collectives["device"] == self.device).to_numpy(bool)]
        behind = places_behind(self.idle, self.waits, self.loads)
        numbers = self.steps["number"].to_numpy(np.int64)
        return find_meetings(mine, self.idle, behind, numbers, self.places, self.trace.base_ns)

    def _device_name(self) -> str | None:
        """ROCm may list devices under other numbers than it uses: then the one name that all of them have."""
        names = {device.id: device.name for device in self.trace.devices}
        if self.device in names:
            return names[self.device]
        every = set(names.values())
        return every.pop() if len(every) == 1 else None

    def _step_ms(self) -> float | None:
        """Mean length of a recorded step: where the device was seen to drain, until then, as bare steps are timed."""
        if not len(self.steps):
            return None
        if self.drained is None or self.span is None:
            return round(float(self.steps["dur"].mean()) * 1e-6, 6)
        return round((self.span[1] - self.span[0]) * 1e-6 / len(self.steps), 6)

    def _each_step(self) -> EachStep | None:
        """What tells the steps apart; ``None`` without steps."""
        steps, device = self.steps, self.device
        if not len(steps):
            return None
        mine = self.copies[(self.copies["device"] == device).to_numpy(bool)]
        compute = union_of(self.trace.device, is_compute(self.trace.device) & self._on_device)
        return EachStep(
            length_ms=_each_ms(steps["dur"].to_numpy(np.int64)),
            blocked_ms=_each_ms(blocked(steps, self.waits, self.copies)) if "runtime" in self.has else None,
            copy_exposed_ms=_each_ms(copy_exposed(steps, mine, compute)) if device is not None else None,
        )

    @cached_property
    def drained(self) -> int | None:
        """When the device had finished the last step's work, ns; ``None`` where nobody looked."""
        recording = self.trace.recording
        if recording is None or recording.steps.drained_ns is None or not len(self.steps):
            return None
        return recording.steps.drained_ns - self.trace.base_ns

    def _coverage(self) -> Coverage:
        inside = is_wait(self.waits["kind"])
        if len(self.steps):
            inside = inside & (self.waits["step"] >= 0).to_numpy(bool)
        places = self.places
        lines = [places[place].source == "hook" for place in self.waits["place"].to_numpy(np.int64)[inside]]
        return Coverage(waits=len(lines), with_line=sum(lines))


def _each_ms(lengths: Ints) -> tuple[float, ...]:
    return tuple(round(length * 1e-6, 6) for length in lengths.tolist())


def _union(table: pd.DataFrame, ts: str, end: str) -> Union:
    return Union(table[ts].to_numpy(np.int64), table[end].to_numpy(np.int64))
