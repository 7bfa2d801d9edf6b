"""The trace files of this process: one for each phase with windows, of which one also speaks for all other phases."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from msgspec import structs

from syncscope.collect.files import FileNames
from syncscope.collect.phases.phase import Phase
from syncscope.collect.tracefile import NO_EVENTS, TraceFile
from syncscope.schema.counting import RecordedRun
from syncscope.schema.recording import Recording

MOST_BYTES = 8_000_000
"""Of what windows of phases besides the main file's recorded, compressed: so much is copied with each state."""


@dataclass
class _Kept:
    file: TraceFile
    recording: Recording
    phase: Phase | None = None
    """``None`` where no window was recorded."""


class Recordings:
    """Keeps the recordings of this process and writes them.

    ``names`` says where the file of a phase belongs now, and the main file: a process may learn its rank late.
    ``complete(recording)`` is a recording with what is known now, its run among it. The methods may be called from
    several threads, and raise ``OSError`` where a file cannot be written.
    """

    def __init__(self, names: FileNames, complete: Callable[[Recording], Recording]) -> None:
        self._path_of = names.path
        self._complete = complete
        self._main: _Kept | None = None
        """Of training where it was recorded; it speaks for the phases without a file."""
        self._others: list[_Kept] = []
        self._lock = threading.RLock()

    @property
    def path(self) -> Path | None:
        """The main file, once it is written."""
        return self._main.file.path if self._main is not None else None

    @property
    def phases(self) -> tuple[Phase, ...]:
        """Those with windows."""
        return tuple(kept.phase for kept in self._all() if kept.phase is not None)

    @property
    def steps(self) -> dict[int, tuple[int, int]]:
        """The first and the last recorded step of each phase with windows, by the phase's number."""
        found = ((kept.phase, kept.recording.steps) for kept in self._all())
        return {
            phase.number: (steps.first, steps.first + len(steps.boundaries_ns) - 2)
            for phase, steps in found
            if phase is not None
        }

    @property
    def explained(self) -> set[int]:
        """The stacks whose ops windows have recorded."""
        return {one.stack for kept in self._all() for one in kept.recording.attribution or ()}

    def keep(self, phase: Phase, exported: bytes, recording: Recording) -> None:
        """Write what the windows of ``phase`` recorded, in the place of what is there of it.

        Raises ``ValueError`` where ``exported`` is no complete trace. What is there then stays.
        """
        with self._lock:
            before = self._main, [*self._others]
            kept = next((one for one in self._all() if one.phase is phase), None)
            if kept is None and phase.kind == "train" and (self._main is None or self._main.phase is None):
                kept = self._main = self._main or _Kept(TraceFile(self._path_of(None)), recording)
            elif kept is None:
                kept = _Kept(TraceFile(self._path_of(phase.slug)), recording)
                self._others.append(kept)
            held = kept.phase, kept.recording
            kept.phase, kept.recording = phase, recording
            try:
                self._name(kept)
                kept.file.write(exported, self._completed(kept))
            except BaseException:
                kept.phase, kept.recording = held
                self._main, self._others = before
                raise
            self._follow_rank()

    def improve(self, phase: Phase, improved: Callable[[Recording], Recording]) -> None:
        """Replace the recording of ``phase``. It is written when its run is."""
        with self._lock:
            for kept in self._all():
                if kept.phase is phase:
                    kept.recording = improved(kept.recording)

    def write_state(self, without_windows: Callable[[], Recording]) -> None:
        """Write the run as it stands into the main file, and into those of phases as far as they are small: the phase
        of each is told by what is in it, also where the program is killed."""
        with self._lock:
            if self._main is None:
                self._main = _Kept(TraceFile(self._path_of(None)), without_windows())
                try:
                    self._main.file.write(NO_EVENTS, self._completed(self._main))
                except BaseException:
                    self._main = None
                    raise
            else:
                self._update(self._main)
            left = MOST_BYTES
            for kept in sorted(self._others, key=lambda kept: kept.file.size):
                left -= kept.file.size
                if left >= 0:
                    self._update(kept)
            self._follow_rank()

    def finish(self, rank: Callable[[Phase], float]) -> None:
        """Write the run into every file. Where no training was recorded, the phase with the highest ``rank`` gets the
        main file. Windows of what turned out to be a part of another phase are windows of no phase: they go."""
        with self._lock:
            for kept in [kept for kept in self._others if kept.phase is not None and kept.phase.folded_into]:
                self._others.remove(kept)
                kept.file.path.unlink(missing_ok=True)
            if self._others and (self._main is None or self._main.phase is None):
                first = max(self._others, key=lambda kept: rank(kept.phase) if kept.phase else 0.0)
                self._others.remove(first)
                self._main = first
            for kept in self._all():
                self._update(kept)

    def remove(self) -> None:
        """Remove the files."""
        with self._lock:
            for kept in self._all():
                kept.file.path.unlink(missing_ok=True)
            self._main, self._others = None, []

    def _all(self) -> list[_Kept]:
        return [*([self._main] if self._main is not None else []), *self._others]

    def _update(self, kept: _Kept) -> None:
        self._name(kept)
        kept.file.update(self._completed(kept))

    def _follow_rank(self) -> None:
        """Bring files up to date whose names have changed: the process has become a rank."""
        for kept in self._all():
            if kept.file.path != self._path(kept):
                self._update(kept)

    def _name(self, kept: _Kept) -> None:
        """Move the file where it belongs."""
        path = self._path(kept)
        if path != kept.file.path:
            kept.file.move(path)

    def _path(self, kept: _Kept) -> Path:
        return self._path_of(kept.phase.slug if kept.phase is not None and kept is not self._main else None)

    def _completed(self, kept: _Kept) -> Recording:
        recording = self._complete(kept.recording)
        phase = kept.phase.name if kept.phase is not None else None
        run: RecordedRun | None = recording.run
        if run is not None:
            run = structs.replace(run, main=kept is self._main)
        return structs.replace(recording, phase=phase, run=run)
