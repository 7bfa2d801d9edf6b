"""The HTML report, a function of the JSON report and of the lanes: what the page's scripts read."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath
from typing import Any

import msgspec

from syncscope.advice import Example
from syncscope.report.conclusion import conclude
from syncscope.report.figures.colours import on_page
from syncscope.report.figures.savings import describe_savings, draw_savings, find_savings
from syncscope.report.figures.step import draw_step
from syncscope.report.first_change import Change
from syncscope.report.html_cards import CardView, view_cards
from syncscope.report.html_file import assemble
from syncscope.report.html_page import RuleDoc, View, document_rules, make_views, split_step
from syncscope.report.html_run import Runs, make_runs
from syncscope.report.impact import Impact, describe_impact
from syncscope.report.known_causes import list_fixes
from syncscope.report.missing_lines import explain_missing_lines
from syncscope.report.no_change import KERNELS, name_whole
from syncscope.report.notable import reduced
from syncscope.report.picture.lanes import Lanes
from syncscope.report.trace_phrases import was_shared
from syncscope.report.worth_phrases import describe_causes, find_step_ms
from syncscope.rules import BY_CODE
from syncscope.schema.findings import Finding
from syncscope.schema.report import Report, TraceInfo

SCRIPTS = (
    "dom.js", "address.js", "figure.js", "parts.js", "overview.js", "run.js", "ranks.js", "limits.js", "sketch.js",
    "facts.js", "card.js", "findings.js", "unpack.js", "picture.js", "paint.js", "minimap.js", "inspector.js",
    "input.js", "totals.js", "kernels.js", "lanes.js", "timeline.js", "hta.js", "main.js",
)  # fmt: skip
MOST_TRACES = 128
"""Traces on the page; the JSON report has all."""


class Saving(msgspec.Struct, frozen=True, kw_only=True):
    """What each change makes of a trace's step."""

    figure: dict[str, Any]
    lead: str
    words: str
    """The same for those who do not see it."""


class _Page(msgspec.Struct, frozen=True, kw_only=True):
    left_out: int
    """Traces of the report that the page does not show."""
    views: tuple[View, ...]
    rules: tuple[RuleDoc, ...]
    fixes: tuple[tuple[tuple[str, str], ...], ...]
    """What to do about each finding, each with the cause of idle time that it is for."""
    examples: tuple[Example | None, ...]
    """What to write instead, of each finding."""
    conclusion: tuple[tuple[str, str], ...]
    """The lines at the top, each with its label."""
    change: Change | None
    """The change to make first, which is the second of these lines."""
    first: str | None
    """Its card."""
    begin: int
    """The trace that is shown at first: the one that these lines are about."""
    to_card: str
    """What the way to that is called: of a card whose fix is for another cause, that all of them are there."""
    kernels: bool
    """Whether that line is about kernels, and a timeline has their totals."""
    cards: tuple[CardView, ...]
    impacts: tuple[Impact, ...]
    """What fixing each finding means."""
    steps: tuple[float | None, ...]
    """The length of the step that savings of each trace are shares of, in ms."""
    without_lines: str | None
    """How to record lines, where they are missing."""
    causes: tuple[str | None, ...]
    """What each cause of idle time is worth, of each finding that is about idle time."""
    runs: Runs
    splits: tuple[dict[str, Any] | None, ...]
    """For each trace where a step goes, for plotly, in names of colours as those of ``RunView.figure``."""
    savings: tuple[Saving | None, ...]
    """For each trace what its changes save, where one saves something that can be told."""


class _Data(msgspec.Struct, frozen=True, kw_only=True):
    """All that the page's scripts read."""

    report: Report
    page: _Page
    lanes: tuple[Lanes, ...]


