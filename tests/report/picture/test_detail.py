"""Merging loses nothing: for any rows, what stands for them adds up to them."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from syncscope.report.picture.detail import merge_rows
from syncscope.report.picture.rows import Rows
from syncscope.timeline.intervals import Ints

EVENTS = st.lists(
    st.tuples(st.integers(0, 10**7), st.integers(0, 10**5), st.integers(0, 4), st.integers(-1, 100)), max_size=200
)


def table(events: list[tuple[int, int, int, int]]) -> tuple[Rows, Ints]:
    """Rows and their keys."""
    ts, dur, key, size = np.array(events, dtype=np.int64).reshape(-1, 4).T
    columns: dict[str, Any] = {name: np.full(len(ts), -1) for name in Rows.columns}
    names = np.array([f"event {one}" for one in dur], dtype=object)
    return Rows(**{**columns, "ts": ts, "end": ts + dur, "bytes": size, "name": names}), key


def none_near(rows: Rows) -> Any:
    return np.zeros(len(rows), dtype=bool)


@given(EVENTS, st.integers(1, 300))
def test_every_event_is_inside_the_bar_that_stands_for_it(events: list[tuple[int, int, int, int]], most: int) -> None:
    rows, key = table(events)
    bars, bar = merge_rows(rows, key, key, none_near(rows), most)
    mine = bars.take(bar)
    assert (mine.key == key).all()
    assert (mine.ts <= rows.ts).all()
    assert (mine.end >= rows.end).all()
    assert bars.merged.sum() == len(rows)
    assert bars.busy.sum() == (rows.end - rows.ts).sum()
    assert bars.bytes[bars.bytes >= 0].sum() == rows.bytes[rows.bytes >= 0].sum()


@given(EVENTS, st.integers(1, 300))
def test_there_are_as_many_bars_as_fit_or_as_kinds(events: list[tuple[int, int, int, int]], most: int) -> None:
    rows, key = table(events)
    bars, _ = merge_rows(rows, key, key, none_near(rows), most)
    assert len(bars) <= max(most, len(np.unique(key)))
    if len(rows) <= most:
        assert len(bars) == len(rows)


def test_the_longest_event_lends_its_name() -> None:
    rows, key = table([(0, 5, 0, -1), (10, 50, 0, -1), (100, 20, 0, -1)])
    assert merge_rows(rows, key, key, none_near(rows), 1)[0].name.tolist() == ["event 50"]


def test_a_bar_with_no_known_size_has_none() -> None:
    rows, key = table([(0, 5, 0, -1), (10, 5, 0, -1), (0, 5, 1, 3), (10, 5, 1, -1)])
    assert merge_rows(rows, key, key, none_near(rows), 2)[0].bytes.tolist() == [-1, 3]


def test_what_is_near_stays_as_it_is() -> None:
    rows, key = table([(10 * i, 5, 0, -1) for i in range(100)])
    near = np.isin(np.arange(100), range(20, 30))
    bars, bar = merge_rows(rows, key, key, near, 12)
    assert bars.merged[bar[20:30]].tolist() == [1] * 10
    assert len(bars) == 12
