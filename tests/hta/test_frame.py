"""The frame for HTA, without HTA: partners, steps, rounding."""

from __future__ import annotations

import numpy as np
import pytest

from syncscope.hta.frame import Symbols, frame, microseconds, step_rows
from syncscope.hta.trace_analysis import _by_rank
from tests.builders import TraceBuilder


def built() -> TraceBuilder:
    return (
        TraceBuilder()
        .steps(0, 100, 200)
        .op("aten::mm", 10, 20)
        .launch("gemm", call=(12, 3), runs=(120, 30))
        .copy("DtoH", call=(110, 3), runs=(150, 5), memory="pinned", bytes=10_000)
    )


def named(columns: str = "index_correlation iteration") -> dict[str, list[object]]:
    symbols = Symbols()
    made = frame(built().trace(), symbols, whole_us=True)
    return {symbols.names[row["name"]]: [row[name] for name in columns.split()] for row in made.to_dict("records")}


def test_the_index_is_the_place_in_the_file() -> None:
    trace = built()
    made = frame(trace.trace(), Symbols(), whole_us=True)
    complete = [place for place, event in enumerate(trace.events) if event["ph"] == "X"]
    assert made["index"].tolist() == made.index.tolist() == complete


def test_a_launch_and_what_it_launched_are_partners_and_share_the_step() -> None:
    index = {name: values[0] for name, values in named("index").items()}
    partner = named()
    assert partner["gemm"] == [index["cudaLaunchKernel"], 0]
    assert partner["cudaLaunchKernel"] == [index["gemm"], 0]
    assert partner["Memcpy DtoH (Device -> Pinned)"][1] == 1
    assert partner["aten::mm"] == [-1, 0]


def test_bandwidth_is_bytes_over_time() -> None:
    assert named("memory_bw_gbps")["Memcpy DtoH (Device -> Pinned)"] == [2.0]


def test_times_are_rounded_inwards_as_sums_of_floats() -> None:
    ts, dur = np.array([100_100, 200_500, 300_000]), np.array([900, 400, 1_000])
    start, length = microseconds(ts, dur, whole=True)
    assert list(zip(start, length, strict=True)) == [(101, 0), (201, -1), (300, 1)]
    start, length = microseconds(ts, dur, whole=False)
    assert list(start + length) == pytest.approx([101.0, 200.9, 301.0])


def test_steps_are_added_only_where_the_file_names_none() -> None:
    assert step_rows(built().trace(), Symbols(), 9, whole_us=True).empty
    recorded = TraceBuilder().launch("gemm", call=(12, 3), runs=(20, 30)).recording(0, 100, 200)
    symbols = Symbols()
    rows = step_rows(recorded.trace(), symbols, 9, whole_us=True)
    assert rows["index"].tolist() == [10, 11]
    assert [symbols.names[i] for i in rows["name"]] == [f"ProfilerStep#{n}" for n in rows["iteration"]]


def test_ranks_are_the_traces_own_where_they_differ() -> None:
    first, second = (TraceBuilder(rank=rank).launch("gemm", call=(1, 1), runs=(2, 3)).trace() for rank in (3, 5))
    assert list(_by_rank([second, first])) == [5, 3]
    assert list(_by_rank([first, first])) == [0, 1]
    assert list(_by_rank({7: first})) == [7]
    assert list(_by_rank(first)) == [3]
    with pytest.raises(ValueError, match="no trace given"):
        _by_rank([])
