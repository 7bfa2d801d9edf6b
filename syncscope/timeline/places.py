"""The Python line that a wait, a copy or a race belongs to.

The collector's records give the exact line and expression. Without them, the trace's Python frames give the function
and the line of its ``def``. Without frames there is no line, and the innermost ``record_function`` and the chain of ops
tell places apart. Nothing is guessed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import msgspec
import numpy as np

from syncscope.schema.findings import Frame, Site, SiteSource
from syncscope.schema.recording import HazardEvent, RecordedFrame, Recording, SiteEvent
from syncscope.timeline.annotations import find_annotations
from syncscope.timeline.intervals import Bools, Ints, Union
from syncscope.timeline.matching import Warned, match_calls, match_warnings
from syncscope.timeline.python_stacks import PythonStacks, is_user
from syncscope.timeline.tables import Marks, Objects, Waits, objects

BACKWARD = ("_engine_run_backward", "run_backward")
"""Functions of torch/autograd. When C++ backward has ended, they raise the warnings of all threads that it used."""

PACKAGES = "<site-packages>/"

WRAPPERS = (PACKAGES + "torch/utils/_device.py", PACKAGES + "torch/overrides.py")
"""Files that stand between a call and its operator, where ``torch.set_default_device`` or a tensor's class asks for
it. PyTorch's warning of a wait points there too, and tells nothing. Methods of these names, in whatever library the
class is, stand there too."""
METHODS = ("__torch_function__", "__torch_dispatch__")

AnyFrame = TypeVar("AnyFrame", Frame, RecordedFrame)


class Place(msgspec.Struct, frozen=True):
    """Where in the program something happened."""

    site: Site | None = None
    """The user's line: the innermost frame of the program's own, else the outermost frame of a library. With ``source``
    *stack* it is the line of the ``def``, and without a frame of the program's own that of ``library_frame``."""
    at: Frame | None = None
    """The innermost frame that does not only pass a call on."""
    chain: tuple[Frame, ...] = ()
    """All frames, outermost first, ending at ``at``."""
    source: SiteSource = "op"
    expected: str | None = None
    """The reason that the program gave for waiting here."""
    ordinal: int = 0
    """The number of the site's expression among equal ones of its function."""
    entry: str = ""
    """The entry point that was recorded (``torch.cuda.synchronize``) or the built-in that ran (``item``)."""
    running: str | None = None
    """The expression that ``at`` was running, where it was recorded."""
    stack: int = -1
    """Number of the recorded stack, −1 for none."""
    annotation: str = ""
    """The innermost ``record_function`` (``annotations.find_annotations``), only where there is no frame."""

    def runs_through(self, *files: str) -> bool:
        """Whether any frame's file ends with one of ``files``."""
        return any(frame.file.endswith(files) for frame in self.chain)


NOWHERE = Place()


class RecordedCalls(Marks):
    """The calls that the collector recorded, in order of ``ts``, the longest first among equals."""

    event: Ints
    """Index in ``Recording.sites``."""


def find_recorded_calls(recording: Recording | None, base_ns: int) -> RecordedCalls:
    """The recorded calls, in ns since ``base_ns``."""
    sites = recording.sites if recording else ()
    calls = [
        (e.start_ns - base_ns, -(e.end_ns - base_ns), number) for number, e in enumerate(sites) if e.kind == "call"
    ]
    calls.sort()
    ts, end, event = (np.array([call[i] for call in calls], dtype=np.int64) for i in range(3))
    return RecordedCalls(
        row=np.arange(len(calls), dtype=np.int64), ts=ts, end=-end, event=event,
        tid=np.array([sites[number].tid for *_, number in calls], dtype=np.int64),
        name=objects([sites[number].name for *_, number in calls]),
    )  # fmt: skip


