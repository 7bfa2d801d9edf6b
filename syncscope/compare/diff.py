"""What became of the findings between two reports, and of the step."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

import msgspec

from syncscope.compare.tally import Family, Tally, family_of, tallied
from syncscope.schema.findings import Finding
from syncscope.schema.report import Report, TraceInfo

SCHEMA_VERSION = 1

Kind = Literal["new", "fixed", "more", "fewer", "unclear"]


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """A finding that occurs more or less often a step than before."""

    kind: Kind
    """``unclear``: in only one of the reports, and the other could not check its rule."""
    finding: Finding
    """As it is after, or was before where it is gone; of several with one fingerprint the heaviest."""
    before: float | None
    after: float | None
    """Occurrences a step, 0 where it is not there; ``None`` where there are no steps or the rule was not checked."""
    lines: tuple[int, ...] = ()
    """Of a new one among equal expressions of its function all their lines: any of them may be the new one."""


class StepTime(msgspec.Struct, frozen=True, kw_only=True):
    """The mean step, of several traces the slowest one's, in ms; both times measured the same way."""

    before: float
    after: float
    measured: Literal["bare", "profiled"]
    """Without a profiler, or under it."""


class Diff(msgspec.Struct, frozen=True, kw_only=True):
    """A later report against an earlier one. The structure is the JSON output, as that of a report is."""

    schema_version: int = SCHEMA_VERSION
    before: tuple[str, ...]
    after: tuple[str, ...]
    """Paths of the traces."""
    changes: tuple[Change, ...]
    """What is there after in the order of that report, then what is gone in the order of the other."""
    same: int
    """Fingerprints that occur as often as before."""
    step: StepTime | None
    """``None`` where the two have no figure in common."""
    not_compared: tuple[str, ...]
    """Rules that one of the reports, or both, could not check."""

    def to_json(self, *, indent: int = 2) -> str:
        """The JSON output."""
        return msgspec.json.format(msgspec.json.encode(self), indent=indent).decode()

    def of(self, *kinds: Kind) -> tuple[Change, ...]:
        return tuple(change for change in self.changes if change.kind in kinds)


def diff(before: Report, after: Report) -> Diff:
    """Compare by fingerprint and count a step: a pure function of the two reports, as they would be saved."""
    before, after = before.without_numbers(), after.without_numbers()
    old, new = tallied(before.findings), tallied(after.findings)
    blind = _unseen(before), _unseen(after)
    changes, same = [], 0
    for key in dict.fromkeys((*new, *old)):
        change = _change(old.get(key), new.get(key), blind)
        if change is None:
            same += 1
        else:
            changes.append(change)
    told = _with_candidates(changes, old.values(), new.values())
    return Diff(
        before=tuple(info.path for info in before.traces),
        after=tuple(info.path for info in after.traces),
        changes=tuple(told),
        same=same,
        step=_step(before.traces, after.traces),
        not_compared=tuple(sorted(blind[0] | blind[1])),
    )


def _change(had: Tally | None, has: Tally | None, blind: tuple[frozenset[str], frozenset[str]]) -> Change | None:
    """What became of one fingerprint, ``None`` where nothing did; ``blind`` are the rules that could not be checked
    before and after."""
    tally = has or had
    assert tally is not None
    rule = tally.first.rule
    before = had.per_step if had else None if rule in blind[0] else 0.0
    after = has.per_step if has else None if rule in blind[1] else 0.0
    kind: Kind
    if had and has:
        timing = tally.first.site is None and tally.first.op is None  # idle time has no place: its pieces vary
        if before is None or after is None or before == after or timing:
            return None
        kind = "more" if after > before else "fewer"
    elif (after if had else before) is None:
        kind = "unclear"
    elif tally.per_step == 0:  # never inside the steps
        return None
    else:
        kind = "new" if has else "fixed"
    return Change(kind=kind, finding=tally.first, before=before, after=after)


def _with_candidates(changes: Iterable[Change], old: Iterable[Tally], new: Iterable[Tally]) -> Iterator[Change]:
    """Name the lines of a whole family where it was there before and something of it is new or more."""
    known = {family_of(tally.first) for tally in old}
    lines: dict[Family, set[int]] = defaultdict(set)
    for tally in new:
        for finding in tally.findings:
            if finding.site is not None and finding.site.line is not None:
                lines[family_of(finding)].add(finding.site.line)
    for change in changes:
        family = family_of(change.finding)
        ambiguous = change.kind in ("new", "more") and family in known and len(lines[family]) > 1
        yield msgspec.structs.replace(change, lines=tuple(sorted(lines[family]))) if ambiguous else change


def _unseen(report: Report) -> frozenset[str]:
    return frozenset(entry.rule for entry in report.not_checked if not entry.partial)


def _step(before: Sequence[TraceInfo], after: Sequence[TraceInfo]) -> StepTime | None:
    for measured in ("bare", "profiled"):
        known = [[getattr(info.steps, f"{measured}_ms") for info in infos] for infos in (before, after)]
        if all(None not in each for each in known):
            return StepTime(before=max(known[0]), after=max(known[1]), measured=measured)
    return None
