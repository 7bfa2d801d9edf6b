"""Two steps over time: host threads, when the device was idle, and streams. The page's own timeline, which has every
event of the trace, reads the same lanes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from syncscope.report.escape import plotly_text
from syncscope.report.figures.colours import Colour
from syncscope.report.numbers import milliseconds
from syncscope.report.picture.lanes import Lane, Lanes
from syncscope.report.picture.pack import unpacked
from syncscope.timeline.intervals import Ints

LABELS = {
    "annotation": "annotation", "op": "operation", "call": "other runtime call", "launch": "launch", "wait": "wait",
    "idle": "device idle", "memset": "memset", "compute": "kernel", "DtoD": "copy inside the device", "copy": "copy",
    "collective": "collective", "HtoD": "copy host to device", "DtoH": "copy device to host",
    "exposed": "exposed: no compute beside it",
}  # fmt: skip
STEPS = 2
MOST_LANES = 12
BARS_ACROSS = 800
"""What is drawn is this many bars wide: neighbours of one kind that are closer than one share a bar."""
LONGEST_NAME = 80
LONGEST_LABEL = 16
LANE_HEIGHT, LEGEND, AXIS, MARGIN = 34, 56, 28, 116
"""Pixels: of a lane, of the legend above and the axis below all of them, and of their labels."""


def find_window(lanes: Lanes) -> tuple[str, int, int]:
    """What is drawn: the first steps with the device work that they launched, which takes as long as they do where the
    host runs ahead; the whole trace where it has no steps. Its name, and when it begins and ends in ns since
    ``Lanes.start_ns``."""
    steps = lanes.steps[:STEPS]
    if not steps:
        return "the whole trace", 0, lanes.dur
    numbers = f"step {steps[0].number}" if len(steps) == 1 else f"steps {steps[0].number} and {steps[-1].number}"
    return numbers, steps[0].ts, max(max(step.until, step.ts + step.dur) for step in steps)


def draw_timeline(
    lanes: Lanes, colour: Colour, *, legend: bool = True, until_ms: float | None = None
) -> dict[str, Any]:
    """The steps, for plotly. Without a ``legend`` it must stand beside one. ``until_ms`` is where its axis ends, so
    that two can be compared; the end of what is drawn unless it is given."""
    _, begin, end = find_window(lanes)
    columns = {name: unpacked(lanes.bars[name]) for name in ("ts", "dur", "name", "merged")}
    parts = list(_parts(lanes, columns, begin, end))
    used = sorted({lane for lane, *_ in parts})[:MOST_LANES]
    traces, known = [], set()
    for lane, kind, bars in parts:
        if lane in used:
            traces.append(_trace(used.index(lane), kind, bars, colour, legend=legend and kind not in known))
            known.add(kind)
    labels = [_label(lanes.lanes[lane], lanes) for lane in used]
    return {"data": traces, "layout": _layout(labels, until_ms or (end - begin) / 1e6, colour, legend=legend)}


def find_kinds(lanes: Lanes) -> set[str]:
    """The kinds of bars in what is drawn."""
    _, begin, end = find_window(lanes)
    columns = {name: unpacked(lanes.bars[name]) for name in ("ts", "dur", "name", "merged")}
    return {kind for _, kind, _ in _parts(lanes, columns, begin, end)}


Bars = tuple[list[float], list[float], list[str]]
"""Begin and length in ms, and what is said of each."""


def _parts(lanes: Lanes, columns: Mapping[str, Ints], begin: int, end: int) -> Iterator[tuple[int, str, Bars]]:
    """The bars of each lane and kind that the window touches, cut to it, in the order of drawing."""
    least = (end - begin) / BARS_ACROSS
    for series in sorted(lanes.series, key=lambda one: one.kind):
        own = slice(series.first, series.first + series.count)
        ts, dur, name, merged = (columns[key][own] for key in ("ts", "dur", "name", "merged"))
        first, last = np.maximum(ts, begin), np.minimum(ts + dur, end)
        inside = np.flatnonzero((last > begin) & (first < end))
        if not len(inside):
            continue
        # Neighbours closer than a bar's width become one, named by the longest of them.
        order = inside[np.argsort(first[inside], kind="stable")]
        reach = np.maximum.accumulate(last[order])
        starts = np.flatnonzero(np.append(True, first[order][1:] - reach[:-1] >= least))
        bars: Bars = ([], [], [])
        for one, following in zip(starts, [*starts[1:], len(order)], strict=True):
            rows = order[one:following]
            longest, many = rows[np.argmax(dur[rows])], int(merged[rows].sum())
            from_, to = int(first[rows].min()), int(last[rows].max())
            said = lanes.names[name[longest]][:LONGEST_NAME] + (f" and {many - 1} more" if many > 1 else "")
            bars[0].append(_round((from_ - begin) / 1e6))
            bars[1].append(_round((to - from_) / 1e6))
            bars[2].append(f"{plotly_text(said)}<br>{milliseconds((to - from_) / 1e6)}")
        yield series.lane, lanes.kinds[series.kind], bars


def _trace(row: int, kind: str, bars: Bars, colour: Colour, *, legend: bool) -> dict[str, Any]:
    base, length, said = bars
    clear = "rgba(0,0,0,0)"
    marker: dict[str, Any] = {"color": clear if kind == "exposed" else colour(kind), "line": {"width": 0}}
    if kind == "exposed":
        marker["pattern"] = {"shape": "/", "fgcolor": colour("hatch"), "bgcolor": clear, "size": 6, "solidity": 0.25}
    told = {"customdata": said, "hovertemplate": "%{customdata}<extra>%{fullData.name}</extra>"}
    return {
        "type": "bar", "orientation": "h", "base": base, "x": length, "y": [row] * len(base), "width": 0.72,
        "name": LABELS.get(kind, kind), "legendgroup": kind, "showlegend": legend, "marker": marker,
        **({"hoverinfo": "skip"} if kind == "exposed" else told),
    }  # fmt: skip


def _label(lane: Lane, lanes: Lanes) -> str:
    """A lane's name, with its device where there are several."""
    devices = {one.device for one in lanes.lanes if one.device is not None}
    return f"{lane.label} of GPU {lane.device}" if lane.device is not None and len(devices) > 1 else lane.label


