from __future__ import annotations

from typing import Any

import pytest

from syncscope.timeline import Timeline
from syncscope.timeline.idle import CAUSES
from tests.builders import TraceBuilder

US = 1000


def gap(builder: TraceBuilder, at: float) -> dict[str, Any]:
    """The bubble that begins ``at`` µs: µs by cause, and the wait behind it."""
    idle = Timeline(builder.trace()).idle
    row = idle[idle["ts"] == at * US].iloc[0]
    return {cause: row[cause] / US for cause in CAUSES if row[cause]} | {"wait row": int(row["emptied_by"])}


def base() -> TraceBuilder:
    """A kernel until 100 µs; the next begins at 200 µs, launched at 180 µs."""
    return TraceBuilder().launch("a", call=(0, 5), runs=(10, 90)).launch("b", call=(180, 10), runs=(200, 100))


def test_the_gaps_of_the_span_are_the_devices_idle_time():
    view = Timeline(base().step(0, 320).trace())
    assert view.idle[["ts", "end"]].to_numpy().tolist() == [[0, 10 * US], [100 * US, 200 * US], [300 * US, 320 * US]]
    assert view.overlap is not None
    assert view.overlap.idle_ms == pytest.approx(0.130)
    assert (view.idle[list(CAUSES)].sum(axis=1) == view.idle["dur"]).all()


def test_host_work_between_launches_is_the_hosts():
    assert gap(base(), 100) == {"host work": 90, "launch latency": 10, "wait row": -1}


def test_a_wait_answers_for_what_it_blocked_the_host():
    # Blocked for 102 µs, so without it the host would have been ready in time.
    assert gap(base().stream_sync(6, 96, record=True), 100) == {"wait": 90, "launch latency": 10, "wait row": 0}


def test_a_short_wait_does_not_answer_for_long_host_work_after_it():
    # It blocked 20 µs; of the 90 µs until the launch it can have cost 20 and what it lasted into the gap.
    assert gap(base().stream_sync(85, 20, record=True), 100) == {
        "wait": 25, "host work": 65, "launch latency": 10, "wait row": 0,
    }  # fmt: skip


def test_a_wait_that_had_nothing_to_wait_for_is_not_the_cause():
    assert gap(base().stream_sync(120, 5, record=True), 100)["wait row"] == -1


def test_data_loading_and_allocation_are_named():
    builder = base().annotation("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", 105, 40)
    builder.call("cudaMalloc", 150, 20)
    assert gap(builder, 100) == {
        "data loading": 40, "allocation": 20, "host work": 30, "launch latency": 10, "wait row": -1,
    }  # fmt: skip


def test_a_device_that_holds_what_was_launched_long_before_is_not_the_hosts_fault():
    builder = TraceBuilder().launch("a", call=(0, 5), runs=(10, 90)).launch("b", call=(6, 5), runs=(200, 100))
    assert gap(builder, 100) == {"queued on device": 100, "wait row": -1}


def test_a_launch_that_the_trace_lost_leaves_the_cause_unknown():
    builder = TraceBuilder().launch("a", call=(0, 5), runs=(10, 90)).kernel("b", 200, 50)
    assert gap(builder, 100) == {"unknown": 100, "wait row": -1}


def test_a_host_that_stages_a_pageable_copy_is_named():
    builder = TraceBuilder().launch("a", call=(0, 5), runs=(10, 90))
    builder.copy("HtoD", call=(110, 100), runs=(200, 20), memory="pageable")
    assert gap(builder, 100) == {"pageable copy": 90, "host work": 10, "wait row": -1}


def test_activity_of_another_device_does_not_fill_the_gap():
    builder = base().launch("other", call=(1, 2), runs=(100, 100), device=1)
    assert gap(builder, 100)["host work"] == 90
