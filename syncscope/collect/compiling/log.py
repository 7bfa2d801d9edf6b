"""What was compiled, added up by phase, kind, place and reason. Memory is bounded."""

from __future__ import annotations

import threading
from collections import deque
from dataclasses import dataclass, field
from typing import Final, NamedTuple, Protocol

from syncscope.collect.annotations import expectation
from syncscope.collect.compiling.reasons import Reason
from syncscope.schema.compiling import (
    MOST_EVENTS,
    MOST_IDS,
    MOST_SPANS,
    MOST_STEPS,
    WARM_STEPS,
    CompileEvent,
    CompileKind,
    CompileSpan,
    RecordedCompiling,
    without_numbers,
)
from syncscope.schema.counting import PhaseKind

NEVER_WARM: Final[PhaseKind] = "start"

UNTIMED: Final[tuple[CompileKind, ...]] = ("break", "skip", "warm")


class Phase(Protocol):
    """What is asked of a phase."""

    @property
    def number(self) -> int: ...
    @property
    def kind(self) -> PhaseKind: ...
    @property
    def steps(self) -> int: ...
    @property
    def times(self) -> int: ...


class Place(NamedTuple):
    """Where something was compiled: numbers of stacks."""

    stack: int | None
    compiled: int | None = None


@dataclass
class Row:
    """One kind, at one place, for one reason, in one phase."""

    phase: int
    kind: CompileKind
    place: Place
    reason: Reason
    expected: str | None = None
    count: int = 0
    warm: int = 0
    graphs: int = 0
    uncompiled: int = 0
    time_ns: int = 0
    warm_ns: int = 0
    ids: list[str] = field(default_factory=list)
    steps: list[int] = field(default_factory=list)
    last_step: int = 0
    latest_warm: bool = False

    def add_time(self, length_ns: int) -> None:
        """Add to the time of the latest occurrence."""
        self.time_ns += length_ns
        self.warm_ns += length_ns if self.latest_warm else 0

    def event(self) -> CompileEvent:
        timed = self.kind not in UNTIMED
        return CompileEvent(
            phase=self.phase,
            kind=self.kind,
            stack=self.place.stack,
            compiled=self.place.compiled,
            reason=self.reason.text,
            detail=self.reason.detail,
            expected=self.expected,
            count=self.count,
            warm=self.warm,
            compile_ids=tuple(self.ids),
            graphs=self.graphs,
            uncompiled=self.uncompiled,
            time_ns=self.time_ns if timed else None,
            warm_ns=self.warm_ns if timed else None,
            steps=tuple(self.steps),
            last_step=self.last_step,
        )


class CompileLog:
    """Keeps what was compiled. Several threads may add."""

    def __init__(self) -> None:
        self._rows: dict[tuple[object, ...], Row] = {}
        self._spans: deque[tuple[Row, int, int, int]] = deque(maxlen=MOST_SPANS)
        self._lock = threading.Lock()
        self.dropped = 0
        self.compilations = 0
        """How often something was compiled or recorded so far: what took time."""

    def add(
        self, kind: CompileKind, phase: Phase | None, place: Place, reason: Reason, *, graphs: int = 0,
        uncompiled: bool = False, compile_id: str = "",
    ) -> Row | None:  # fmt: skip
        """Add one occurrence; ``None`` where there is no room for another row."""
        number, step = (phase.number, phase.steps) if phase is not None else (0, 0)
        expected = expectation.get()
        key = (number, kind, place, without_numbers(reason.text), expected)
        with self._lock:
            row = self._rows.get(key)
            if row is None:
                if len(self._rows) >= MOST_EVENTS:
                    self.dropped += 1
                    return None
                row = self._rows[key] = Row(number, kind, place, reason, expected)
            row.count += 1
            row.latest_warm = _is_warm(phase)
            row.warm += row.latest_warm
            row.graphs += graphs
            row.uncompiled += uncompiled
            if compile_id and len(row.ids) < MOST_IDS:
                row.ids.append(compile_id)
            if len(row.steps) < MOST_STEPS and step not in row.steps[-1:]:
                row.steps.append(step)
            row.last_step = step
            return row

    def timed(self, row: Row | None, tid: int, start_ns: int, end_ns: int) -> None:
        """The latest occurrence of ``row``, or one without a row, took the thread ``tid`` so long. Unix time in ns."""
        with self._lock:
            self.compilations += 1
            if row is not None:
                row.add_time(end_ns - start_ns)
                self._spans.append((row, tid, start_ns, end_ns))

    def begin_again(self, phase: Phase) -> None:
        """Something else counts as a step of ``phase`` from now on: which steps were warm is not known."""
        with self._lock:
            for row in self._rows.values():
                if row.phase == phase.number:
                    row.warm = row.warm_ns = row.last_step = 0
                    row.steps = []

    def folded(self, phase: Phase, into: Phase) -> None:
        """``phase`` is a part of another one."""
        with self._lock:
            for row in self._rows.values():
                if row.phase == phase.number:
                    row.phase, row.steps, row.last_step = into.number, [], 0

    def recorded(self, missing: tuple[str, ...]) -> RecordedCompiling:
        with self._lock:
            return RecordedCompiling(
                events=tuple(row.event() for row in self._rows.values()), dropped=self.dropped, missing=missing
            )

    def spans(self, start_ns: int, end_ns: int) -> tuple[CompileSpan, ...]:
        """What was compiled between two moments, whole or in part."""
        with self._lock:
            numbers = {id(row): number for number, row in enumerate(self._rows.values())}
            return tuple(
                CompileSpan(event=numbers[id(row)], tid=tid, start_ns=begin, end_ns=end)
                for row, tid, begin, end in self._spans
                if begin < end_ns and end > start_ns and id(row) in numbers
            )


def _is_warm(phase: Phase | None) -> bool:
    if phase is None or phase.kind == NEVER_WARM:
        return False
    return (phase.steps or max(phase.times - 1, 0)) >= WARM_STEPS
