"""Count how often a step the findings of a report occur: one count for each fingerprint, over all traces and lines."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from syncscope.schema.expressions import without_format
from syncscope.schema.findings import UNEXPLAINED, Finding

ExpressionKey = tuple[str, ...]
"""Rule, file, function and text of an expression. Findings with equal expressions in one function share it. Their
fingerprints differ only in the order of the expressions, so when one is added or removed, nobody can say which."""

PhaseKey = tuple[str, str | None]
"""A fingerprint and a phase, ``None`` for all of them."""

DIGITS = 4
"""Decimals to which counts a step are compared and written."""


class Frequency(NamedTuple):
    """Occurrences a step, between the bounds within which two frequencies are the same."""

    per_step: float
    low: float
    high: float
    once: float = 0.0
    """One occurrence, of recorded steps: what waits every second step is in two of five of them, or in three."""

    def is_above(self, limit: float) -> bool:
        """Whether it is more often than ``limit``, and not only because other steps were recorded."""
        return round(self.low - self._spare(limit), DIGITS) > round(limit, DIGITS)

    def is_below(self, limit: float) -> bool:
        """Whether it is less often than ``limit``, and not only because other steps were recorded."""
        return round(self.high + self._spare(limit), DIGITS) < round(limit, DIGITS)

    def _spare(self, limit: float) -> float:
        """How far a frequency may be from ``limit``: nothing for a whole number, which holds in whichever steps were
        recorded."""
        return 0.0 if float(limit).is_integer() else self.once + 10**-DIGITS  # which rounding may take


NEVER = Frequency(0.0, 0.0, 0.0)


def frequency_of(finding: Finding, over_run: bool = True) -> Frequency | None:
    """How often a finding occurs a step: over the run where that was counted and is wanted, else in the recorded steps.
    ``None`` where neither is known.

    The bounds of a run's frequency are its sampling interval, and one occurrence less or more at least: what happens
    every tenth step happens in 101 steps ten times or eleven times. Of recorded steps, ``Frequency.is_above`` and
    ``is_below`` allow for that.
    """
    mean = finding.run_per_step
    if mean is None or not over_run:
        recorded = finding.per_step
        once = recorded / finding.count if recorded and finding.count else 0.0
        return None if recorded is None else Frequency(recorded, recorded, recorded, once)
    once = mean / finding.occurrences if finding.occurrences else 0.0
    low, high = finding.run_per_step_low, finding.run_per_step_high
    if low is None or high is None:
        return Frequency(mean, 0.0, math.inf)
    return Frequency(mean, max(0.0, min(low, mean - once)), max(high, mean + once))


class FingerprintCount(msgspec.Struct, frozen=True):
    """All findings with one fingerprint."""

    findings: tuple[Finding, ...]
    """In the report's order."""
    frequency: Frequency | None
    """Occurrences a step, in the trace and phase that has the most; ``None`` where any of the traces has no steps."""

    @property
    def first(self) -> Finding:
        return self.findings[0]

    @property
    def per_step(self) -> float | None:
        return None if self.frequency is None else self.frequency.per_step


def count_by_fingerprint(findings: Iterable[Finding]) -> dict[str, FingerprintCount]:
    """The occurrences of each fingerprint, in the order of its first finding."""
    groups: dict[str, list[Finding]] = defaultdict(list)
    for finding in findings:
        groups[finding.fingerprint].append(finding)
    return {key: FingerprintCount(tuple(group), most_frequent(group)) for key, group in groups.items()}


def count_by_phase(findings: Iterable[Finding], over_run: bool) -> dict[PhaseKey, FingerprintCount]:
    """The occurrences of each fingerprint in each phase, over the run; or in all phases, in the recorded steps, without
    the findings that no window recorded."""
    groups: dict[PhaseKey, list[Finding]] = defaultdict(list)
    for finding in findings:
        if over_run or finding.site_source != "count":
            groups[finding.fingerprint, finding.phase if over_run else None].append(finding)
    return {key: FingerprintCount(tuple(group), most_frequent(group, over_run)) for key, group in groups.items()}


def most_frequent(findings: Iterable[Finding], over_run: bool = True) -> Frequency | None:
    """Occurrences a step of all findings together, in the trace and phase that has the most; ``None`` where any has no
    steps."""
    totals: dict[tuple[int, str | None], Frequency] = {}
    for finding in findings:
        one = frequency_of(finding, over_run)
        if one is None:
            return None
        key = finding.trace, finding.phase
        totals[key] = Frequency(*map(sum, zip(totals.get(key, NEVER), one, strict=True)))
    return Frequency(*(round(number, DIGITS) for number in max(totals.values(), default=NEVER)))


def format_count(per_step: float) -> str:
    """A count a step for a sentence: ``0.4``, ``12,001``."""
    return f"{per_step:,.{DIGITS}f}".rstrip("0").rstrip(".")


def expression_key(
    rule: str, file: str | None, function: str | None, expression: str | None, fingerprint: str
) -> ExpressionKey:
    """The key of an expression, however it is formatted. A finding without a line shares its key with no other."""
    if file is None:
        return (fingerprint,)
    return rule, file, function or "", without_format(expression)


def expression_key_of(finding: Finding) -> ExpressionKey:
    site = finding.site
    if site is None:
        return expression_key(finding.rule, None, None, None, finding.fingerprint)
    return expression_key(finding.rule, site.file, site.function, site.expression, finding.fingerprint)


def same_place(key: ExpressionKey, others: Iterable[ExpressionKey]) -> list[ExpressionKey]:
    """Those of ``others`` that may be the same waits under another rule: at one expression, of one of the two it is not
    known why it waits."""
    return [
        other
        for other in others
        if len(key) > 1
        and other[1:] == key[1:]
        and other[0] != key[0]
        and UNEXPLAINED in (key[0], other[0])
        and is_counted(key[0])
        and is_counted(other[0])
    ]


def is_counted(code: str) -> bool:
    """Whether a rule is about waits that the count of a run shows."""
    from syncscope.rules import BY_CODE  # loads numpy and the rules

    return code in BY_CODE and BY_CODE[code].counted


def is_untold(code: str, finding: Finding) -> bool:
    """Whether a rule may be about a finding that no window recorded, because the count does not tell all of them."""
    from syncscope.rules import BY_CODE  # loads numpy and the rules

    if finding.site_source != "count" or finding.rule == code or not is_counted(code):
        return False
    return finding.rule == UNEXPLAINED or BY_CODE[code].goes_with_others
