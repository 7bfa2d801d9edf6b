"""Run the analyses of HTA that reports show. Each runs on its own, and where HTA fails, the table says why."""

from __future__ import annotations

import contextlib
import io
import logging
import math
import warnings
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from syncscope.hta.frame import count_profiler_steps
from syncscope.hta.trace_analysis import to_hta
from syncscope.schema.hta import HTA, Cell, HTATable
from syncscope.trace.model import Trace

if TYPE_CHECKING:
    from hta.trace_analysis import TraceAnalysis

RELEASES = ("HolisticTraceAnalysis", "traceinsight")
"""The distributions that install the package ``hta``."""

STEP = "ProfilerStep"

_CAUSES = {
    "KeyError": "HTA misses something in the trace",
    "AssertionError": "HTA's own check of its sums fails, as it may where times are rounded",
}

Analysis = Callable[[Any, int, Trace], pd.DataFrame]
"""Takes a ``TraceAnalysis``, the rank and its trace."""


class _NothingToAnalyse(Exception):
    """``str()`` says what the trace lacks."""


def run_analyses(trace: Trace, *, include_last_profiler_step: bool = False) -> HTA:
    """Run temporal breakdown, idle-time breakdown, overlap of communication with computation, length of the launch
    queue, and the critical path of a step. Prints and logs nothing.

    Raises :class:`.MissingExtra` without the extra ``hta``.
    """
    with _silence():
        analysis = to_hta({trace.rank or 0: trace}, include_last_profiler_step=include_last_profiler_step)
        from hta.configs.env_options import disable_ns_rounding

        tables = tuple(_table(name, run, analysis, trace) for name, run in ANALYSES.items())
        return HTA(
            release=_release(),
            last_step_left_out=count_profiler_steps(trace) > 1 and not include_last_profiler_step,
            rounded=not disable_ns_rounding(),
            tables=tables,
        )


def _table(name: str, run: Analysis, analysis: TraceAnalysis, trace: Trace) -> HTATable:
    try:
        result = run(analysis, trace.rank or 0, trace)
    except _NothingToAnalyse as error:
        return HTATable(analysis=name, why=str(error))
    except Exception as error:  # HTA may raise anything on a foreign trace
        return HTATable(analysis=name, why=_why(name, error))
    return HTATable(
        analysis=name,
        columns=tuple(str(column) for column in result.columns),
        rows=tuple(tuple(_cell(value) for value in row) for row in result.itertuples(index=False, name=None)),
    )


def _temporal(analysis: TraceAnalysis, rank: int, trace: Trace) -> pd.DataFrame:
    _need_device_rows(trace)
    table: pd.DataFrame = analysis.get_temporal_breakdown(visualize=False)
    return table.drop(columns="rank")


def _idle(analysis: TraceAnalysis, rank: int, trace: Trace) -> pd.DataFrame:
    _need_device_rows(trace)
    table: pd.DataFrame = analysis.get_idle_time_breakdown(ranks=[rank], visualize=False)[0]
    return table.drop(columns="rank")


def _overlap(analysis: TraceAnalysis, rank: int, trace: Trace) -> pd.DataFrame:
    table: pd.DataFrame = analysis.get_comm_comp_overlap(visualize=False)
    if table["comp_comm_overlap_pctg"].isna().all():
        raise _NothingToAnalyse("HTA finds no communication kernels")
    return table.drop(columns="rank")


def _queue(analysis: TraceAnalysis, rank: int, trace: Trace) -> pd.DataFrame:
    summary = analysis.get_queue_length_summary(ranks=[rank])
    if summary is None:
        raise _NothingToAnalyse("HTA finds no launch with a kernel that ran")
    table: pd.DataFrame = summary["queue_length"].round(2).reset_index()
    return table.drop(columns="rank")


def _critical_path(analysis: TraceAnalysis, rank: int, trace: Trace) -> pd.DataFrame:
    if not len(trace.ops):
        raise _NothingToAnalyse("needs CPU ops, which this trace does not hold")
    number, name = _second_step(analysis, rank)
    path = analysis.critical_path_analysis(rank, STEP, number)
    if path is None or not path[1]:
        raise _NothingToAnalyse(f"HTA finds no path through {name}: its graph is not valid")
    shares = path[0].summary()
    table = pd.DataFrame({"step": name, "bound_by": shares.index, "pctg_of_path": shares.round(2).to_numpy()})
    named: pd.DataFrame = table[table["bound_by"] != ""]
    return named


def _second_step(analysis: TraceAnalysis, rank: int) -> tuple[int, str]:
    """The second step's number and name. HTA recommends it, because the first often misses events.

    HTA numbers the step rows of the host and of the device together, in the file's order.
    """
    ids = analysis.t.symbol_table.get_sym_id_map()
    rows = analysis.t.traces[rank]
    rows = rows[rows["name"].isin([number for name, number in ids.items() if STEP in name])]
    host = np.flatnonzero(rows["cat"] == ids.get("user_annotation"))
    if not len(host):
        raise _NothingToAnalyse("needs a step, and the trace names none")
    at = host[np.argsort(rows["ts"].to_numpy()[host], kind="stable")[min(1, len(host) - 1)]]
    return int(at), analysis.t.symbol_table.get_sym_table()[rows["name"].iloc[at]]


ANALYSES: dict[str, Analysis] = {
    "temporal_breakdown": _temporal,
    "idle_time_breakdown": _idle,
    "comm_comp_overlap": _overlap,
    "queue_length": _queue,
    "critical_path": _critical_path,
}


def _need_device_rows(trace: Trace) -> None:
    if not len(trace.device):
        raise _NothingToAnalyse("needs device activity, which this trace does not hold")


def _why(name: str, error: Exception) -> str:
    release = _release()
    if name == "critical_path" and release.startswith("HolisticTraceAnalysis 0.5.") and _major(pd.__version__) >= 3:
        return f"{release} cannot run it with pandas {pd.__version__}: install pandas<3, or traceinsight instead"
    message = " ".join(str(error).split())
    cause = _CAUSES.get(type(error).__name__, f"{release} fails")
    return f"{cause} ({type(error).__name__}{': ' if message else ''}{message[:200]})"


def _major(version: str) -> int:
    return int(version.split(".", 1)[0])


def _release() -> str:
    """The name and version of what is imported as ``hta``."""
    import hta

    folder = str(Path(hta.__file__).parent.parent)
    installed = [one for one in metadata.distributions(path=[folder]) if one.name in RELEASES]
    return f"{installed[0].name} {installed[0].version}" if installed else "HTA"


def _cell(value: object) -> Cell:
    """A plain value; ``None`` for NaN and infinities, which JSON does not hold."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        return None if not math.isfinite(value) else int(value) if value.is_integer() else value
    return value if isinstance(value, int) else str(value)


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    """Silence HTA, which logs its progress as warnings, prints summaries, and uses deprecated parts of pandas."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)
