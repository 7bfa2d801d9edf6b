"""Traces that we read become an analysis of HTA.

What is set here is the same in HolisticTraceAnalysis 0.5.0 and traceinsight 0.6.1, and no documented hook: the tests
compare every analysis with HTA's own parser, in both.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

import pandas as pd

from syncscope.hta.frame import Symbols, frame, step_rows
from syncscope.trace.model import Trace

if TYPE_CHECKING:
    from hta.trace_analysis import TraceAnalysis


class HTAMissing(ImportError):
    """HTA is not installed."""

    def __init__(self, why: str) -> None:
        super().__init__(f"HTA cannot be used ({why}): pip install 'syncscope[hta]'")


Traces: TypeAlias = "Trace | Iterable[Trace] | Mapping[int, Trace]"


def to_hta(traces: Traces, *, include_last_profiler_step: bool = False) -> TraceAnalysis:
    """``hta.trace_analysis.TraceAnalysis`` of traces that are read already, one a rank; its parser does not run.

    Its analyses return what they return on the file itself, since what HTA does while parsing is done here: times are
    rounded inwards to whole µs (unless the environment says ``HTA_DISABLE_NS_ROUNDING=1`` before HTA is imported) and,
    with two ``ProfilerStep#`` rows or more, what begins in or after the last one is left out unless
    ``include_last_profiler_step``. Where a recording has no such rows its steps are added, and nothing is left out.

    A mapping names the ranks. Else a trace's own rank counts where every trace has one and no two the same, and the
    order where not.

    Raises :class:`HTAMissing` without the extra ``hta``, and ``ValueError`` for no traces.
    """
    Parsed, TraceAnalysis, disable_ns_rounding = imported()
    ranks = _by_rank(traces)
    whole_us = not disable_ns_rounding()
    symbols = Symbols()

    class Read(Parsed):  # type: ignore[misc,valid-type]
        """HTA's traces of all ranks, with our columns where its parser would put its own."""

        def parse_traces(self, *_: object, **__: object) -> None:
            for rank, trace in ranks.items():
                self.traces[rank] = frame(trace, symbols, whole_us=whole_us)
                self.meta_data[rank] = _metadata(trace, symbols)
            self.symbol_table.add_symbols(symbols.names)

        def align_and_filter_trace(self, include_last_profiler_step: bool | None = False) -> None:
            super().align_and_filter_trace(include_last_profiler_step)
            # Only now: HTA must not take the end of a recording for a step that is cut.
            for rank, trace in ranks.items():
                rows = self.traces[rank]
                steps = step_rows(trace, symbols, int(rows["index"].max()) if len(rows) else 0, whole_us=whole_us)
                if len(steps):
                    steps["ts"] -= self.min_ts
                    self.traces[rank] = pd.concat([rows, steps[rows.columns]])
            self.symbol_table.add_symbols(symbols.names)

    parsed = Read(trace_files={}, trace_dir="")
    # Those that add to the file itself, such as overlay_critical_path_analysis, read it again.
    parsed.trace_files = {rank: os.path.abspath(trace.path) for rank, trace in ranks.items()}
    parsed.load_traces(include_last_profiler_step)
    analysis: Any = TraceAnalysis.__new__(TraceAnalysis)
    analysis.t = parsed
    return analysis


def imported() -> tuple[Any, Any, Any]:
    """HTA's classes of traces and of their analysis, and what says whether to round. Raises :class:`HTAMissing`."""
    try:
        from hta.common.trace import Trace as Parsed
        from hta.configs.env_options import disable_ns_rounding
        from hta.trace_analysis import TraceAnalysis
    except ImportError as error:
        raise HTAMissing(str(error)) from None
    return Parsed, TraceAnalysis, disable_ns_rounding


def _by_rank(traces: Traces) -> dict[int, Trace]:
    if isinstance(traces, Mapping):
        ranks = dict(traces)
    else:
        listed = [traces] if isinstance(traces, Trace) else list(traces)
        own = [trace.rank for trace in listed]
        known = None not in own and len(set(own)) == len(own)
        ranks = {trace.rank if known and trace.rank is not None else i: trace for i, trace in enumerate(listed)}
    if not ranks:
        raise ValueError("no trace given")
    return ranks


def _metadata(trace: Trace, symbols: Symbols) -> dict[str, Any]:
    """What HTA keeps of the file besides its events, as far as an analysis asks for it."""
    kind = next((kind for call, kind in _DEVICES.items() if call in symbols.names), "UNKNOWN GPU")
    return {
        "baseTimeNanoseconds": trace.base_ns,
        "deviceProperties": [{"id": device.id, "name": device.name} for device in trace.devices],
        "distributedInfo": {"rank": trace.rank, "world_size": trace.world_size},
        "device_type": kind,
    }


_DEVICES = {"cudaLaunchKernel": "NVIDIA GPU", "hipLaunchKernel": "AMD GPU"}