class Places:
    """All places of a trace, each once; a place is named by its index. Index 0 is nowhere."""

    def __init__(self, stacks: PythonStacks, recording: Recording | None, base_ns: int, annotations: Marks) -> None:
        """``annotations`` are those of the trace, on the host."""
        self.stacks = stacks
        self.recording = recording
        self.calls = find_recorded_calls(recording, base_ns)
        self._annotations = find_annotations(annotations)
        self._base_ns = base_ns
        self._index: dict[Place, int] = {NOWHERE: 0}
        self._all: tuple[Place, ...] = (NOWHERE,)
        self._of_event: dict[tuple[int, str, str | None], int] = {}
        self._of_stack: dict[int, int] = {}
        self._of_row: dict[int, int] = {}
        self.warnings_without_wait: tuple[Warned, ...] = ()
        """PyTorch's warnings that no wait was found for, once ``of_warnings`` was asked."""

    @property
    def all(self) -> tuple[Place, ...]:
        if len(self._all) < len(self._index):
            self._all = tuple(self._index)
        return self._all

    def around(self, ts: Ints, end: Ints, tid: Ints) -> Ints:
        """Places (n,) of what ran around intervals on their thread: of recorded calls, else of the trace's frames, else
        of its annotations."""
        return first_place(self.of_calls(ts, end, tid), self.of_frames(ts, end, tid), self.of_annotations(ts, end, tid))

    def of_waits(self, waits: Waits) -> Ints:
        """Places (n,) of waits: of PyTorch's warning, else of what ran around it, else of the backward around it, else
        of the annotation around it."""
        ts, end, tid = waits.ts, waits.end, waits.tid
        engine = np.array([any(op.startswith("autograd::engine") for op in ops) for ops in waits.ops], dtype=bool)
        warned = np.flatnonzero(np.isin(waits.kind, ["stream", "copy"]))
        place = np.zeros(len(waits), dtype=np.int64)
        in_backward = engine | ~waits.ops_known
        place[warned] = self.of_warnings(ts[warned], end[warned], tid[warned], in_backward[warned])
        # A thread without Python that waits during backward is autograd's.
        named = self.recording.thread_names if self.recording else ()
        python = np.isin(tid, [*self.stacks.nesting.threads(), *map(int, named)])
        return first_place(
            place,
            self.of_calls(ts, end, tid),
            self.of_frames(ts, end, tid),
            np.where(python, 0, self.of_backward(ts, end)),
            self.of_annotations(ts, end, tid),
        )

    def of_warnings(self, ts: Ints, end: Ints, tid: Ints, in_backward: Bools) -> Ints:
        """Places (n,) of the waits that PyTorch warned of, 0 for those without a warning. ``in_backward`` (n,) says
        which may have run in C++ backward."""
        if self.recording is None:
            return np.zeros(len(ts), dtype=np.int64)
        warned = [
            Warned(number, event.end_ns - self._base_ns, event.tid, event.stack, self._is_backward(event))
            for number, event in enumerate(self.recording.sites)
            if event.kind == "warning"
        ]
        events = match_warnings(warned, ts, end, tid, in_backward)
        matched = set(events.tolist())
        self.warnings_without_wait = tuple(warning for warning in warned if warning.event not in matched)
        return self._of_events(events)

    def of_calls(self, ts: Ints, end: Ints, tid: Ints) -> Ints:
        """Places (n,) of the recorded calls around intervals, 0 where there is none."""
        return self._of_events(np.append(self.calls.event, -1)[match_calls(self.calls, ts, end, tid)])

    def of_frames(self, ts: Ints, end: Ints, tid: Ints) -> Ints:
        """Places (n,) by the trace's Python frames, 0 where there is none."""
        return self._of_frames(self.stacks.nesting.innermost(tid, ts, end))

    def of_busiest_frames(self, ts: Ints, end: Ints, tid: Ints) -> Ints:
        """Places (n,) of the innermost frames that take half of intervals on their thread, 0 where none does."""
        return self._of_frames(self.stacks.nesting.busiest(tid, ts, end))

    def of_busiest_annotations(self, ts: Ints, end: Ints, tid: Ints) -> Ints:
        """Places (n,) of the innermost annotations that take half of intervals on their thread, 0 where none does."""
        return self._of_marks(self._annotations.nesting.busiest(tid, ts, end))

    def annotations_around(self, ts: Ints, end: Ints, tid: Ints) -> list[tuple[str, ...]]:
        """For each interval (n,) the innermost annotation that takes half of it, and those around that, outermost
        first; ``()`` where none does."""
        table, nesting = self._annotations.table, self._annotations.nesting
        rows = nesting.busiest(tid, ts, end)
        chains = {row: tuple(table.name[i] for i in reversed(list(nesting.chain(row)))) for row in set(rows.tolist())}
        return [chains[row] for row in rows.tolist()]

    def annotated(self, name: str) -> Union:
        """When annotations of a name are open."""
        mine = self._annotations.table.take(self._annotations.table.name == name)
        return Union(mine.ts, mine.end)

    def of_annotations(self, ts: Ints, end: Ints, tid: Ints) -> Ints:
        """Places (n,) by the innermost annotation around intervals on their thread, 0 where there is none."""
        return self._of_marks(self._annotations.nesting.innermost(tid, ts, end))

    def _of_marks(self, rows: Ints) -> Ints:
        """Places (n,) of annotations by their rows, −1 none."""
        names = np.append(self._annotations.table.name, "")[rows]
        places = {
            name: self._index.setdefault(Place(annotation=name), len(self._index)) for name in dict.fromkeys(names)
        }
        return np.array([places[name] for name in names], dtype=np.int64)

    def of_backward(self, ts: Ints, end: Ints) -> Ints:
        """Places (n,) of the calls of backward around intervals, whatever their thread: autograd has threads of its
        own, without Python. 0 where there is none."""
        calls = self.calls.take(self.calls.name == "backward")
        frames = np.flatnonzero(self.stacks.are(BACKWARD))
        place = np.zeros(len(ts), dtype=np.int64)
        for begins, ends, places in (
            (self.stacks.ts[frames], self.stacks.end[frames], self._of_frames(frames)),
            (calls.ts, calls.end, self._of_events(calls.event)),
        ):
            slot = np.searchsorted(begins, ts, side="right") - 1
            inside = (slot >= 0) & (np.append(ends, 0)[slot] >= end)
            place = np.where(inside, np.append(places, 0)[slot], place)
        return place

    def groups_of(self, ts: Ints, end: Ints, tid: Ints) -> Objects:
        """For each interval (n,) the process group of the recorded call around it, also of backward on another thread,
        ``""`` where none says."""
        sites = self.recording.sites if self.recording else ()
        named = np.array([bool(sites[event].group) for event in self.calls.event.tolist()], dtype=bool)
        calls = self.calls.take(named)
        backward = calls.take(calls.name == "backward")
        row = match_calls(calls, ts, end, tid)
        slot = np.searchsorted(backward.ts, ts, side="right") - 1
        inside = (slot >= 0) & (np.append(backward.end, 0)[slot] >= end)
        event = np.where(inside, np.append(backward.event, -1)[slot], -1)
        event = np.where(row >= 0, np.append(calls.event, -1)[row], event)
        return objects([sites[number].group or "" if number >= 0 else "" for number in event.tolist()])

    def _is_backward(self, event: SiteEvent) -> bool:
        frames = recorded_frames(self.recording, event.stack)
        return bool(frames) and frames[-1].function in BACKWARD and "torch/autograd/" in frames[-1].file

    def _of_events(self, events: Ints) -> Ints:
        known = {event: self._event(event) for event in dict.fromkeys(events.tolist())}
        return np.array([known[event] for event in events.tolist()], dtype=np.int64)

    def _of_frames(self, rows: Ints) -> Ints:
        known = self._of_row
        known.update((row, self._frame(row)) for row in dict.fromkeys(rows.tolist()) if row not in known)
        return np.fromiter(map(known.__getitem__, rows.tolist()), np.int64, len(rows))

    def _event(self, number: int) -> int:
        if self.recording is None or number < 0:
            return 0
        event = self.recording.sites[number]
        key = event.stack, event.name, event.expected
        if key not in self._of_event:
            place = recorded_place(self.recording, *key)
            self._of_event[key] = self._index.setdefault(place, len(self._index))
        return self._of_event[key]

    def _frame(self, row: int) -> int:
        stack = self.stacks.identity(row)
        if stack not in self._of_stack:
            chain = self.stacks.chain(row) if row >= 0 else ()
            place = stack_place(chain, self.stacks.builtin(row)) if chain else NOWHERE
            self._of_stack[stack] = self._index.setdefault(place, len(self._index))
        return self._of_stack[stack]


