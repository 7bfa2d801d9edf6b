"""The timeline of one trace: its tables and what they amount to, each found once, when first asked for."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from syncscope.patterns import compile_later
from syncscope.schema.compiling import RecordedRegions
from syncscope.schema.recording import Attributed
from syncscope.schema.report import Overlap, TraceInfo
from syncscope.schema.report import Steps as StepFigures
from syncscope.timeline.attribution import find_stacked, tabulate_ops
from syncscope.timeline.bubbles import sum_causes
from syncscope.timeline.collectives import POINT_TO_POINT
from syncscope.timeline.compiled_regions import find_regions
from syncscope.timeline.disagreement import Disagreement
from syncscope.timeline.info import describe, measure_steps, name_device
from syncscope.timeline.intervals import Bools, Ints, Union
from syncscope.timeline.launching import Launching, count_queued, every_launch_waits, find_launching
from syncscope.timeline.overlap import overlap
from syncscope.timeline.run import PlacedWait, place_waits
from syncscope.timeline.silent_ops import find_launching_ops
from syncscope.timeline.steps import find_blocked, step_of
from syncscope.timeline.trace_tables import TraceTables
from syncscope.timeline.waits import is_wait
from syncscope.timeline.warm_up import are_warming_up
from syncscope.timeline.witnesses import find_disagreements

SHARDED = compile_later(r"FSDP::|FullyShardedDataParallel\.")
"""How the marks of FSDP's hooks begin, and of those of its first version."""


class Timeline(TraceTables):
    """What happened in a trace."""

    @cached_property
    def queued(self) -> Ints:
        """For each call (n,), how many calls before it the device was still behind (``launching.count_queued``)."""
        return count_queued(self.calls, self.activities)

    @cached_property
    def launching_ops(self) -> Bools:
        """Which ops (n,) launch or copy something (``silent_ops.find_launching_ops``)."""
        return find_launching_ops(self.ops, self.calls)

    @cached_property
    def launch_blocking(self) -> bool:
        """Whether every launch waits for its kernel (``launching.every_launch_waits``)."""
        recorded = self.trace.recording is not None and self.trace.recording.launch_blocking
        return every_launch_waits(self.calls, self.activities, recorded)

    @cached_property
    def launching(self) -> Launching | None:
        """How the launches of the steps keep up with ``device`` (``launching.Launching``); ``None`` without any."""
        tables = self
        if tables.device is None or tables.span is None:
            return None
        waits, copies, once = tables.waits.take(is_wait(tables.waits.kind)), tables.copies, tables.warm_ups
        staged = copies.take((copies.memory == "pageable") & (copies.launch >= 0))
        away = (
            np.concatenate([waits.begin, staged.launch_ts, once.ts]),
            np.concatenate([waits.end, staged.launch_end, once.end]),
            np.concatenate([waits.tid, staged.tid, once.tid]),
        )
        steps, calls = tables.steps, tables.calls
        span = (int(steps.ts.min()), int(steps.end.max())) if len(steps) else tables.span
        warm = calls.row[~are_warming_up(once, calls.ts, calls.end, calls.tid)]
        met = tables.collectives
        exchanges = met.launch[np.isin(met.name, POINT_TO_POINT) & (met.launch >= 0)]
        sharded = bool(tables.annotations.named(SHARDED.match).any())
        return find_launching(
            calls, warm, tables.on_device, step_of(steps, calls.ts), away, span, exchanges, sharded=sharded
        )

    @cached_property
    def holds_collectives_alone(self) -> bool:
        """Whether somebody left out all that host and devices do but for collectives, so that idle time is none."""
        return not len(self.calls) and len(self.activities) > 0 and bool((self.activities.collective != "").all())

    @cached_property
    def overlap(self) -> Overlap | None:
        """Where the time of ``device`` goes; ``None`` without device activity, or with nothing but collectives."""
        tables = self
        if tables.device is None or tables.span is None or tables.holds_collectives_alone:
            return None
        causes = sum_causes(tables.bubbles, len(tables.steps))
        return overlap(tables.on_device, tables.span, causes, len(tables.steps))

    @cached_property
    def blocked(self) -> Union | None:
        """When the host is blocked (``steps.find_blocked``); ``None`` without runtime calls."""
        return find_blocked(self.waits, self.copies) if len(self.calls) else None

    @cached_property
    def blocked_ms_per_step(self) -> float | None:
        """Milliseconds a step that the host is blocked, in all where the trace has no steps. Threads that are blocked
        at once count once. ``None`` without runtime calls."""
        steps = self.steps
        if self.blocked is None:
            return None
        inside = self.blocked.within(steps.ts, steps.end).sum() if len(steps) else self.blocked.length
        return round(float(inside) * 1e-6 / max(len(steps), 1), 6)

    @cached_property
    def counted(self) -> tuple[PlacedWait, ...]:
        """The waits that were counted over the run, in the phases that this trace speaks for."""
        return place_waits(self.trace.recording)

    @cached_property
    def only_counted(self) -> bool:
        """Whether the run was counted, and no window of it is in the trace."""
        recording = self.trace.recording
        if recording is None or recording.run is None or not recording.run.counted:
            return False
        tables = [self.trace.rows[name] for name in ("runtime", "device", "ops")]
        return not (len(self.steps) or recording.sites or recording.bare or any(len(table) for table in tables))

    @cached_property
    def device_name(self) -> str | None:
        """What the trace or its recording calls the device."""
        return name_device(self)

    @cached_property
    def step_figures(self) -> StepFigures:
        """How many steps there are and how long they take, bare and profiled."""
        return measure_steps(self)

    @cached_property
    def disagreements(self) -> tuple[Disagreement, ...]:
        """Where the rows of the trace contradict each other (``witnesses``)."""
        return find_disagreements(self)

    @cached_property
    def has(self) -> tuple[str, ...]:
        """What the trace holds, in the words of ``TraceInfo.has``."""
        rows, recording = self.trace.rows, self.trace.recording
        present = {
            "runtime": len(self.calls) > 0,
            "cpu_op": len(rows["ops"]) > 0,
            "cuda_sync": len(rows["sync"]) > 0,
            "stacks": len(rows["frames"]) > 0,
            "sites": recording is not None,
            "steps": len(rows["steps"]) > 0,
            "attribution": recording is not None and recording.attribution is not None,
            "hazards": recording is not None and recording.hazards is not None,
            "counts": recording is not None and recording.run is not None and recording.run.counted,
            "compiled": self.compiled is not None,
        }
        return tuple(name for name, there in present.items() if there)

    def info(self) -> TraceInfo:
        """The trace in the report."""
        return self._info

    @cached_property
    def _info(self) -> TraceInfo:
        return describe(self)

    @cached_property
    def regions(self) -> RecordedRegions | None:
        """The compiled graphs that run in the steps, as an attribution window recorded them, else by this trace's own
        marks."""
        recording = self.trace.recording
        if recording is not None and recording.regions is not None:
            return recording.regions
        return find_regions(self.ops, self.annotations, self.calls, self.steps)

    def attributed(self) -> list[Attributed]:
        """The ops around each wait and copy by stack and ordinal in the step, for a window recorded without ops."""
        return tabulate_ops(find_stacked(self.waits, self.copies, self.places))

    def thread_name(self, tid: int) -> str | None:
        """What the program calls a thread."""
        return self.trace.thread_names.get(tid)
