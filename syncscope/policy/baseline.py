"""The baseline: findings that a project had when it adopted the gate may stay or occur less often, but not more often.

The file holds the fingerprint and the count a step of each finding that would fail the gate. Rule and place are there
for readers. The file names no line, machine or time, so moving code changes nothing. It also holds the extent of the
recordings that it was written from, so that a check of less says so.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from syncscope.compare.fingerprints import (
    NEVER,
    ExpressionKey,
    count_by_fingerprint,
    expression_key,
    expression_key_of,
    format_count,
    frequency_of,
    is_untold,
    most_frequent,
    same_place,
)
from syncscope.patterns import compile_later
from syncscope.policy.budgets import limited_rules
from syncscope.policy.extent import Extent, describe_shortfall, measure_extent
from syncscope.policy.gate import comparable_findings, unchecked_rules
from syncscope.policy.policy import Policy
from syncscope.schema.findings import COMPILED, UNEXPLAINED, Finding
from syncscope.schema.order import ordered
from syncscope.schema.report import Report

FORMAT = 2
"""Format 1 had no ``recorded``."""
MOST_BYTES = 16 << 20
MERGE_MARK = compile_later(rb"^(<{7}|={7}|>{7})", re.MULTILINE)


class BaselineError(ValueError):
    """A baseline that cannot be used; ``str()`` is one line."""


class Entry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A finding that may stay."""

    rule: str
    file: str | None = None
    function: str | None = None
    expression: str | None = None
    op: str | None = None
    """Only for a finding without a line."""
    per_step: Annotated[float, Meta(ge=0)]


