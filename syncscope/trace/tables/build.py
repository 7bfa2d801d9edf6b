"""The contents of a file → its :class:`Trace`: the tables, the steps, the process, the devices and the recording."""

from __future__ import annotations

import math
from collections.abc import Iterator
from copy import copy
from itertools import pairwise
from typing import Any

import msgspec
import numpy as np

from syncscope.patterns import compile_later
from syncscope.schema.counting import RecordedRun
from syncscope.schema.recording import FORMAT, Bare, RecordedGpu, Recording
from syncscope.trace.beside import Beside
from syncscope.trace.decoding.events import Document, Event
from syncscope.trace.decoding.numbers import Int, integer
from syncscope.trace.memory import LARGE
from syncscope.trace.model import Device, Trace
from syncscope.trace.rows import Rows
from syncscope.trace.sets import different
from syncscope.trace.source import Loss, TraceError, one_line
from syncscope.trace.tables.frames import RawTables, thread_names
from syncscope.trace.tables.processes import find_merged, find_ranks
from syncscope.trace.tables.steps import find_steps

_OTHER_DEVICE = compile_later(r"(?:mtia|hpu|privateuse1|glow|ipu|npu|tpu)\w{0,40}")
_YEAR_1973_NS = 10**17
_END_OF_TIME_NS = 1 << 62
"""A later time (than 2116) is impossible; the length to an earlier one might overflow."""


class Contents(msgspec.Struct):
    """What a file holds, before it becomes a trace."""

    document: Document
    """Without its events."""
    tables: RawTables
    metadata: list[Event] = msgspec.field(default_factory=list)
    other_categories: set[str] = msgspec.field(default_factory=set)
    """Categories of events that no table takes."""
    warnings: list[str] = msgspec.field(default_factory=list)


def build_trace(contents: Contents, path: str) -> Trace:
    """The trace in the contents of a file; of one that holds several ranks, the process with the most runtime calls.
    Raises :class:`TraceError` when it holds nothing of a device: no event, and no count of a run."""
    return _main_trace(_File(contents, path))


def _main_trace(file: _File) -> Trace:
    if file.pid not in file.merged:
        return file.trace(file.frames, file.pid)
    only = Loss(
        f"the file holds {len(file.merged)} processes with devices of their own, as of ranks whose traces were "
        f"merged: only process {file.pid} is read; give the trace of each rank to see who waits for whom"
    )
    return file.trace(file.frames.of(file.pid, file.merged[file.pid]), file.pid, file.ranks.get(file.pid), only)


def build_ranks(contents: Contents, path: str) -> tuple[Trace, ...]:
    """The traces of all ranks in the contents of a file, the one of ``build_trace`` first; only that one where the file
    does not tell them apart. Raises :class:`TraceError` as that does."""
    file = _File(contents, path)
    if file.pid not in file.ranks:
        return (_main_trace(file),)
    order = sorted(file.ranks, key=lambda pid: (pid != file.pid, file.ranks[pid]))
    said = f"the traces of {len(order)} ranks were merged into this file"
    return tuple(file.trace(file.frames.of(pid, file.merged[pid]), pid, file.ranks[pid], said) for pid in order)


