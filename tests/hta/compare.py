"""HTA by its own parser beside HTA fed by us: ``python -m tests.hta.compare OUT.json RANKS…`` in a process with HTA.

``RANKS`` are files of one run, joined by ``+``; ``a=b`` gives HTA the file ``a`` and us the file ``b``.
"""

from __future__ import annotations

import contextlib
import io
import json
import logging
import sys
import warnings
from collections.abc import Callable
from typing import Any

import pandas as pd

import syncscope

COLUMNS = (
    "index", "cat", "name", "pid", "tid", "ts", "dur", "end", "stream", "correlation", "index_correlation", "iteration",
    "wait_on_stream", "wait_on_cuda_event_record_corr_id",
)  # fmt: skip
NAMES = {
    "cuda_driver": "cuda_runtime", "Runtime": "cuda_runtime", "Operator": "cpu_op", "Kernel": "kernel",
    "Memcpy": "gpu_memcpy", "Memset": "gpu_memset",
}  # fmt: skip
"""Ours does not tell the driver's calls apart, nor does any analysis; before torch 1.12 categories had other names."""


def analyses(analysis: Any, ranks: list[int]) -> dict[str, Callable[[], Any]]:
    def critical_path() -> Any:
        found = []
        for rank in ranks:
            graph, whole = analysis.critical_path_analysis(rank, "ProfilerStep", 1)
            path = graph.get_critical_path_breakdown() if whole else None
            found.append(None if path is None else _sorted(path[["event_idx", "duration", "type", "bound_by"]]))
        return found

    return {
        "temporal breakdown": lambda: analysis.get_temporal_breakdown(visualize=False),
        "idle time": lambda: analysis.get_idle_time_breakdown(ranks=ranks, visualize=False)[0],
        "overlap": lambda: analysis.get_comm_comp_overlap(visualize=False),
        "queue length": lambda: analysis.get_queue_length_summary(ranks=ranks),
        "queue series": lambda: [
            series.assign(tid=_number(series["tid"]))
            for series in analysis.get_queue_length_time_series(ranks=ranks).values()
        ],
        "critical path": critical_path,
        "kernel breakdown": lambda: list(analysis.get_gpu_kernel_breakdown(visualize=False)),
        "launch statistics": lambda: list(analysis.get_cuda_kernel_launch_stats(ranks=ranks, visualize=False).values()),
        "memory bandwidth": lambda: analysis.get_memory_bw_summary(ranks=ranks),
    }


def compared(own: Any, fed: Any) -> dict[str, str]:
    """For each analysis ``same``, ``neither`` (both raise), ``only fed``, or what is different."""
    ranks = sorted(own.t.traces)
    mine, others = analyses(fed, ranks), analyses(own, ranks)
    found = {name: _beside(_outcome(others[name]), _outcome(mine[name])) for name in mine}
    return {"rows": _rows(own, fed, ranks), **found}


def _rows(own: Any, fed: Any, ranks: list[int]) -> str:
    """Whether the frames are the same, for those rows that an analysis reads: all but of unknown categories."""
    for rank in ranks:
        theirs, ours = _named(own, rank), _named(fed, rank)
        ours = ours[ours["index"].isin(theirs["index"])]
        theirs = theirs[theirs["index"].isin(ours["index"]) | ~theirs["cat"].isin(["overhead", "python_event"])]
        if (theirs["iteration"] < 0).all():  # HTA knows no steps there, and we may know those of the recording
            theirs, ours = theirs.assign(iteration=-1), ours.assign(iteration=-1)
        if said := _difference(theirs.reset_index(drop=True), ours.reset_index(drop=True)):
            return said
    return "same"


def _named(analysis: Any, rank: int) -> pd.DataFrame:
    frame, names = analysis.t.traces[rank], analysis.t.symbol_table.get_sym_table()
    frame = frame[[column for column in COLUMNS if column in frame]].assign(name=[names[i] for i in frame["name"]])
    frame["cat"] = [NAMES.get(names[i], names[i]) for i in frame["cat"]]
    steps = frame["name"].str.startswith(("ProfilerStep", "Optimizer.", "enumerate(DataLoader)"))
    frame.loc[steps & frame["cat"].isin(["cpu_op", "user_annotation"]), "cat"] = "user_annotation"  # once an Operator
    # A row on stream 0 has no step in HTA, as NaN. Our recordings call threads by their native ids.
    ran = (frame["stream"] >= 0) & (frame["cat"] != "cuda_sync")
    lane = {name: _number(frame[name].where(ran, "")) for name in ("pid", "tid")}
    return frame.assign(iteration=frame["iteration"].fillna(-1), **lane)


def _number(lane: pd.Series) -> pd.Series:
    """``stream 7`` of old traces is 7."""
    return lane.astype(str).str.removeprefix("stream ").str.strip()


def _outcome(run: Callable[[], Any]) -> Any:
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            return run()
    except Exception as error:
        return error


def _beside(own: Any, fed: Any) -> str:
    if isinstance(own, Exception):
        return "neither" if isinstance(fed, Exception) else "only fed"
    if isinstance(fed, Exception):
        return f"only own: {type(fed).__name__}: {fed}"
    return _difference(own, fed) or "same"


def _difference(own: Any, fed: Any) -> str:
    if isinstance(own, list):
        if len(own) != len(fed):
            return f"{len(own)} tables and {len(fed)}"
        return next(filter(None, map(_difference, own, fed)), "")
    if own is None or fed is None:
        return "" if own is fed else "one is None"
    try:
        pd.testing.assert_frame_equal(own, fed, check_dtype=False, check_index_type=False, rtol=1e-6)
    except AssertionError as error:
        return str(error)
    return ""


def _sorted(path: pd.DataFrame) -> pd.DataFrame:
    return path.sort_values(list(path.columns), ignore_index=True)


def main(out: str, *runs: str) -> None:
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    from hta.trace_analysis import TraceAnalysis

    found: dict[str, dict[str, str]] = {}
    for run in runs:
        theirs, _, ours = run.partition("=")
        files = dict(enumerate(theirs.split("+")))
        traces = [syncscope.load(file) for file in (ours or theirs).split("+")]
        for last in (False, True):
            fed = syncscope.to_hta(dict(enumerate(traces)), include_last_profiler_step=last)
            key = f"{run} with the last step" if last else run
            try:
                own = TraceAnalysis(trace_files=dict(files), trace_dir="", include_last_profiler_step=last)
            except Exception as error:
                found[key] = {"parser": f"own: {type(error).__name__}"}
            else:
                found[key] = compared(own, fed)
    with open(out, "w", encoding="utf-8") as file:
        json.dump(found, file)


if __name__ == "__main__":
    main(*sys.argv[1:])