def render(report: Report, lanes: Sequence[Lanes] = ()) -> str:
    """The page. ``lanes`` are found by the path of their trace; a trace without lanes has no timeline.

    Write it as UTF-8 with ``\\n`` line ends.
    """
    whole, report = report, reduced(report, MOST_TRACES)
    shown = {info.path for info in report.traces}
    lanes = [one for one in lanes if one.path in shown]
    concluded = conclude(whole)
    cards = view_cards(report, lanes, concluded.finding)
    first = _find_card(concluded.finding, report, cards)
    page = _Page(
        left_out=len(whole.traces) - len(report.traces),
        views=make_views(report, lanes),
        rules=document_rules(report),
        fixes=tuple(tuple(list_fixes(finding, report.traces[finding.trace])) for finding in report.findings),
        examples=tuple(_example(finding) for finding in report.findings),
        conclusion=concluded.lines,
        change=concluded.first,
        first=None if first is None else first.id,
        begin=_find_trace(whole.traces[concluded.trace].path if whole.traces else "", report),
        to_card=_name_card(first, concluded.finding, report),
        kernels=concluded.without.startswith(KERNELS) and bool(lanes),
        cards=cards,
        impacts=tuple(describe_impact(finding, report.traces[finding.trace]) for finding in report.findings),
        steps=tuple(find_step_ms(info) for info in report.traces),
        without_lines=explain_missing_lines(report.findings, report),
        causes=tuple(next(iter(describe_causes(finding, report)), None) for finding in report.findings),
        runs=make_runs(report),
        splits=tuple(_split(info) for info in report.traces),
        savings=tuple(_savings(report, number, concluded.finding) for number in range(len(report.traces))),
    )
    data = _Data(report=_shown(report), page=page, lanes=tuple(lanes))
    return assemble("page.html", _title(whole), data, SCRIPTS)


def _find_trace(path: str, report: Report) -> int:
    """The trace of this path, which the page may leave out: then the first."""
    return next((number for number, info in enumerate(report.traces) if info.path == path), 0)


def _split(info: TraceInfo) -> dict[str, Any] | None:
    parts = split_step(info.overlap, was_shared(info))
    return draw_step(parts, on_page, legend=False) if parts else None


def _savings(report: Report, trace: int, first: Finding | None) -> Saving | None:
    rows, step = find_savings(report, trace, first), find_step_ms(report.traces[trace])
    if not rows or not step:
        return None
    whole = "step" if name_whole(report.traces[trace]) == "step" else "trace"
    which = "recorded step" if whole == "step" and report.traces[trace].run is not None else whole
    bounds = {row.is_bound for row in rows}
    saves = "saves at most" if bounds == {True} else "saves, or may save at most" if True in bounds else "saves"
    lead = (
        f"The {which} without the profiler: as it is, and with each change. Hatched: the time that the change {saves}."
    )
    if any(row.low_ms is not None for row in rows):
        lead += f" Thin line: where the {whole} is expected to end."
    figure = draw_savings(rows, step, on_page, first=f"the {whole} as it is")
    return Saving(figure=figure, lead=lead, words=describe_savings(rows, step))


def _find_card(finding: Finding | None, report: Report, cards: Sequence[CardView]) -> CardView | None:
    """The card that shows a finding: of several phases that of its own. None says of its loader what the replay was
    asked beside all findings."""
    told = {cause for one in report.findings for cause in one.causes}
    if finding is None or not told.issuperset(finding.causes):
        return None
    shown = [(card, report.findings[number]) for card in cards for group in card.groups for number in group]
    same = [(card, one) for card, one in shown if one.fingerprint == finding.fingerprint]
    own = (card for card, one in same if (one.trace, one.phase) == (finding.trace, finding.phase))
    return next(own, same[0][0] if same else None)


def _name_card(card: CardView | None, finding: Finding | None, report: Report) -> str:
    lead = report.findings[card.groups[0][0]] if card is not None else None
    of_another = finding is not None and lead is not None and bool(finding.causes) and lead.fix != finding.fix
    return "See the card of all causes" if of_another else "See its card"


def _example(finding: Finding) -> Example | None:
    rule = BY_CODE.get(finding.rule)
    expression = finding.site.expression if finding.site is not None else None
    return rule.example(finding.fix, expression) if rule is not None else None


def _shown(report: Report) -> Report:
    """The report without the large parts that the page does not show."""
    traces = (
        msgspec.structs.replace(
            info, meetings=None, each_step=None, files=None,
            run=None if info.run is None else msgspec.structs.replace(info.run, stretches=()),
        )
        for info in report.traces
    )  # fmt: skip
    return msgspec.structs.replace(report, traces=tuple(traces)).without_numbers()


def _title(report: Report) -> str:
    names = [PurePath(info.path).name for info in report.traces]
    more = f" and {len(names) - 1} more" if len(names) > 1 else ""
    return f"{names[0] if names else 'no trace'}{more} · syncscope"
