"""Count how often a step the findings of a report occur: one count for each fingerprint, over all traces and lines."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from syncscope.schema.findings import Finding

ExpressionKey = tuple[str, ...]
"""Rule, file, function and text of an expression. Findings with equal expressions in one function share it. Their
fingerprints differ only in the order of the expressions, so when one is added or removed, nobody can say which."""

DIGITS = 4
"""Decimals to which counts a step are compared and written."""


@dataclass(frozen=True)
class FingerprintCount:
    """All findings with one fingerprint."""

    findings: tuple[Finding, ...]
    """In the report's order."""
    per_step: float | None
    """Occurrences a step, in the trace that has the most; ``None`` where any of the traces has no steps."""

    @property
    def first(self) -> Finding:
        return self.findings[0]


def count_by_fingerprint(findings: Iterable[Finding]) -> dict[str, FingerprintCount]:
    """The occurrences of each fingerprint, in the order of its first finding."""
    groups: dict[str, list[Finding]] = defaultdict(list)
    for finding in findings:
        groups[finding.fingerprint].append(finding)
    return {fingerprint: FingerprintCount(tuple(group), most_per_step(group)) for fingerprint, group in groups.items()}


def most_per_step(findings: Iterable[Finding]) -> float | None:
    """Occurrences a step of all findings together, in the trace that has the most; ``None`` where any has no steps."""
    totals: dict[int, float] = defaultdict(float)
    for finding in findings:
        if finding.per_step is None:
            return None
        totals[finding.trace] += finding.per_step
    return round(max(totals.values(), default=0.0), DIGITS)


def format_count(per_step: float) -> str:
    """A count a step for a sentence: ``0.4``, ``12,001``."""
    return f"{per_step:,.{DIGITS}f}".rstrip("0").rstrip(".")


def expression_key(
    rule: str, file: str | None, function: str | None, expression: str | None, fingerprint: str
) -> ExpressionKey:
    """The key of an expression. A finding without a line shares its key with no other."""
    if file is None:
        return (fingerprint,)
    return rule, file, function or "", " ".join((expression or "").split())


def expression_key_of(finding: Finding) -> ExpressionKey:
    site = finding.site
    if site is None:
        return expression_key(finding.rule, None, None, None, finding.fingerprint)
    return expression_key(finding.rule, site.file, site.function, site.expression, finding.fingerprint)