class _File:
    """What a file holds of all its processes."""

    def __init__(self, contents: Contents, path: str) -> None:
        self._document, self._metadata, self._path = contents.document, contents.metadata, path
        self._warnings = list(contents.warnings)
        self._recording = recording = _recording(self._document.syncscope, path, self._warnings)
        if recording is None or recording.run is None:
            _refuse_without_device(contents, path)
        self.frames = frames = _Frames(contents.tables)
        aliases = recording.thread_aliases.items() if recording is not None else ()
        self._aliases = {integer(tid): native for tid, native in aliases}
        frames.rename_threads(self._aliases)
        self._base_ns = _base(self._document, frames, self._warnings)
        self.merged = find_merged(self._metadata, frames.runtime, frames.device, frames.processes["device"])
        self.ranks = find_ranks(self._metadata, self.merged) if self.merged else {}
        self.pid = _process(frames, recording)
        """The process with the most runtime calls; of merged devices alone the first rank's."""
        if self.pid is None and self.ranks:
            self.pid = min(self.ranks, key=lambda pid: self.ranks[pid])

    def trace(self, frames: _Frames, pid: int | None, merged_rank: int | None = None, *more: str) -> Trace:
        """The trace of a process, of which ``frames`` are the rows. ``more`` is what else is said of it."""
        document, recording, aliases = self._document, self._recording, self._aliases
        steps = find_steps(frames, recording, self._base_ns, pid)
        warnings = [*self._warnings, *more, *([steps.note] if steps.note else [])]
        distributed = document.distributed if isinstance(document.distributed, dict) else {}
        rank, world_size = _count(distributed.get("rank")), _count(distributed.get("world_size"))
        rank = rank if merged_rank is None else merged_rank
        names = {aliases.get(tid, tid): name for tid, name in thread_names(self._metadata, pid).items()}
        if recording is not None:
            rank = recording.rank if rank is None else rank
            world_size = recording.world_size if world_size is None else world_size
            names |= {integer(tid): name for tid, name in recording.thread_names.items()}
        return Trace(
            path=self._path.encode(errors="replace").decode(),  # a file name may hold bytes that are no text
            base_ns=self._base_ns,
            rows={
                "ops": frames.ops,
                "runtime": frames.runtime,
                "device": frames.device,
                "sync": frames.sync,
                "frames": frames.frames,
                "annotations": frames.annotations,
                "device_annotations": frames.device_annotations,
                "steps": steps.table,
            },
            step_source=steps.source,
            devices=_devices(document.devices, recording),
            rank=rank,
            world_size=world_size,
            pid=pid,
            thread_names=names,
            recording=recording,
            warnings=tuple(str(warning) for warning in warnings),
            lost=tuple(str(warning) for warning in warnings if isinstance(warning, Loss)),
            group_names=_group_names(distributed.get("pg_config")),
            ranks_in_file=max(len(self.ranks), 1),
        )


class _Frames:
    """Every table but the steps."""

    def __init__(self, raw: RawTables) -> None:
        with Beside(threaded=raw.rows("frames") >= LARGE) as beside:  # half of the work, mostly without Python's lock
            frames = beside.begin(raw.frames)
            self.ops = raw.ops()
            self.runtime = raw.runtime()
            self.device = raw.device(self.runtime)
            self.sync = raw.sync()
            self.annotations = raw.annotations()
            self.device_annotations = raw.device_annotations()
            self.processes = raw.processes
            self.frames = frames()

    def rename_threads(self, aliases: dict[int, int]) -> None:
        """Give threads that Kineto numbers otherwise their native id."""
        if not aliases:
            return
        for table in (self.frames, self.ops, self.runtime, self.annotations):
            tids = table["tid"]
            table.numbers["tid"] = renamed = tids.copy()
            for tid in different(tids).tolist():
                if tid in aliases:
                    renamed[tids == tid] = aliases[tid]

    def of(self, pid: int, devices: Int) -> _Frames:
        """The same without what is of other processes and of other devices, as the file calls their processes."""
        own = copy(self)
        for name in ("ops", "runtime", "frames", "annotations"):
            table: Rows = getattr(self, name)
            setattr(own, name, table.take(table["pid"] == pid))
        for name in ("device", "sync", "device_annotations"):
            table = getattr(self, name)
            setattr(own, name, table.take(np.isin(self.processes[name], devices)))
        return own

    def all(self) -> tuple[Rows, ...]:
        return self.frames, self.ops, self.runtime, self.device, self.sync, self.annotations


def _refuse_without_device(contents: Contents, path: str) -> None:
    has = contents.tables.has
    if has("runtime", "kernel", "memcpy", "memset"):
        return
    foreign = sorted(name for name in contents.other_categories if _OTHER_DEVICE.fullmatch(name))
    if foreign:
        raise TraceError(path, f"holds activity of a device that is not supported ({', '.join(foreign)})")
    if not has("ops", "frames", "annotations", "sync"):
        raise TraceError(path, "holds no events of a PyTorch profile")
    lost = next((warning for warning in contents.warnings if isinstance(warning, Loss)), None)
    why = _why_without_device(contents) if lost is None else f"some of it is lost ({lost})"
    raise TraceError(path, f"holds no device activity and no runtime calls: {why}")


