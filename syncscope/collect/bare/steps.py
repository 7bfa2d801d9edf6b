"""Bare steps: which of them are something else than the others, and how well their median is known."""

from __future__ import annotations

import bisect
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from syncscope.schema.recording import BareStamp, SetAsideStep

KNOWN = 0.01
"""The median is known when the half of its 95 % interval is at most this share of it."""

FAR = 8.0
"""A step is an outlier if it is this many standard deviations, estimated from the median of distances, ..."""

FAR_SHARE = 0.25
"""... and at least this share of the median away from it, ..."""

RARE = 0.1
"""... if at most this share of the steps is. More of them are what the program does."""

PROFILED = "under a profiler of the program's"
COMPILATION = "compilation"

NAMES = {"evaluate": "evaluation", "train": "first of its phase"}
"""What to call a step into which a phase of this kind came. For ``train`` it is the first step after an evaluation."""

StampKind = Literal["wait", "loader", "forward", "backward", "optimizer"]


class Moment(NamedTuple):
    """Something the host did. Times are of ``time.perf_counter_ns``."""

    event: StampKind
    name: str
    stack: int
    begin_ns: int | None
    """``None`` where only the end is known."""
    end_ns: int


class Batch(NamedTuple):
    """The host took a batch from a loader."""

    ready: int | None
    """Batches that were ready when it asked."""
    begin_ns: int
    end_ns: int


@dataclass(frozen=True)
class Step:
    begin_ns: int
    length_ns: int
    intruder: str | None = None
    """The kind of the phase that came into it."""
    moments: tuple[Moment, ...] = ()
    batches: tuple[Batch, ...] = ()


class Median:
    """The median of numbers that come one by one, and a 95 % interval of it by ranks."""

    def __init__(self) -> None:
        self._sorted: list[int] = []

    def __len__(self) -> int:
        return len(self._sorted)

    def add(self, number: int) -> None:
        bisect.insort(self._sorted, number)

    @property
    def interval(self) -> tuple[int, int] | None:
        """By the normal approximation of the binomial distribution of ranks; ``None`` of fewer than six numbers."""
        count = len(self._sorted)
        rank = math.floor((count - 1.96 * math.sqrt(count)) / 2)
        return (self._sorted[rank], self._sorted[-1 - rank]) if count >= 6 else None

    @property
    def known(self) -> bool:
        if (interval := self.interval) is None:
            return False
        low, high = interval
        return high - low <= 2 * KNOWN * self._sorted[len(self._sorted) // 2]


def is_known(numbers: Sequence[int]) -> bool:
    """Whether the median of ``numbers`` is known."""
    median = Median()
    for number in numbers:
        median.add(number)
    return median.known


def set_aside(steps: Sequence[Step], drain_ns: int) -> tuple[list[Step], tuple[SetAsideStep, ...]]:
    """``steps`` without those that are something else, and the latter.

    The last step ends with the wait for the device, for ``drain_ns``, and stays. Where that took longer than a step,
    the host runs ahead of the device: its steps are of any length until the queue is full, and none is an outlier.
    """
    clean = [step for step in steps if step.intruder is None]
    if not clean:
        return list(steps), ()
    far: set[int] = set()
    if drain_ns <= statistics.median(step.length_ns for step in clean):
        far = {id(step) for step in _outliers(clean) if step is not steps[-1]}
    others = (
        SetAsideStep(length_ns=step.length_ns, reason=NAMES.get(step.intruder or "", step.intruder or "outlier"))
        for step in steps
        if step.intruder is not None or id(step) in far
    )
    return [step for step in clean if id(step) not in far], tuple(others)


def _outliers(steps: Sequence[Step]) -> list[Step]:
    median = statistics.median(step.length_ns for step in steps)
    spread = 1.4826 * statistics.median(abs(step.length_ns - median) for step in steps)
    most = max(FAR * spread, FAR_SHARE * median)
    far = [step for step in steps if abs(step.length_ns - median) > most]
    return far if len(far) <= RARE * len(steps) else []


def stamps(steps: Sequence[Step]) -> tuple[BareStamp, ...]:
    """The moments that all of ``steps`` have, in the order of the first one's."""
    tables = [_by_ordinal(step) for step in steps]
    found = []
    for key, first in (tables[0] if tables else {}).items():
        rows = [table.get(key) for table in tables]
        moments = [moment for moment in rows if moment is not None]
        if len(moments) < len(steps):
            continue
        event, name, stack, ordinal = key
        ends = (moment.end_ns - step.begin_ns for moment, step in zip(moments, steps, strict=True))
        begins: tuple[int, ...] = ()
        if first.begin_ns is not None:
            pairs = zip(moments, steps, strict=True)
            begins = tuple(max((moment.begin_ns or moment.end_ns) - step.begin_ns, 0) for moment, step in pairs)
        found.append(
            BareStamp(event=event, name=name, stack=stack, ordinal=ordinal, begins_ns=begins, ends_ns=tuple(ends))
        )
    return tuple(found)


def _by_ordinal(step: Step) -> dict[tuple[StampKind, str, int, int], Moment]:
    table: dict[tuple[StampKind, str, int, int], Moment] = {}
    seen: dict[tuple[str, str, int], int] = {}
    for moment in step.moments:
        key = moment.event, moment.name, moment.stack
        ordinal = seen[key] = seen.get(key, -1) + 1
        table[moment.event, moment.name, moment.stack, ordinal] = moment
    return table
