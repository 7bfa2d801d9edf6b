"""Holds findings against what was read by hand from the raw events of a trace.

A judgement says of one finding what the raw events say: the rule, the op, how often, how long, how severe at most, the
place, and what the message and the fix must or must not say. Words are regular expressions without regard to case.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import msgspec

from syncscope.schema.findings import Finding, Frame
from syncscope.schema.report import Report

SETS = {
    "mended on: judged before the first change": Path(__file__).with_name("judgements.json"),
    "read again: tests held some of their figures and findings before": Path(__file__).with_name("read_again.json"),
    "held out: judged before any change": Path(__file__).with_name("held_out.json"),
    "third reading: judged before the mends that it led to": Path(__file__).with_name("third_reading.json"),
    "fourth reading: judged before the mends that it led to": Path(__file__).with_name("fourth_reading.json"),
    "fifth reading: judged before the mends that it led to": Path(__file__).with_name("fifth_reading.json"),
    "sixth reading: judged before the mends that it led to": Path(__file__).with_name("sixth_reading.json"),
    "seventh reading, owners n to z: judged before the mends that it led to": Path(__file__).with_name(
        "seventh_reading_n_to_z.json"
    ),
    "eighth reading, owners a to m: judged before the mends that it led to": Path(__file__).with_name(
        "eighth_reading_a_to_m.json"
    ),
    "seventh reading, owners a to m: judged before the mends that it led to": Path(__file__).with_name(
        "seventh_reading_a_to_m.json"
    ),
    "eighth reading, owners n to z: judged before the mends that it led to": Path(__file__).with_name(
        "eighth_reading_n_to_z.json"
    ),
    "ninth reading: judged before the mends that it led to": Path(__file__).with_name("ninth_reading.json"),
    "two runs more: judged after the mends of the ninth reading": Path(__file__).with_name("after_the_ninth.json"),
    "tenth reading: judged before the mends that it led to": Path(__file__).with_name("tenth_reading.json"),
    "eleventh reading: judged before the mends that it led to": Path(__file__).with_name("eleventh_reading.json"),
    "twelfth reading: judged before the mends that it led to": Path(__file__).with_name("twelfth_reading.json"),
    "thirteenth reading: judged before the mends that it led to": Path(__file__).with_name("thirteenth_reading.json"),
    "fourteenth reading: judged before the mends that it led to": Path(__file__).with_name("fourteenth_reading.json"),
    "fifteenth reading: judged before the mends that it led to": Path(__file__).with_name("fifteenth_reading.json"),
    "sixteenth reading: judged before the mends that it led to": Path(__file__).with_name("sixteenth_reading.json"),
    "seventeenth reading: judged before the mends that it led to": Path(__file__).with_name("seventeenth_reading.json"),
    "eighteenth reading: judged before the mends that it led to": Path(__file__).with_name("eighteenth_reading.json"),
    "eighteenth reading, second part: judged before the mends that it led to": Path(__file__).with_name(
        "eighteenth_reading_part2.json"
    ),
    "nineteenth reading: judged before the mends that it led to": Path(__file__).with_name("nineteenth_reading.json"),
    "twentieth reading: it led to no mends of findings": Path(__file__).with_name("twentieth_reading.json"),
    "twenty-first reading: judged before the mends that it led to": Path(__file__).with_name(
        "twenty_first_reading.json"
    ),
    "twenty-second reading: judged before the mends that it led to": Path(__file__).with_name(
        "twenty_second_reading.json"
    ),
    "twenty-third reading: judged before the mends that it led to": Path(__file__).with_name(
        "twenty_third_reading.json"
    ),
    "twenty-fourth reading: judged before the mends that it led to": Path(__file__).with_name(
        "twenty_fourth_reading.json"
    ),
    "twenty-fifth reading: judged before the mends that it led to": Path(__file__).with_name(
        "twenty_fifth_reading.json"
    ),
    "twenty-sixth reading: judged before the mends that it led to": Path(__file__).with_name(
        "twenty_sixth_reading.json"
    ),
}
"""The files of judgements by what they are evidence of."""

TOLERANCE = 0.05
"""Milliseconds are right within this share: a row more or less at the edge of a step."""

PART_TOLERANCE = 0.2
"""The same where the finding counts a part of the trace, and its share of the time is taken from the whole."""

UNDERSTATED = 0.5
"""The upper end of a range is too low below this share of what the fix saved."""

LATE_RANK = "DST601"
"""The rule whose findings are each about a rank of its own. Where one is judged, others need not be."""

ABSENT = "absent"
"""The severity of a finding that need not be there."""


class File(msgspec.Struct, frozen=True):
    """The address of a trace."""

    repository: str
    path: str
    commit: str
    sha256: str


class Judgement(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the raw events say of one finding; a field that is ``None`` is not judged."""

    rule: str
    severity: tuple[str, ...]
    """The severities that are right, and ``ABSENT`` where the finding need not be there."""
    op: str | None = None
    count: tuple[int, ...] | None = None
    """How often, in the whole trace; then what is right too: in the steps alone, where the trace shows them."""
    blocked_ms: float | None = None
    """Milliseconds that the host is held, all ``count[0]`` times."""
    exposed_ms: float | None = None
    """Milliseconds without compute beside them, all ``count[0]`` times."""
    gains_at_most_ms: float | None = None
    """Milliseconds that its fix can save at most, in the whole trace: the upper end of its range."""
    gains_at_least_ms: float | None = None
    """Milliseconds that its fix saved, where the trace of the program with the fix is there too: the upper end of its
    range is not below half of them."""
    where: str | None = None
    """What the site, the innermost frame, the annotation around it, or the message must name."""
    where_not: str | None = None
    """What neither the site nor the innermost frame may be."""
    says: str | None = None
    says_not: str | None = None
    fix: str | None = None
    fix_not: str | None = None
    why: str | None = None


