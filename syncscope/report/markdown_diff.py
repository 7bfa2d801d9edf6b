"""What changed between two reports, as a comment on a pull request. What is worse is in sight, the rest is folded."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from syncscope.compare.diff import Change, Diff
from syncscope.report.diff_phrases import (
    describe_candidates,
    describe_doubts,
    describe_prediction,
    describe_step,
    format_counts,
    summarize_diff,
)
from syncscope.report.escape import code, markdown
from syncscope.report.finding_phrases import format_location, format_place

MOST_CHARACTERS = 20_000
"""The most characters of each table. GitHub takes comments of 65,536."""
LONGEST_NAME = 300


def render(diff: Diff) -> str:
    """The whole comment."""
    worse = (*diff.of("new"), *diff.of("more"), *diff.of("unclear"))
    better = (*diff.of("fixed"), *diff.of("fewer"))
    lines = [f"### syncscope: {markdown(summarize_diff(diff))}", "", f"Step: {markdown(describe_step(diff))}", ""]
    if said := describe_prediction(diff):
        lines += [markdown(" ".join([f"What went: {said}.", *describe_doubts(diff)])), ""]
    lines += _table(worse)
    folded = [*_table(better), *_fixes(worse)]
    if diff.not_compared:
        folded += [f"Not compared: {markdown(', '.join(diff.not_compared))} (not checked on both sides)", ""]
    if folded:
        lines += ["<details><summary>What is better, and what to do</summary>", "", *folded, "</details>", ""]
    return "\n".join(lines)


def _table(changes: Iterable[Change]) -> list[str]:
    cells = ((change.kind, _rule(change), _place(change), markdown(format_counts(change))) for change in changes)
    rows = [f"| {' | '.join(row)} |" for row in cells]
    return ["| | rule | line | how often |", "|---|---|---|---|", *_bounded(rows), ""] if rows else []


def _rule(change: Change) -> str:
    finding = change.finding
    rule = f"**{markdown(finding.rule)}** {markdown(finding.name)}"
    return f"{rule}<br>expected: {markdown(_cut(finding.reason or ''))}" if finding.status == "expected" else rule


def _place(change: Change) -> str:
    site = change.finding.site
    if site is None:
        unknown = markdown(_cut(format_place(change.finding)))
        return f"{unknown}, {code(_cut(change.finding.op))}" if change.finding.op else ""
    parts = [code(_cut(format_location(site)))]
    if site.expression:
        parts.append(code(_cut(site.expression)))
    if site.function:
        parts.append(f"in {code(_cut(site.function))}")
    if lines := describe_candidates(change):
        parts.append(markdown(lines))
    return "<br>".join(parts)


def _fixes(changes: Iterable[Change]) -> list[str]:
    """What to do, once for each rule and advice."""
    advice = {(c.finding.rule, c.finding.fix): None for c in changes if c.kind != "unclear"}
    rows = [f"- **{markdown(rule)}** {markdown(_cut(fix, 3 * LONGEST_NAME))}" for rule, fix in advice]
    return [*_bounded(rows), ""] if rows else []


def _bounded(rows: Iterable[str]) -> Iterator[str]:
    """The rows that fit, and how many do not."""
    left, dropped = MOST_CHARACTERS, 0
    for row in rows:
        left -= len(row)
        if left >= 0:
            yield row
        else:
            dropped += 1
    if dropped:
        yield f"\n… and {dropped} more"


def _cut(name: str, longest: int = LONGEST_NAME) -> str:
    return name if len(name) <= longest else f"{name[:longest]}…"
