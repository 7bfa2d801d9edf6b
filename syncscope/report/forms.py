"""The report with what Python and notebooks show of it: ``print(report)``, ``report.to_html()``, figures, the
value of a cell.

The structure is of a lower layer than its renderers, so they are entered here, wherever a report comes from.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from syncscope.compare.diff import FORMS as DIFF_FORMS
from syncscope.compare.diff import Diff
from syncscope.compare.diff import diff as diff
from syncscope.schema.report import DRAW, FORMS, FigureName
from syncscope.schema.report import Report as Report

if TYPE_CHECKING:
    import plotly.graph_objects as go


def _text(report: Report) -> str:
    from syncscope.report.text import to_text

    return to_text(report).rstrip("\n")


def _page(report: Report) -> str:
    from syncscope.report.html import render

    return render(report)


def _cell(report: Report) -> str:
    from syncscope.report.essence import render

    return render(report)


def _figure(report: Report, name: FigureName, trace: int | None) -> go.Figure:
    from syncscope.report.figures.choice import draw

    return draw(report, name, trace)


def _changes(changes: Diff) -> str:
    from syncscope.report.text_diff import to_text

    return to_text(changes).rstrip("\n")


DIFF_FORMS["text"] = _changes
FORMS.update({"text": _text, "page": _page, "cell": _cell})
DRAW.append(_figure)
