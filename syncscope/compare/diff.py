"""Compare two reports: which findings are new, fixed, or occur more or less often a step, and how long a step takes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Literal

import msgspec

from syncscope.compare.fingerprints import (
    ExpressionKey,
    FingerprintCount,
    PhaseKey,
    count_by_phase,
    expression_key_of,
    same_place,
)
from syncscope.compare.prediction import Prediction, judge
from syncscope.schema.findings import Finding
from syncscope.schema.report import Report, TraceInfo

SCHEMA_VERSION = 1

FORMS: dict[Literal["text"], Callable[[Diff], str]] = {}
"""How a comparison is shown; ``syncscope.report.forms`` enters the renderer."""

Kind = Literal["new", "fixed", "more", "fewer", "unclear"]


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """A finding that occurs more or less often a step than before."""

    kind: Kind
    """``unclear``: only one of the reports has it, and the other could not check its rule."""
    finding: Finding
    """The later report's, or the earlier one's where the later has none. The heaviest of several with one fingerprint.
    """
    before: float | None
    after: float | None
    """Occurrences a step, 0 for none; ``None`` where there are no steps or the rule was not checked. Where the run was
    counted for both reports, they are those of the finding's phase over the run."""
    lines: tuple[int, ...] = ()
    """The lines of all equal expressions of the function, where any of them may be the new one."""


class StepTime(msgspec.Struct, frozen=True, kw_only=True):
    """The mean step of the slowest trace, in ms; of those of training, where both have any. Both times are measured the
    same way."""

    before: float
    after: float
    measured: Literal["bare", "profiled"]
    """Without a profiler, or under it."""


class Diff(msgspec.Struct, frozen=True, kw_only=True):
    """The changes from an earlier report to a later one. The structure is the JSON output."""

    schema_version: int = SCHEMA_VERSION
    before: tuple[str, ...]
    after: tuple[str, ...]
    """Paths of the traces."""
    changes: tuple[Change, ...]
    """Findings of the later report in its order, then those that only the earlier one has, in its order."""
    same: int
    """Fingerprints that occur as often as before."""
    step: StepTime | None
    """``None`` where no figure was measured in both."""
    not_compared: tuple[str, ...]
    """Rules that one of the reports, or both, could not check."""
    predicted: Prediction | None = None
    """Whether the step changed as the earlier report said; ``None`` where nothing that it priced went."""

    def to_json(self, *, indent: int = 2) -> str:
        """The JSON output."""
        return msgspec.json.format(msgspec.json.encode(self), indent=indent).decode()

    def __repr__(self) -> str:
        """One line; ``print`` shows what ``syncscope diff`` prints."""
        return f"<syncscope.Diff: changes: {len(self.changes)}, the same: {self.same}>"

    def __str__(self) -> str:
        return FORMS["text"](self) if FORMS else repr(self)

    def of(self, *kinds: Kind) -> tuple[Change, ...]:
        return tuple(change for change in self.changes if change.kind in kinds)


def diff(before: Report, after: Report) -> Diff:
    """Compare by fingerprint and count a step: phase by phase and over the run where both were counted, else in the
    recorded steps. A pure function of the two reports, as they would be saved."""
    before, after = before.without_numbers(), after.without_numbers()
    over_run = all(any("counts" in info.has for info in report.traces) for report in (before, after))
    new = count_by_phase(after.findings, over_run)
    old = _renamed(count_by_phase(before.findings, over_run), new)
    unchecked = _unchecked_rules(before), _unchecked_rules(after)
    changes, same = [], 0
    for key in dict.fromkeys((*new, *old)):
        change = _change(old.get(key), new.get(key), unchecked)
        if change is None:
            same += 1
        else:
            changes.append(change)
    changes = list(_with_candidate_lines(changes, old.values(), new.values()))
    step = _step(before.traces, after.traces)
    gone = [change.finding for change in changes if change.kind == "fixed" and _in_step(change.finding, before.traces)]
    others = sum(change.kind in ("new", "more", "fewer") for change in changes)
    return Diff(
        before=tuple(info.path for info in before.traces),
        after=tuple(info.path for info in after.traces),
        changes=tuple(changes),
        same=same,
        step=step,
        not_compared=tuple(sorted(unchecked[0] | unchecked[1])),
        predicted=judge(gone, before, (step.before, step.after) if step else None, others, _compute(before, after)),
    )


