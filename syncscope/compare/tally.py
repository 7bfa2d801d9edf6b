"""How often a step the things of a report occur: one figure for each fingerprint, whatever traces and lines it has."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from syncscope.schema.findings import Finding

Family = tuple[str, ...]
"""What equal expressions of a function share, and nothing else does. Their fingerprints only tell their order, so where
one is added or taken away nobody can say which it is."""

DIGITS = 4
"""Counts a step are compared, and written, to so many decimals."""


@dataclass(frozen=True)
class Tally:
    """All findings with one fingerprint."""

    findings: tuple[Finding, ...]
    """In the report's order."""
    per_step: float | None
    """Occurrences a step, of several traces the most; ``None`` where any of them has no steps."""

    @property
    def first(self) -> Finding:
        return self.findings[0]


def tallied(findings: Iterable[Finding]) -> dict[str, Tally]:
    """By fingerprint, in order of the first finding of each."""
    groups: dict[str, list[Finding]] = defaultdict(list)
    for finding in findings:
        groups[finding.fingerprint].append(finding)
    return {key: Tally(tuple(group), most_per_step(group)) for key, group in groups.items()}


def most_per_step(findings: Iterable[Finding]) -> float | None:
    """Occurrences a step of all findings together, in the trace that has the most; ``None`` where any has no steps."""
    totals: dict[int, float] = defaultdict(float)
    for finding in findings:
        if finding.per_step is None:
            return None
        totals[finding.trace] += finding.per_step
    return round(max(totals.values(), default=0.0), DIGITS)


def say_count(per_step: float) -> str:
    """A count a step for a sentence: ``0.4``, ``12,001``."""
    return f"{per_step:,.{DIGITS}f}".rstrip("0").rstrip(".")


def family(rule: str, file: str | None, function: str | None, expression: str | None, fingerprint: str) -> Family:
    """The family of a thing; one without a line is alone in its own."""
    if file is None:
        return (fingerprint,)
    return rule, file, function or "", " ".join((expression or "").split())


def family_of(finding: Finding) -> Family:
    site = finding.site
    if site is None:
        return family(finding.rule, None, None, None, finding.fingerprint)
    return family(finding.rule, site.file, site.function, site.expression, finding.fingerprint)
