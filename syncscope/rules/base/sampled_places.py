"""Find the line at which the host is while the device is idle, by samples of it."""

from __future__ import annotations

from collections import Counter
from typing import TypeAlias

import msgspec

from syncscope.patterns import compile_later
from syncscope.rules.base.idle_place import COMMON, EVERYWHERE, MAIN_SHARE, IdlePlace
from syncscope.rules.base.program import MODULE_CALL
from syncscope.schema.expressions import works_on_gradients
from syncscope.schema.findings import Frame
from syncscope.schema.numbers import percent
from syncscope.schema.recording import RecordedFrame
from syncscope.timeline import Place, Timeline
from syncscope.timeline.places import recorded_frames, recorded_site, without_wrappers

FEWEST = 5
"""Samples in idle time from which on they say something."""

LEAST_SHARE, MOST_LINES = 0.1, 3
"""Lines that share the host's work are named if they have at least this share of it, and so many at most."""

OF_STEP = compile_later(r"<site-packages>/torch/(?:amp|autograd|nn|optim|_tensor\.py)(?:/|$)")
"""Files of PyTorch whose Python code is on the way from one launch of a step to the next."""

Line: TypeAlias = tuple[str, "int | None"]
"""File and line."""


class SampledLine(msgspec.Struct, frozen=True):
    """One of the lines that share the host's work."""

    said: str
    """``31 % decode (data.py:12)``: its share, its function and its place."""
    of_step: bool
    """Whether it is Python that the step or its model runs itself, so that no other thread can."""


class _Sampled(msgspec.Struct, frozen=True):
    """The user's frames of one sampled stack."""

    frames: tuple[RecordedFrame, ...]
    """All frames from the user's first on, outermost first."""

    @property
    def lines(self) -> list[Line]:
        """The user's lines, outermost first."""
        return [(frame.file, frame.line) for frame in self.frames if frame.user]

    def frame_of(self, line: Line) -> RecordedFrame:
        """The innermost frame at ``line``."""
        return next(frame for frame in reversed(self.frames) if frame.user and (frame.file, frame.line) == line)

    def below(self, line: Line) -> tuple[RecordedFrame, ...]:
        """What runs inside of ``line``, outermost first."""
        return self.frames[len(self.frames) - self.frames[::-1].index(self.frame_of(line)) :]


class _Charged(msgspec.Struct, frozen=True):
    """The samples in some idle time, by their stacks."""

    ns: dict[_Sampled, int]
    """How much of the idle time each stands for."""
    everywhere: frozenset[Line]
    """The lines that nearly all samples have, also those at which the device is busy."""

    @property
    def whole(self) -> int:
        return sum(self.ns.values())


def find_sampled_place(timeline: Timeline, causes: tuple[str, ...]) -> IdlePlace | None:
    """The innermost line of the user's at which the host is for most of what the device is idle for ``causes``, and the
    function of a library below it that has most of that. ``None`` where there are too few samples, and where the lines
    that have most of it are only those around the whole step."""
    charged = _charge(timeline, causes)
    if charged is None:
        return None
    behind: Counter[Line] = Counter()
    innermost: Counter[Line] = Counter()
    depth: dict[Line, int] = {}
    for sampled, ns in charged.ns.items():
        lines = sampled.lines
        for level, line in enumerate(dict.fromkeys(lines)):
            behind[line] += ns
            depth[line] = max(level, depth.get(line, 0))
        innermost[lines[-1]] += ns
    common = [line for line, ns in behind.items() if ns >= MAIN_SHARE * charged.whole]
    if not common:
        return None
    line = max(common, key=lambda one: depth[one])
    if innermost[line] < MAIN_SHARE * behind[line] and line in charged.everywhere:
        return None
    place = _place(line, charged)
    return IdlePlace(place, behind[line] / charged.whole, of_step=_is_of_step(line, place, charged))


def _is_of_step(line: Line, place: Place, charged: _Charged) -> bool:
    """Whether most of a line's samples are in code of PyTorch that a step is made of, or its expression is of that."""
    if works_on_gradients(place.running):
        return True
    mine = {sampled: ns for sampled, ns in charged.ns.items() if line in sampled.lines}
    inside = sum(ns for sampled, ns in mine.items() if any(OF_STEP.match(one.file) for one in sampled.below(line)))
    return inside >= MAIN_SHARE * sum(mine.values())


