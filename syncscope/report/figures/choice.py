"""``Report.figure``: a figure by its name, or why there is none."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, get_args

from syncscope.report.figures.colours import in_light
from syncscope.schema.report import FigureName, Report
from syncscope.trace import TraceError

if TYPE_CHECKING:
    import plotly.graph_objects as go

WIDTH = 820
"""Pixels of a figure by itself."""
LONGEST_NAME = 70
"""Signs of a name in such a figure."""
ALONE = {"paper_bgcolor": in_light("bg"), "plot_bgcolor": in_light("bg"), "width": WIDTH}
"""A figure by itself brings its ground, so that it can be read in a dark notebook, too."""


def draw(report: Report, name: FigureName, trace: int | None) -> go.Figure:
    """The figure. Raises ``ValueError`` for an unknown name, and where the report has no data for it."""
    if name not in DRAWN:
        raise ValueError(f"figure({name!r}): there are {', '.join(map(repr, get_args(FigureName)))}")
    if not report.traces:
        raise ValueError(f"figure({name!r}): the report holds no trace")
    if trace is None:
        trace = find_usual(report)
    if not 0 <= trace < len(report.traces):
        raise ValueError(f"figure({name!r}): there is no trace {trace}; the report has {len(report.traces)}, from 0")
    import plotly.graph_objects as go

    figure = go.Figure(DRAWN[name](report, trace))
    figure.update_layout(ALONE, template=go.layout.Template())
    return figure


def find_usual(report: Report) -> int:
    """The trace with the most to gain: that of the first finding that nobody expects."""
    return next((finding.trace for finding in report.findings if finding.status == "unexpected"), 0)


def _step(report: Report, trace: int) -> dict[str, Any]:
    from syncscope.report.figures.step import draw_step
    from syncscope.report.html_page import split_step
    from syncscope.report.trace_phrases import was_shared

    info = report.traces[trace]
    parts = split_step(info.overlap, was_shared(info))
    if not parts:
        raise ValueError(
            "figure('step'): the trace holds no device activity; record with `syncscope profile` on a machine with a "
            "GPU, or with ProfilerActivity.CUDA"
        )
    drawn = draw_step(parts, in_light, legend=True)
    drawn["layout"]["margin"] |= {"l": 10, "r": 10, "t": 10}
    return drawn


def _timeline(report: Report, trace: int) -> dict[str, Any]:
    from syncscope.report.figures.timeline import draw_timeline
    from syncscope.report.picture.draw import draw_lanes
    from syncscope.timeline import Timeline
    from syncscope.trace.reader import load_rank

    path = report.traces[trace].path
    if not os.path.isfile(path):
        raise ValueError(f"figure('timeline'): it is drawn from the trace, which is not at {path!r}; analyze it anew")
    try:
        lanes = draw_lanes(Timeline(load_rank(path, report.traces[trace].rank)), ())
    except TraceError as error:
        raise ValueError(f"figure('timeline'): the trace can no longer be read: {error}") from None
    if not lanes.lanes:
        raise ValueError("figure('timeline'): the trace holds neither calls nor device activity")
    return draw_timeline(lanes, in_light)


def _savings(report: Report, trace: int) -> dict[str, Any]:
    from syncscope.report.figures.savings import draw_savings, find_savings
    from syncscope.report.worth_phrases import find_step_ms

    info = report.traces[trace]
    rows, step = find_savings(report, trace), find_step_ms(info)
    if rows and step:
        drawn = draw_savings(rows, step, in_light, LONGEST_NAME)
        drawn["layout"]["margin"] |= {"l": 14, "r": 14, "t": 6}
        return drawn
    why = info.replay.null_why if info.replay else None
    if not info.steps.count:
        why = "the trace has no steps; call `syncscope.step()` at the end of each, or `profiler.step()`"
    raise ValueError(f"figure('savings'): {why or 'no change is known to save 1 % of the step'}")


def _run(report: Report, trace: int) -> go.Figure:
    from syncscope.report.figures.run import draw_run

    run = report.traces[trace].run
    if run is None or not run.stretches or run.seconds <= 0:
        raise ValueError(
            "figure('run'): only some steps were looked at; record with `syncscope profile` without --no-count to "
            "count the whole run"
        )
    return draw_run(run)


DRAWN: Mapping[FigureName, Callable[[Report, int], Any]] = {
    "step": _step, "timeline": _timeline, "savings": _savings, "run": _run
}  # fmt: skip
