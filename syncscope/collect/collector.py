"""Record one process, from the program's import of torch to its end: its run, and windows of its phases."""

from __future__ import annotations

import os
import tempfile
import threading
import time
from pathlib import Path
from types import ModuleType
from typing import Any

from msgspec import structs

from syncscope.collect.clocks import ClockWatch
from syncscope.collect.counting import RunCount, consistent
from syncscope.collect.device import native_sync
from syncscope.collect.files import FileNames
from syncscope.collect.imports import ImportWatch
from syncscope.collect.looks.looks import MOST_LOOKS, Looks
from syncscope.collect.looks.wanted import choose_steps, unknown_stacks
from syncscope.collect.paths import Paths
from syncscope.collect.phases.phase import Phase
from syncscope.collect.plan import Plan
from syncscope.collect.profiler import KinetoWindow
from syncscope.collect.ready_ranks import ReadyRanks
from syncscope.collect.recorded import Recorded, Window
from syncscope.collect.recordings import Recordings
from syncscope.collect.schedule import Schedule, census_of
from syncscope.collect.timer import Timer
from syncscope.collect.tracefile import TraceFile
from syncscope.collect.undisturbed import undisturbed
from syncscope.schema.compiling import CompileSpan
from syncscope.schema.recording import Attributed, RecordedSteps, Recording

PLAN_SECONDS = 2.0
"""Seconds between two choices of steps to look at, ..."""
PLAN_SHARE = 0.0005
"""... and the most that choosing takes, as a share of the time."""


