"""Which Python line a wait or a copy belongs to.

From the collector's records first (the exact line and expression), else from the trace's Python frames (the function
and the line of its ``def``), else none: then only the chain of ops tells places apart. Nothing is guessed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import pandas as pd

from syncscope.schema.findings import Frame, Site, SiteSource
from syncscope.schema.recording import RecordedFrame, Recording, SiteEvent
from syncscope.timeline.intervals import Bools, Ints
from syncscope.timeline.matching import Warned, match_calls, match_warnings
from syncscope.timeline.stacks import PythonStacks, is_user

BACKWARD = ("_engine_run_backward", "run_backward")
"""Functions of torch/autograd that replay, when C++ backward has ended, the warnings of all threads it used."""

PACKAGES = "<site-packages>/"

AnyFrame = TypeVar("AnyFrame", Frame, RecordedFrame)


@dataclass(frozen=True)
class Place:
    """Where in the program something happened."""

    site: Site | None = None
    """The user's line: the innermost user frame, else the outermost of a library. With ``source`` *stack* its line is
    that of the ``def``."""
    at: Frame | None = None
    """The innermost frame."""
    chain: tuple[Frame, ...] = ()
    """All frames, outermost first, ending at ``at``."""
    source: SiteSource = "op"
    expected: str | None = None
    """The reason given by the program for what happens here."""
    ordinal: int = 0
    """Of the site's expression among equal ones of its function."""
    entry: str = ""
    """The entry point that was recorded (``torch.cuda.synchronize``) or the built-in that ran (``item``)."""
    running: str | None = None
    """The expression that ``at`` was running, where it was recorded."""
    stack: int = -1
    """Number of the recorded stack, −1 for none."""

    def runs_through(self, *files: str) -> bool:
        """Whether any frame's file ends with one of ``files``."""
        return any(frame.file.endswith(files) for frame in self.chain)


NOWHERE = Place()


class Places:
    """All places of a trace, each once; a place is named by its index. Index 0 is nowhere."""

    def __init__(self, stacks: PythonStacks, recording: Recording | None, base_ns: int) -> None:
        self._stacks = stacks
        self._recording = recording
        self._base_ns = base_ns
        self._index: dict[Place, int] = {NOWHERE: 0}
        self._of_event: dict[int, int] = {}
        self._of_frame: dict[int, int] = {}
        self._calls = self._recorded_calls()

    @property
    def all(self) -> tuple[Place, ...]:
        return tuple(self._index)

    @property
    def calls(self) -> pd.DataFrame:
        """The recorded calls: ``ts``, ``end`` (ns), ``tid``, ``name``, ``event`` (index in ``Recording.sites``)."""
        return self._calls

    def of_warnings(self, ts: Ints, end: Ints, tid: Ints, in_backward: Bools) -> Ints:
        """Places of the waits that PyTorch warned of, 0 for those without a warning."""
        recording = self._recording
        if recording is None or not len(ts):
            return np.zeros(len(ts), dtype=np.int64)
        warned = [
            Warned(number, event.end_ns - self._base_ns, event.tid, event.stack, self._is_backward(event))
            for number, event in enumerate(recording.sites)
            if event.kind == "warning"
        ]
        events = match_warnings(warned, ts, end, tid, in_backward)
        return np.array([self._event(int(event)) for event in events], dtype=np.int64)

    def of_calls(self, ts: Ints, end: Ints, tid: Ints) -> Ints:
        """Places of the recorded calls around intervals, 0 where there is none."""
        rows = match_calls(self._calls, ts, end, tid)
        events = np.append(self._calls["event"].to_numpy(np.int64), -1)[rows]
        return np.array([self._event(int(event)) for event in events], dtype=np.int64)

    def of_frames(self, ts: Ints, end: Ints, tid: Ints) -> Ints:
        """Places by the trace's Python frames, 0 where there is none."""
        rows = self._stacks.nesting.innermost(tid, ts, end)
        return np.array([self._frame(int(row)) for row in rows], dtype=np.int64)

    def of_backward(self, ts: Ints, end: Ints) -> Ints:
        """Places of the calls of backward around intervals, whatever their thread: autograd has threads of its own,
        without Python. 0 where there is none."""
        calls = self._calls[(self._calls["name"] == "backward").to_numpy(bool)]
        rows = np.flatnonzero(self._stacks.named(BACKWARD))
        found = np.zeros(len(ts), dtype=np.int64)
        for table, places in (
            (self._stacks.times.iloc[rows], [self._frame(int(row)) for row in rows]),
            (calls, [self._event(int(event)) for event in calls["event"]]),
        ):
            slot = np.searchsorted(table["ts"].to_numpy(np.int64), ts, side="right") - 1
            inside = (slot >= 0) & (np.append(table["end"].to_numpy(np.int64), 0)[slot] >= end)
            found = np.where(inside, np.append(np.array(places, dtype=np.int64), 0)[slot], found)
        return found

    def _recorded_calls(self) -> pd.DataFrame:
        sites = self._recording.sites if self._recording else ()
        rows = [(e.start_ns, e.end_ns, e.tid, e.name, number) for number, e in enumerate(sites) if e.kind == "call"]
        table: pd.DataFrame = pd.DataFrame(rows, columns=["ts", "end", "tid", "name", "event"])
        whole = ["ts", "end", "tid", "event"]
        table[whole] = table[whole].astype("int64")
        table[["ts", "end"]] -= self._base_ns
        table = table.sort_values(["ts", "end"], ascending=[True, False], kind="stable", ignore_index=True)
        return table

    def _is_backward(self, event: SiteEvent) -> bool:
        frames = recorded_frames(self._recording, event.stack)
        return bool(frames) and frames[-1].function in BACKWARD and "torch/autograd/" in frames[-1].file

    def _event(self, number: int) -> int:
        if number not in self._of_event:
            event = self._recording.sites[number] if self._recording and number >= 0 else None
            place = recorded_place(self._recording, event.stack, event.name, event.expected) if event else NOWHERE
            self._of_event[number] = self._index.setdefault(place, len(self._index))
        return self._of_event[number]

    def _frame(self, row: int) -> int:
        if row not in self._of_frame:
            chain = self._stacks.chain(row) if row >= 0 else ()
            place = stack_place(chain, self._stacks.builtin(row)) if chain else NOWHERE
            self._of_frame[row] = self._index.setdefault(place, len(self._index))
        return self._of_frame[row]


