"""Ops of calls that copy, where the clocks of calls and of ops disagree."""

from __future__ import annotations

import pytest

from syncscope.timeline import Timeline
from tests.builders import TraceBuilder

CHAIN = ("aten::index", "aten::to", "aten::_to_copy", "aten::copy_")


def index(builder: TraceBuilder, start: float, *, early: float) -> TraceBuilder:
    """``x[rows]`` with rows on the host, 300 µs: calls of a blocking copy whose clock is ``early`` by some µs."""
    builder.op("aten::index", start, 300).op("aten::to", start + 10, 200).op("aten::_to_copy", start + 12, 196)
    builder.op("aten::empty_strided", start + 20, 38).op("aten::copy_", start + 60, 60)
    builder.copy("HtoD", call=(start + 64 - early, 20), runs=(start + 90, 5), memory="pageable", bytes=800)
    return builder.stream_sync(start + 88 - early, 28)


@pytest.mark.parametrize("early", [0, 10, 20, -15, -40])
def test_a_call_belongs_to_the_op_that_copies_beside_it_where_clocks_disagree(early: float):
    builder = TraceBuilder()
    for number, off in enumerate((8, -15, 12, early)):
        index(builder, 1000 * number, early=off)
    view = Timeline(builder.trace())
    assert set(view.copies.ops) == set(view.waits.ops) == {CHAIN}
    assert (view.waits.copy_call >= 0).all()


def test_a_wait_belongs_to_the_op_that_copies_though_its_call_seems_to_be_in_the_one_before():
    builder = index(TraceBuilder(), 0, early=8)
    builder.op("aten::index", 1000, 300).op("aten::to", 1010, 200).op("aten::_to_copy", 1012, 196)
    builder.op("aten::empty_strided", 1020, 39).op("aten::copy_", 1060, 60)
    builder.copy("HtoD", call=(1038, 10), runs=(1042, 5), memory="pageable", bytes=800).stream_sync(1049, 8)
    view = Timeline(builder.trace())
    assert set(view.copies.ops) == set(view.waits.ops) == {CHAIN}


def test_a_wait_that_begins_with_its_brief_copy_beside_their_op_completes_it():
    builder = index(TraceBuilder(), 0, early=8).call("cudaEventQuery", 1030, 1)
    builder.op("aten::index", 1000, 300).op("aten::to", 1010, 200).op("aten::_to_copy", 1012, 196)
    builder.op("aten::copy_", 1060, 60)
    builder.copy("HtoD", call=(1058, 0), runs=(1062, 5), memory="pageable", bytes=800).stream_sync(1058, 55)
    view = Timeline(builder.trace())
    assert set(view.copies.ops) == set(view.waits.ops) == {CHAIN}
    assert (view.waits.copy_call >= 0).all()


@pytest.mark.parametrize(("around", "joined"), [("aten::to", True), ("model::step", False)])
def test_a_wait_long_after_a_copy_but_right_behind_the_op_that_copies_completes_it(around: str, joined: bool):
    builder = index(TraceBuilder(), 0, early=8).op(around, 1000, 60).op("aten::copy_", 1020, 35)
    builder.copy("HtoD", call=(1020, 6), runs=(1024, 5), memory="pageable", bytes=800).stream_sync(1057, 1)
    waits = Timeline(builder.trace()).waits
    assert (waits.copy_call[-1] >= 0, waits.ops[-1][-1]) == (joined, "aten::copy_" if joined else around)


def test_a_call_beside_an_op_is_left_where_it_is_where_clocks_agree():
    builder = index(TraceBuilder(), 0, early=0).op("aten::to", 5000, 100).op("aten::copy_", 5021, 20)
    builder.copy("HtoD", call=(5006, 10), runs=(5015, 5), memory="pageable")
    assert Timeline(builder.trace()).copies.ops[-1] == ("aten::to",)


@pytest.mark.parametrize("reader", ["aten::nonzero", "aten::_local_scalar_dense"])
def test_a_read_of_the_device_keeps_its_copy_though_clocks_disagree(reader: str):
    builder = TraceBuilder()
    for number in range(3):
        index(builder, 1000 * number, early=10)
    builder.op(reader, 5000, 30).op("aten::copy_", 5032, 20)
    builder.copy("DtoH", call=(5005, 10), runs=(5010, 3), memory="pinned", bytes=8).stream_sync(5016, 10)
    assert Timeline(builder.trace()).waits.ops[-1] == (reader,)