def _renamed(
    old: Mapping[PhaseKey, FingerprintCount], new: Mapping[PhaseKey, FingerprintCount]
) -> dict[PhaseKey, FingerprintCount]:
    """What was there before, under the fingerprints of what is there now: the rule of a wait may have become known, or
    unknown."""
    gone = {key: counts for key, counts in old.items() if key not in new}
    names: dict[PhaseKey, PhaseKey] = {}
    for key, counts in new.items():
        if key in old:
            continue
        expression = expression_key_of(counts.first)
        for other, earlier in gone.items():
            if other[1] == key[1] and same_place(expression, [expression_key_of(earlier.first)]):
                names[other] = key
                del gone[other]
                break
    return {names.get(key, key): counts for key, counts in old.items()}


def _change(
    old: FingerprintCount | None, new: FingerprintCount | None, unchecked: tuple[frozenset[str], frozenset[str]]
) -> Change | None:
    """The change of one fingerprint, ``None`` for no change. ``unchecked`` are the rules that could not be checked,
    before and after."""
    latest = new or old
    assert latest is not None
    finding = latest.first
    before = old.per_step if old else None if finding.rule in unchecked[0] else 0.0
    after = new.per_step if new else None if finding.rule in unchecked[1] else 0.0
    kind: Kind
    if old and new:
        timing = finding.site is None and finding.op is None  # idle time has no place: its pieces vary
        if old.frequency is None or new.frequency is None or before is None or after is None or timing:
            return None
        if new.frequency.low <= old.frequency.high and old.frequency.low <= new.frequency.high:
            return None
        kind = "more" if after > before else "fewer"
    elif (after if old else before) is None:
        kind = "unclear"
    elif latest.per_step == 0:  # never inside the steps
        return None
    else:
        kind = "new" if new else "fixed"
    return Change(kind=kind, finding=finding, before=before, after=after)


def _with_candidate_lines(
    changes: Iterable[Change], old: Iterable[FingerprintCount], new: Iterable[FingerprintCount]
) -> Iterator[Change]:
    """Add the lines of all equal expressions to a change that is new or more, where some of them were there before."""
    known = {expression_key_of(occurrences.first) for occurrences in old}
    lines: dict[ExpressionKey, set[int]] = defaultdict(set)
    for occurrences in new:
        for finding in occurrences.findings:
            if finding.site is not None and finding.site.line is not None:
                lines[expression_key_of(finding)].add(finding.site.line)
    for change in changes:
        key = expression_key_of(change.finding)
        ambiguous = change.kind in ("new", "more") and key in known and len(lines[key]) > 1
        yield msgspec.structs.replace(change, lines=tuple(sorted(lines[key]))) if ambiguous else change


def _unchecked_rules(report: Report) -> frozenset[str]:
    return frozenset(entry.rule for entry in report.not_checked if not entry.partial)


def _step(before: Sequence[TraceInfo], after: Sequence[TraceInfo]) -> StepTime | None:
    """The steps that both reports measured in the same way: those of training, where both have any."""
    training = [[info for info in infos if info.in_training] for infos in (before, after)]
    if all(training):
        before, after = training
    for measured in ("bare", "profiled"):
        known = [[getattr(info.steps, f"{measured}_ms") for info in infos] for infos in (before, after)]
        if all(None not in each for each in known):
            return StepTime(before=max(known[0]), after=max(known[1]), measured=measured)
    return None


def slowest(traces: Sequence[TraceInfo]) -> TraceInfo | None:
    """The trace with the longest step, of those of training where there are any; ``None`` where there is no trace."""
    training = [info for info in traces if info.in_training] or list(traces)
    return max(training, key=lambda info: info.steps.bare_ms or info.steps.profiled_ms or 0.0, default=None)


def _compute(before: Report, after: Report) -> tuple[float, float] | None:
    """How long the device computes a recorded step, in ms, before and after."""
    overlaps = [info.overlap if (info := slowest(report.traces)) else None for report in (before, after)]
    known = [overlap.compute_ms for overlap in overlaps if overlap is not None]
    return (known[0], known[1]) if len(known) == 2 else None


def _in_step(finding: Finding, traces: Sequence[TraceInfo]) -> bool:
    """Whether a finding is about the steps that are compared: those of training, where the report has any."""
    return traces[finding.trace].in_training or not any(info.in_training for info in traces)
