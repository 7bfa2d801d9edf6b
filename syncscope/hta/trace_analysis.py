"""Our traces → HTA's ``TraceAnalysis``.

HTA documents no hook for this. The attributes set here are the same in HolisticTraceAnalysis 0.5.0 and traceinsight
0.6.1, and the tests compare every analysis with HTA's own parser in both.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

import pandas as pd

from syncscope.hta.frame import Symbols, frame, step_rows
from syncscope.trace.extras import require
from syncscope.trace.model import Trace

if TYPE_CHECKING:
    from hta.trace_analysis import TraceAnalysis


Traces: TypeAlias = "Trace | Iterable[Trace] | Mapping[int, Trace]"


def to_hta(traces: Traces, *, include_last_profiler_step: bool = False) -> TraceAnalysis:
    """Make a ``hta.trace_analysis.TraceAnalysis`` of traces that are read already, one for each rank.

    HTA's parser does not run. The analyses return the same as on the file itself, because this does what HTA does while
    parsing. It rounds times inwards to whole µs, unless ``HTA_DISABLE_NS_ROUNDING=1`` is in the environment before HTA
    is imported. With two ``ProfilerStep#`` rows or more, it leaves out what begins in or after the last one, unless
    ``include_last_profiler_step``. Where a recording has no such rows, it adds the recorded steps and drops nothing.

    A mapping names the ranks. Otherwise each trace's own rank counts if all have one and they differ, else their order.

    Raises :class:`.MissingExtra`, an ``ImportError``, without the extra ``hta``, and ``ValueError`` for no traces.
    """
    require("hta")
    from hta.common.trace import Trace as Parsed
    from hta.configs.env_options import disable_ns_rounding
    from hta.trace_analysis import TraceAnalysis

    ranks = _by_rank(traces)
    whole_us = not disable_ns_rounding()
    symbols = Symbols()

    class Converted(Parsed):  # type: ignore[misc]
        """HTA's traces of all ranks, with our columns in place of those from its parser."""

        def parse_traces(self, *_: object, **__: object) -> None:
            for rank, trace in ranks.items():
                self.traces[rank] = frame(trace, symbols, whole_us=whole_us)
                self.meta_data[rank] = _metadata(trace, symbols)
            self.symbol_table.add_symbols(symbols.names)

        def align_and_filter_trace(self, include_last_profiler_step: bool | None = False) -> None:
            super().align_and_filter_trace(include_last_profiler_step)
            # Only now, so that HTA does not mistake the end of a recording for a step that is cut off.
            for rank, trace in ranks.items():
                rows = self.traces[rank]
                steps = step_rows(trace, symbols, int(rows["index"].max()) if len(rows) else 0, whole_us=whole_us)
                if len(steps):
                    steps["ts"] -= self.min_ts
                    self.traces[rank] = pd.concat([rows, steps[rows.columns]])
            self.symbol_table.add_symbols(symbols.names)

    parsed = Converted(trace_files={}, trace_dir="")
    # Analyses that add to the file itself, such as overlay_critical_path_analysis, read it again.
    parsed.trace_files = {rank: os.path.abspath(trace.path) for rank, trace in ranks.items()}
    parsed.load_traces(include_last_profiler_step)
    analysis: Any = TraceAnalysis.__new__(TraceAnalysis)
    analysis.t = parsed
    return analysis


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
    """What HTA keeps of the file besides its events: the part that an analysis reads."""
    kind = next((kind for call, kind in _DEVICE_TYPES.items() if call in symbols.names), "UNKNOWN GPU")
    return {
        "baseTimeNanoseconds": trace.base_ns,
        "deviceProperties": [{"id": device.id, "name": device.name} for device in trace.devices],
        "distributedInfo": {"rank": trace.rank, "world_size": trace.world_size},
        "device_type": kind,
    }


_DEVICE_TYPES = {"cudaLaunchKernel": "NVIDIA GPU", "hipLaunchKernel": "AMD GPU"}
