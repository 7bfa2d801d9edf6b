"""Count a run for as long as it lasts, and report while it goes on."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import ModuleType

from msgspec import structs

from syncscope.collect.background import Background
from syncscope.collect.counting import MOST_SHARE, RunCount, consistent
from syncscope.collect.export import Exporter, Receivers
from syncscope.collect.files import FileNames, new_run_id
from syncscope.collect.imports import ImportWatch
from syncscope.collect.paths import Paths
from syncscope.collect.phases.phase import Phase
from syncscope.collect.recordings import Recordings
from syncscope.collect.schedule import StopProgram
from syncscope.collect.undisturbed import undisturbed
from syncscope.collect.watch.lines import Judge, Lines, Resolved, WaitingLine
from syncscope.collect.watch.live_line import LiveLine, text_of
from syncscope.collect.watch.measures import Meter
from syncscope.collect.watch.on_signal import OnSignal
from syncscope.schema.counting import RecordedRun
from syncscope.schema.recording import Recording

LOOK_SECONDS = 0.5
"""Between two looks at what was counted."""
EXPORT_SECONDS = 10.0
OTHERS_SECONDS = 10.0
"""Between two looks at the files of other processes."""
REPORT_SHARE = 0.01
"""Share of the time that the reports of ``every`` may take: where one takes long, they come less often."""
FAILED = 1
"""The status of a program that a new line ended."""


@dataclass(frozen=True)
class Options:
    """What is said of a run while it goes on."""

    every: float | None = None
    """Seconds between two reports."""
    on_report: Callable[[], None] | None = None
    """Writes a report of what was counted so far. Called between two steps."""
    known: Judge | None = None
    """Whether a line is in the baseline or expected; ``None`` without a baseline."""
    phases: Collection[str] = ("train",)
    """Kinds or names of the phases in which lines are judged."""
    on_new: Callable[[WaitingLine], None] | None = None
    """Called between two steps with each line that is not known; without a baseline, with each line that waits."""
    say: Callable[[str], None] = lambda line: None
    """Prints one line for the user, at any time, on any thread."""
    live: bool = False
    """Show the line on the terminal."""
    signal: int | None = None
    """The number of the signal that asks for a report."""
    fail: bool = False
    """End the program when a line is new."""
    exporters: Collection[Exporter] = ()
    others: Callable[[], Collection[Recording]] | None = None
    """Reads what was counted in the processes that the program started; ``None`` where they are left alone."""


class Watcher:
    """Counts this process. A recorder in the sense of ``annotations.begin``.

    ``names`` says where the count is written, ``None`` for nowhere. Reports, callbacks and the end of ``fail`` come
    between two steps, on the thread that makes them; the rest on a thread of its own.
    """

    def __init__(self, names: FileNames | None, paths: Paths, options: Options, *, source: bool = True) -> None:
        run = names.run if names is not None else new_run_id()
        self.count = RunCount(paths, run, self.write_state, source=source)
        self.count.listener = self
        self.failed = False
        """The program was told to end because a line is new."""
        self._options = options
        self._names = names
        self._recordings = Recordings(names, self._complete) if names is not None else None
        self._notes: list[str] = []
        self._imports = ImportWatch("torch", self._torch_imported)
        self._torch_seen = False
        self._lines = Lines(options.known, options.phases)
        self._live_meter, self._export_meter = Meter(), Meter()
        self._live = LiveLine() if options.live else None
        self._receivers = Receivers(options.exporters)
        self._signal = OnSignal(options.signal, self._want_report) if options.signal is not None else None
        self._background = Background(LOOK_SECONDS, self._look, MOST_SHARE)
        self._reporting_ns = 0
        self._wanted = False
        self._fresh: list[WaitingLine] = []
        """Lines that ``on_new`` is to hear of."""
        self._others: dict[int, Lines] = {}
        """Those of the processes that the program started, by their number."""
        self._ending = False
        now = time.monotonic()
        self._exported = self._looked = now
        self._next_report = now + (options.every or 0.0)
        self._pid = os.getpid()
        self.start = Path.cwd()
        """The folder that the program began in."""
        self.closed = False

    @property
    def folder(self) -> Path | None:
        """Where files go, also those of the processes that the program starts."""
        return self._names.folder if self._names is not None else None

    @property
    def path(self) -> Path | None:
        """The file with what was counted, once it is written."""
        return self._recordings.path if self._recordings is not None else None

    @property
    def new_lines(self) -> tuple[WaitingLine, ...]:
        """The lines that wait and are not known, so far, each once."""
        found = (line for lines in (self._lines, *self._others.values()) for line in lines.new)
        return tuple({line.place: line for line in found}.values())

    @property
    def notes(self) -> tuple[str, ...]:
        """What could not be done, one sentence each."""
        return (*self._notes, *self.count.notes, *self._receivers.notes)

    def open(self) -> None:
        if self._signal is not None and (why := self._signal.open()):
            self._notes.append(f"{why}.")
            self._options.say(f"note: {why}")
        self._imports.open()

    def step(self) -> None:
        """The program said that a step ended."""
        if self._torch_seen:
            self.count.step()

    def close(self) -> None:
        """Remove every hook, write the last state, and tell exporters the last figures. Nothing in a forked child."""
        if os.getpid() != self._pid or self.closed:
            return
        self.closed = True
        self._imports.close()
        if self._signal is not None:
            self._signal.close()
        self._background.close()
        self.count.close()
        if self.count.began:
            self.write_state()
            try:
                self._examine(consistent(lambda: self.count.recorded_run(complete=True)), export=True)
            except Exception as error:  # the program has ended well
                self._notes.append(f"The last figures could not be said ({type(error).__name__}: {error}).")
            self._tell_of_new()
        if self._live is not None:
            self._live.close()
        self._receivers.close()
        if not self.count.began:
            self._notes.append(
                "The program never used CUDA." if self._torch_seen else "The program never imported torch."
            )

    def write_state(self) -> None:
        """Write what was counted so far. An error costs the file, and leaves one note."""
        if self._recordings is None or not self.count.began:
            return
        try:
            self._recordings.write_state(self.recording)
        except Exception as error:  # the program must not fail because its count does
            note = f"The count could not be written ({type(error).__name__}: {error})."
            if note not in self._notes:
                self._notes.append(note)

    def recording(self) -> Recording:
        """What was counted so far."""
        recording = self.count.recording(complete=self.closed)
        run = self._with_own_cost(recording.run) if recording.run is not None else None
        rank, world = self._names.rank() if self._names is not None else (None, None)
        notes = dict.fromkeys((*recording.notes, *self._notes))
        return structs.replace(recording, rank=rank, world_size=world, notes=tuple(notes), run=run)

    def _with_own_cost(self, run: RecordedRun) -> RecordedRun:
        """``run`` with the cost of looking and reporting added to that of counting."""
        if run.overhead_share is None or not run.time_ns:
            return run
        own = (self._background.busy_ns + self._reporting_ns) / run.time_ns
        return structs.replace(run, overhead_share=run.overhead_share + own)

    def _complete(self, before: Recording) -> Recording:
        return self.recording()

    def abandon(self) -> None:
        """Remove every hook, in a forked child, and write nothing."""
        self._imports.close()
        self.count.leave_forked_child()

    def stepped(self, phase: Phase) -> int:
        """A step ended, perhaps with others: the time for what must not come in the middle of one."""
        if self.closed:
            return sys.maxsize
        if self._ending:
            self.failed = True
            raise StopProgram(FAILED)
        if self._fresh:
            self._tell_of_new()
        if self._wanted:
            self._wanted = False
            self._report()
        return sys.maxsize

    def changed(self, before: Phase, after: Phase) -> None:
        pass

    def folded(self, phase: Phase, into: Phase) -> None:
        pass

    def better_source(self, phase: Phase) -> None:
        pass

    def _torch_imported(self, torch: ModuleType) -> None:
        if os.getpid() != self._pid:
            return
        self._torch_seen = True
        self.count.open(torch)
        try:
            self._background.open()
        except RuntimeError as error:
            self._notes.append(f"Nothing was said before the end of the program ({error}).")

    def _want_report(self) -> None:
        self._wanted = True

    def _tell_of_new(self) -> None:
        fresh, self._fresh = self._fresh, []
        if self._options.on_new is not None:
            for line in fresh:
                try:
                    self._options.on_new(line)
                except Exception as error:  # SystemExit is for the program
                    self._notes.append(f"on_new failed for {line} ({type(error).__name__}: {error}).")

    def _report(self) -> None:
        if self._options.on_report is None:
            return
        began = time.monotonic()
        with undisturbed():
            self.write_state()
            self._options.on_report()
        self._reporting_ns += int((time.monotonic() - began) * 1e9)
        if self._options.every is not None:
            now = time.monotonic()
            self._next_report = now + max(self._options.every, (now - began) / REPORT_SHARE)

    def _look(self) -> None:
        """Twice a second, on a thread of ours."""
        if self.closed or not self.count.began:
            return
        now = time.monotonic()
        if self._signal is not None and self._signal.given_way:
            self._options.say(f"note: {self._signal.name} asks for no report any more: the program has set a handler")
            self._signal = None
        if self._options.every is not None and now >= self._next_report:
            self._next_report = now + self._options.every
            self._wanted = True
        if now - self._looked >= OTHERS_SECONDS:
            self._looked = now
            self.look_at_others()
        export = bool(self._receivers) and now - self._exported >= EXPORT_SECONDS
        if export:
            self._exported = now
        self._examine(consistent(self.count.recorded_run), export=export)

    def look_at_others(self) -> None:
        """Judge the lines of the processes that the program started, as far as they have written what they counted."""
        options = self._options
        if options.others is None or options.known is None:
            return
        for recording in options.others():
            if recording.run is None or recording.pid is None or recording.pid == self._pid:
                continue
            before = {line.place for line in self.new_lines}
            lines = self._others.setdefault(recording.pid, Lines(options.known, options.phases))
            lines.find(recording.run, partial(_resolved, recording))
            new = [line for line in lines.judge(recording.run) if line.place not in before]
            for line in new:
                options.say(f"new wait in process {recording.pid}: {line}")
            self._fresh += new
            self._ending |= bool(new) and options.fail

    def _examine(self, run: RecordedRun, *, export: bool) -> None:
        options, run = self._options, self._with_own_cost(run)
        found = self._lines.find(run, self.count.stacks.resolve)
        new = self._lines.judge(run)
        for line in new:
            options.say(f"new wait: {line}")
        self._fresh += new if self._lines.judged else found
        if new and options.fail:
            self._ending = True
        known = len(self._lines.new) if self._lines.judged else None
        if self._live is not None and not self.closed:
            self._live.show(text_of(self._live_meter.measure(run, len(self._lines), known)))
        if export:
            self._receivers.export(self._export_meter.measure(run, len(self._lines), known))


def _resolved(recording: Recording) -> Resolved:
    return recording.frames, recording.stacks
