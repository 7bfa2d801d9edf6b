"""Find the steps of a trace: the recording's own, the profiler's, else what lies between the steps of an optimizer, or
the batches of a server."""

from __future__ import annotations

from typing import Protocol

import msgspec
import numpy as np

from syncscope.patterns import compile_later
from syncscope.schema.recording import RecordedSteps, Recording
from syncscope.trace.quantiles import median
from syncscope.trace.rows import Rows, most_common
from syncscope.trace.tables.repeats import find_repetition
from syncscope.trace.tables.server_steps import find_server_steps

_STEP = compile_later(r"ProfilerStep#(\d{1,18})")
_OPTIMIZER = "Optimizer.step#"
"""How PyTorch marks the step of an optimizer (torch/optim/optimizer.py); the name of its class follows."""

_MOST_OPTIMIZERS = 4
"""Optimizers that take turns in one step, at most."""

_LEAST_TURNS = 3
"""Times that the optimizers take their turns, so that two steps lie between them at least."""

_ALIKE = 0.05
"""Steps are alike if their numbers of ops differ by this share at most."""

_MOST_ALIKE = 0.9
"""Share of the steps that are alike."""

_TAIL = 0.5
"""Share of the other steps' length below which a last step without work is no step."""

_MOST_OF_IT = 0.5
"""Marks of steps take more than this share of the time from the first to the last, where they are the steps."""

_FETCH = compile_later(r"DataLoader|DataPipe")
"""In the names of annotations in which a loader fetches a batch: it does more work in some turns than in others."""


class Tables(Protocol):
    """The tables that tell of steps."""

    annotations: Rows
    ops: Rows
    device: Rows
    runtime: Rows


class FoundSteps(msgspec.Struct, frozen=True):
    """The steps of a trace."""

    table: Rows
    source: str
    """``Trace.step_source``."""
    note: str | None = None
    """What the reader must know of where they come from."""


def find_steps(tables: Tables, recording: Recording | None, base_ns: int, pid: int | None) -> FoundSteps:
    """The recording's boundaries, else the profiler's own rows, else, in a trace of others, from one step of the
    optimizers to the next, or the batches that a server marks, or what the device repeats where that is certain."""
    if recording is not None and len(recording.steps.boundaries_ns) > 1:
        return FoundSteps(_recorded_steps(recording.steps, base_ns), recording.steps.source)
    every = _profiler_steps(tables.annotations, pid)
    marks = _of_one_loop(every)
    table = _without_tail(_between(marks) if _cover_little(marks) else marks, tables)
    if len(table):
        return FoundSteps(table, "profiler", _tell_other_loops(len(every) - len(marks), len(every)))
    if recording is not None:
        return FoundSteps(table, "none")
    table = _optimizer_steps(tables.annotations, tables.ops, pid)
    if len(table):
        return FoundSteps(table, "optimizer")
    served = find_server_steps(tables.annotations, tables.device, tables.runtime, pid)
    if served is not None:
        bounds, tid = served
        numbers = np.arange(len(bounds) - 1, dtype=np.int64)
        return FoundSteps(_step_table(bounds[:-1], bounds[1:], numbers, np.full_like(numbers, tid)), "server")
    repetition = find_repetition(tables.device, tables.runtime, pid)
    if repetition is None:
        return FoundSteps(table, "none")
    bounds, rows = repetition
    numbers = np.arange(len(bounds) - 1, dtype=np.int64)
    note = f"no step is marked: a step is the {rows:,} device rows that the whole trace repeats without exception"
    return FoundSteps(_step_table(bounds[:-1], bounds[1:], numbers, np.full_like(numbers, -1)), "kernels", note)


def _recorded_steps(steps: RecordedSteps, base_ns: int) -> Rows:
    bounds = np.array(steps.boundaries_ns, dtype=np.int64) - base_ns
    numbers = steps.first + np.arange(len(bounds) - 1, dtype=np.int64)
    tids = np.full(len(numbers), -1 if steps.tid is None else steps.tid, dtype=np.int64)
    return _step_table(bounds[:-1], bounds[1:], numbers, tids)


def _profiler_steps(annotations: Rows, pid: int | None) -> Rows:
    names = annotations.texts["name"]
    matches = [_STEP.search(name) for name in names.names]
    taken = names.are([match is not None for match in matches])
    own = taken & (annotations["pid"] == pid)
    if pid is not None and own.any():
        taken = own
    rows = annotations.take(taken)
    if len(rows):
        # One thread steps. Another one that calls step() too would count every step twice.
        rows = rows.take(rows["tid"] == most_common(rows["tid"]))
    numbers = np.array([int(match[1]) if match else -1 for match in matches], dtype=np.int64)
    return _step_table(rows["ts"], rows["end"], numbers[rows.texts["name"].codes], rows["tid"])