def _why_without_device(contents: Contents) -> str:
    """Why a file that is whole holds nothing of a device."""
    named = next((device.name for device in _devices(contents.document.devices, None)), None)
    if named is None:
        return (
            "recorded without ProfilerActivity.CUDA, or where there is no CUDA or ROCm device? PyTorch's profiler "
            "records nothing of Apple's"
        )
    return (
        "recorded without ProfilerActivity.CUDA, or the driver's profiler (CUPTI) could not be used? The file names "
        f"the device, {named}; in WSL and in containers the driver may deny it, and only one profiler at a time can "
        "have it"
    )


def _base(document: Document, frames: _Frames, warnings: list[str]) -> int:
    """The base of the file's times in ns since the epoch, 0 where the times are absolute (torch ≤ 2.3)."""
    base = integer(document.base_ns, 0)
    first = min((int(table["ts"][0]) for table in frames.all() if len(table)), default=None)
    if first is None:  # only what was counted over a run
        return 0
    if first >= _YEAR_1973_NS:
        return 0
    if not 0 < base < _END_OF_TIME_NS:
        warnings.append("the file does not say when it begins: its times cannot be compared with another's")
        return 0
    return base


def _process(frames: _Frames, recording: Recording | None) -> int | None:
    """The process with the most runtime calls, else the most ops."""
    for table in (frames.runtime, frames.ops, frames.annotations):
        if len(table):
            pids, counts = np.unique(table["pid"], return_counts=True)
            return int(pids[counts.argmax()])
    return recording.pid if recording is not None else None


def _recording(key: object, path: str, warnings: list[str]) -> Recording | None:
    """The collector's key, ``None`` when absent or malformed. Raises :class:`TraceError` for a newer format."""
    if key is None:
        return None
    version = key.get("format") if isinstance(key, dict) else None
    if isinstance(version, int) and version > FORMAT:
        raise TraceError(path, f"was recorded by a newer syncscope (format {version}): upgrade syncscope")
    try:
        without = {name: value for name, value in key.items() if name != "run"} if isinstance(key, dict) else key
        recording = msgspec.convert(without, Recording)
        _check(recording)
    except (msgspec.ValidationError, ValueError) as error:
        warnings.append(Loss(f"the syncscope key is malformed and is ignored: {one_line(str(error))}"))
        return None
    run = _run(key.get("run") if isinstance(key, dict) else None, recording, warnings)
    return msgspec.structs.replace(recording, run=run)


def _run(key: object, recording: Recording, warnings: list[str]) -> RecordedRun | None:
    """What the recording counted over the run, ``None`` when absent or malformed."""
    if key is None:
        return None
    try:
        run = msgspec.convert(key, RecordedRun)
        _check_run(run, recording)
    except (msgspec.ValidationError, ValueError) as error:
        warnings.append(Loss(f"what was counted over the run is malformed and is ignored: {one_line(str(error))}"))
        return None
    return run


def _check_run(run: RecordedRun, recording: Recording) -> None:
    """Check what the types cannot express. Raises ``ValueError``."""
    phases, stacks = range(len(run.phases)), range(len(recording.stacks))
    names = [phase.name for phase in run.phases]
    if any(number not in phases for number in [wait.phase for wait in run.waits] + [part.phase for part in run.bins]):
        raise ValueError("a wait or a stretch names a phase that is not there")
    if any(wait.stack not in stacks for wait in run.waits):
        raise ValueError("a wait names a stack that is not there")
    if len(set(names)) < len(names):
        raise ValueError("two phases have one name")
    if recording.phase is not None and recording.phase not in names:
        raise ValueError("it does not hold the phase that was recorded")
    if any(number < 0 for part in (run, *run.phases, *run.waits, *run.bins) for number in _amounts(part)):
        raise ValueError("a number is negative")
    if any(phase.counted_steps > phase.steps or phase.one_in < 1 for phase in run.phases):
        raise ValueError("more steps were counted than there were")
    if not all(map(math.isfinite, (run.overhead_share or 0.0, *(phase.one_in for phase in run.phases)))):
        raise ValueError("a number is not finite")


