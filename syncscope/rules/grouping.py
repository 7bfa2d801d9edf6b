"""From occurrences to findings: one cause, one finding."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd

from syncscope.rules.chains import ops_of
from syncscope.schema.findings import Finding, Severity, fingerprint
from syncscope.timeline import Place, Timeline

SAVING_NULL_WHY = "only the rules were run: no saving was estimated"

OCCURRENCES = {
    "ts": "int64",  # ns
    "tid": "int64",
    "step": "int64",  # −1 outside the steps
    "place": "object",  # timeline.Place
    "ops": "object",  # chain of ops, outermost first
    "call": "object",  # the runtime call, named where there is no op
    "stall": "int64",  # ns the host is blocked
    "bytes": "int64",  # −1 unknown
    "exposed": "int64",  # ns of copy with no compute beside it, −1 not looked at
    "sort": "object",  # of what it is: the copy's direction and memory, else the runtime call
    "wait": "int64", "copy": "int64",  # rows in Timeline.waits and .copies, −1 none
    "unit": "int64",  # occurrences of one unit count once
}  # fmt: skip
"""What a rule hands over: one row an occurrence."""

MANY = 8
"""Copies a step at one site from which on they are many."""

SMALL = 65_536
"""Bytes of a copy up to which its fixed cost counts, not its size: an H200 moves them in 1.2 µs from pinned memory,
while the call that asks for the copy takes 4 µs and more."""


def to_ms(ns: float, steps: int = 1) -> float:
    """Nanoseconds as milliseconds per step, exact to the nanosecond."""
    return round(ns * 1e-6 / steps, 6)


def say_ms(ms: float) -> str:
    """Milliseconds for a sentence, to three digits."""
    return f"{ms:,.0f}" if ms >= 100 else f"{ms:.3g}"


@dataclass(frozen=True)
class Group:
    """The occurrences of one rule at one site and one ``at``."""

    timeline: Timeline
    place: Place
    inside: pd.DataFrame
    """Occurrences inside the steps (all of them where the trace has no steps)."""
    outside: pd.DataFrame

    @property
    def rows(self) -> pd.DataFrame:
        """The occurrences that count, else those outside the steps."""
        return self.inside if len(self.inside) else self.outside

    @property
    def ops(self) -> tuple[str, ...]:
        """The chain of ops of the first occurrence, outermost first."""
        found: tuple[str, ...] = self.rows["ops"].iloc[0]
        return found

    @property
    def op(self) -> str | None:
        """The innermost op that a user knows (``aten::item``, not ``aten::_local_scalar_dense``), else the call."""
        public = [op for op in self.ops if not op.split("::")[-1].startswith("_")] or list(self.ops)
        return public[-1] if public else str(self.rows["call"].iloc[0]) or None

    @property
    def what(self) -> str:
        """The thing itself, for a message: the expression or the recorded entry point, else the outermost op."""
        place, ops = self.place, ops_of(self.ops)
        if place.source == "hook":
            return (place.site.expression if place.site else None) or place.entry or self.op or "a runtime call"
        op = (ops[0] if ops else self.op) or "a runtime call"
        return f"{op} in backward" if any(name.startswith("autograd::engine") for name in self.ops) else op

    @property
    def many_small(self) -> bool:
        """Whether these are small copies, and many of them a step: what one copy of them all would do."""
        copy, steps = self.inside["copy"].to_numpy(np.int64), len(self.timeline.steps)
        size = self.timeline.copies["bytes"].to_numpy(np.int64)[copy[copy >= 0]]
        known = len(size) and (size >= 0).all()
        return bool(steps and known and len(size) >= MANY * steps and size.mean() <= SMALL)

    def total(self, column: str) -> int | None:
        """The sum of what is known of a column inside the steps, ``None`` when nothing is."""
        values = self.inside[column].to_numpy(np.int64)
        return int(values[values >= 0].sum()) if (values >= 0).any() else None

    def per_step(self, column: str) -> float | None:
        """``total`` in ms per step."""
        total, steps = self.total(column), len(self.timeline.steps)
        return to_ms(total, steps) if total is not None and steps else None

    def finding(self, code: str, name: str, severity: Severity, message: str, fix: str) -> Finding:
        timeline, place, site = self.timeline, self.place, self.place.site
        count, steps = self.inside["unit"].nunique(), len(timeline.steps)
        stall = self.total("stall")
        key = (site.file, site.function, site.expression) if site else ("", " ".join(self.ops), None)
        return Finding(
            rule=code,
            name=name,
            severity=severity if count else "note",
            status="unexpected" if place.expected is None else "expected",
            reason=place.expected,
            site=site,
            at=place.at,
            chain=place.chain,
            site_source=place.source,
            rank=timeline.trace.rank,
            thread=timeline.thread_name(int(self.rows["tid"].mode().iloc[0])),
            op=self.op,
            count=count,
            per_step=count / steps if steps else None,
            bytes=self.total("bytes"),
            stall_ms_per_step=self.per_step("stall"),
            exposed_ms_per_step=self.per_step("exposed"),
            saving_null_why=SAVING_NULL_WHY,
            stall_ms=None if stall is None else to_ms(stall),
            first_ns=int(self.rows["ts"].min()),
            message=message + self._elsewhere(),
            fix=fix,
            fingerprint=fingerprint(code, *key, place.ordinal),
        )

    def _elsewhere(self) -> str:
        many = self.outside["unit"].nunique()
        if not many:
            return ""
        return f" ({many} more outside the steps)" if len(self.inside) else " (only outside the recorded steps)"


def groups(timeline: Timeline, occurrences: pd.DataFrame) -> Iterator[Group]:
    """The occurrences by site, ``at`` and the reason they are expected for, in order of the first of each. Where the
    exact line is unknown, the chain of ops and the sort tell them apart too."""
    by_key: dict[object, list[int]] = {}
    columns = (occurrences[name] for name in ("place", "ops", "sort"))
    for row, (place, ops, sort) in enumerate(zip(*columns, strict=True)):
        exact = place.source == "hook"
        key = (place.site, place.ordinal, place.at, place.expected, () if exact else (ops, sort))
        by_key.setdefault(key, []).append(row)
    stepped = len(timeline.steps) > 0
    for rows in by_key.values():
        mine = occurrences.iloc[rows]
        counts = (mine["step"] >= 0).to_numpy(bool) | (not stepped)
        yield Group(timeline, mine["place"].iloc[0], mine[counts], mine[~counts])
