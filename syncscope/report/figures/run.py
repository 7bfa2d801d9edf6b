"""The whole run as a plotly figure: waits a step over time, the phases below, and the recorded windows marked."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING

import msgspec

from syncscope.report.escape import plotly_text
from syncscope.report.figures.colours import Colour, in_light
from syncscope.report.numbers import count, seconds
from syncscope.schema.run import Run, Stretch

if TYPE_CHECKING:
    import plotly.graph_objects as go

PHASE_COLOURS = 5
BRIGHT = {"phase-2", "phase-3", "phase-5", "phase-rest"}
"""Colours on which dark letters are read."""
HEIGHT, LOW_HEIGHT = 236, 120
"""Pixels, with waits and without."""
LOGARITHMIC = 40
"""Waits a step are drawn on a logarithmic axis where the most is more than this many times the least."""
LEAST_COVERED = 0.01
"""Of the run: where less was counted, its waits have no room in the figure, and the table of the phases tells them."""
UNITS = ((3 * 3600, 3600, " h"), (300, 60, " min"), (0, 1, " s"))
"""From how many seconds on time is shown in which unit."""


class _Span(msgspec.Struct, frozen=True):
    """Stretches of one phase, one after the other."""

    phase: int
    start_s: float
    end_s: float
    steps: int
    waits: float | None

    @classmethod
    def joined(cls, stretches: Sequence[Stretch]) -> _Span:
        """What is said of several stretches together, whose times may be in any order where a recording is damaged."""
        counted = [one for one in stretches if one.waits_per_step is not None and one.steps]
        steps = sum(one.steps for one in counted)
        waits = sum((one.waits_per_step or 0.0) * one.steps for one in counted) / steps if steps else None
        every = sum(one.steps for one in stretches)
        start = min(one.start_s for one in stretches)
        end = max(start, *(one.start_s + one.seconds for one in stretches))
        return cls(stretches[0].phase, start, end, every, waits)


def name_colours(run: Run) -> list[str]:
    """The colour of each phase: the longest have their own, what comes before the first phase and the rest have one."""
    order = sorted(range(len(run.phases)), key=lambda number: -run.phases[number].share)
    own = [number for number in order if run.phases[number].kind != "start"][:PHASE_COLOURS]
    return [
        f"phase-{own.index(number) + 1}" if number in own else "phase-rest" for number in range(len(run.phases))
    ]  # fmt: skip


def draw_run(run: Run, colour: Colour = in_light) -> go.Figure:
    """The figure. ``colour`` gives what plotly takes for each name of a colour."""
    import plotly.graph_objects as go

    scale, unit = next((scale, unit) for least, scale, unit in UNITS if run.seconds >= least)
    known = [one for one in run.stretches if 0 <= one.phase < len(run.phases)]
    spans = [_Span.joined(list(group)) for _, group in groupby(known, key=lambda one: one.phase)]
    single = [_Span.joined([one]) for one in known]
    if not _shows_waits(single, run):
        single = []
    names = name_colours(run)
    traces: list[go.Bar | go.Scatter] = []
    for number, phase in enumerate(run.phases):
        look = {"name": plotly_text(phase.name), "marker_color": colour(names[number]), "marker_line_width": 0}
        mine, whole = ([one for one in some if one.phase == number] for some in (single, spans))
        waiting = [one for one in mine if one.waits is not None]
        if waiting:
            heights = [_round(one.waits or 0.0) for one in waiting]
            traces.append(go.Bar(**_bars(waiting, scale), y=heights, yaxis="y", **look))
        if whole:
            ink = colour("on-bright" if names[number] in BRIGHT else "on-colour")
            traces.append(
                go.Bar(
                    **_bars(whole, scale),
                    y=[1] * len(whole),
                    yaxis="y2",
                    **look,
                    text=[look["name"]] * len(whole),
                    textposition="inside",
                    textangle=0,
                    insidetextanchor="middle",
                    insidetextfont_color=ink,
                )
            )
    windows = _windows(run)
    if windows:
        traces.append(_marks(windows, run, scale, colour))
    figure = go.Figure(traces)
    figure.update_layout(_layout(run, single, scale, unit, colour))
    return figure


def _shows_waits(spans: Sequence[_Span], run: Run) -> bool:
    """Whether the counted stretches are enough of the run to be seen, and something waits in them."""
    counted = [one for one in spans if one.waits is not None]
    covered = sum(one.end_s - one.start_s for one in counted)
    return any(one.waits for one in counted) and covered >= LEAST_COVERED * run.seconds


def _bars(spans: Sequence[_Span], scale: float) -> dict[str, object]:
    """Where the bars of some stretches are, and what is said of each under the pointer."""
    return {
        "x": [_round((one.start_s + one.end_s) / 2 / scale) for one in spans],
        "width": [_round((one.end_s - one.start_s) / scale) for one in spans],
        "customdata": [[f"{seconds(one.start_s)} to {seconds(one.end_s)}", _said(one)] for one in spans],
        "hovertemplate": "%{fullData.name}<br>%{customdata[0]}<br>%{customdata[1]}<extra></extra>",
    }


def _said(span: _Span) -> str:
    steps = count(span.steps, "step") if span.steps else "no steps"
    return steps if span.waits is None else f"{steps}, {span.waits:.3g} waits a step"


def _windows(run: Run) -> list[_Span]:
    """The stretches in which windows were being recorded, joined where they follow each other."""
    groups = groupby(run.stretches, key=lambda one: (one.windows, one.phase))
    return [_Span.joined(list(group)) for (windows, phase), group in groups if windows and 0 <= phase < len(run.phases)]


def _marks(windows: Sequence[_Span], run: Run, scale: float, colour: Colour) -> go.Scatter:
    """A triangle below each recorded stretch: it is mostly too short to be seen itself."""
    import plotly.graph_objects as go

    said = [
        [plotly_text(run.phases[one.phase].name), f"{count(one.steps, 'step')} at {seconds(one.start_s)}"]
        for one in windows
    ]
    return go.Scatter(
        x=[_round((one.start_s + one.end_s) / 2 / scale) for one in windows], y=[-0.32] * len(windows), yaxis="y2",
        mode="markers", marker={"symbol": "triangle-up", "size": 11, "color": colour("text"), "line_width": 0},
        name="recorded", customdata=said, cliponaxis=False,
        hovertemplate="recorded in %{customdata[0]}<br>%{customdata[1]}<extra></extra>",
    )  # fmt: skip


def _layout(run: Run, spans: Sequence[_Span], scale: float, unit: str, colour: Colour) -> dict[str, object]:
    import plotly.graph_objects as go

    if not any(one.waits is not None for one in spans):  # nothing was counted: only the phases are left
        above: dict[str, object] = {"height": LOW_HEIGHT, "yaxis": {"visible": False, "domain": [0.99, 1]}}
        below = [0.0, 0.9]
    else:
        grid = {"domain": [0.4, 1], "gridcolor": colour("line"), "fixedrange": True, "nticks": 4}
        above = {"height": HEIGHT, "annotations": [_title(colour)], "yaxis": grid | _scale(spans)}
        below = [0.0, 0.32]
    return {
        "template": go.layout.Template(), "barmode": "overlay", "bargap": 0, "showlegend": False,
        "margin": {"l": 44, "r": 12, "t": 24, "b": 30}, "dragmode": False, "hovermode": "closest",
        "paper_bgcolor": "rgba(0,0,0,0)", "plot_bgcolor": "rgba(0,0,0,0)",
        "font": {"size": 12, "color": colour("text")}, "uniformtext": {"mode": "hide", "minsize": 11},
        "hoverlabel": {"bgcolor": colour("bg"), "bordercolor": colour("soft"), "font": {"color": colour("text")}},
        "xaxis": {
            "range": [0, _round(run.seconds / scale)], "ticksuffix": unit, "fixedrange": True, "showgrid": False,
            "zeroline": False, "anchor": "y2", "ticks": "outside", "tickcolor": colour("line"), "nticks": 8,
        },
        "yaxis2": {"domain": below, "range": [-0.55, 1], "visible": False, "fixedrange": True},
        **above,
    }  # fmt: skip


def _title(colour: Colour) -> dict[str, object]:
    """What the upper half shows: above it, where a narrow figure has room too."""
    return {
        "text": "waits a step", "xref": "paper", "yref": "paper", "x": 0, "y": 1, "xanchor": "left",
        "yanchor": "bottom", "showarrow": False, "font": {"size": 12, "color": colour("soft")},
    }  # fmt: skip


def _scale(spans: Sequence[_Span]) -> dict[str, object]:
    """The axis of the waits a step: logarithmic where one phase would dwarf the others."""
    waits = [one.waits for one in spans if one.waits]
    if waits and max(waits) > LOGARITHMIC * min(waits):
        return {"type": "log", "dtick": 1}
    return {"rangemode": "tozero", "zeroline": True, "zerolinecolor": "rgba(0,0,0,0)"}


def _round(value: float) -> float:
    return float(f"{value:.6g}")
