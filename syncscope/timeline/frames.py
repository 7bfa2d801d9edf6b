"""TRANSITIONAL: the timeline's tables as the pandas frames they were, for code that has not moved to the typed tables.

Delete this file, the decorators ``accepts_frames`` and the block at the end of ``timeline.py`` once nobody reads
``timeline.waits["ts"]`` and the like.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
import pandas as pd

Result = TypeVar("Result")


class FrameTable:
    """A frame that answers like a typed table."""

    def __init__(self, frame: pd.DataFrame) -> None:
        self._frame = frame

    def __len__(self) -> int:
        return len(self._frame)

    def take(self, rows: Any) -> FrameTable:
        return FrameTable(self._frame.iloc[np.flatnonzero(rows) if np.asarray(rows).dtype == bool else rows])

    def __getattr__(self, name: str) -> Any:
        frame = self._frame
        if name == "row":
            return frame.index.to_numpy(np.int64)
        if name == "device_row" and name not in frame:
            name = "row"
        if name == "dur" and name not in frame:
            return self.end - self.ts
        if name == "stall" and name not in frame:
            return self.end - self.begin
        if name not in frame:
            raise AttributeError(name)
        column = frame[name]
        kind = column.dtype.kind
        return column.to_numpy(np.int64) if kind == "i" else column.to_numpy(bool) if kind == "b" else texts_of(column)


def texts_of(column: pd.Series) -> Any:
    return column.astype(object).to_numpy(object)


def _typed(value: Any) -> Any:
    if isinstance(value, pd.DataFrame):
        return FrameTable(value)
    return texts_of(value) if isinstance(value, pd.Series) else value


def accepts_frames(function: Callable[..., Result]) -> Callable[..., Result]:
    """Let a function on typed tables take frames for them."""

    @functools.wraps(function)
    def typed(*args: Any, **kwargs: Any) -> Result:
        return function(*map(_typed, args), **{key: _typed(one) for key, one in kwargs.items()})

    return typed


def serialised_frame(function: Callable[..., Any]) -> Callable[..., Any]:
    """Let ``copies.serialised`` answer with rows of its frame and the column ``lost``."""

    @functools.wraps(function)
    def either(copies: Any, activities: Any) -> Any:
        rows, lost = function(copies, activities)
        return copies.iloc[rows].assign(lost=lost) if isinstance(copies, pd.DataFrame) else (rows, lost)

    return either


def trimmed_frame(function: Callable[..., Any]) -> Callable[..., Any]:
    """Let ``collectives.trimmed`` answer with its frame."""

    @functools.wraps(function)
    def either(collectives: Any, steps: int) -> Any:
        dur, exposed = function(collectives, steps)
        frame = isinstance(collectives, pd.DataFrame)
        return collectives.assign(dur=dur, exposed=exposed) if frame else (dur, exposed)

    return either


def without_op_rows(function: Callable[..., Result]) -> Callable[..., Result]:
    """Let ``collective_waits.in_collectives`` be given ``Trace.ops`` before ``Timeline.ops``."""

    @functools.wraps(function)
    def either(waits: Any, places: Any, *ops: Any) -> Result:
        return function(waits, places, ops[-1])

    return either


def _frame(table: Any, columns: str, **more: Any) -> pd.DataFrame:
    return pd.DataFrame({name: more[name] if name in more else getattr(table, name) for name in columns.split()})


def _kept(values: Any) -> pd.Series:
    return pd.Series(values, dtype=object)


def waits_frame(waits: Any) -> pd.DataFrame:
    columns = "ts end dur call name kind tid correlation op ops ops_known copy_call step place copy begin stall pending"
    return _frame(waits, columns, ops=_kept(waits.ops))


def copies_frame(copies: Any) -> pd.DataFrame:
    columns = (
        "ts end dur row launch launch_ts launch_end launch_dur tid bytes direction memory device stream op ops exposed "
        "with_compute step wait place"
    )
    objects = {name: _kept(getattr(copies, name)) for name in ("direction", "memory", "ops")}
    return _frame(copies, columns, row=copies.device_row, **objects)


def collectives_frame(table: Any) -> pd.DataFrame:
    columns = (
        "ts end dur row launch launch_ts launch_end tid name group bytes device stream ops exposed beside step place"
    )
    objects = {name: _kept(getattr(table, name)) for name in ("name", "ops", "beside")}
    return _frame(table, columns, row=table.device_row, **objects)


def pins_frame(pins: Any) -> pd.DataFrame:
    return _frame(pins, "ts end tid op dur ops step copy place", ops=_kept(pins.ops))


def loads_frame(loads: Any) -> pd.DataFrame:
    return _frame(loads, "ts end tid name place")


def idle_frame(bubbles: Any, causes: tuple[str, ...]) -> pd.DataFrame:
    frame = _frame(bubbles, "ts end dur launch emptied_by cause")
    return frame.assign(**{cause: bubbles.by_cause[:, number] for number, cause in enumerate(causes)})


def calls_frame(runtime: pd.DataFrame, pid: int | None, calls: Any) -> pd.DataFrame:
    frame = runtime if pid is None else runtime[(runtime["pid"] == pid).to_numpy(bool)].reset_index(drop=True)
    return frame.assign(tid=calls.tid, role=pd.Categorical(calls.role))
