"""What a rule is, and the run of all rules over one timeline."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np
import pandas as pd

from syncscope.rules import fixes
from syncscope.rules.grouping import SAVING_NULL_WHY, Group, groups
from syncscope.schema.findings import Finding, Severity, fingerprint
from syncscope.timeline import Place, Timeline
from syncscope.timeline.intervals import Bools, Ints
from syncscope.timeline.places import NOWHERE
from syncscope.timeline.steps import step_of

Intervention = Literal["remove the wait", "remove the host work", "change the copy", "none"]
"""What the saving of a finding means: the step without the wait; without all host work, calls and kernels under the
site; with the copy asynchronous, pinned and on a stream of its own; or nothing that a replay could try."""


CALL_NS = 50_000
"""Nanoseconds that the call of a wait takes at most when there is nothing to wait for."""


@dataclass(frozen=True)
class Hit:
    """A finding with the rows it speaks of."""

    finding: Finding
    waits: frozenset[int] = frozenset()
    """Rows in ``Timeline.waits``."""
    copies: frozenset[int] = frozenset()
    """Rows in ``Timeline.copies``."""
    waits_outside: frozenset[int] = frozenset()
    """Rows in ``Timeline.waits`` outside the steps, which the finding's figures leave out."""
    copies_outside: frozenset[int] = frozenset()
    """Rows in ``Timeline.copies`` outside the steps, which the finding's figures leave out."""


@dataclass
class Case:
    """One timeline while the rules run over it in order."""

    timeline: Timeline
    hits: list[Hit] = field(default_factory=list)
    """What the rules before this one found."""
    wait_rule: dict[int, str] = field(default_factory=dict)
    """Code of the rule that took each wait."""

    def free(self, waits: pd.DataFrame) -> Bools:
        """Which waits no rule has taken."""
        return np.array([row not in self.wait_rule for row in waits.index], dtype=bool)

    def taken_by(self, waits: Ints, codes: frozenset[str]) -> Bools:
        """Which of ``waits`` (rows, −1 none) one of the rules took."""
        return np.array([self.wait_rule.get(int(row)) in codes for row in waits], dtype=bool)


class Rule(ABC):
    """One rule. The docstring of each is its documentation."""

    code: ClassVar[str]
    name: ClassVar[str]
    """Reads after "allow"."""
    severity: ClassVar[Severity]
    needs: ClassVar[tuple[str, ...]]
    """What a trace must hold for an exact answer, in the words of ``TraceInfo.has`` (``device``: device activity)."""
    intervention: ClassVar[Intervention]

    @property
    def doc(self) -> str:
        """The documentation."""
        return inspect.getdoc(type(self)) or ""

    @property
    def summary(self) -> str:
        """Its first line."""
        return self.doc.split("\n", 1)[0]

    @abstractmethod
    def run(self, case: Case) -> list[Hit]:
        """What the rule finds, after those before it in ``RULES``."""

    def blind(self, timeline: Timeline) -> str | None:
        """Why the rule cannot see in this trace, ``None`` when it can."""
        if "runtime" in self.needs and "runtime" not in timeline.has:
            return "the trace holds no runtime calls (was ProfilerActivity.CUDA on?)"
        if "device" in self.needs and timeline.device is None:
            return "the trace holds no device activity"
        return None

    def unseen(self, timeline: Timeline) -> str | None:
        """What the rule cannot see where it is not blind, ``None`` when nothing is worth saying."""
        return None

    def hits(self, case: Case, occurrences: pd.DataFrame) -> list[Hit]:
        """One finding for each group of occurrences that ``worth`` keeps."""
        return [
            Hit(
                group.finding(self.code, self.name, self.severity_of(group), self.message(group), self.fix(group)),
                frozenset(int(row) for row in group.rows["wait"] if row >= 0),
                frozenset(int(row) for row in group.rows["copy"] if row >= 0),
                frozenset(int(row) for row in group.outside["wait"] if row >= 0),
                frozenset(int(row) for row in group.outside["copy"] if row >= 0),
            )
            for group in groups(case.timeline, occurrences)
            if self.worth(group)
        ]

    def finding(self, place: Place, **fields: Any) -> Finding:
        """A finding at one place that is more than a group of occurrences; ``fields`` are the rest of ``Finding``."""
        site = place.site
        key = (site.file, site.function, site.expression) if site else ("", "", None)
        return Finding(
            rule=self.code, name=self.name, severity=self.severity, site=site, at=place.at, chain=place.chain,
            site_source=place.source, fingerprint=fingerprint(self.code, *key, place.ordinal),
            **{"saving_null_why": SAVING_NULL_WHY, **fields},
        )  # fmt: skip

    def worth(self, group: Group) -> bool:
        """Whether a group is large enough to speak of."""
        return True

    def severity_of(self, group: Group) -> Severity:
        return self.severity

    def message(self, group: Group) -> str:
        """What happens there, in one sentence."""
        raise NotImplementedError

    def fix(self, group: Group) -> str:
        """What to write instead."""
        return fixes.fix(self.code, group)