def _amounts(part: msgspec.Struct) -> Iterator[Any]:
    """The numbers of a part, which all say how much or how many."""
    return (value for value in msgspec.structs.astuple(part) if isinstance(value, int | float))


def _check(recording: Recording) -> None:
    """Check what the types cannot express. Raises ``ValueError``."""
    times = [*recording.steps.boundaries_ns]
    if any(after < before for before, after in pairwise(times)):
        raise ValueError("step boundaries go back in time")
    times += [time for event in recording.sites for time in (event.start_ns, event.end_ns)]
    times += [recording.steps.drained_ns or 0]
    if any(not 0 <= time < _END_OF_TIME_NS for time in times):
        raise ValueError("a time is out of range")
    threads = [recording.steps.tid or 0, recording.steps.first, *recording.thread_aliases.values()]
    if any(not -(1 << 62) < number < 1 << 62 for number in threads):
        raise ValueError("a number is out of range")
    if any(not 0 <= index < len(recording.frames) for stack in recording.stacks for index in stack):
        raise ValueError("a stack names a frame that is not there")
    stacks = [site.stack for site in recording.sites]
    stacks += [place.stack for place in recording.attribution or ()]
    stacks += [access.stack for race in recording.hazards or () for access in (race.access, race.earlier)]
    if recording.bare is not None:
        stacks += [stamp.stack for stamp in recording.bare.stamps if stamp.stack is not None]
        _check_bare(recording.bare)
    if recording.gpu is not None:
        _check_gpu(recording.gpu)
    if any(not 0 <= stack < len(recording.stacks) for stack in stacks):
        raise ValueError("a site names a stack that is not there")


def _check_bare(bare: Bare) -> None:
    count = len(bare.steps_ns)
    if any(len(stamp.ends_ns) != count or len(stamp.begins_ns) not in (0, count) for stamp in bare.stamps):
        raise ValueError("a stamp is not of every bare step")
    parts = (bare, *bare.set_aside, *((bare.loader,) if bare.loader is not None else ()))
    numbers = [*bare.steps_ns, *(number for part in parts for number in _amounts(part))]
    numbers += [time for stamp in bare.stamps for time in (*stamp.begins_ns, *stamp.ends_ns)]
    if any(number < 0 for number in numbers):
        raise ValueError("a bare step, or something in it, has a negative length")


def _check_gpu(gpu: RecordedGpu) -> None:
    windows = [window for window in (gpu.bare, gpu.timed) if window is not None]
    if any(number < 0 for part in (gpu, *windows) for number in _amounts(part)):
        raise ValueError("a number of the GPU's is negative")
    if any(not 0 <= share <= 1 for window in windows for share in window.throttled.values()):
        raise ValueError("a share of time is out of range")


def _devices(properties: object, recording: Recording | None) -> tuple[Device, ...]:
    devices = []
    recorded = recording.copy_engines if recording else None
    for row in properties if isinstance(properties, list) else ():
        if isinstance(row, dict) and isinstance(row.get("name"), str):
            device_id, engines = _count(row.get("id")), _count(row.get("asyncEngineCount"))
            engines = recorded if engines is None else engines
            devices.append(Device(-1 if device_id is None else device_id, row["name"], engines))
    return tuple(devices)


def _group_names(groups: object) -> dict[str, str]:
    """The descriptions of process groups, by their names, where the program or PyTorch gives one."""
    names = {}
    for row in groups if isinstance(groups, list) else ():
        name, description = (row.get("pg_name"), row.get("pg_desc")) if isinstance(row, dict) else (None, None)
        if isinstance(name, str) and isinstance(description, str) and description not in ("", "undefined"):
            names[name] = description
    return names


def _count(value: object) -> int | None:
    """A number that is not negative, ``None`` for anything else."""
    number = integer(value)
    return number if number >= 0 else None