class Collector:
    """Records this process and writes its trace files.

    ``open`` may be called before torch is imported: the collector neither imports torch nor touches CUDA before the
    program has. ``close`` ends windows that are still open, removes every hook and writes the run into the files.
    Afterwards ``path`` is the main file, or it is ``None`` and ``notes`` says why.
    """

    def __init__(
        self, names: FileNames, plan: Plan, paths: Paths, *, seconds: float | None = None, source: bool = True,
        process: str | None = None,
    ) -> None:  # fmt: skip
        self.notes: list[str] = []
        self.names = names
        self._plan = plan
        self._process = process
        by_time = seconds is not None
        self._count = RunCount(paths, names.run, self._write_state, count=plan.count, source=source, by_time=by_time)
        self._timer = Timer(seconds, self._count.end_stretch) if seconds else None
        self._torch: Any = None
        self._schedule: Schedule | None = None
        self._recordings = Recordings(names, self._complete)
        self._imports = ImportWatch("torch", self._torch_imported)
        self._looks: Looks | None = None
        self._next_plan = 0.0
        self._ended = threading.Event()
        self._pid = os.getpid()

    @property
    def path(self) -> Path | None:
        """The main file, once it is written."""
        return self._recordings.path

    @property
    def stopped(self) -> bool:
        """Whether the program was ended after its windows, as planned."""
        return self._schedule is not None and self._schedule.stopped

    def open(self) -> None:
        self._imports.open()

    def step(self) -> None:
        """The program said that a step ended."""
        self._count.step()

    def close(self) -> None:
        """End what is open and write the files. Does nothing in a forked child, or the second time."""
        if os.getpid() != self._pid or self._ended.is_set():
            return
        self._imports.close()
        if self._timer is not None:
            self._timer.close()
        if self._schedule is not None:
            self._schedule.close("The program ended before its windows were over.")
            self._ended.set()
            with undisturbed():
                self._count.close()
                self._finish(self._schedule)
        self._ended.set()
        if self.path is None and consistent(self._saw_nothing):
            self.notes.append(self._why_nothing_was_recorded())

    def abandon(self) -> None:
        """Remove every hook, in a forked child that used no CUDA before, and write nothing."""
        self._imports.close()
        self._count.leave_forked_child()

    def _torch_imported(self, torch: ModuleType) -> None:
        if os.getpid() != self._pid:
            return
        self._torch = torch
        try:
            self._begin(torch)
        except Exception as error:  # the program's import must not fail
            self._note(f"The program could not be recorded as planned ({type(error).__name__}: {error}).")

    def _begin(self, torch: ModuleType) -> None:
        count = self._count
        if self._plan.windows and self._plan.mode == "windows":
            self._looks = Looks(torch, count.stacks, count.threads, lambda phase: census_of(count.counter, phase))
            count.on_tick = self._plan_looks
        self._schedule = count.listener = Schedule(
            self._plan, torch, count.stacks, count.threads, self._keep,
            sync=native_sync(torch), on_bare=self._improve, counter=lambda: count.counter,
            signals=lambda: count.signals, clocks=ClockWatch(),
            phases=lambda: count.tracker.phases if count.tracker is not None else (),
            training_may_come=lambda: count.training_may_come,
            looks=self._looks,
            compilations=lambda: count.compiling.log.compilations,
            ready_ranks=ReadyRanks(torch, self.names.folder, self.names.run),
        )  # fmt: skip
        count.before_step = self.names.look_for_rank
        count.open(torch)
        if self._timer is not None:
            self._timer.open()

    def _write_state(self) -> None:
        self._recordings.write_state(self._count.recording)

    def _plan_looks(self) -> None:
        """Choose steps to look at for the lines whose op is not known. On a thread of ours."""
        looks, schedule, began = self._looks, self._schedule, time.monotonic()
        if looks is None or looks.failure or schedule is None or not schedule.idle or began < self._next_plan:
            return
        if not looks.open and KinetoWindow.had_cupti:
            run = consistent(self._count.recorded_run)
            known = {stack for stack, _ in tuple(looks.found)} | self._recordings.explained
            stacks = unknown_stacks(run, *self._count.stacks.resolve(), known)
            looks.want(choose_steps(run, stacks, looks.tried, MOST_LOOKS))
        self._next_plan = began + max(PLAN_SECONDS, (time.monotonic() - began) / PLAN_SHARE)

    def _keep(self, phase: Phase, recorded: Recorded) -> None:
        """Write what the windows of a phase recorded."""
        window = recorded.timed
        assert window is not None
        with undisturbed():
            self._count.sharing.sample()
            try:
                self._recordings.keep(phase, window.exported, self._recording(phase, recorded, window))
            except Exception as error:  # the program must not fail because its recording does
                self._note(f"The recording of {phase.name} could not be written ({type(error).__name__}: {error}).")
            except BaseException as error:  # Ctrl-C while the file was being written: the program's to handle
                self._note(f"{type(error).__name__} came while the recording of {phase.name} was being written.")
                raise

    def _improve(self, phase: Phase, recorded: Recorded) -> None:
        """Take better bare steps into the recording of a phase. They are written with the run."""
        bare = recorded.bare
        assert bare is not None

        def improved(before: Recording) -> Recording:
            if before.bare is not None and len(before.bare.steps_ns) > len(bare.steps_ns):
                return before
            gpu = before.gpu
            if gpu is None or gpu.missing is not None:
                gpu = recorded.gpu
            elif recorded.gpu is not None and recorded.gpu.bare is not None:
                gpu = structs.replace(gpu, bare=recorded.gpu.bare)
            return structs.replace(before, bare=bare, gpu=gpu)

        self._recordings.improve(phase, improved)

    def _finish(self, schedule: Schedule) -> None:
        """Write the whole run into the files, and leave none where there is nothing to say."""
        for note in (*self._count.notes, *schedule.notes, *self._notes_of_looks()):
            self._note(note)
        try:
            if not self._recordings.phases and consistent(self._saw_nothing):
                self._recordings.remove()
                return
            self._recordings.write_state(self._count.recording)
            self._recordings.finish(lambda phase: phase.time_ns)
        except Exception as error:
            self._note(f"{self.names.folder}: the recording could not be written ({type(error).__name__}: {error}).")

    def _notes_of_looks(self) -> tuple[str, ...]:
        return (self._looks.failure,) if self._looks is not None and self._looks.failure else ()

    def _saw_nothing(self) -> bool:
        """Whether the program made no step and waited nowhere."""
        count = self._count
        counted = count.counter is not None and bool(count.counter.waits())
        stepped = count.tracker is not None and any(phase.steps for phase in count.tracker.phases)
        return not (counted or stepped)

    def _note(self, note: str) -> None:
        if note not in self.notes:
            self.notes.append(note)

    def _recording(self, phase: Phase, recorded: Recorded, window: Window) -> Recording:
        notes = [*recorded.notes, *([recorded.failure] if recorded.failure else [])]
        steps = len(window.boundaries_ns) - 1
        if steps < self._plan.steps:
            notes.append(f"Only {steps} of {self._plan.steps} steps {'was' if steps == 1 else 'were'} recorded.")
        recording = structs.replace(
            self._count.recording(),
            mode=self._plan.mode,
            steps=RecordedSteps(
                source=phase.source,
                first=window.first_step,
                boundaries_ns=window.boundaries_ns,
                drained_ns=window.drained_ns,
                tid=recorded.tid,
            ),
            bare=recorded.bare,
            gpu=recorded.gpu,
            sites=window.sites,
            samples=window.samples,
            compiling=self._compiled_in(window, recorded.attribution),
            hazards=recorded.hazards,
            hazard_steps=recorded.hazard_steps or None,
            notes=tuple(notes),
        )
        return self._attribute(recording, recorded.attribution) if self._plan.mode == "windows" else recording

    def _complete(self, recording: Recording) -> Recording:
        """``recording`` with what is known now of the process and its run."""
        now = self._count.recording(complete=self._ended.is_set())
        run = structs.replace(now.run, stopped=self.stopped, process=self._process) if now.run else None
        if run is not None:
            steps = self._recordings.steps
            phases = (
                structs.replace(one, recorded=number in steps, recorded_steps=steps.get(number))
                for number, one in enumerate(run.phases)
            )
            run = structs.replace(run, phases=tuple(phases))
        rank, world = self.names.rank()
        return structs.replace(
            recording,
            attribution=self._with_looks(recording),
            rank=rank,
            world_size=world,
            thread_names=now.thread_names,
            thread_aliases=now.thread_aliases,
            frames=now.frames,
            stacks=now.stacks,
            files=now.files,
            sources=now.sources,
            notes=tuple(dict.fromkeys((*recording.notes, *now.notes, *self.notes))),
            run=run,
        )

    def _with_looks(self, recording: Recording) -> tuple[Attributed, ...] | None:
        """The table of ops with those of the looks, where it tells of all lines of its windows, or there are none."""
        found = tuple(self._looks.found.values()) if self._looks is not None else ()
        table, windows = recording.attribution, bool(recording.steps.boundaries_ns)
        if not found or (table is None and windows):
            return table
        known = {one.stack for one in table or ()}
        return (*(table or ()), *(one for one in found if one.stack not in known))

    def _attribute(self, recording: Recording, window: Window | None) -> Recording:
        """Add the table of the ops around each wait and copy, read from ``window``, or a note that says why not."""
        if window is None:
            note = "The program ended before its ops were recorded: an op is known only where the line shows it."
            return _with_note(recording, note)
        from syncscope.timeline import Timeline  # imports numpy: not before the program has run
        from syncscope.trace import TraceError, load

        steps = structs.replace(
            recording.steps, first=window.first_step, boundaries_ns=window.boundaries_ns, drained_ns=window.drained_ns
        )
        of_window = structs.replace(recording, mode="full", steps=steps, sites=window.sites)
        with tempfile.TemporaryDirectory(prefix="syncscope-") as folder:
            file = TraceFile(Path(folder) / "attribution.json.gz")
            file.write(window.exported, of_window)
            try:
                timeline = Timeline(load(file.path))
                table = timeline.attributed()
            except TraceError as error:
                note = f"The window that recorded the ops could not be read ({error.reason}): ops are missing."
                return _with_note(recording, note)
        return structs.replace(recording, attribution=tuple(table), regions=timeline.regions)

    def _compiled_in(self, *windows: Window | None) -> tuple[CompileSpan, ...]:
        spans = self._count.compiling.log.spans
        ends = ((one.boundaries_ns[0], one.boundaries_ns[-1]) for one in windows if one is not None)
        return tuple(span for start, end in ends for span in spans(start, end))

    def _why_nothing_was_recorded(self) -> str:
        if self._torch is None:
            return "The program never imported torch."
        if not self._count.began:
            return "The program never used CUDA."
        unseen = "No step was seen, and no wait: no optimizer stepped, and no module was called twice."
        advice = "Call syncscope.step() at the end of each step, or record by time with --seconds."
        return f"{unseen} {advice}"


def _with_note(recording: Recording, note: str) -> Recording:
    return structs.replace(recording, notes=(*recording.notes, note))
