"""Where a step goes: one bar of its parts, end to end."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from syncscope.report.escape import plotly_text
from syncscope.report.figures.colours import Colour
from syncscope.report.html_page import Part
from syncscope.report.numbers import milliseconds, percent

HATCHED = {"copy_exposed": "HtoD", "comm_exposed": "collective"}
"""What is exposed, and its colour."""
UNDER = {"copy_hidden": "HtoD", "comm_hidden": "collective"}
"""What runs beside compute is drawn as a strip below it."""
PLAIN = {"compute": "compute", "other": "memset"}
IDLE_COLOURS = 4
STRIP = 0.34
"""Height of the strip, of the bar's."""
BAR_HEIGHT, LEGEND_ROW = 58, 25
"""Pixels."""


def draw_step(parts: Sequence[Part], colour: Colour, *, legend: bool, until_ms: float | None = None) -> dict[str, Any]:
    """The bar, for plotly. Without a ``legend`` it must stand beside a list of its parts. ``until_ms`` is where its
    axis ends, so that two bars can be compared; the end of the step unless it is given."""
    total = sum(part.ms for part in parts)
    begin, idle = 0.0, 0
    traces: list[dict[str, Any]] = []
    for part in parts:
        idle += part.key == "idle"
        traces += _pieces(part, begin, f"idle-{min(idle, IDLE_COLOURS)}", colour)
        begin += part.ms
    rows = -(-len(parts) // 2) if legend else 0
    return {"data": traces, "layout": _layout(until_ms or total, rows, colour)}


def _pieces(part: Part, begin: float, idle: str, colour: Colour) -> Iterable[dict[str, Any]]:
    """One or two bars: what is hidden has compute above it."""
    share = percent(part.share, 1.0) if part.share is not None else ""
    if part.key in UNDER:
        yield _bar(part, begin, colour("compute"), y=STRIP / 2, width=1 - STRIP, showlegend=False)
        yield _bar(part, begin, colour(UNDER[part.key]), y=STRIP / 2 - 0.5, width=STRIP)
    elif part.key in HATCHED:  # letters on hatching cannot be read
        pattern = {
            "shape": "/", "fgcolor": colour("hatch"), "bgcolor": colour(HATCHED[part.key]), "size": 7,
            "solidity": 0.25, "fillmode": "overlay",
        }  # fmt: skip
        yield _bar(part, begin, colour(HATCHED[part.key]), pattern=pattern)
    elif part.key == "idle":
        yield _bar(part, begin, colour(idle), text=share, ink=colour("text"))
    else:
        yield _bar(part, begin, colour(PLAIN.get(part.key, "memset")), text=share, ink=colour("on-colour"))


def _bar(
    part: Part,
    begin: float,
    fill: str,
    *,
    y: float = 0.0,
    width: float = 1.0,
    text: str = "",
    ink: str = "",
    pattern: dict[str, Any] | None = None,
    showlegend: bool = True,
) -> dict[str, Any]:
    said = milliseconds(part.ms) + (f", {percent(part.share, 1.0)}" if part.share is not None else "")
    return {
        "type": "bar", "orientation": "h", "base": [begin], "x": [part.ms], "y": [y], "width": width,
        "name": plotly_text(f"{part.label}, {said}"), "showlegend": showlegend, "legendgroup": part.label,
        "hovertemplate": "%{fullData.name}<extra></extra>", "marker": {
            "color": fill, "line": {"width": 0}, **({"pattern": pattern} if pattern else {}),
        },
        "text": [text], "textposition": "inside", "insidetextanchor": "middle", "textangle": 0,
        **({"insidetextfont": {"color": ink, "size": 13}} if ink else {}),
    }  # fmt: skip


def _layout(until_ms: float, legend_rows: int, colour: Colour) -> dict[str, Any]:
    below = 4 + (16 + LEGEND_ROW * legend_rows if legend_rows else 0)
    return {
        "barmode": "overlay", "bargap": 0, "height": BAR_HEIGHT + below, "dragmode": False,
        "margin": {"l": 0, "r": 0, "t": 4, "b": below}, "hovermode": "closest",
        "paper_bgcolor": "rgba(0,0,0,0)", "plot_bgcolor": "rgba(0,0,0,0)",
        "showlegend": bool(legend_rows), "uniformtext": {"mode": "hide", "minsize": 11},
        "legend": {"orientation": "h", "x": 0, "y": -0.12, "yanchor": "top", "itemclick": False,
                   "itemdoubleclick": False, "entrywidth": 0.5, "entrywidthmode": "fraction", "traceorder": "normal"},
        "font": {"size": 13, "color": colour("text")},
        "hoverlabel": {"bgcolor": colour("bg"), "bordercolor": colour("soft"), "font": {"color": colour("text")}},
        "xaxis": {"visible": False, "range": [0, until_ms], "fixedrange": True},
        "yaxis": {"visible": False, "fixedrange": True, "range": [-0.5, 0.5]},
    }  # fmt: skip
