"""Find the waits a PyTorch program hides, say what each really costs, and point at the line.

The names of ``__all__`` are the stable API. They load on first use: ``import syncscope`` alone brings in neither
pandas, plotly nor torch, so it is safe at the top of any program.

PYTEST_DONT_REWRITE: pytest would warn that it cannot rewrite us where syncscope runs pytest.
"""

from __future__ import annotations

TYPE_CHECKING = False  # "typing" would cost a millisecond in every process that a recorded program starts
if TYPE_CHECKING:
    from typing import Any

    from syncscope.analysis.analyze import analyze
    from syncscope.collect.annotations import expected, step
    from syncscope.collect.hazards import hazards
    from syncscope.collect.live.guard import SyncError, SyncWarning, guard
    from syncscope.compare.diff import diff
    from syncscope.hta import to_hta
    from syncscope.schema.findings import Finding, Frame, Site
    from syncscope.schema.report import Report
    from syncscope.session import profile
    from syncscope.trace import TraceError, load
    from syncscope.trace.model import Trace
    from syncscope.watching import watch

__version__ = "0.1.0"

__all__ = [
    "Finding",
    "Frame",
    "Report",
    "Site",
    "SyncError",
    "SyncWarning",
    "Trace",
    "TraceError",
    "__version__",
    "analyze",
    "diff",
    "expected",
    "guard",
    "hazards",
    "load",
    "profile",
    "step",
    "to_hta",
    "watch",
]

_HOME = {
    "Finding": "syncscope.schema.findings",
    "Frame": "syncscope.schema.findings",
    "Report": "syncscope.report.forms",
    "Site": "syncscope.schema.findings",
    "Trace": "syncscope.trace.model",
    "TraceError": "syncscope.trace",
    "SyncError": "syncscope.collect.live.guard",
    "SyncWarning": "syncscope.collect.live.guard",
    "analyze": "syncscope.analysis.analyze",
    "diff": "syncscope.report.forms",
    "expected": "syncscope.collect.annotations",
    "guard": "syncscope.collect.live.guard",
    "hazards": "syncscope.collect.hazards",
    "load": "syncscope.trace",
    "profile": "syncscope.session",
    "step": "syncscope.collect.annotations",
    "to_hta": "syncscope.hta",
    "watch": "syncscope.watching",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value  # the next look-up does not come here
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