class Case(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A trace, or the traces of one run, with the findings that it has."""

    device: str
    program: str
    files: tuple[File, ...]
    findings: tuple[Judgement, ...]
    raw: str | None = None
    """What an independent count of the raw events gives."""
    first: tuple[str, ...] | None = None
    """The rules of which one must come first, ``RULE in PLACE`` where it has several findings; ``None`` where nothing
    stands out."""


class Verdict(msgspec.Struct, frozen=True):
    """One finding, or one that is missing, with all that is wrong about it."""

    rule: str
    what: str
    wrong: tuple[str, ...]


class _Cases(msgspec.Struct):
    traces: tuple[Case, ...]


def read_cases(path: Path) -> tuple[Case, ...]:
    return msgspec.json.decode(path.read_bytes(), type=_Cases).traces


def judge(case: Case, report: Report) -> list[Verdict]:
    """A verdict for each finding that was judged, for each that is missed, and for the order; findings that nobody
    judged get one that says so, unless they are notes."""
    matched, missed, unjudged = _match(case.findings, report)
    too_long = _exposed_twice(report)
    verdicts = []
    for finding, judgement in matched:
        wrong = compare(finding, judgement, report)
        if finding.rule == "OVL302" and too_long:
            wrong.append("exposed: all of them together exceed what the trace has")
        verdicts.append(Verdict(finding.rule, describe(finding), tuple(wrong)))
    verdicts += [
        Verdict(judgement.rule, f"{judgement.op} × {(judgement.count or ('?',))[0]}", ("missed",))
        for judgement in missed
    ]
    verdicts += [Verdict(finding.rule, describe(finding), ("not judged",)) for finding in unjudged]
    if case.first and report.findings:
        first = report.findings[0]
        right = any(_is(first, wanted) for wanted in case.first)
        wrong = [] if right else [f"first: {first.rule}, not {' or '.join(case.first)}"]
        verdicts.append(Verdict("order", "the first finding", tuple(wrong)))
    return verdicts


def compare(finding: Finding, judgement: Judgement, report: Report) -> list[str]:
    """All that is wrong about a finding, none where it is right in every respect."""
    wrong = []
    if finding.severity not in judgement.severity:
        wrong.append(f"severity: {finding.severity}, not {' or '.join(judgement.severity)}")
    if judgement.op is not None and finding.op != judgement.op:
        wrong.append(f"op: {finding.op}, not {judgement.op}")
    counts = judgement.count or (finding.count,)
    if finding.count not in counts:
        wrong.append(f"count: {finding.count}, not {' or '.join(map(str, counts))}")
    part = finding.count / counts[0] if finding.count in counts[1:] else 1.0
    for name, found, raw in (
        ("blocked", _in_all(finding, finding.stall_ms, finding.stall_ms_per_step, report), judgement.blocked_ms),
        ("exposed", _in_all(finding, None, finding.exposed_ms_per_step, report), judgement.exposed_ms),
    ):
        tolerance = TOLERANCE if part == 1.0 else PART_TOLERANCE
        if raw is not None and found is not None and abs(found - raw * part) > max(tolerance * raw, 0.002):
            wrong.append(f"{name}: {found:.3g} ms, not {raw * part:.3g}")
    most, high = judgement.gains_at_most_ms, _saving_in_all(finding, report)
    if most is not None and high is not None and high > most * (1 + TOLERANCE):
        wrong.append(f"amount: up to {high:.3g} ms, not {most:.3g}")
    least = judgement.gains_at_least_ms
    if least is not None and (high is None or high < least * UNDERSTATED):
        wrong.append(
            f"amount: up to {'unknown' if high is None else f'{high:.3g} ms'}, which is measured as {least:.3g}"
        )
    frames = _frames(finding)
    for aspect, pattern, text, wanted in (
        ("place", judgement.where, _places(finding), True),
        ("place", judgement.where_not, frames, False),
        ("message", judgement.says, finding.message, True),
        ("message", judgement.says_not, finding.message, False),
        ("fix", judgement.fix, _fix(finding, report), True),
        ("fix", judgement.fix_not, finding.fix, False),
    ):
        if pattern is not None and bool(re.search(pattern, text, re.IGNORECASE)) != wanted:
            wrong.append(f"{aspect}: {'lacks' if wanted else 'has'} {pattern}")
    return wrong


def describe(finding: Finding) -> str:
    return f"{finding.op} × {finding.count} at {_text(finding.site) or 'no line'}"


def _text(frame: Frame | None) -> str:
    return "" if frame is None else f"{frame.file}:{frame.line} {frame.function}"


def _frames(finding: Finding) -> str:
    return " ".join(_text(frame) for frame in (finding.site, finding.at))


def _places(finding: Finding) -> str:
    """All that names where a finding is."""
    return f"{_frames(finding)} {finding.annotation or ''} {finding.message}"


def _fix(finding: Finding, report: Report) -> str:
    """What a finding says to do, and the rules that say the same: a copy's wait is told by another rule, to whose fix
    it pointed once."""
    same = {other.rule for other in report.findings if other.fix == finding.fix and other is not finding}
    return " ".join((finding.fix, *sorted(same - {finding.rule})))


def _is(finding: Finding, wanted: str) -> bool:
    """Whether a finding is the one that ``Case.first`` names."""
    rule, _, place = wanted.partition(" in ")
    return finding.rule == rule and bool(re.search(place, _places(finding), re.IGNORECASE))


def _in_all(finding: Finding, whole: float | None, per_step: float | None, report: Report) -> float | None:
    """Milliseconds in the whole trace, ``None`` where the report has only one of the figures and no steps."""
    steps = report.traces[finding.trace].steps.count
    return whole if whole is not None else per_step * steps if per_step is not None and steps else None


def _saving_in_all(finding: Finding, report: Report) -> float | None:
    """The upper end of a finding's saving in the whole trace, ms; ``None`` unknown."""
    high = finding.saving_high_ms_per_step
    return None if high is None else high * max(report.traces[finding.trace].steps.count, 1)


def _exposed_twice(report: Report) -> bool:
    """Whether the collectives' findings of a trace together are exposed for longer than its collectives are."""
    for number, trace in enumerate(report.traces):
        found = [f.exposed_ms_per_step or 0.0 for f in report.findings if f.rule == "OVL302" and f.trace == number]
        has = trace.overlap.comm_exposed_ms if trace.overlap else None
        if trace.steps.count and has is not None and sum(found) > has * (1 + TOLERANCE):
            return True
    return False


def _match(
    judgements: Sequence[Judgement], report: Report
) -> tuple[list[tuple[Finding, Judgement]], list[Judgement], list[Finding]]:
    """The findings with their judgements, the judgements without a finding that should be, and the other findings.

    Of all pairs of one rule those come together that agree most, those first of which more is judged, then those whose
    amounts are closest. The findings of other ranks that one line of the report stands for are left out.
    """
    findings = _of_one_rank(report)
    pairs = sorted(
        (len(compare(finding, judgement, report)), -_judged(judgement), _apart_ms(finding, judgement, report), i, j)
        for i, finding in enumerate(findings)
        for j, judgement in enumerate(judgements)
        if finding.rule == judgement.rule
    )
    taken: dict[int, int] = {}
    for *_, i, j in pairs:
        if i not in taken and j not in taken.values():
            taken[i] = j
    matched = [(findings[i], judgements[j]) for i, j in sorted(taken.items())]
    missed = [j for n, j in enumerate(judgements) if n not in taken.values() and ABSENT not in j.severity]
    unjudged = [f for i, f in enumerate(findings) if i not in taken and f.severity != "note"]
    late = any(judgement.rule == LATE_RANK for _, judgement in matched)
    return matched, missed, [f for f in unjudged if f.rule != LATE_RANK or not late]


def _apart_ms(finding: Finding, judgement: Judgement, report: Report) -> float:
    """How far the most that a finding saves, nothing where that is unknown, is from the most that it can."""
    most = judgement.gains_at_most_ms
    return 0.0 if most is None else abs(most - (_saving_in_all(finding, report) or 0.0))


def _judged(judgement: Judgement) -> int:
    """How many fields of a finding are judged."""
    return sum(getattr(judgement, field) is not None for field in judgement.__struct_fields__)


def _of_one_rank(report: Report) -> list[Finding]:
    """Of the findings of several ranks that are the same, the first."""
    seen: set[tuple[object, ...]] = set()
    kept = []
    for finding in report.findings:
        rank = finding.rank if finding.rule == LATE_RANK else None
        key = (finding.rule, finding.op, finding.fingerprint, rank)
        if len(report.traces) == 1 or key not in seen:
            kept.append(finding)
        seen.add(key)
    return kept