class WaitRule(Rule):
    """A rule that takes waits. The first rule that takes a wait keeps it."""

    severity: ClassVar[Severity] = "error"
    intervention: ClassVar[Intervention] = "remove the wait"

    @abstractmethod
    def takes(self, waits: pd.DataFrame, timeline: Timeline) -> Bools:
        """Which of ``waits`` are this rule's, whoever took them before."""

    def run(self, case: Case) -> list[Hit]:
        timeline = case.timeline
        waits = timeline.waits
        mine = waits[case.free(waits) & self.takes(waits, timeline)]
        case.wait_rule.update(dict.fromkeys(mine.index.tolist(), self.code))
        return self.hits(case, self.occurrences(mine, timeline))

    def severity_of(self, group: Group) -> Severity:
        return "note" if waited_for_nothing(group) else self.severity

    def occurrences(self, waits: pd.DataFrame, timeline: Timeline) -> pd.DataFrame:
        copy = waits["copy"].to_numpy(np.int64)
        found: pd.DataFrame = pd.DataFrame({
            "ts": waits["ts"], "tid": waits["tid"], "step": waits["step"],
            "place": pd.Series([timeline.places[i] for i in waits["place"]], index=waits.index, dtype=object),
            "ops": waits["ops"], "call": waits["name"], "stall": waits["stall"],
            "bytes": np.append(timeline.copies["bytes"].to_numpy(np.int64), -1)[copy],
            "exposed": -1, "sort": sorts(copy, waits["name"], timeline),
            "wait": waits.index, "copy": copy, "unit": waits.index,
        })  # fmt: skip
        return found

    def blind(self, timeline: Timeline) -> str | None:
        why = super().blind(timeline)
        if why is None and "cpu_op" in self.needs and unexplained(timeline):
            return "the trace holds no PyTorch ops, so its waits cannot be told apart"
        return why


def waited_for_nothing(group: Group) -> bool:
    """Whether every wait found the queue empty and returned at once, completing no copy of its own."""
    waits = group.timeline.waits.loc[group.rows["wait"]]
    nothing = (waits["pending"] == 0) & (waits["copy_call"] < 0) & (waits["stall"] <= CALL_NS)
    return bool(nothing.all())


def unexplained(timeline: Timeline) -> bool:
    """Whether the trace holds waits but neither ops nor an attribution window to explain them."""
    if {"cpu_op", "attribution"} & set(timeline.has):
        return False
    return bool(timeline.waits["kind"].isin(["stream", "copy"]).any())


def copy_occurrences(copies: pd.DataFrame, timeline: Timeline) -> pd.DataFrame:
    """Occurrences of ``copies`` (rows of ``Timeline.copies``); a copy that a wait completes leaves it the stall."""
    wait = copies["wait"].to_numpy(np.int64)
    alone = (wait < 0) & (copies["launch"] >= 0).to_numpy(bool)
    # Where ops are known of the waits only, the wait that completes a copy tells them.
    waited = pd.Series([*timeline.waits["ops"], ()], dtype=object).iloc[wait].tolist()
    ops = [known or others for known, others in zip(copies["ops"], waited, strict=True)]
    call = np.append(timeline.calls["name"].astype(object).to_numpy(), "")[copies["launch"].to_numpy(np.int64)]
    found: pd.DataFrame = pd.DataFrame({
        "ts": np.where(copies["launch"] >= 0, copies["launch_ts"], copies["ts"]), "tid": copies["tid"],
        "step": copies["step"],
        "place": pd.Series([timeline.places[i] for i in copies["place"]], index=copies.index, dtype=object),
        "ops": pd.Series(ops, index=copies.index, dtype=object), "call": call,
        "stall": np.where(alone, copies["launch_dur"], -1),
        "bytes": copies["bytes"], "exposed": copies["exposed"],
        "sort": sorts(copies.index.to_numpy(np.int64), pd.Series("", copies.index), timeline),
        "wait": -1, "copy": copies.index, "unit": copies.index,
    })  # fmt: skip
    return found


def call_occurrences(rows: Ints, timeline: Timeline) -> pd.DataFrame:
    """Occurrences of ``rows`` of ``Timeline.calls``, all in one place: what they are about is no line's doing."""
    calls = timeline.calls.iloc[rows]
    found: pd.DataFrame = pd.DataFrame({
        "ts": calls["ts"], "tid": calls["tid"], "step": step_of(timeline.steps, calls["ts"].to_numpy(np.int64)),
        "place": pd.Series([NOWHERE] * len(rows), index=calls.index, dtype=object),
        "ops": pd.Series([()] * len(rows), index=calls.index, dtype=object),
        "call": calls["name"].astype(object), "stall": calls["dur"],
        "bytes": -1, "exposed": -1, "sort": "", "wait": -1, "copy": -1, "unit": rows,
    })  # fmt: skip
    return found


def sorts(copy: Ints, calls: pd.Series, timeline: Timeline) -> list[str]:
    """The sort of each occurrence: direction and memory of its copy (a row, −1 none), else its runtime call."""
    columns = (timeline.copies[name] for name in ("direction", "memory"))
    named = [f"{direction} {memory}" for direction, memory in zip(*columns, strict=True)]
    return [named[row] if row >= 0 else str(call) for row, call in zip(copy, calls, strict=True)]


def related(hits: list[Hit]) -> Iterator[tuple[Hit, tuple[str, ...]]]:
    """Each hit with the fingerprints of those that speak of the same copies."""
    by_copy: dict[int, list[str]] = {}
    for hit in hits:
        for row in hit.copies:
            by_copy.setdefault(row, []).append(hit.finding.fingerprint)
    for hit in hits:
        others = {other for row in hit.copies for other in by_copy[row]} - {hit.finding.fingerprint}
        yield hit, tuple(sorted(others | set(hit.finding.related)))
