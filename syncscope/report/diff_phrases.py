"""What several outputs say of a comparison of two reports."""

from __future__ import annotations

from syncscope.compare.diff import Change, Diff, Kind
from syncscope.compare.fingerprints import format_count
from syncscope.compare.prediction import Prediction
from syncscope.report.numbers import between, count, milliseconds, percent, span
from syncscope.schema.findings import COUNTED, TRAINING, Finding

OTHER_WORK = 0.15
"""Share by which the device's compute differs where a comparison says so: more than clocks at the power limit do."""
LEAST = 5e-7
"""Milliseconds; less is shown as 0."""


def summarize_diff(diff: Diff) -> str:
    """What changed, in one line: ``1 new, 2 fixed, 17 the same``."""
    words: tuple[tuple[Kind, str], ...] = (
        ("new", "new"),
        ("more", "more often"),
        ("unclear", "unclear"),
        ("fewer", "less often"),
        ("fixed", "fixed"),
    )
    changes = [f"{number} {word}" for kind, word in words if (number := len(diff.of(kind)))]
    return ", ".join([*(changes or ["nothing changed"]), f"{diff.same} the same"])


def format_counts(change: Change) -> str:
    """How often a step: ``0 → 1 times a step``, ``0 → 3 times a step of evaluate``, ``0 → 32 times in each epoch end``;
    of idle time, whose pieces are no events of the program, how much."""
    idle = change.finding.idle_ms_per_step
    if idle is not None:
        return f"idle for {milliseconds(idle)} a step{' before' if change.kind == 'fixed' else ''}"
    before, after = ("?" if count is None else format_count(count) for count in (change.before, change.after))
    return f"{before} → {after} times {_each(change.finding)}"


def _each(finding: Finding) -> str:
    """What the number of times is of: a step, of another phase than training by its name, or a visit to a phase without
    steps."""
    phase = finding.phase
    if phase is None or phase.startswith(TRAINING):
        return "a step"
    if finding.site_source == COUNTED and finding.run_steps is None:
        return f"in {phase}" if phase == "start" else f"in each {phase}"
    return f"a step of {phase}"


def describe_candidates(change: Change) -> str:
    """The lines of which any may be the new one, ``""`` where there is only one."""
    return f"any of the lines {', '.join(map(str, change.lines))} may be the new one" if change.lines else ""


def describe_step(diff: Diff) -> str:
    """``14.5 → 14.2 ms (−2.1 %), without a profiler``, or that it is not known."""
    step = diff.step
    if step is None:
        return "not measured in the same way in both"
    share = f" ({_describe_share(step.after - step.before, step.before)})" if step.before else ""
    how = "without a profiler" if step.measured == "bare" else "under the profiler"
    return f"{span(milliseconds(step.before), ' → ', milliseconds(step.after))}{share}, {how}"


def _describe_share(change: float, before: float) -> str:
    """``−2.1 %``, ``under 1 % longer``, ``the same``."""
    if change == 0:
        return "the same"
    part = percent(abs(change), before)
    if not part[:1].isdigit():
        return f"{part} {'shorter' if change < 0 else 'longer'}"
    return f"{'−' if change < 0 else '+'}{part}"


def describe_prediction(diff: Diff) -> str | None:
    """``predicted to save 2.1 to 3 ms, saved 2.4 ms: as predicted``; ``None`` where nothing was predicted of the fixed
    findings."""
    said = diff.predicted
    if said is None:
        return None
    predicted = _predicted(said)
    if said.came_ms is None or diff.step is None:
        return f"{predicted}; the step was not measured in the same way in both"
    came = (
        f"saved {milliseconds(said.came_ms)}"
        if said.came_ms >= 0
        else f"the step is {milliseconds(-said.came_ms)} longer"
    )
    how = "" if diff.step.measured == "bare" else " under the profiler (the prediction is without it)"
    return f"{predicted}, {came}{how}: {_OUTCOMES[said.outcome]}"


def describe_doubts(diff: Diff) -> list[str]:
    """What else the step may have changed by, a sentence each."""
    said, out = diff.predicted, []
    if said is None:
        return []
    if said.unpredicted:
        out.append(f"Nothing was predicted of {count(said.unpredicted, 'other fixed finding')}.")
    if said.other_changes:
        were = "is" if said.other_changes == 1 else "are"
        out.append(f"{count(said.other_changes, 'other finding')} {were} new or changed, which changes the step, too.")
    if said.compute_ms and abs(said.compute_ms[1] - said.compute_ms[0]) > OTHER_WORK * said.compute_ms[0]:
        before, after = map(milliseconds, said.compute_ms)
        out.append(f"The device computes for {after} a step, not {before}: the programs may not do the same work.")
    return out


_OUTCOMES = {"as predicted": "as predicted", "less": "less than predicted", "more": "more than predicted"}
"""An outcome in a sentence, where the step was measured."""


def _predicted(said: Prediction) -> str:
    """``predicted to save 2.1 to 3 ms``: the fixed findings, as the earlier report said."""
    if said.high_ms < LEAST:
        return "predicted to save nothing"
    if said.high_ms - said.low_ms < LEAST:
        return f"predicted to save {milliseconds(said.high_ms)}"
    return f"predicted to save {between(said.low_ms, said.high_ms)}"
