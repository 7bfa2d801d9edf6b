"""Whether the findings that went brought what was predicted of them: the saving in the earlier report against the
change of the step."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

import msgspec

from syncscope.schema.findings import Finding, gain
from syncscope.schema.report import Report

DRIFT = 0.01
"""Share of the step by which the same program differs from one time it is measured to the next."""

Outcome = Literal["as predicted", "less", "more", "not measured"]


class Prediction(msgspec.Struct, frozen=True, kw_only=True):
    """What the earlier report said that the findings which went would save, and by how much the step got shorter."""

    saving_ms: float | None
    """Milliseconds a step; ``None`` where only the bounds are known."""
    low_ms: float
    high_ms: float
    came_ms: float | None
    """By how much the step is shorter; negative where it is longer; ``None`` where it was not measured in the same way
    in both."""
    outcome: Outcome
    """``as predicted``: within the bounds, or beside them by no more than 1 % of the step."""
    fingerprints: tuple[str, ...]
    """Of the findings that went and whose saving was predicted."""
    unpredicted: int = 0
    """Findings that went and of whose saving nothing was known."""
    other_changes: int = 0
    """Other findings that are new, or occur more or less often: the step changed by them, too."""
    compute_ms: tuple[float, float] | None = None
    """How long the device computes a recorded step, before and after: a fix that leaves the work as it is changes it
    little. ``None`` where it is not known of both."""


def judge(
    gone: Sequence[Finding],
    before: Report,
    step: tuple[float, float] | None,
    other_changes: int,
    compute_ms: tuple[float, float] | None = None,
) -> Prediction | None:
    """Hold what was predicted of the findings that are ``gone`` against the ``step`` before and after, in ms. ``None``
    where nothing was predicted of any."""
    own = [finding for finding in gone if not finding.sums_up] or list(gone)
    known = [finding for finding in _one_a_place(own) if _bounds(finding) is not None]
    if not known:
        return None
    saving, low, high = _together(known, before)
    came = step[0] - step[1] if step else None
    return Prediction(
        saving_ms=saving,
        low_ms=low,
        high_ms=high,
        came_ms=came,
        outcome=_outcome(low, high, came, step),
        fingerprints=tuple(finding.fingerprint for finding in known),
        unpredicted=len(
            {finding.fingerprint for finding in own if _bounds(finding) is None and not _covered(finding, known)}
        ),
        other_changes=other_changes,
        compute_ms=compute_ms,
    )


def _outcome(low: float, high: float, came: float | None, step: tuple[float, float] | None) -> Outcome:
    if came is None or step is None:
        return "not measured"
    slack = DRIFT * step[0]
    if came < low - slack:
        return "less"
    return "more" if came > high + slack else "as predicted"


def _bounds(finding: Finding) -> tuple[float, float] | None:
    low, high = finding.saving_low_ms_per_step, finding.saving_high_ms_per_step
    if low is None or high is None:
        saving = finding.saving_ms_per_step
        return None if saving is None else (saving, saving)
    return low, high


def _place(finding: Finding) -> object:
    site = finding.site
    return (site.file, site.function, site.line, site.expression) if site else finding.fingerprint


def _covered(finding: Finding, others: Sequence[Finding]) -> bool:
    return any(_place(finding) == _place(other) for other in others)


def _one_a_place(findings: Iterable[Finding]) -> list[Finding]:
    """Of the findings of several rules at one place, which one change mends, the one that gains most."""
    best: dict[object, Finding] = {}
    for finding in findings:
        known = best.get(_place(finding))
        if known is None or (gain(finding) or 0.0) > (gain(known) or 0.0):
            best[_place(finding)] = finding
    return list(best.values())


def _together(findings: Sequence[Finding], before: Report) -> tuple[float | None, float, float]:
    """The saving of several changes and its bounds: no less than the greatest alone, no more than all of them one after
    the other, nor than all changes of the report together."""
    bounds = [bound for finding in findings if (bound := _bounds(finding)) is not None]
    low, high = max(low for low, _ in bounds), sum(high for _, high in bounds)
    if len(findings) == 1:
        one = findings[0]
        likely = one.saving_ms_per_step if one.saving_ms_per_step is not None else one.likely_saving_ms_per_step
        return likely, low, high
    most, least = before.saving_all_high_ms_per_step, before.saving_all_low_ms_per_step
    if len(before.traces) > 1 or most is None:
        return None, low, high
    fingerprints = {finding.fingerprint for finding in findings}
    rest = [one for one in _one_a_place(f for f in before.findings if not f.sums_up) if _bounds(one) is not None]
    if least is not None and {one.fingerprint for one in rest} <= fingerprints:  # all that the report speaks of
        known = before.saving_all_ms_per_step
        known = known if known is not None else before.likely_saving_all_ms_per_step
        bounded = before.likely_saving_all_high_ms_per_step is not None
        return None if bounded else known, least, max(most, least)
    return None, min(low, most), min(high, most)