class Baseline(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The file."""

    format: int = FORMAT
    recorded: tuple[Extent, ...] = ()
    """What the recordings showed when it was written; empty in files of format 1."""
    findings: dict[str, Entry]
    """By fingerprint."""

    def to_json(self) -> str:
        """One line a finding, ordered by place, so that a review shows each change and merges seldom conflict."""

        def place(item: tuple[str, Entry]) -> tuple[str, ...]:
            key, entry = item
            return entry.file or "", entry.function or "", entry.rule, entry.expression or "", key

        lines = [f"{json.dumps(key)}: {_line(entry)}" for key, entry in sorted(self.findings.items(), key=place)]
        recorded = f'\n  "recorded": [{_lines(map(_line, self.recorded))}],' if self.recorded else ""
        return f'{{\n  "format": {FORMAT},{recorded}\n  "findings": {{{_lines(lines)}}}\n}}\n'


class _Head(msgspec.Struct):
    format: Annotated[int, Meta(ge=1)]


class BaselineCheck(msgspec.Struct, frozen=True):
    """A report, compared with a baseline."""

    report: Report
    """The report. Findings that the baseline covers have the status ``baseline``; ``exceeds`` says of the others how
    they exceed it."""
    covered: int
    """Number of findings that the baseline covers."""
    fixed: int
    """Number of entries that occur less often now, or not at all."""
    tightened: Baseline
    """The baseline without what is fixed. It is unchanged where ``differs`` is not empty."""
    differs: tuple[str, ...] = ()
    """How the recordings show less than those of the baseline, or something else: one phrase each."""
    removed: tuple[str, ...] = ()
    """What ``tightened`` lacks or counts less often, one phrase each."""


def read_baseline(path: Path) -> Baseline | None:
    """The baseline at ``path``, ``None`` where there is no file. Raises ``BaselineError``."""
    try:
        with path.open("rb") as stream:
            data = stream.read(MOST_BYTES + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise BaselineError(f"{path}: {error.strerror or error}") from None
    if len(data) > MOST_BYTES:
        raise BaselineError(f"{path}: not a baseline: over {MOST_BYTES >> 20} MiB")
    try:
        version = msgspec.json.decode(data, type=_Head).format
        if version > FORMAT:
            known = f"format {version}; this version reads up to {FORMAT}"
            raise BaselineError(f"{path}: was written by a newer syncscope ({known})")
        baseline = msgspec.json.decode(data, type=Baseline)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        if MERGE_MARK.search(data):
            raise BaselineError(f"{path}: has the marks of a merge that is not resolved") from None
        raise BaselineError(f"{path}: not a baseline: {error}") from None
    if (twice := _named_twice(data)) is not None:
        raise BaselineError(f'{path}: names "{twice}" twice, as after a merge; keep one of the two')
    return baseline


def _named_twice(data: bytes) -> str | None:
    """The first key that an object of the file has twice: readers keep the last, and say nothing."""
    repeated: list[str] = []

    def note(pairs: list[tuple[str, object]]) -> None:
        repeated.extend(key for key, times in Counter(key for key, _ in pairs).items() if times > 1)

    json.loads(data, object_pairs_hook=note)
    return repeated[0] if repeated else None


def check_baseline(report: Report, policy: Policy, baseline: Baseline | None) -> BaselineCheck:
    """Compare a report, to which the policy was applied, with a baseline. ``None`` is a baseline that is not written
    yet; it covers everything. Where the report's recordings show less than those of the baseline, nothing is fixed.

    Equal expressions of a function are counted together. When they occur more often than before, nobody can say which
    of them is new, so all of them are unexpected. Raises ``BaselineError`` where the counts a step are unknown.
    """
    unexpected = comparable_findings(report, policy)
    for finding in unexpected:
        if frequency_of(finding) is None and finding.site_source != COMPILED:  # a line breaks a graph, or does not
            path = report.traces[finding.trace].path
            raise BaselineError(f"{path}: a baseline needs counts a step, and this trace has no steps")
    exceeding = {} if baseline is None else _exceeding(unexpected, baseline)
    covered = [finding for finding in unexpected if expression_key_of(finding) not in exceeding]
    saved = {} if baseline is None else baseline.findings
    unchecked = {entry.rule for entry in unchecked_rules(report, policy)}
    unlimited = {entry.rule for entry in report.not_checked} - set(policy.gated)
    extent = measure_extent(report, policy)
    differs = () if baseline is None else describe_shortfall(extent, baseline.recorded)
    rules = (
        ()
        if differs
        else [rule for rule in (*policy.gated, *limited_rules(policy.budgets)) if rule not in unchecked | unlimited]
    )
    checked = {key for key, entry in saved.items() if entry.rule in rules}
    now = count_by_fingerprint(unexpected)
    unsure = {key for key in checked if key not in now and _may_be_there(key, saved[key], unexpected)}
    expressions = {expression_key_of(finding) for finding in unexpected}
    rest = {key: entry for key, entry in saved.items() if key not in checked or key in unsure}
    entries = {**rest, **_tighten({key: saved[key] for key in checked - unsure}, unexpected, exceeding)}
    fixed = [key for key in checked - unsure if _is_fixed(key, saved[key], entries.get(key), expressions)]
    tightened = Baseline(recorded=extent if baseline is None else baseline.recorded or extent, findings=entries)
    return BaselineCheck(
        report=_mark_findings(report, unexpected, exceeding),
        covered=len(count_by_fingerprint(covered)),
        fixed=len(fixed),
        tightened=baseline if baseline is not None and differs else tightened,
        differs=differs,
        removed=tuple(_describe_removed(saved[key], tightened.findings.get(key)) for key in sorted(fixed)),
    )


def _exceeding(unexpected: Iterable[Finding], baseline: Baseline) -> dict[ExpressionKey, str | None]:
    """The expressions that occur more often than in the baseline. The value says how much more, ``None`` for a new
    expression."""
    before: dict[ExpressionKey, float] = defaultdict(float)
    for fingerprint, entry in baseline.findings.items():
        before[_key_of(entry, fingerprint)] += entry.per_step
    groups = _by_expression(unexpected)
    now = {key: most_frequent(findings) or NEVER for key, findings in groups.items()}
    exceeding: dict[ExpressionKey, str | None] = {}
    for key, frequency in now.items():
        spare = {other: max(0.0, before[other] - now.get(other, NEVER).per_step) for other in same_place(key, before)}
        allowed = before.get(key, 0.0) + sum(spare.values())
        if key not in before and not spare:
            exceeding[key] = None
        elif frequency.is_above(allowed):
            lines = len(count_by_fingerprint(groups[key]))
            exceeding[key] = _describe_increase(allowed, frequency.per_step, lines) if allowed else None
    return exceeding


def _key_of(entry: Entry, fingerprint: str) -> ExpressionKey:
    return expression_key(entry.rule, entry.file, entry.function, entry.expression, fingerprint)


def _may_be_there(key: str, entry: Entry, unexpected: Iterable[Finding]) -> bool:
    """Whether a wait was counted at the entry's expression that may be of the entry's rule: the count does not tell."""
    place = _key_of(entry, key)[1:]
    at_place = (finding for finding in unexpected if place and expression_key_of(finding)[1:] == place)
    return any(finding.rule != UNEXPLAINED and is_untold(entry.rule, finding) for finding in at_place)


def _tighten(
    saved: Mapping[str, Entry], unexpected: Iterable[Finding], exceeding: Collection[ExpressionKey]
) -> dict[str, Entry]:
    """The entries of what is there now and may stay. Those of an expression that is not less often than it was stay as
    they are: a count that lies within the bounds takes nothing out, and adds nothing."""
    before: dict[ExpressionKey, dict[str, Entry]] = defaultdict(dict)
    for key, entry in saved.items():
        before[_key_of(entry, key)][key] = entry
    entries: dict[str, Entry] = {}
    for expression, findings in _by_expression(unexpected).items():
        known = before.get(expression, {})
        frequency = most_frequent(findings)
        less = frequency is not None and frequency.is_below(sum(entry.per_step for entry in known.values()))
        new = not known and expression not in exceeding
        entries.update(_entries(findings) if less or new else known)
    return entries


def _by_expression(findings: Iterable[Finding]) -> dict[ExpressionKey, list[Finding]]:
    groups: dict[ExpressionKey, list[Finding]] = defaultdict(list)
    for finding in findings:
        groups[expression_key_of(finding)].append(finding)
    return groups


def _is_fixed(key: str, before: Entry, after: Entry | None, expressions: Iterable[ExpressionKey]) -> bool:
    """Whether an entry occurs less often now, or not at all: not even under another rule that may be about it."""
    if after is None:
        return not same_place(_key_of(before, key), expressions)
    return after.per_step < before.per_step


def _describe_increase(before: float, now: float, lines: int) -> str:
    counts = f"baseline {format_count(before)}, now {format_count(now)} a step"
    return counts if lines == 1 else f"{counts}: any of {lines} equal lines may be the new one"


def _describe_removed(before: Entry, now: Entry | None) -> str:
    """``SYN102 train.py loss.item() in train_step, 1 a step``."""
    place = " ".join(part for part in (before.file, before.expression or before.op) if part)
    where = f" in {before.function}" if before.function else ""
    counts = [f"{format_count(before.per_step)} a step"]
    if now is not None:
        counts.append(f"now {format_count(now.per_step)}")
    return f"{before.rule} {place}{where}, {', '.join(counts)}"


def _entries(findings: Iterable[Finding]) -> dict[str, Entry]:
    return {
        key: Entry(
            rule=occurrences.first.rule,
            file=site.file if (site := occurrences.first.site) else None,
            function=site.function if site else None,
            expression=site.expression if site else None,
            op=None if site else occurrences.first.op,
            per_step=occurrences.per_step or 0.0,
        )
        for key, occurrences in count_by_fingerprint(findings).items()
    }


def _mark_findings(
    report: Report, unexpected: Iterable[Finding], exceeding: Mapping[ExpressionKey, str | None]
) -> Report:
    compared = set(unexpected)
    marked = (_mark(finding, exceeding) if finding in compared else finding for finding in report.findings)
    return msgspec.structs.replace(report, findings=ordered(marked, report.traces))


def _mark(finding: Finding, exceeding: Mapping[ExpressionKey, str | None]) -> Finding:
    key = expression_key_of(finding)
    if key not in exceeding:
        return msgspec.structs.replace(finding, status="baseline", exceeds=None)
    reasons = [why for why in (finding.exceeds, exceeding[key]) if why]
    return msgspec.structs.replace(finding, exceeds="; ".join(reasons) or None)


def _line(entry: Entry | Extent) -> str:
    """An entry in ASCII, so that no name can garble a diff."""
    fields = msgspec.to_builtins(entry)
    if fields.get("processes") == 1:
        del fields["processes"]
    return json.dumps({key: int(x) if isinstance(x, float) and x.is_integer() else x for key, x in fields.items()})


def _lines(items: Iterable[str]) -> str:
    """What stands between the brackets, an item a line."""
    body = ",\n    ".join(items)
    return f"\n    {body}\n  " if body else ""
