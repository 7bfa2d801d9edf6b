"""What each change makes of the step: the step as it is, and a bar for each change with the part that it saves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from syncscope.report.cards import choose_findings, lead_with, make_cards
from syncscope.report.escape import plotly_text
from syncscope.report.figures.colours import Colour
from syncscope.report.first_change import LEADS, describe_place
from syncscope.report.impact import Gain, describe_impact, measure_all, measure_gain, measure_recorded_gain
from syncscope.report.numbers import milliseconds, percent
from syncscope.report.worth_phrases import LOW, find_step_ms
from syncscope.schema.findings import PACED, Finding
from syncscope.schema.idle import main_cause
from syncscope.schema.report import Report

MOST_ROWS = 8
"""Changes that have a bar; the findings below have all."""
LONGEST_NAME = 90
"""Signs of a name on the page, which cuts it where its row is narrower."""
ROW_HEIGHT, AXIS = 46, 34
"""Pixels."""
RARER = 0.5
"""Of the recorded frequency: what is that of the run at least where its saving in a recorded step is drawn."""
LEVELS = ("high", "medium")
"""Impacts of 1 % of the step and more: what is less cannot be told."""


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """The step with one change."""

    name: str
    left_ms: float
    saved_ms: float
    low_ms: float | None
    high_ms: float | None
    """Bounds of the saving, where they are known."""
    said: str
    fingerprint: str | None
    """Of the finding whose card says how; ``None`` for all changes together."""
    is_bound: bool = False
    """Whether ``saved_ms`` is only the most that it may be."""


def find_savings(report: Report, trace: int, first: Finding | None = None) -> tuple[Row, ...]:
    """The changes of one trace that save something that can be told, in the order of the cards and the greatest of
    many; then all together, where they are several and that is known. ``first`` is the one to begin with: where it is
    one cause of a finding alone, such as data loading, it has a bar before those of the findings."""
    info = report.traces[trace]
    step = find_step_ms(info)
    every = lead_with(first, make_cards(choose_findings(report)))
    cards = [card for card in every if any(f.trace == trace for f in card.findings)]
    rows = []
    for card in cards if step else ():
        lead = next(finding for finding in card.findings if finding.trace == trace)
        gain = measure_gain(lead, info)
        if gain is not None and gain.step_ms != step:  # it is of the run's step
            gain = None if _is_rarer_in_the_run(lead) else measure_recorded_gain(lead, info)
        if gain is None or describe_impact(lead, info).level not in LEVELS:
            continue
        rows.append(_row(_name(lead), gain, lead.fingerprint))
    alone = measure_recorded_gain(first, info) if first is not None and first.trace == trace else None
    if first is not None and step and alone is not None and first not in report.findings:
        rows.insert(0, _row(_name(first), alone, first.fingerprint))
    together = _together(report, step, len(rows)) if len(cards) > 1 else []
    greatest = sorted(range(len(rows)), key=lambda number: -rows[number].saved_ms)[:MOST_ROWS]
    return (*(rows[number] for number in sorted(greatest)), *together)


def _is_rarer_in_the_run(finding: Finding) -> bool:
    """Whether the recorded steps have it so much more often than those of the run that their saving misleads."""
    run, recorded = finding.run_per_step, finding.per_step
    return run is not None and recorded is not None and run < RARER * recorded


def _together(report: Report, step: float | None, alone: int) -> list[Row]:
    """A row of all changes together, where it says more than those of the changes that have one ``alone``."""
    whole = measure_all(report)
    if whole is None or not step or alone == 1 or (alone == 0 and whole.ms < LOW * step):
        return []
    return [_row("all of them together", whole, None)]


def _row(name: str, gain: Gain, fingerprint: str | None) -> Row:
    step = gain.step_ms or 0.0
    saved = min(max(gain.ms, 0.0), step)
    amount = f"{LEADS.get(gain.kind, '')}{milliseconds(step - saved)}, −{percent(saved, step)}"
    bound = f"at most −{percent(saved, step)}"
    return Row(
        name=name,
        left_ms=step - saved,
        saved_ms=saved,
        low_ms=gain.low,
        high_ms=gain.high,
        said=bound if gain.is_bound else amount,
        is_bound=gain.is_bound,
        fingerprint=fingerprint,
    )


def _name(finding: Finding) -> str:
    """``train.py:21  loss.item()``: first the line, which is what a reader looks for; ``train.py:21  host work`` and
    ``device-starved: host work`` for the cause of idle time that its fix is for; ``train.py:21  launch-bound``."""
    cause = (main_cause(finding) or finding.causes[0]).cause if finding.causes else None
    if finding.site is None and cause:
        return f"{finding.name}: {cause}"
    place = describe_place(finding)
    where = place.rpartition("/")[2] or place
    if cause or finding.rule == PACED:  # whose line may have a wait of its own, too
        return f"{where}  {cause or finding.name}" if finding.site else where
    expression = finding.site.expression if finding.site else None
    return f"{where}  {' '.join(expression.split())}" if expression else where


def describe_savings(rows: Sequence[Row], step_ms: float) -> str:
    """The figure in words: ``The step takes 15.2 ms; train.py:21: 4.23 ms, −72 %; …``."""
    return "; ".join([f"The step takes {milliseconds(step_ms)}", *(f"{row.name}: {row.said}" for row in rows)])


def draw_savings(
    rows: Sequence[Row], step_ms: float, colour: Colour, longest: int = LONGEST_NAME, first: str = "the step as it is"
) -> dict[str, Any]:
    """The bars, for plotly. Each row has its name, cut after ``longest`` signs, and what the step becomes above its
    bar. ``first`` is the name of the step without a change."""
    cut = [row.name if len(row.name) <= longest else f"{row.name[: longest - 1]}…" for row in rows]
    names = [first, *cut]
    said = [milliseconds(step_ms), *(row.said for row in rows)]
    lines = range(len(names))
    left = [step_ms, *(row.left_ms for row in rows)]
    hatch = {"shape": "/", "fgcolor": colour("bg"), "bgcolor": colour("good"), "size": 6, "solidity": 0.2}
    colours = [colour("phase-rest"), *[colour("compute")] * len(rows)]
    stays = {
        "type": "bar", "orientation": "h", "name": "what is left of the step", "x": left, "y": list(lines),
        "width": 0.42, "marker": {"color": colours, "line": {"width": 0}},
        "hovertemplate": "%{x:.3~g} ms<extra></extra>", "showlegend": False,
    }  # fmt: skip
    saved = {
        "type": "bar", "orientation": "h", "name": "saved", "base": left[1:], "x": [row.saved_ms for row in rows],
        "y": list(lines)[1:], "width": 0.42, "showlegend": False,
        "marker": {"color": colour("good"), "line": {"width": 0}, "pattern": hatch},
        "customdata": [plotly_text(row.said) for row in rows], "hovertemplate": "saved; %{customdata}<extra></extra>",
    }  # fmt: skip
    return {"data": [stays, saved, *_spans(rows, step_ms, colour)], "layout": _layout(names, said, max(left), colour)}


def _spans(rows: Sequence[Row], step_ms: float, colour: Colour) -> list[dict[str, Any]]:
    """The range in which the step would end, a line through the bar of each change that has one."""
    return [
        {
            "type": "scatter", "mode": "lines+markers", "y": [number, number], "showlegend": False,
            "x": [max(step_ms - row.high_ms, 0.0), max(step_ms - row.low_ms, 0.0)],
            "line": {"color": colour("text"), "width": 1.5},
            "marker": {"symbol": "line-ns", "size": 9, "line": {"color": colour("text"), "width": 1.5}},
            "hovertemplate": "between here: %{x:.3~g} ms<extra></extra>",
        }
        for number, row in enumerate(rows, 1)
        if row.low_ms is not None and row.high_ms is not None
    ]  # fmt: skip


def _layout(names: Sequence[str], said: Sequence[str], until_ms: float, colour: Colour) -> dict[str, Any]:
    def note(text: str, row: int, side: str) -> dict[str, Any]:
        amount = side == "right"
        return {
            "text": f"<b>{plotly_text(text)}</b>" if amount else plotly_text(text),
            "x": 1 if amount else 0, "y": row - 0.24, "xref": "paper", "yref": "y", "xanchor": side,
            "yanchor": "bottom", "showarrow": False,
            "font": {"size": 12.5, "color": colour("text")},
        }  # fmt: skip

    notes = [one for row in range(len(names)) for one in (note(names[row], row, "left"), note(said[row], row, "right"))]
    return {
        "barmode": "overlay", "height": ROW_HEIGHT * len(names) + AXIS, "dragmode": False, "hovermode": "closest",
        "margin": {"l": 0, "r": 0, "t": 0, "b": AXIS}, "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "annotations": notes, "font": {"size": 12, "color": colour("text")},
        "hoverlabel": {"bgcolor": colour("bg"), "bordercolor": colour("soft"), "font": {"color": colour("text")}},
        "xaxis": {"range": [0, until_ms], "fixedrange": True, "ticksuffix": " ms", "showgrid": False,
                  "zeroline": False, "nticks": 7, "ticklabeloverflow": "hide past div"},
        "yaxis": {"range": [len(names) - 0.65, -0.85], "visible": False, "fixedrange": True},
    }  # fmt: skip