def _short(label: str) -> str:
    return label if len(label) <= LONGEST_LABEL else f"…{label[1 - LONGEST_LABEL :]}"


def _layout(labels: Sequence[str], until_ms: float, colour: Colour, *, legend: bool) -> dict[str, Any]:
    above = LEGEND if legend else 4
    return {
        "barmode": "overlay", "height": LANE_HEIGHT * len(labels) + above + AXIS, "dragmode": False,
        "hovermode": "closest", "margin": {"l": MARGIN, "r": 14, "t": above, "b": AXIS}, "showlegend": legend,
        "paper_bgcolor": "rgba(0,0,0,0)", "plot_bgcolor": "rgba(0,0,0,0)",
        "font": {"size": 12, "color": colour("text")},
        "hoverlabel": {"bgcolor": colour("bg"), "bordercolor": colour("soft"), "font": {"color": colour("text")}},
        "legend": {"orientation": "h", "x": 0, "y": 1, "yref": "container", "yanchor": "top", "itemclick": False,
                   "itemdoubleclick": False},
        "xaxis": {"range": [0, _round(until_ms)], "ticksuffix": " ms", "gridcolor": colour("line"), "zeroline": False,
                  "nticks": 9},
        "yaxis": {"range": [len(labels) - 0.5, -0.5], "tickvals": list(range(len(labels))), "fixedrange": True,
                  "ticktext": [f"{plotly_text(_short(label))} " for label in labels], "showgrid": False,
                  "zeroline": False},
    }  # fmt: skip


def _round(value: float) -> float:
    return float(f"{value:.6g}")
