"""A :class:`Trace` as the frame that HTA's parser would have made of the same file.

Its columns are those that ``hta.common.trace.parse_trace_file`` returns (HolisticTraceAnalysis 0.5.0, traceinsight
0.6.1), except shapes and other arguments that no analysis of time reads.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from syncscope.trace.model import Trace

Int = NDArray[np.int64]

STEP = re.compile(r"ProfilerStep\s*#\s*(\d{1,18})")
DEVICE_SYNCS = ("Event Sync", "Context Sync")
"""``cuda_sync`` records that belong to the device though they name no stream."""


class _Table(NamedTuple):
    """The rows of one category, and which of their columns HTA reads."""

    name: str
    category: str
    process: str
    thread: str
    columns: tuple[str, ...] = ()


_LINKED = ("correlation", "external_id", "bytes")
_TABLES = (
    _Table("ops", "cpu_op", "pid", "tid", ("external_id",)),
    _Table("runtime", "cuda_runtime", "pid", "tid", ("correlation", "external_id")),
    _Table("frames", "python_function", "pid", "tid"),
    _Table("annotations", "user_annotation", "pid", "tid"),
    _Table("device_annotations", "gpu_user_annotation", "device", "stream"),
    _Table("kernel", "kernel", "device", "stream", ("stream", "correlation", "external_id")),
    _Table("memcpy", "gpu_memcpy", "device", "stream", ("stream", *_LINKED)),
    _Table("memset", "gpu_memset", "device", "stream", ("stream", *_LINKED)),
    _Table(
        "sync", "cuda_sync", "device", "stream",
        ("stream", "correlation", "wait_on_stream", "wait_on_event_correlation"),
    ),
)  # fmt: skip
_COLUMNS = ("stream", *_LINKED, "wait_on_stream", "wait_on_event_correlation")


class Symbols:
    """Names and their ids, in order of first appearance."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self._ids: dict[str, int] = {}

    def id(self, name: str) -> int:
        number = self._ids.setdefault(name, len(self.names))
        if number == len(self.names):
            self.names.append(name)
        return number

    def ids(self, names: Sequence[str]) -> Int:
        return np.array([self.id(name) for name in names], dtype=np.int64)


def frame(trace: Trace, symbols: Symbols, *, whole_us: bool) -> pd.DataFrame:
    """Every complete event, in the file's order. Times are µs, with ``whole_us`` rounded inwards as HTA does."""
    parts = [part for table in _TABLES if len((part := _part(trace, table, symbols))["row"])]
    if not parts:
        return pd.DataFrame()
    columns = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    order = np.argsort(columns["row"], kind="stable")
    columns = {name: values[order] for name, values in columns.items()}
    index = columns.pop("row")
    columns["memory_bw_gbps"] = _bandwidth(columns["bytes"], columns["dur"])
    columns["ts"], columns["dur"] = microseconds(columns["ts"], columns["dur"], whole_us)
    columns["wait_on_cuda_event_record_corr_id"] = columns.pop("wait_on_event_correlation")
    columns["index_correlation"] = _partners(columns, index, symbols)
    columns["iteration"] = _iterations(columns, index, _steps(trace, columns, symbols, whole_us))
    columns["end"] = columns["ts"] + columns["dur"]
    return pd.DataFrame({"index": index, **columns}, index=pd.Index(index), copy=False)


def count_profiler_steps(trace: Trace) -> int:
    """The number of different ``ProfilerStep#`` annotations in the file."""
    return sum(STEP.match(name) is not None for name in trace.annotations["name"].cat.categories)


def step_rows(trace: Trace, symbols: Symbols, after: int, *, whole_us: bool) -> pd.DataFrame:
    """The steps of a recording as ``ProfilerStep#`` rows, by which HTA knows steps. Empty where the file has its own.

    Their index begins after ``after``.
    """
    steps = trace.steps
    if count_profiler_steps(trace) or steps.empty:
        return pd.DataFrame()
    names = [f"ProfilerStep#{number}" for number in steps["number"]]
    start, length = microseconds(steps["ts"].to_numpy(), steps["dur"].to_numpy(), whole_us)
    index = after + 1 + np.arange(len(steps))
    columns: dict[str, Any] = dict.fromkeys((*_COLUMNS, "wait_on_cuda_event_record_corr_id", "index_correlation"), -1)
    del columns["wait_on_event_correlation"]
    columns |= {
        "index": index, "cat": symbols.id("user_annotation"), "name": symbols.ids(names),
        "pid": -1 if trace.pid is None else trace.pid, "tid": steps["tid"].to_numpy(),
        "ts": start, "dur": length, "end": start + length,
        "memory_bw_gbps": 0.0, "iteration": steps["number"].to_numpy(),
    }  # fmt: skip
    return pd.DataFrame(columns, index=pd.Index(index))