class Hazard(msgspec.Struct, frozen=True):
    """A race that the collector saw, with both of its lines."""

    event: HazardEvent
    place: Place
    """The place of the later access."""
    earlier: Place
    """The place of the copy, or other work of a stream, that may still run."""


def find_hazards(recording: Recording | None) -> tuple[Hazard, ...] | None:
    """The races of a recording, in the order they were first seen; ``None`` where the recording did not look for
    them."""
    if recording is None or recording.hazards is None:
        return None
    return tuple(
        Hazard(
            event,
            recorded_place(recording, event.access.stack, event.access.op, event.expected),
            recorded_place(recording, event.earlier.stack, event.earlier.op, None),
        )
        for event in recording.hazards
    )


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
    # Frames outside of the user's first belong to what launched the program: a test runner, a command line.
    frames = without_wrappers(frames[next((i for i, f in enumerate(frames) if f.user), 0) :])
    chain = tuple(Frame(file=f.file, line=f.line, function=f.function) for f in frames)
    users = [f for f in frames if f.user]
    site = next((f for f in reversed(users) if not _runs_compiled(f)), None) or outermost(users or frames)
    return Place(
        site=recorded_site(site), at=chain[-1], chain=chain, source="hook", expected=expected,
        ordinal=site.ordinal, entry=entry, running=frames[-1].expression, stack=stack,
    )  # fmt: skip


