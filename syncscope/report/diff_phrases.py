"""What several outputs say of a comparison of two reports."""

from __future__ import annotations

from syncscope.compare.diff import Change, Diff, Kind
from syncscope.compare.fingerprints import format_count
from syncscope.report.numbers import milliseconds


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
    """How often a step: ``0 → 1 ×``."""
    before, after = ("?" if count is None else format_count(count) for count in (change.before, change.after))
    return f"{before} → {after} × a step"


def describe_candidates(change: Change) -> str:
    """The lines of which any may be the new one, ``""`` where there is only one."""
    return f"any of the lines {', '.join(map(str, change.lines))} may be the new one" if change.lines else ""


def describe_step(diff: Diff) -> str:
    """``14.5 ms → 14.2 ms (-2.1 %), bare``, or that it is not known."""
    step = diff.step
    if step is None:
        return "not measured in the same way in both"
    share = f" ({100 * (step.after - step.before) / step.before:+.1f} %)" if step.before else ""
    how = "without a profiler" if step.measured == "bare" else "under the profiler"
    return f"{milliseconds(step.before)} → {milliseconds(step.after)}{share}, {how}"
