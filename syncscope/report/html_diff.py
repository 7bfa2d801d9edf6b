"""The page of a comparison: the steps before and after side by side, one timeline under the other, and what changed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath
from typing import Any

import msgspec

from syncscope.compare.diff import Change, Diff, slowest
from syncscope.report.diff_phrases import (
    describe_candidates,
    describe_doubts,
    describe_prediction,
    describe_step,
    format_counts,
    summarize_diff,
)
from syncscope.report.figures.colours import on_page
from syncscope.report.figures.savings import Row, draw_savings
from syncscope.report.figures.step import draw_step
from syncscope.report.figures.timeline import LABELS, draw_timeline, find_kinds, find_window
from syncscope.report.first_change import describe_place
from syncscope.report.html_file import assemble
from syncscope.report.html_page import Part, make_figures, split_step
from syncscope.report.impact import describe_impact
from syncscope.report.numbers import between, milliseconds, percent
from syncscope.report.picture.lanes import Lanes
from syncscope.report.picture.of_trace import find_picture
from syncscope.report.trace_phrases import was_shared
from syncscope.schema.report import Report, TraceInfo

SCRIPTS = ("dom.js", "figure.js", "parts.js", "diff.js")
MOST_CHANGES = 200
"""Changes on the page; the JSON output has all."""
ORDER = ("new", "more", "unclear", "fewer", "fixed")
"""What is worse comes first."""


class Side(msgspec.Struct, frozen=True, kw_only=True):
    """What is compared, before or after."""

    name: str
    path: str
    device: str | None
    parts: tuple[Part, ...]
    split: dict[str, Any] | None
    timeline: dict[str, Any] | None
    window: str | None
    """Which steps the timeline shows."""


class Amount(msgspec.Struct, frozen=True, kw_only=True):
    """One figure of the step, on both sides."""

    label: str
    before: str
    after: str
    change: str
    better: bool | None
    """``None`` where it is much the same, or not known."""


class Shown(msgspec.Struct, frozen=True, kw_only=True):
    """One change."""

    kind: str
    rule: str
    name: str
    place: str
    expression: str | None
    function: str | None
    counts: str
    said: tuple[str, ...]
    """What it saved, or what to do."""


class _Data(msgspec.Struct, frozen=True, kw_only=True):
    lines: tuple[tuple[str, str], ...]
    doubts: tuple[str, ...]
    outcome: str | None
    saving: dict[str, Any] | None
    saving_words: str
    sides: tuple[Side, Side]
    amounts: tuple[Amount, ...]
    kinds: tuple[tuple[str, str], ...]
    """What the timelines show: the colour of each kind of bar, and its name."""
    changes: tuple[Shown, ...]
    left_out: int
    not_compared: tuple[str, ...]


def render(diff: Diff, before: Report, after: Report, lanes: tuple[Sequence[Lanes], Sequence[Lanes]] = ((), ())) -> str:
    """The page. ``lanes`` are those of the reports; a trace without has no timeline."""
    infos = tuple(slowest(report.traces) for report in (before, after))
    drawn = [_find_lanes(info, some) for info, some in zip(infos, lanes, strict=True)]
    steps = [split_step(info.overlap, was_shared(info)) if info else () for info in infos]
    longest = max((sum(part.ms for part in parts) for parts in steps), default=0.0)
    until = max((_window_ms(one) for one in drawn if one), default=0.0)
    sides = [
        _side(name, report, info, parts, one, longest, until)
        for name, report, info, parts, one in zip(
            ("Before", "After"), (before, after), infos, steps, drawn, strict=True
        )
    ]
    ordered = [change for kind in ORDER for change in diff.of(kind)]  # type: ignore[arg-type]
    data = _Data(
        lines=_lines(diff),
        doubts=tuple(describe_doubts(diff)),
        outcome=diff.predicted.outcome if diff.predicted else None,
        saving=_draw_saving(diff),
        saving_words=describe_prediction(diff) or "",
        sides=(sides[0], sides[1]),
        amounts=_compare(*infos),
        kinds=tuple((kind, LABELS[kind]) for kind in _kinds(drawn)),
        changes=tuple(_show(change, before, after) for change in ordered[:MOST_CHANGES]),
        left_out=max(0, len(ordered) - MOST_CHANGES),
        not_compared=diff.not_compared,
    )
    return assemble("diff.html", f"{_names(diff.before)} → {_names(diff.after)} · syncscope", data, SCRIPTS)


def _names(paths: Sequence[str]) -> str:
    return "/".join(PurePath(paths[0]).parts[-2:]) if paths else "no trace"


def _lines(diff: Diff) -> tuple[tuple[str, str], ...]:
    """What to know first."""
    said = describe_prediction(diff)
    fixed = (("fixed", said),) if said else ()
    return ("step", describe_step(diff)), *fixed, ("findings", summarize_diff(diff))


def _draw_saving(diff: Diff) -> dict[str, Any] | None:
    """The step before, as it was predicted to become, and as it is."""
    said, step = diff.predicted, diff.step
    if said is None or step is None:
        return None
    likely = said.saving_ms if said.saving_ms is not None else (said.low_ms + said.high_ms) / 2
    left = max(0.0, step.before - likely)
    span = between(max(0.0, step.before - said.high_ms), max(0.0, step.before - said.low_ms))
    rows = (
        Row(name="predicted", left_ms=left, saved_ms=step.before - left, low_ms=said.low_ms, high_ms=said.high_ms,
            said=span, fingerprint=None),
        Row(name="measured", left_ms=step.after, saved_ms=max(0.0, step.before - step.after), low_ms=None,
            high_ms=None, said=milliseconds(step.after), fingerprint=None),
    )  # fmt: skip
    return draw_savings(rows, step.before, on_page, first="the step before")


def _find_lanes(info: TraceInfo | None, lanes: Sequence[Lanes]) -> Lanes | None:
    drawn = [one for one in lanes if one.lanes]
    picture = None if info is None else find_picture(info, drawn)
    return None if picture is None else drawn[picture]


def _window_ms(lanes: Lanes) -> float:
    _, begin, end = find_window(lanes)
    return (end - begin) / 1e6


def _kinds(drawn: Sequence[Lanes | None]) -> list[str]:
    used = {kind for lanes in drawn if lanes for kind in find_kinds(lanes)}
    return [kind for kind in LABELS if kind in used]


def _side(
    name: str,
    report: Report,
    info: TraceInfo | None,
    parts: tuple[Part, ...],
    lanes: Lanes | None,
    longest: float,
    until_ms: float,
) -> Side:
    more = f" and {len(report.traces) - 1} more" if len(report.traces) > 1 else ""
    return Side(
        name=name,
        path=(info.path if info else "no trace") + more,
        device=" · ".join(filter(None, (info.device, info.torch and f"torch {info.torch}"))) if info else None,
        parts=parts,
        split=draw_step(parts, on_page, legend=False, until_ms=longest) if parts else None,
        timeline=draw_timeline(lanes, on_page, legend=False, until_ms=until_ms) if lanes else None,
        window=find_window(lanes)[0] if lanes else None,
    )


def _compare(before: TraceInfo | None, after: TraceInfo | None) -> tuple[Amount, ...]:
    """The figures of the step on both sides, those that either has."""
    tables = [_figures(info) if info else {} for info in (before, after)]
    return tuple(_amount(label, *(table.get(label) for table in tables)) for label in {**tables[0], **tables[1]})


def _figures(info: TraceInfo) -> dict[str, float | None]:
    blocked = info.each_step.blocked_ms if info.each_step else None
    figures = make_figures(info, sum(blocked) / len(blocked) if blocked else None)
    bare = {"Step without the profiler": info.steps.bare_ms} if info.steps.count else {}
    return {**bare, **{figure.label: figure.ms for figure in figures}}


def _amount(label: str, before: float | None, after: float | None) -> Amount:
    if before is None or after is None:
        told = ["–" if ms is None else milliseconds(ms) for ms in (before, after)]
        return Amount(label=label, before=told[0], after=told[1], change="–", better=None)
    change = after - before
    sign = "−" if change < 0 else "+"
    part = percent(abs(change), before)
    share = f", {sign if part[:1].isdigit() else ''}{part}" if before else ""
    same = abs(change) < 0.01 * before or change == 0
    return Amount(
        label=label,
        before=milliseconds(before),
        after=milliseconds(after),
        change="the same" if change == 0 else f"{sign}{milliseconds(abs(change))}{share}",
        better=None if same or label == "Device busy" else change < 0,
    )


def _show(change: Change, before: Report, after: Report) -> Shown:
    finding = change.finding
    earlier = change.kind == "fixed" or (change.kind == "unclear" and change.after is None)
    report = before if earlier else after
    said = [describe_candidates(change)]
    if change.kind == "fixed":
        impact = describe_impact(finding, report.traces[finding.trace])
        said.append(f"predicted: {impact.words}" + (f", {impact.amount}" if impact.amount else ""))
    if finding.status == "expected":
        said.append(f"expected: {finding.reason or ''}")
    if change.kind in ("new", "more"):
        said.append(f"fix: {finding.fix}")
    site = finding.site
    return Shown(
        kind=change.kind,
        rule=finding.rule,
        name=finding.name,
        place=describe_place(finding),
        expression=site.expression if site else None,
        function=site.function if site else None,
        counts=format_counts(change),
        said=tuple(filter(None, said)),
    )
