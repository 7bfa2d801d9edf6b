"""How well the labelled fixtures are found, by rule and mode: ``python benchmarks/score.py [CASE…]``.

Every folder of ``fixtures/traces`` says in ``labels.json`` what must be found in its recordings, and nothing else may
be. A label names the rule and the line (``null``: none); optionally the file (``workload.py`` unless it says so), the
occurrences a step, the rank (without one it holds for each of the case's ``ranks``), the severity (a ``note`` must then
be there; other notes are not counted: they say what cannot be helped), and what the message must name: the ``missing``
requirement, the first ``cause``.
"""

from __future__ import annotations

import itertools
import json
import sys
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from syncscope.analysis.analyze import analyze
from syncscope.schema.findings import Finding
from syncscope.schema.report import Report

TRACES = Path(__file__).parents[1] / "fixtures" / "traces"
CASES = sorted(case.name for case in TRACES.iterdir() if (case / "workload.py").exists())
MODES = {"windows": "trace", "full": "full"}

TOLERANCE = 1e-9
"""Of a number of occurrences a step, which is a whole number over a whole number of steps."""


class Label(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One finding that must be there."""

    rule: str
    line: int | None
    file: str = "workload.py"
    per_step: float | None = None
    rank: int | None = None
    severity: str | None = None
    missing: str = ""
    cause: str = ""

    @property
    def words(self) -> tuple[str, ...]:
        """What the message must hold."""
        return (*([self.missing] if self.missing else ()), *([f"): {self.cause} "] if self.cause else ()))

    def asks_for(self, finding: Finding) -> bool:
        """Whether ``finding`` is of the label's kind, wherever it is."""
        alike = (finding.severity == "note") == (self.severity == "note")
        return alike and finding.rule == self.rule and self.rank in (None, finding.rank)

    def is_at(self, finding: Finding) -> bool:
        site = finding.site
        if site is None or self.line is None:
            return site is None and self.line is None
        return (site.file.split("/")[-1], site.line) == (self.file, self.line)

    def __str__(self) -> str:
        rank = "" if self.rank is None else f" on rank {self.rank}"
        return f"{self.rule} at {self.file}:{self.line}{rank}" if self.line else f"{self.rule}{rank}"


@dataclass
class Tally:
    """Labels and findings of one rule."""

    labels: int = 0
    found: int = 0
    exact: int = 0
    findings: int = 0
    right: int = 0

    def __iadd__(self, other: Tally) -> Tally:
        for name in vars(self):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        return self


@dataclass
class Score:
    """One case in one mode."""

    by_rule: defaultdict[str, Tally] = field(default_factory=lambda: defaultdict(Tally))
    short: list[str] = field(default_factory=list)
    """What falls short, and why; empty is perfect."""


def labels_of(case: str) -> list[Label]:
    """The labels of a case, one for each rank that it holds for."""
    document = json.loads((TRACES / case / "labels.json").read_text())
    labels, ranks = msgspec.convert(document["labels"], list[Label]), document.get("ranks", 1)
    if ranks == 1:
        return labels
    each = itertools.product(labels, range(ranks))
    return [msgspec.structs.replace(label, rank=rank) for label, rank in each if label.rank in (None, rank)]


def recordings(case: str, mode: str) -> list[Path]:
    """The trace of a case, or those of its ranks."""
    name = MODES[mode]
    return [*(TRACES / case).glob(f"{name}.json.gz"), *sorted((TRACES / case / name).glob("rank*.json.gz"))]


def score(case: str, mode: str) -> Score:
    """Hold the findings of a case's recording against its labels."""
    files = recordings(case, mode)
    if not files:
        return Score(short=["it is not recorded"])
    return judge(labels_of(case), analyze(*files))


def judge(labels: list[Label], report: Report) -> Score:
    """Each label takes the findings at its line; one that found none takes what is left of its rule, elsewhere."""
    result = Score()
    left = [finding for finding in report.findings if finding.severity != "note"]
    for finding in left:
        result.by_rule[finding.rule].findings += 1
    missed = []
    for label in labels:
        result.by_rule[label.rule].labels += 1
        mine = [finding for finding in report.findings if label.asks_for(finding) and label.is_at(finding)]
        if not mine:
            missed.append(label)
            continue
        left = [finding for finding in left if finding not in mine]
        tally = result.by_rule[label.rule]
        tally.found, tally.exact = tally.found + 1, tally.exact + 1
        tally.right += sum(finding.severity != "note" for finding in mine)
        result.short += _details(label, mine)
    for label in missed:
        other = next((finding for finding in left if label.asks_for(finding)), None)
        if other is None:
            result.short.append(f"{label} is missed")
            continue
        left.remove(other)
        result.by_rule[label.rule].found += 1
        result.by_rule[label.rule].right += 1
        result.short.append(f"{label} is found at {_place(other)}")
    result.short += [f"{finding.rule} at {_place(finding)} is invented: {finding.message}" for finding in left]
    result.short += _uncovered(report)
    return result


def _details(label: Label, findings: list[Finding]) -> list[str]:
    """What the findings at a label's line say otherwise than it: how often, and the words of the message."""
    short = []
    for rank in sorted({finding.rank for finding in findings}, key=str):
        mine = [finding for finding in findings if finding.rank == rank]
        counted = sum(finding.per_step or 0 for finding in mine)
        if label.per_step is not None and abs(counted - label.per_step) > TOLERANCE:
            short.append(f"{label} is counted {counted:g} a step instead of {label.per_step:g}")
        for words in label.words:
            short += [f"{label} does not say {words!r}: {f.message}" for f in mine if words not in f.message]
    return short


def _uncovered(report: Report) -> list[str]:
    covers = [trace.coverage for trace in report.traces]
    return [f"{c.with_line} of {c.waits} waits have a line" for c in covers if c.with_line != c.waits]


def _place(finding: Finding) -> str:
    rank = "" if finding.rank is None else f" on rank {finding.rank}"
    return (f"{finding.site.file}:{finding.site.line}" if finding.site else "no line") + rank


def main(names: list[str]) -> int:
    short = 0
    for mode in MODES:
        scores = {case: score(case, mode) for case in names or CASES}
        _print_table(mode, scores)
        for case, result in scores.items():
            for line in result.short:
                print(f"{case}: {line}")
                short += 1
        print()
    return 1 if short else 0


def _print_table(mode: str, scores: dict[str, Score]) -> None:
    rules: defaultdict[str, Tally] = defaultdict(Tally)
    for result in scores.values():
        for rule, tally in result.by_rule.items():
            rules[rule] += tally
            rules["all"] += tally
    print(f"{f'{len(scores)} cases, {mode}':26} {'recall':>14} {'precision':>14} {'exact lines':>14}")
    for rule in sorted(rules):
        t = rules[rule]
        shares = [_share(t.found, t.labels), _share(t.right, t.findings), _share(t.exact, t.found)]
        print(f"{rule:26} " + " ".join(f"{share:>14}" for share in shares))


def _share(part: int, whole: int) -> str:
    return f"{part}/{whole} {part / whole:4.0%}" if whole else "–"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