def recorded_frames(recording: Recording | None, stack: int) -> list[RecordedFrame]:
    """The frames of a recorded stack, outermost first; none when it is not there."""
    if recording is None or not 0 <= stack < len(recording.stacks):
        return []
    return [recording.frames[i] for i in recording.stacks[stack] if 0 <= i < len(recording.frames)]


def recorded_place(recording: Recording | None, stack: int, entry: str, expected: str | None) -> Place:
    """The place of a stack that the collector recorded."""
    frames = recorded_frames(recording, stack)
    if not frames:
        return NOWHERE
    # What is outside of the user's first frame is the launcher's: a test runner, a command line.
    frames = frames[next((i for i, f in enumerate(frames) if f.user), 0) :]
    chain = tuple(Frame(file=f.file, line=f.line, function=f.function) for f in frames)
    mine = next((f for f in reversed(frames) if f.user), None) or outermost(frames)
    return Place(
        site=recorded_site(mine), at=chain[-1], chain=chain, source="hook", expected=expected,
        ordinal=mine.ordinal, entry=entry, running=frames[-1].expression, stack=stack,
    )  # fmt: skip


def recorded_site(frame: RecordedFrame) -> Site:
    """The frame as a user's line; columns count from 1, as lines do."""
    column, end = (None if number is None else number + 1 for number in (frame.column, frame.end_column))
    one_line = frame.end_line in (None, frame.line)
    return Site(
        file=frame.file, line=frame.line, function=frame.function, expression=frame.expression,
        column=column, end_column=end if one_line else None,
    )  # fmt: skip


def stack_place(chain: tuple[Frame, ...], entry: str) -> Place:
    """The place of a stack from the trace's Python frames."""
    mine = next((frame for frame in reversed(chain) if is_user(frame.file)), None) or outermost(chain)
    site = Site(file=mine.file, line=mine.line, function=mine.function)
    return Place(site=site, at=chain[-1], chain=chain, source="stack", entry=entry)


def outermost(frames: Sequence[AnyFrame]) -> AnyFrame:
    """Of frames that are all a library's, the outermost that is neither PyTorch's nor Python's, else the outermost."""
    others = (f for f in frames if f.file.startswith(PACKAGES) and not f.file.startswith(PACKAGES + "torch/"))
    return next(others, frames[0])


def located(*choices: Ints) -> Ints:
    """The first choice that is somewhere, place by place."""
    found: Ints = choices[0].copy()
    for choice in choices[1:]:
        found = np.where(found > 0, found, choice)
    return found