def is_mostly_inside(timeline: Timeline, cause: str, file: str, function: str) -> bool:
    """Whether most samples of what the device is idle for are inside of a function, in a file whose path ends so."""
    charged = _charge(timeline, (cause,))
    if charged is None:
        return False

    def is_inside(sampled: _Sampled) -> bool:
        names = ((one.file, one.function.rpartition(".")[2]) for one in sampled.frames)
        return any(path.endswith(file) and name == function for path, name in names)

    return sum(ns for sampled, ns in charged.ns.items() if is_inside(sampled)) >= MAIN_SHARE * charged.whole


def name_sampled_lines(timeline: Timeline, cause: str) -> list[str]:
    """``31 % decode (data.py:12)``, the one with the most first."""
    return [line.said for line in find_sampled_lines(timeline, cause)]


def find_sampled_lines(timeline: Timeline, cause: str) -> list[SampledLine]:
    """The innermost lines of the user's that share what the device is idle for, with their functions, the one with the
    most first. None where there are too few samples, or no line has a tenth."""
    charged = _charge(timeline, (cause,))
    if charged is None:
        return []
    innermost: Counter[Line] = Counter()
    functions: dict[Line, str] = {}
    for sampled, ns in charged.ns.items():
        line = sampled.lines[-1]
        innermost[line] += ns
        functions[line] = sampled.frame_of(line).function
    found = []
    for line, ns in innermost.most_common(MOST_LINES):
        if ns < LEAST_SHARE * charged.whole:
            continue
        place = _place(line, charged)
        of_step = place.runs_through(MODULE_CALL) or _is_of_step(line, place, charged)
        said = f"{percent(ns / charged.whole, 1.0)} {functions[line]} ({line[0]}:{line[1]})"
        found.append(SampledLine(said, of_step))
    return found


def _charge(timeline: Timeline, causes: tuple[str, ...]) -> _Charged | None:
    """The samples while the device is idle for ``causes``, ``None`` where there are too few."""
    samples = timeline.samples
    due = samples.due_to(timeline.bubbles, causes) if len(samples) else samples.at
    if int((due > 0).sum()) < FEWEST:
        return None
    stacks = {number: _sampled(timeline, number) for number in set(samples.stack.tolist())}
    charged: dict[_Sampled, int] = {}
    behind: Counter[Line] = Counter()
    for number, weight, ns in zip(samples.stack.tolist(), samples.weight.tolist(), due.tolist(), strict=True):
        sampled = stacks[number]
        if sampled is None:
            continue
        for line in set(sampled.lines):
            behind[line] += weight
        if ns > 0:
            charged[sampled] = charged.get(sampled, 0) + ns
    least = EVERYWHERE * int(samples.weight.sum())
    return _Charged(charged, frozenset(line for line, ns in behind.items() if ns >= least)) if charged else None


def _sampled(timeline: Timeline, stack: int) -> _Sampled | None:
    """A sampled stack; ``None`` where no line of it is the user's."""
    frames = recorded_frames(timeline.trace.recording, stack)
    first = next((number for number, frame in enumerate(frames) if frame.user), None)
    return None if first is None else _Sampled(tuple(without_wrappers(frames[first:])))


def _place(line: Line, charged: _Charged) -> Place:
    """The place of ``line``. Of several expressions of it that which has the most."""
    mine = {sampled: ns for sampled, ns in charged.ns.items() if line in sampled.lines}
    expressions: Counter[RecordedFrame] = Counter()
    below: Counter[Frame] = Counter()
    depth: dict[Frame, int] = {}
    for sampled, ns in mine.items():
        expressions[sampled.frame_of(line)] += ns
        for level, frame in enumerate(dict.fromkeys(map(_frame, sampled.below(line)))):
            if not frame.file.startswith(COMMON):
                below[frame] += ns
                depth[frame] = max(level, depth.get(frame, 0))
    site = expressions.most_common(1)[0][0]
    whole = sum(mine.values())
    common = [frame for frame, ns in below.items() if ns >= MAIN_SHARE * whole]
    at = max(common, key=lambda one: depth[one], default=_frame(site))
    sampled = next(one for one in mine if one.frame_of(line) == site or at in map(_frame, one.below(line)))
    chain = tuple(map(_frame, sampled.frames))
    inner = len(chain) - chain[::-1].index(at) if at in chain else len(chain)
    return Place(
        site=recorded_site(site), at=at, chain=chain[:inner], source="hook", ordinal=site.ordinal,
        running=site.expression,
    )  # fmt: skip


def _frame(frame: RecordedFrame) -> Frame:
    return Frame(file=frame.file, line=frame.line, function=frame.function)
