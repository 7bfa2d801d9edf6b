"""The ratchet: what a project had when it adopted the gate may stay or become less, and must not become more.

The file holds, for each finding that would fail the gate, its fingerprint and its count a step; rule and place stand
beside them for people. There is no line, machine or time in it, so moving code changes nothing.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from syncscope.compare.tally import DIGITS, Family, family, family_of, most_per_step, say_count, tallied
from syncscope.policy.gate import standing, unseen
from syncscope.policy.policy import Policy
from syncscope.schema.findings import Finding, ordered
from syncscope.schema.report import Report

FORMAT = 1
MOST_BYTES = 16 << 20


class BaselineError(ValueError):
    """A baseline that cannot be used; ``str()`` is one line."""


class Entry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A finding that was there."""

    rule: str
    file: str | None = None
    function: str | None = None
    expression: str | None = None
    op: str | None = None
    """Where there is no line."""
    per_step: Annotated[float, Meta(ge=0)]


class Baseline(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The file."""

    format: int = FORMAT
    findings: dict[str, Entry]
    """By fingerprint."""

    def to_json(self) -> str:
        """A line a finding, in order of their places: what a review and a merge want."""

        def place(item: tuple[str, Entry]) -> tuple[str, ...]:
            key, entry = item
            return entry.file or "", entry.function or "", entry.rule, entry.expression or "", key

        lines = [f"{json.dumps(key)}: {_line(entry)}" for key, entry in sorted(self.findings.items(), key=place)]
        body = "\n    " + ",\n    ".join(lines) + "\n  " if lines else ""
        return f'{{\n  "format": {self.format},\n  "findings": {{{body}}}\n}}\n'


class _Head(msgspec.Struct):
    format: int


@dataclass(frozen=True)
class Held:
    """A report held to a baseline."""

    report: Report
    """With what the baseline covers marked, and what goes beyond it saying so."""
    covered: int
    """Findings that it covers."""
    fixed: int
    """Its entries that occur less often now, or not at all."""
    tightened: Baseline
    """What it holds once that is taken out."""


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
            known = f"format {version}, this one knows {FORMAT}"
            raise BaselineError(f"{path}: written by a newer syncscope ({known})")
        return msgspec.json.decode(data, type=Baseline)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BaselineError(f"{path}: not a baseline: {error}") from None


def hold(report: Report, policy: Policy, baseline: Baseline | None) -> Held:
    """Hold a report, to which the policy was applied, to a baseline; ``None`` is one that is yet to be made, and covers
    everything.

    Equal expressions of a function stand together: when they occur more often than they did, nobody can say which of
    them is new, so every one of them is unexpected. Raises ``BaselineError`` where counts a step are not known.
    """
    against = standing(report, policy)
    for finding in against:
        if finding.per_step is None:
            path = report.traces[finding.trace].path
            raise BaselineError(f"{path}: a baseline counts by the step, and this trace has no steps")
    beyond = {} if baseline is None else _beyond(against, baseline)
    covered = [finding for finding in against if family_of(finding) not in beyond]
    saved = {} if baseline is None else baseline.findings
    blind = {entry.rule for entry in unseen(report, policy)}
    judged = {key for key, entry in saved.items() if entry.rule in policy.gated and entry.rule not in blind}
    now = _entries(against)
    fixed = [key for key in judged if key not in now or now[key].per_step < saved[key].per_step]
    rest = {key: entry for key, entry in saved.items() if key not in judged}
    return Held(
        report=_marked(report, against, beyond),
        covered=len(tallied(covered)),
        fixed=len(fixed),
        tightened=Baseline(findings={**rest, **_entries(covered)}),
    )


def _beyond(against: Iterable[Finding], baseline: Baseline) -> dict[Family, str | None]:
    """The families that occur more often than in the baseline, and how often they did, ``None`` for a new one."""
    had: dict[Family, float] = defaultdict(float)
    for key, entry in baseline.findings.items():
        had[family(entry.rule, entry.file, entry.function, entry.expression, key)] += entry.per_step
    members: dict[Family, list[Finding]] = defaultdict(list)
    for finding in against:
        members[family_of(finding)].append(finding)
    now = {key: most_per_step(findings) or 0.0 for key, findings in members.items()}
    return {
        key: _grown(had[key], count, len(tallied(members[key]))) if had[key] else None
        for key, count in now.items()
        if count > round(had[key], DIGITS)
    }


def _grown(had: float, now: float, lines: int) -> str:
    told = f"baseline {say_count(had)}, now {say_count(now)} a step"
    return told if lines == 1 else f"{told}: any of {lines} equal lines may be the new one"


def _entries(findings: Iterable[Finding]) -> dict[str, Entry]:
    return {
        key: Entry(
            rule=tally.first.rule,
            file=site.file if (site := tally.first.site) else None,
            function=site.function if site else None,
            expression=site.expression if site else None,
            op=None if site else tally.first.op,
            per_step=tally.per_step or 0.0,
        )
        for key, tally in tallied(findings).items()
    }


def _marked(report: Report, against: Iterable[Finding], beyond: Mapping[Family, str | None]) -> Report:
    judged = set(against)
    marked = (_mark(finding, beyond) if finding in judged else finding for finding in report.findings)
    return msgspec.structs.replace(report, findings=ordered(marked))


def _mark(finding: Finding, beyond: Mapping[Family, str | None]) -> Finding:
    key = family_of(finding)
    if key not in beyond:
        return msgspec.structs.replace(finding, status="baseline", exceeds=None)
    told = [why for why in (finding.exceeds, beyond[key]) if why]
    return msgspec.structs.replace(finding, exceeds="; ".join(told) or None)


def _line(entry: Entry) -> str:
    """An entry in ASCII, so that nothing in a name can disturb who reads the difference."""
    fields = msgspec.to_builtins(entry)
    return json.dumps({**fields, "per_step": int(entry.per_step) if entry.per_step.is_integer() else entry.per_step})
