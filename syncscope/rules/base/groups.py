"""From occurrences to findings: one cause, one finding."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import msgspec
import numpy as np

from syncscope.rules.base.occurrences import Occurrences
from syncscope.schema.findings import Finding, Severity, fingerprint
from syncscope.schema.numbers import milliseconds
from syncscope.timeline import Place, Timeline
from syncscope.timeline.intervals import Ints
from syncscope.timeline.op_chains import known_op, ops_of
from syncscope.timeline.scalar_reads import VALUE_BYTES
from syncscope.trace.names import shorten
from syncscope.trace.sets import different

SAVING_NULL_WHY = "only the rules were run: no saving was estimated"

MANY = 8
"""Copies count as many if there are at least this many of them a step at one site."""

SMALL = 65_536
"""Up to this many bytes the fixed cost of a copy counts, not its size: an H200 moves them in 1.2 µs from pinned memory,
while the call that starts the copy takes 4 µs or more."""

LEAST_SHARE = 0.01
"""A site is not reported if its exposed time is a smaller share of the step."""

LEAST_NS = 20_000
"""A site is not reported if its exposed time is fewer nanoseconds a step."""


def to_ms(ns: float, steps: int = 1) -> float:
    """Nanoseconds as milliseconds per step, exact to the nanosecond."""
    return round(ns * 1e-6 / steps, 6)


def key_of(place: Place, ops: tuple[str, ...] = ()) -> tuple[str, str, str | None, int]:
    """What the fingerprint of a finding is made of, but for its rule."""
    site = place.site
    if site is None:
        return "", " ".join(ops), place.annotation or None, place.ordinal
    return site.file, site.function, site.expression, place.ordinal


class Group(msgspec.Struct, frozen=True):
    """The occurrences of one rule at one place."""

    timeline: Timeline
    place: Place
    inside: Occurrences
    """Occurrences inside the steps (all of them where the trace has no steps)."""
    outside: Occurrences

    @property
    def rows(self) -> Occurrences:
        """The occurrences that count, else those outside the steps."""
        return self.inside if len(self.inside) else self.outside

    @property
    def steps(self) -> int:
        """How many steps the trace has."""
        return len(self.timeline.steps)

    @property
    def ops(self) -> tuple[str, ...]:
        """The chain of ops of the first occurrence, outermost first."""
        chain: tuple[str, ...] = self.rows.ops[0]
        return chain

    @property
    def warm_up(self) -> str:
        """The kind of the warm-up that all occurrences are part of, ``""`` for none."""
        return str(self.rows.warm_up[0])

    @property
    def op(self) -> str | None:
        """The innermost op that a user knows (``aten::item``, not ``aten::_local_scalar_dense``), else the call."""
        return known_op(self.ops, shorten(str(self.rows.call[0]))) or None

    @property
    def subject(self) -> str:
        """The subject of a message: the expression or the recorded entry point, else the outermost op."""
        place, ops = self.place, ops_of(self.ops)
        if place.source == "hook":
            return (place.site.expression if place.site else None) or place.entry or self.op or "a runtime call"
        op = (ops[0] if ops else self.op) or "a runtime call"
        return f"{op} in backward" if any(name.startswith("autograd::engine") for name in self.ops) else op

    @property
    def many_small(self) -> bool:
        """Whether these are small copies, and one thread makes many of them a step: one copy of them all would do. The
        threads of a server, which each make a few, have nothing to join."""
        copies = self.inside.take(self.inside.copy >= 0)
        size = self.timeline.copies.bytes[copies.copy]
        if not self.steps or not len(size) or (size < 0).any():
            return False
        most = np.unique(copies.tid, return_counts=True)[1].max()
        return bool(most >= MANY * self.steps and size.mean() <= SMALL)

    @property
    def copies_one_value(self) -> bool:
        """Whether each copy is no longer than one value."""
        copy = self.rows.copy
        size = self.timeline.copies.bytes[copy[copy >= 0]]
        return bool(len(size) and ((size >= 0) & (size <= VALUE_BYTES)).all())

    def total(self, column: str) -> int | None:
        """The sum of what is known of a column inside the steps, ``None`` when nothing is."""
        values: Ints = getattr(self.inside, column)
        return int(values[values >= 0].sum()) if (values >= 0).any() else None

    def per_step(self, column: str) -> float | None:
        """``total`` in ms per step."""
        total = self.total(column)
        return to_ms(total, self.steps) if total is not None and self.steps else None

    def in_words(self, column: str) -> str:
        """``total`` for a sentence: ``1.5 ms a step``, or in all where the trace has no steps."""
        time = milliseconds(to_ms(self.total(column) or 0, max(self.steps, 1)))
        return f"{time} {'a step' if self.steps else 'in all'}"

    def is_exposed(self, share: float = LEAST_SHARE) -> bool:
        """Whether the exposed time is long enough for a finding: ``share`` of the step, and at least ``LEAST_NS``."""
        exposed, span = self.total("exposed"), self.timeline.span
        if exposed is None or span is None:
            return False
        steps = max(self.steps, 1)
        return exposed / steps >= max(LEAST_NS, share * (span[1] - span[0]) / steps)

    def longest(self, column: str, among: Sequence[str]) -> str:
        """The value of ``among`` whose occurrences have the longest exposed time, by the values of a column."""
        time: Counter[str] = Counter()
        for value, exposed in zip(getattr(self.rows, column), self.rows.exposed.tolist(), strict=True):
            time[value] += exposed
        return max(among, key=lambda value: time[value])

    def finding(self, code: str, name: str, severity: Severity, message: str, fix: str) -> Finding:
        """The group as a finding of the rule with this code and name."""
        timeline, place = self.timeline, self.place
        count, steps, rows = len(different(self.inside.unit)), self.steps, self.rows
        stall, exposed = self.total("stall"), self.total("exposed")
        threads, times = np.unique(rows.tid, return_counts=True)
        return Finding(
            rule=code,
            name=name,
            severity=severity if count else "note",
            status="unexpected" if place.expected is None else "expected",
            reason=place.expected,
            site=place.site,
            at=place.at,
            chain=place.chain,
            site_source=place.source,
            annotation=place.annotation or None,
            rank=timeline.trace.rank,
            thread=timeline.thread_name(int(threads[times.argmax()])),
            op=self.op,
            count=count,
            per_step=count / steps if steps else None,
            bytes=self.total("bytes"),
            stall_ms_per_step=self.per_step("stall"),
            exposed_ms_per_step=self.per_step("exposed"),
            saving_null_why=SAVING_NULL_WHY,
            stall_ms=None if stall is None else to_ms(stall - self._for_earlier_work()),
            exposed_ms=None if exposed is None else to_ms(exposed),
            first_ns=int(rows.ts.min()),
            message=message + self._elsewhere(),
            fix=fix,
            fingerprint=fingerprint(code, *key_of(place, self.ops)),
        )

    def _for_earlier_work(self) -> int:
        """Nanoseconds for which a trace without steps begins with waits for work that it lacks: no part of the time
        that shares are of."""
        span, rows = self.timeline.span, self.inside
        if self.steps or span is None:
            return 0
        waits = self.timeline.waits.take(rows.wait[(rows.stall >= 0) & (rows.wait >= 0)])
        before = span[0] - waits.ts
        return int(before[(before > 0) & (waits.end > span[0])].sum())

    def _elsewhere(self) -> str:
        many = len(different(self.outside.unit))
        if not many:
            return ""
        return f" ({many} more outside the steps)" if len(self.inside) else " (only outside the recorded steps)"


def groups(timeline: Timeline, occurrences: Occurrences) -> Iterator[Group]:
    """The occurrences by site, ``at`` and the reason they are expected for, in order of the first of each. Where the
    exact line is unknown, the annotation, the chain of ops and the sort tell them apart too; in a function that is
    known it makes no difference that an op runs within itself, as a copy of what is not contiguous does. What is part
    of a warm-up is a group of its own."""
    by_key: dict[object, list[int]] = {}
    columns = zip(occurrences.place, occurrences.ops, occurrences.sort, occurrences.warm_up, strict=True)
    for row, (place, ops, sort, warm_up) in enumerate(columns):
        exact = place.source == "hook"
        inexact = () if exact else (place.annotation, ops if place.site is None else _without_repeats(ops), sort)
        key = (place.site, place.ordinal, place.at, place.expected, warm_up, inexact)
        by_key.setdefault(key, []).append(row)
    stepped = len(timeline.steps) > 0
    for rows in by_key.values():
        mine = occurrences.take(rows)
        counts = (mine.step >= 0) | (not stepped)
        yield Group(timeline, mine.place[0], mine.take(counts), mine.take(~counts))


def _without_repeats(ops: tuple[str, ...]) -> tuple[str, ...]:
    """A chain of ops without those that run right within one of the same name."""
    return tuple(name for outer, name in zip(("", *ops), ops, strict=False) if name != outer)
