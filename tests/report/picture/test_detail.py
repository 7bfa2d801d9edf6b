"""Merging loses nothing: for any rows, what stands for them adds up to them."""

from __future__ import annotations

import pandas as pd
from hypothesis import given, settings
from hypothesis import strategies as st

from syncscope.report.picture.detail import merged

EVENTS = st.lists(
    st.tuples(st.integers(0, 10**7), st.integers(0, 10**5), st.integers(0, 4), st.integers(-1, 100)), max_size=200
)


def table(events: list[tuple[int, int, int, int]]) -> pd.DataFrame:
    rows = pd.DataFrame(events, columns=["ts", "dur", "key", "bytes"]).astype("int64")
    rows["end"] = rows["ts"] + rows["dur"]
    rows["near"] = False
    rows["name"] = "event " + rows["dur"].astype(str)
    return rows


@settings(max_examples=150, deadline=None)
@given(EVENTS, st.integers(1, 300))
def test_every_event_is_inside_the_bar_that_stands_for_it(events: list[tuple[int, int, int, int]], most: int) -> None:
    rows = table(events)
    bars, bar = merged(rows, most)
    mine = bars.iloc[bar].reset_index(drop=True)
    assert (mine["key"].to_numpy() == rows["key"].to_numpy()).all()
    assert (mine["ts"].to_numpy() <= rows["ts"].to_numpy()).all()
    assert (mine["end"].to_numpy() >= rows["end"].to_numpy()).all()
    assert bars["merged"].sum() == len(rows)
    assert bars["busy"].sum() == (rows["end"] - rows["ts"]).sum()
    known = rows["bytes"].where(rows["bytes"] >= 0, 0).sum()
    assert bars["bytes"].where(bars["bytes"] >= 0, 0).sum() == known


@settings(max_examples=150, deadline=None)
@given(EVENTS, st.integers(1, 300))
def test_there_are_as_many_bars_as_fit_or_as_kinds(events: list[tuple[int, int, int, int]], most: int) -> None:
    rows = table(events)
    bars, _ = merged(rows, most)
    assert len(bars) <= max(most, rows["key"].nunique())
    if len(rows) <= most:
        assert len(bars) == len(rows)


def test_the_longest_event_lends_its_name() -> None:
    bars, _ = merged(table([(0, 5, 0, -1), (10, 50, 0, -1), (100, 20, 0, -1)]), 1)
    assert bars["name"].tolist() == ["event 50"]


def test_a_bar_with_no_known_size_has_none() -> None:
    bars, _ = merged(table([(0, 5, 0, -1), (10, 5, 0, -1), (0, 5, 1, 3), (10, 5, 1, -1)]), 2)
    assert bars["bytes"].tolist() == [-1, 3]


def test_what_is_near_stays_as_it_is() -> None:
    rows = table([(10 * i, 5, 0, -1) for i in range(100)])
    rows["near"] = rows.index.isin(range(20, 30))
    bars, bar = merged(rows, 12)
    assert bars["merged"].iloc[bar[20:30]].tolist() == [1] * 10
    assert len(bars) == 12
