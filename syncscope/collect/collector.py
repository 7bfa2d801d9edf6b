"""Record one process, from the program's import of torch to a trace file on disk."""

from __future__ import annotations

import linecache
import os
import platform
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType
from typing import Any

from msgspec import structs

from syncscope.collect.files import TraceFiles
from syncscope.collect.gpu import copy_engines
from syncscope.collect.imports import ImportWatch
from syncscope.collect.paths import Paths
from syncscope.collect.sites.stacks import Stacks
from syncscope.collect.step_watch import StepWatch
from syncscope.collect.timer import Timer
from syncscope.collect.tracefile import splice, write_trace
from syncscope.collect.undisturbed import undisturbed
from syncscope.collect.windows import Plan, Recorded, Window, Windows
from syncscope.schema.counting import RecordedRun
from syncscope.schema.recording import FORMAT, RecordedFrame, RecordedSteps, Recording

CONTEXT_LINES = 2
"""Source lines kept on each side of a user's line."""


class Collector:
    """Records this process and writes one trace file into ``folder`` when its windows are over.

    ``open`` may be called before torch is imported: the collector neither imports torch nor touches CUDA before the
    program has. ``close`` ends windows that are still open and removes every hook. Afterwards ``path`` is the file
    written, or it is ``None`` and ``notes`` says why.
    """

    def __init__(
        self, folder: Path, plan: Plan, paths: Paths, *, seconds: float | None = None, source: bool = True,
        files: TraceFiles | None = None, process: str | None = None,
    ) -> None:  # fmt: skip
        self.path: Path | None = None
        self.notes: list[str] = []
        self._folder = folder
        self.files = files or TraceFiles(folder)
        self._process = process
        self._began_ns = time.time_ns()
        self._plan = plan
        self._paths = paths
        self._keep_source = source
        self._timer = Timer(seconds, self._tick) if seconds else None
        self._torch: Any = None
        self._windows: Windows | None = None
        self._watch = StepWatch(self._boundary, self._restart)
        self._imports = ImportWatch("torch", self._torch_imported)
        self._pid = os.getpid()
        self._unfollowed = ""

    def open(self) -> None:
        self._imports.open()

    @property
    def stopped(self) -> bool:
        """Whether the program was ended after its windows, as planned."""
        return self._plan.stop and self._windows is not None and self._windows.finished and self.path is not None

    def step(self) -> None:
        """The program said that a step ended."""
        self._watch.user_step()

    def close(self) -> None:
        """End the windows that are still open and remove every hook. Does nothing in a forked child."""
        if os.getpid() != self._pid:
            return
        self._imports.close()
        self._watch.detach()
        if self._timer is not None:
            self._timer.close()
        if self._windows is not None and not self._windows.finished:
            self._windows.close("The program ended before its windows were over.")
        if self.path is None and not self.notes:
            self.notes.append(self._why_nothing_was_recorded())

    def abandon(self) -> None:
        """Remove every hook, in a forked child that used no CUDA before, and write nothing."""
        self._imports.close()
        self._watch.detach()

    def _torch_imported(self, torch: ModuleType) -> None:
        if os.getpid() != self._pid:
            return
        self._torch = torch
        self._windows = Windows(self._plan, torch, Stacks(self._paths), self._finish)
        if self._timer is not None:
            self._timer.open()
        else:
            try:
                self._watch.attach(torch)
            except (AttributeError, ImportError) as error:  # the program's import must not fail
                self._watch.detach()
                self._unfollowed = f"Steps cannot be followed in this PyTorch ({error}). "

    def _boundary(self) -> None:
        self.files.look_for_rank()
        if self._windows is not None:
            self._windows.boundary()

    def _tick(self) -> None:
        self._watch.source = "seconds"
        self._boundary()

    def _restart(self) -> bool:
        return self._windows is None or self._windows.restart()

    def _why_nothing_was_recorded(self) -> str:
        if self._torch is None:
            return "The program never imported torch."
        if not self._torch.cuda.is_initialized():
            return "The program never used CUDA."
        if self._watch.source == "none":
            unseen = "No step was seen: no optimiser stepped twice, and no module was called twice. "
            return (
                f"{self._unfollowed or unseen}"
                "Call syncscope.step() at the end of each step, or record by time with --seconds."
            )
        needed = self._plan.warmup + self._plan.bare + 3
        return (
            f"The program made too few steps: {needed} pass before one is recorded. "
            "Lower --warmup and --bare, or run more steps."
        )

    def _finish(self) -> None:
        """Write the file and remove every hook, now that the windows are over."""
        assert self._windows is not None
        self._watch.detach()
        if self._timer is not None:
            self._timer.close()
        recorded = self._windows.recorded
        self.notes += [*recorded.notes, *([recorded.failure] if recorded.failure else [])]
        with undisturbed():
            self._write(recorded)

    def _write(self, recorded: Recorded) -> None:
        window = recorded.timed
        if window is None:
            self.notes = [recorded.failure or self._why_nothing_was_recorded()]
            return
        if len(window.boundaries_ns) - 1 < self._plan.steps:
            self.notes.append(f"Only {len(window.boundaries_ns) - 1} of {self._plan.steps} steps were recorded.")
        try:
            path = self.files.write(splice(window.exported, self._recording(recorded, window)))
        except Exception as error:  # the program must not fail because its recording does
            self.notes.append(f"{self._folder}: the recording could not be written ({type(error).__name__}: {error}).")
            return
        except BaseException as error:  # Ctrl-C while the file was being written: the program's to handle
            self.notes.append(f"{self._folder}: {type(error).__name__} came while the recording was being written.")
            raise
        self.path = path

    def _recording(self, recorded: Recorded, window: Window) -> Recording:
        assert self._windows is not None
        frames, stacks = self._windows.stacks.resolve()
        rank, world = self.files.rank()
        recording = Recording(
            format=FORMAT,
            version=_version(),
            mode=self._plan.mode,
            torch=str(self._torch.__version__),
            python=platform.python_version(),
            device=self._torch.cuda.get_device_name(),
            copy_engines=copy_engines(self._torch.cuda.current_device()),
            rank=rank,
            world_size=world,
            pid=os.getpid(),
            thread_names=self._windows.threads.names(),
            thread_aliases=self._windows.threads.aliases,
            steps=RecordedSteps(
                source=self._watch.source,
                first=window.first_step,
                boundaries_ns=window.boundaries_ns,
                drained_ns=window.drained_ns,
                tid=recorded.tid,
            ),
            bare=recorded.bare,
            frames=frames,
            stacks=stacks,
            sites=window.sites,
            hazards=recorded.hazards,
            hazard_steps=recorded.hazard_steps or None,
            launch_blocking=os.environ.get("CUDA_LAUNCH_BLOCKING") == "1",
            files=self._paths.own_files(),
            sources=self._sources(frames) if self._keep_source else {},
            notes=tuple(self.notes),
            run=self._run(),
        )
        if self._plan.mode == "windows":
            recording = self._attribute(recording, recorded.attribution)
        return recording

    def _run(self) -> RecordedRun:
        return RecordedRun(
            id=self.files.run,
            started_ns=self._began_ns,
            time_ns=time.time_ns() - self._began_ns,
            complete=True,
            counted=False,
            process=self._process,
        )

    def _attribute(self, recording: Recording, window: Window | None) -> Recording:
        """Add the table of the ops around each wait and copy, read from ``window``, or a note that says why not."""
        if window is None:
            note = "The program ended before its ops were recorded: an op is known only where the line shows it."
            return _with_note(recording, note)
        from syncscope.timeline import Timeline  # imports pandas: not before the program has run
        from syncscope.trace import TraceError, load

        steps = structs.replace(
            recording.steps, first=window.first_step, boundaries_ns=window.boundaries_ns, drained_ns=window.drained_ns
        )
        of_window = structs.replace(recording, mode="full", steps=steps, sites=window.sites)
        with tempfile.TemporaryDirectory(prefix="syncscope-") as folder:
            path = Path(folder) / "attribution.json"
            write_trace(path, splice(window.exported, of_window))
            try:
                table = Timeline(load(path)).attributed()
            except TraceError as error:
                note = f"The window that recorded the ops could not be read ({error.reason}): ops are missing."
                return _with_note(recording, note)
        return structs.replace(recording, attribution=tuple(table))

    def _sources(self, frames: Iterable[RecordedFrame]) -> dict[str, dict[str, str]]:
        """The source text around the user's lines: normalised file → line → text."""
        sources: dict[str, dict[str, str]] = {}
        for file, name in self._windows.stacks.files() if self._windows else ():
            lines = linecache.getlines(file)
            for frame in frames:
                if frame.file != name or not frame.user or frame.line is None:
                    continue
                last = (frame.end_line or frame.line) + CONTEXT_LINES
                for number in range(max(1, frame.line - CONTEXT_LINES), min(last, len(lines)) + 1):
                    sources.setdefault(name, {})[str(number)] = lines[number - 1].rstrip("\n")
        return sources


def _with_note(recording: Recording, note: str) -> Recording:
    return structs.replace(recording, notes=(*recording.notes, note))


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("syncscope")
    except PackageNotFoundError:
        return "0+unknown"
