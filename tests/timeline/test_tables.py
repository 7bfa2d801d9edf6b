from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from syncscope.timeline.calls import find_calls
from syncscope.timeline.row_groups import group_rows, number_groups, number_in_group
from syncscope.timeline.tables import Marks, Ops, objects
from tests.builders import TraceBuilder


def marks(*names: str) -> Marks:
    """Marks of 5 µs, one every 10 µs."""
    ts = np.arange(len(names), dtype=np.int64) * 10
    tid = np.full(len(names), 1, dtype=np.int64)
    return Marks(row=np.arange(len(names)), ts=ts, end=ts + 5, tid=tid, name=objects(list(names)))


def test_a_part_of_a_table_says_where_its_rows_came_from():
    table = marks("a", "b", "c")
    assert table.take([2, 0]).row.tolist() == [2, 0]
    assert table.take(table.name != "b").name.tolist() == ["a", "c"]
    assert table.take([2, 0]).numbered().row.tolist() == [0, 1]
    assert len(table.take([])) == 0


def test_rows_are_found_by_names_of_which_each_is_tested_once():
    table, asked = marks("a", "b", "a", ""), []

    def is_a(name: str) -> bool:
        asked.append(name)
        return name == "a"

    assert table.named(is_a).tolist() == [True, False, True, False]
    assert asked == ["a", "b", ""]
    assert marks().named(is_a).tolist() == []
    assert table.take([1, 2]).named(is_a).tolist() == [False, True]


def test_calls_are_found_by_their_roles():
    builder = TraceBuilder().call("cudaLaunchKernel", 0, 5).call("cudaStreamSynchronize", 10, 5).call("unheard", 20, 5)
    calls = find_calls(builder.kernel("k", 50, 5).trace())
    assert calls.do(["launch", "copy"]).tolist() == [True, False, False]
    assert calls.do({"stream-sync", "launch"}).tolist() == [True, True, False]
    assert not calls.do(()).any()


def test_a_table_becomes_a_frame_and_is_made_of_rows():
    table = marks("a", "b")
    frame = table.to_pandas()
    assert frame.columns.tolist() == ["row", "ts", "end", "tid", "name"]
    rows = TraceBuilder().op("a", 0, 5).op("b", 10, 5).kernel("k", 50, 5).trace().rows["ops"]
    again = Marks.of(rows)
    assert (again.name.tolist(), (again.end - again.ts).tolist()) == (["a", "b"], [5000, 5000])
    assert (again.ts.dtype, again.name.dtype) == (np.int64, object)


def test_a_chain_of_ops_leaves_out_the_profilers_markers():
    builder = TraceBuilder().op("ProfilerStep#3", 0, 100).op("aten::item", 10, 50)
    ops = Ops.of(builder.op("aten::_local_scalar_dense", 20, 10).kernel("k", 50, 5).trace().rows["ops"])
    assert ops.chains(np.array([2, -1])).tolist() == [("aten::item", "aten::_local_scalar_dense"), ()]


@pytest.mark.parametrize("texts", [["b", "a", "b", "a", "a"], [7, -1, 7, -1, -1]])
def test_rows_are_numbered_by_what_they_have_in_common(texts: list[object]):
    column = np.array(texts, dtype=object if isinstance(texts[0], str) else np.int64)
    group = number_groups(column, np.array([0, 0, 0, 0, 1]))
    assert group.tolist() == [2, 0, 2, 0, 1]
    assert number_in_group(group).tolist() == [0, 0, 1, 1, 0]
    assert [rows.tolist() for rows in group_rows(group)] == [[1, 3], [4], [0, 2]]


def test_no_rows_make_no_groups():
    group = number_groups(np.empty(0, dtype=np.int64), pd.Series([], dtype=object).to_numpy())
    assert (group.tolist(), number_in_group(group).tolist(), group_rows(group)) == ([], [], [])
