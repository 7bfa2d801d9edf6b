"""What HolisticTraceAnalysis says of one trace.

Part of the JSON report, under the same contract as ``findings``.
"""

import msgspec

Cell = str | int | float | None


class HTATable(msgspec.Struct, frozen=True, kw_only=True):
    """What one analysis of HTA says, in its own words and columns."""

    analysis: str
    """``temporal_breakdown``, ``idle_time_breakdown``, ``comm_comp_overlap``, ``queue_length`` or ``critical_path``."""
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[Cell, ...], ...] = ()
    why: str | None = None
    """Why there are no rows."""


class HTA(msgspec.Struct, frozen=True, kw_only=True):
    """HolisticTraceAnalysis on this trace."""

    release: str
    """``HolisticTraceAnalysis 0.5.0``, ``traceinsight 0.6.1``."""
    last_step_left_out: bool
    """Whether HTA left out what begins in or after the last ``ProfilerStep#`` row."""
    rounded: bool
    """Times are rounded inwards to whole µs."""
    tables: tuple[HTATable, ...]