def microseconds(ts: Int, dur: Int, whole: bool) -> tuple[Any, Any]:
    """Start and length in µs. With ``whole`` they are rounded inwards as HTA does, and a length may become −1.

    Like HTA, it adds floats: 0.1 + 0.2 µs are more than 0.3. A time in whole nanoseconds, divided by 1,000, is exactly
    the float in the file's text.
    """
    if not (ts % 1000).any() and not (dur % 1000).any():
        return ts // 1000, dur // 1000
    start, length = ts / 1000.0, dur / 1000.0
    if not whole:
        return start, length
    first = np.ceil(start).astype(np.int64)
    return first, np.floor(start + length).astype(np.int64) - first


def _part(trace: Trace, table: _Table, symbols: Symbols) -> dict[str, Any]:
    rows: pd.DataFrame = (
        trace.device[trace.device["kind"] == table.name]
        if table.name in ("kernel", "memcpy", "memset")
        else getattr(trace, table.name)
    )
    absent = np.full(len(rows), -1, dtype=np.int64)
    names = rows["name"].cat
    ids = symbols.ids(list(names.categories)) if len(rows) else absent
    return {
        "row": rows["row"].to_numpy(),
        "cat": np.full(len(rows), symbols.id(table.category) if len(rows) else -1, dtype=np.int64),
        "name": ids[names.codes.to_numpy().astype(np.intp)] if len(rows) else absent,
        "pid": rows[table.process].to_numpy(),
        "tid": rows[table.thread].to_numpy(),
        "ts": rows["ts"].to_numpy(),
        "dur": rows["dur"].to_numpy(),
    } | {name: rows[name].to_numpy() if name in table.columns else absent for name in _COLUMNS}


def _bandwidth(size: Int, dur: Int) -> NDArray[np.float64]:
    """GB/s, 0 where it is unknown."""
    known = (size > 0) & (dur > 0)
    return np.where(known, size / np.where(known, dur, 1), 0.0)


def _partners(columns: dict[str, Any], index: Int, symbols: Symbols) -> Int:
    """HTA's ``index_correlation``: the index of the row on the other side (host or device) with the same correlation.

    The last one counts where there are several. 0 where there is none, −1 for a row without a correlation.
    """
    correlation: Int = columns["correlation"]
    syncs = symbols.ids([name for name in DEVICE_SYNCS if name in symbols.names])
    on_device = ((columns["stream"] >= 0) & (correlation >= 0)) | np.isin(columns["name"], syncs)
    linked = correlation != -1
    partners: Int = np.minimum(correlation, 0)
    for mine, others in ((linked & on_device, linked & ~on_device), (linked & ~on_device, linked & on_device)):
        known = pd.Series(index[others], index=correlation[others])
        known = known[~known.index.duplicated(keep="last")]
        at = known.index.get_indexer(pd.Index(correlation[mine]))
        partners[mine] = np.where(at >= 0, known.to_numpy()[at] if len(known) else 0, partners[mine])
    return partners


def _steps(trace: Trace, columns: dict[str, Any], symbols: Symbols, whole_us: bool) -> list[tuple[float, float, int]]:
    """Begin, end and number of each step: of every ``ProfilerStep#`` row of host and device, else of the recording."""
    numbers = {symbols.id(name): int(match[1]) for name in symbols.names if (match := STEP.match(name))}
    at = np.flatnonzero(np.isin(columns["name"], list(numbers)))
    if len(at):
        ts, dur, names = (columns[name][at] for name in ("ts", "dur", "name"))
        return [(begin, begin + length, numbers[name]) for begin, length, name in zip(ts, dur, names, strict=True)]
    start, length = microseconds(trace.steps["ts"].to_numpy(), trace.steps["dur"].to_numpy(), whole_us)
    return list(zip(start, start + length, trace.steps["number"], strict=True))


def _iterations(columns: dict[str, Any], index: Int, steps: list[tuple[float, float, int]]) -> Int:
    """The number of the step in which a host row begins, or in which a device row was launched; −1 for none."""
    order = np.argsort(columns["ts"], kind="stable")
    ts = columns["ts"][order]
    begun = np.full(len(index), -1, dtype=np.int64)
    for begin, end, number in steps:
        low, high = np.searchsorted(ts, [begin, end])
        begun[order[low:high]] = number
    stream, partner = columns["stream"], columns["index_correlation"]
    launched = (stream > 0) & (partner > 0)
    at = np.searchsorted(index, np.where(launched, partner, 0)).clip(max=len(index) - 1)
    steps_of: Int = np.where(stream < 0, begun, np.where(launched, begun[at], -1))
    return steps_of