def _of_one_loop(marks: Rows) -> Rows:
    """The steps of the longest loop, of equals the last: one profiler counts up, so where the numbers fall another loop
    begins, as that of training behind a sanity check. All, where that is less than ``_MOST_OF_IT``."""
    marks = marks.take(np.argsort(marks["ts"], kind="stable"))
    loop = np.cumsum(np.append(False, np.diff(marks["number"]) <= 0)[: len(marks)])
    sizes = np.bincount(loop) if len(marks) else np.zeros(1, dtype=np.int64)
    longest = len(sizes) - 1 - int(sizes[::-1].argmax())
    return marks.take(loop == longest) if sizes[longest] > _MOST_OF_IT * len(marks) else marks


def _tell_other_loops(left_out: int, every: int) -> str | None:
    if not left_out:
        return None
    return f"{left_out} of {every} marked steps are left out: their numbers are those of another loop"


def _cover_little(marks: Rows) -> bool:
    """Whether several marks of steps take little of the time from the first to the end of the last: each was open only
    while ``step()`` ran, and what a step does lies between them."""
    if len(marks) < 2:
        return False
    return bool(marks["dur"].sum() < _MOST_OF_IT * (marks["end"].max() - marks["ts"].min()))


def _between(marks: Rows) -> Rows:
    """A step from the begin of each mark to that of the next."""
    marks = marks.take(np.argsort(marks["ts"], kind="stable"))
    return _step_table(marks["ts"][:-1], marks["ts"][1:], marks["number"][:-1], marks["tid"][:-1])


def _without_tail(table: Rows, tables: Tables) -> Rows:
    """The steps without a short last one in which no op begins and nothing is launched: the profiler marks a step from
    the last ``step()`` to its end. One that is as long as the others has lost its rows."""
    if len(table) < 2:
        return table
    begin, end = table["ts"], table["end"]
    last = int(begin.argmax())
    length = end - begin
    if length[last] >= _TAIL * median(np.delete(length, last)):
        return table
    launched = np.isin(tables.runtime["correlation"], tables.device["correlation"])
    work = [tables.ops["ts"], tables.runtime["ts"][launched]]
    known = any(len(ts) for ts in work)
    if not known or any(((ts >= begin[last]) & (ts < end[last])).any() for ts in work):
        return table
    return table.take(np.arange(len(table)) != last)


def _step_table(start: np.ndarray, end: np.ndarray, number: np.ndarray, tid: np.ndarray) -> Rows:
    return Rows({"ts": start, "dur": end - start, "end": end, "number": number, "tid": tid}, {})


def _optimizer_steps(annotations: Rows, ops: Rows, pid: int | None) -> Rows:
    """From the end of one step of the optimizers to the end of the next. What runs before the first and after the last
    is in none. Several optimizers that take turns make one step; where their turns differ there are no steps."""
    names = annotations.texts["name"]
    rows = annotations.take(names.are([name.startswith(_OPTIMIZER) for name in names.names]))
    if pid is not None:
        rows = rows.take(rows["pid"] == pid)
    if len(rows):
        rows = rows.take(rows["tid"] == most_common(rows["tid"]))
    ends = rows["end"]
    fetches = annotations.take(names.are([_FETCH.search(name) is not None for name in names.names]))
    marks = _turns(rows.texts["name"].objects().tolist(), _count_ops(ops, rows, fetches, ends))
    bounds = ends[(len(ends) - 1) % marks :: marks] if marks else ends[:0]
    tids = np.full(max(len(bounds) - 1, 0), rows["tid"][0] if len(rows) else -1, dtype=np.int64)
    return _step_table(bounds[:-1], bounds[1:], np.arange(len(tids), dtype=np.int64), tids)


def _count_ops(ops: Rows, rows: Rows, fetches: Rows, ends: np.ndarray) -> np.ndarray:
    """How many ops of their thread begin between the ends of two marks that follow each other (n − 1,), without those
    of the ``fetches`` of a batch."""
    own = ops["ts"][np.isin(ops["tid"], rows["tid"])]
    fetches = fetches.take(np.isin(fetches["tid"], rows["tid"]))
    begin, end = fetches["ts"], fetches["end"]
    # Fetches of one thread do not overlap but by one inside another, which ends earlier.
    before = np.searchsorted(begin, own, side="right")
    until = np.maximum.accumulate(np.append(np.iinfo(np.int64).min, end))
    return np.diff(np.searchsorted(own[own >= until[before]], ends))


def _turns(names: list[str], sizes: np.ndarray) -> int:
    """How many marks of optimizers make a step, 0 where they do not repeat. Two of one class have one name, and what
    comes before them, ``sizes`` (n − 1,), tells that they are two."""
    possible = [n for n in range(1, _MOST_OPTIMIZERS + 1) if len(names) >= _LEAST_TURNS * n]
    one = next((n for n in possible if names[n:] == names[:-n]), 0)
    several = (n for n in possible if one and n % one == 0)
    return next((turns for turns in several if _repeats(sizes, turns)), one)


def _repeats(sizes: np.ndarray, turns: int) -> bool:
    apart = np.abs(sizes[turns:] - sizes[:-turns])
    return bool((apart <= _ALIKE * np.maximum(sizes[turns:], sizes[:-turns])).mean() >= _MOST_ALIKE)
