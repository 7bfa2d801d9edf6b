"""Record one process, from the program's import of torch to a trace file on disk."""

from __future__ import annotations

import os
import platform
import tempfile
from pathlib import Path
from types import ModuleType
from typing import Any

from msgspec import structs

from syncscope.collect.gpu import copy_engines
from syncscope.collect.imports import ImportWatch
from syncscope.collect.paths import Paths
from syncscope.collect.process import file_name, rank_and_world_size, version
from syncscope.collect.sites.sources import source_lines
from syncscope.collect.sites.stacks import Stacks
from syncscope.collect.step_watch import StepWatch
from syncscope.collect.timer import Timer
from syncscope.collect.tracefile import splice, write_trace
from syncscope.collect.undisturbed import undisturbed
from syncscope.collect.windows import Plan, Recorded, Window, Windows
from syncscope.schema.recording import FORMAT, RecordedSteps, Recording


class Collector:
    """Records this process and writes one trace file into ``folder`` when its windows are over.

    ``open`` may be called before torch is imported: the collector neither imports torch nor touches CUDA before the
    program has. ``close`` ends windows that are still open and removes every hook. Afterwards ``path`` is the file
    written, or it is ``None`` and ``notes`` says why.
    """

    def __init__(
        self, folder: Path, plan: Plan, paths: Paths, *, seconds: float | None = None, source: bool = True
    ) -> None:
        self.path: Path | None = None
        self.notes: list[str] = []
        self._folder = folder
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

    def _torch_imported(self, torch: ModuleType) -> None:
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
        needed = self._plan.begin_at + self._plan.warmup + self._plan.bare + 3
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
        path = self._folder / file_name()
        try:
            write_trace(path, splice(window.exported, self._recording(recorded, window)))
        except Exception as error:  # the program must not fail because its recording does
            self.notes.append(f"{path}: the recording could not be written ({type(error).__name__}: {error}).")
            return
        except BaseException as error:  # Ctrl-C while the file was being written: the program's to handle
            self.notes.append(f"{path}: {type(error).__name__} came while the recording was being written.")
            raise
        self.path = path

    def _recording(self, recorded: Recorded, window: Window) -> Recording:
        assert self._windows is not None
        frames, stacks = self._windows.stacks.resolve()
        rank, world = rank_and_world_size()
        recording = Recording(
            format=FORMAT,
            version=version(),
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
            sources=source_lines(self._windows.stacks, frames) if self._keep_source else {},
            notes=tuple(self.notes),
        )
        if self._plan.mode == "windows":
            recording = self._attribute(recording, recorded.attribution)
        return recording

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


def _with_note(recording: Recording, note: str) -> Recording:
    return structs.replace(recording, notes=(*recording.notes, note))