def _runs_compiled(frame: RecordedFrame) -> bool:
    """Whether the frame runs what Dynamo compiled of its function: that has no lines, so it stays at the function's
    head."""
    return frame.line == frame.first_line and (frame.expression or "").startswith(("@", "def ", "async def "))


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
    chain = tuple(without_wrappers(chain))
    frame = next((frame for frame in reversed(chain) if is_user(frame.file)), None) or library_frame(chain)
    site = Site(file=frame.file, line=frame.line, function=frame.function)
    return Place(site=site, at=chain[-1], chain=chain, source="stack", entry=entry)


def without_wrappers(frames: Sequence[AnyFrame]) -> list[AnyFrame]:
    """The frames without the innermost ones that only pass a call on; all of them where all do."""
    inner = next((i for i in range(len(frames), 0, -1) if not _passes_on(frames[i - 1])), len(frames))
    return list(frames[:inner])


def _passes_on(frame: AnyFrame) -> bool:
    is_method = frame.file.startswith(PACKAGES) and frame.function.rpartition(".")[2] in METHODS
    return is_method or frame.file in WRAPPERS


def outermost(frames: Sequence[AnyFrame]) -> AnyFrame:
    """The outermost frame of a library other than PyTorch and Python, else the outermost of all."""
    return next((f for f in frames if package_of(f.file) not in ("", "torch")), frames[0])


def library_frame(frames: Sequence[AnyFrame]) -> AnyFrame:
    """The innermost frame of the outermost library other than PyTorch, else the outermost frame of all.

    A program without files of its own, such as a server, is the library that was started. Its outermost frame would be
    the same for everything that the process does.
    """
    package = package_of(outermost(frames).file)
    return next((f for f in reversed(frames) if package and package_of(f.file) == package), frames[0])


def package_of(file: str) -> str:
    """The library that a normalised path belongs to, ``""`` where it is in none."""
    return file[len(PACKAGES) :].split("/")[0] if file.startswith(PACKAGES) else ""


def first_place(*choices: Ints) -> Ints:
    """For each row (n,) the first of the choices that is a place, 0 where none is."""
    place: Ints = choices[0].copy()
    for choice in choices[1:]:
        place = np.where(place > 0, place, choice)
    return place
