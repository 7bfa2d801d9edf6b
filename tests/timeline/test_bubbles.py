from __future__ import annotations

import json
from typing import Any

import pytest

from syncscope.timeline import Timeline
from syncscope.timeline.tables import CAUSES
from syncscope.trace.reader import read_bytes
from tests.builders import TID, TraceBuilder

US = 1000


def gap(builder: TraceBuilder, at: float) -> dict[str, Any]:
    """The bubble that begins ``at`` µs: µs by cause, and the wait behind it."""
    bubbles = Timeline(builder.trace()).bubbles
    bubble = bubbles.take(bubbles.ts == at * US)
    parts = zip(CAUSES, (bubble.by_cause[0] / US).tolist(), strict=True)
    return {cause: us for cause, us in parts if us} | {"wait row": int(bubble.emptied_by[0])}


def base() -> TraceBuilder:
    """A kernel until 100 µs; the next begins at 400 µs, launched at 380 µs."""
    return TraceBuilder().launch("a", call=(0, 5), runs=(10, 90)).launch("b", call=(380, 10), runs=(400, 100))


def test_the_gaps_of_the_span_are_the_devices_idle_time():
    view = Timeline(base().step(0, 520).trace())
    bubbles = view.bubbles
    assert bubbles.ts.tolist() == [0, 100 * US, 500 * US]
    assert bubbles.end.tolist() == [10 * US, 400 * US, 520 * US]
    assert view.overlap is not None
    assert view.overlap.idle_ms == pytest.approx(0.330)
    assert (bubbles.by_cause.sum(axis=1) == bubbles.dur).all()


def test_host_work_between_launches_is_the_hosts():
    assert gap(base(), 100) == {"host work": 290, "launch latency": 10, "wait row": -1}


def test_one_launch_right_behind_the_other_is_launching():
    builder = TraceBuilder().launch("a", call=(0, 5), runs=(10, 20)).launch("b", call=(70, 10), runs=(85, 20))
    assert gap(builder, 30) == {"launching": 50, "launch latency": 5, "wait row": -1}


def test_what_an_op_of_pytorch_does_before_it_launches_is_launching():
    slow = base().op("aten::batch_norm", 130, 280).op("aten::cudnn_batch_norm", 140, 260)
    assert gap(slow, 100) == {"launching": 290, "launch latency": 10, "wait row": -1}
    of_the_program = base().op("MyFunctionBackward", 130, 280).op("aten::add", 370, 25)
    assert gap(of_the_program, 100)["host work"] == 290


def test_what_an_op_does_behind_a_wait_or_for_long_is_not_launching():
    waits = base().stream_sync(105, 10, record=True).op("aten::batch_norm", 130, 280)
    assert gap(waits, 100)["host work"] > 250
    builder = TraceBuilder().launch("a", call=(0, 5), runs=(10, 90)).op("aten::batch_norm", 130, 1300)
    assert gap(builder.launch("b", call=(1400, 10), runs=(1420, 100)), 100)["host work"] == 1310


def test_a_launch_behind_a_wait_is_not_launching():
    builder = TraceBuilder().launch("a", call=(0, 5), runs=(10, 20)).stream_sync(28, 4, record=True)
    assert gap(builder.launch("b", call=(70, 10), runs=(85, 20)), 30) == {
        "wait": 6, "host work": 44, "launch latency": 5, "wait row": 0,
    }  # fmt: skip


def test_a_wait_of_another_thread_does_not_interrupt_launching():
    builder = TraceBuilder().launch("a", call=(0, 5), runs=(10, 20)).on(9).event_sync(40, 4)
    builder.on(TID).launch("b", call=(70, 10), runs=(85, 20))
    assert gap(builder, 30)["launching"] == 50


def test_a_wait_answers_for_what_it_blocked_the_host():
    # Blocked for 302 µs, so without it the host would have been ready in time.
    assert gap(base().stream_sync(6, 302, record=True), 100) == {"wait": 290, "launch latency": 10, "wait row": 0}


def test_a_short_wait_does_not_answer_for_long_host_work_after_it():
    # It blocked 20 µs; of the 290 µs until the launch it can have cost 20 and what it lasted into the gap.
    assert gap(base().stream_sync(85, 20, record=True), 100) == {
        "wait": 25, "host work": 265, "launch latency": 10, "wait row": 0,
    }  # fmt: skip


def test_a_wait_that_had_nothing_to_wait_for_is_not_the_cause():
    assert gap(base().stream_sync(120, 5, record=True), 100)["wait row"] == -1


def test_data_loading_and_allocation_are_named():
    builder = base().annotation("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", 105, 40)
    builder.call("cudaMalloc", 150, 20)
    assert gap(builder, 100) == {
        "data loading": 40, "allocation": 20, "host work": 230, "launch latency": 10, "wait row": -1,
    }  # fmt: skip


def test_data_loading_is_named_where_the_program_only_copies():
    builder = TraceBuilder().copy("HtoD", call=(0, 5), runs=(10, 90), memory="pinned")
    builder.annotation("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", 105, 240)
    builder.copy("HtoD", call=(390, 10), runs=(410, 90), memory="pinned")
    assert gap(builder, 100)["data loading"] == 240


def test_what_another_thread_loads_is_not_what_the_device_waits_for():
    builder = base().on(77).annotation("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 105, 40)
    builder.copy("HtoD", call=(150, 5), runs=(420, 1), memory="pinned")
    assert "data loading" not in gap(builder, 100)


def test_a_recorded_fetch_of_the_next_batch_is_data_loading():
    loop = ("train.py", 12, "main", "DataLoader(data)")
    builder = base().recording(0, 500).entry("DataLoader", 105, 345, loop)
    assert gap(builder, 100) == {"data loading": 240, "host work": 50, "launch latency": 10, "wait row": -1}
    assert Timeline(builder.trace()).loads.name.tolist() == ["DataLoader"]


@pytest.mark.parametrize(
    ("name", "cause"),
    [("nccl:all_reduce", "collective"), ("gloo:broadcast", "host collective"), ("mpi:all_reduce", "host collective")],
)
def test_a_host_inside_the_call_of_a_collective_is_named(name: str, cause: str):
    assert gap(base().annotation(name, 105, 40), 100) == {
        cause: 40, "host work": 250, "launch latency": 10, "wait row": -1,
    }  # fmt: skip


def test_what_passes_between_compute_and_a_collective_is_the_collectives():
    builder = TraceBuilder().launch("a", call=(0, 5), runs=(10, 90))
    builder.launch("ncclDevKernel_AllReduce_Sum_f32_RING_LL", call=(20, 5), runs=(110, 40), stream=13)
    builder.launch("b", call=(30, 5), runs=(160, 20))
    assert gap(builder, 100) == {"collective": 10, "wait row": -1}
    assert gap(builder, 150) == {"collective": 10, "wait row": -1}


def test_a_device_that_holds_what_was_launched_long_before_is_not_the_hosts_fault():
    builder = TraceBuilder().launch("a", call=(0, 5), runs=(10, 90)).launch("b", call=(6, 5), runs=(200, 100))
    assert gap(builder, 100) == {"queued on device": 100, "wait row": -1}


def test_a_launch_that_the_trace_lost_came_before_the_next_one_in_number():
    builder = TraceBuilder().launch("a", call=(0, 5), runs=(10, 90)).kernel("b", 400, 50)
    builder.launch("c", call=(330, 5), runs=(460, 10))
    assert gap(builder, 100) == {"host work": 230, "queued on device": 70, "wait row": -1}


def test_a_launch_that_may_have_been_made_at_any_time_of_a_long_gap_tells_no_cause():
    def lost(after_us: float) -> TraceBuilder:
        """Between two calls with a number of their own, ``after_us`` apart, one launch is lost."""
        builder = TraceBuilder().launch("a", call=(0, 5), runs=(10, 90)).kernel("b", 1900, 50)
        return builder.call("cudaEventQuery", after_us, 1).launch("c", call=(1960, 5), runs=(1970, 10))

    assert gap(lost(900), 100) == {"host work": 800, "queued on device": 1000, "wait row": -1}
    assert gap(lost(1500), 100) == {"unknown": 1800, "wait row": -1}


def test_a_launch_before_the_trace_began_was_queued():
    builder = TraceBuilder().kernel("before", 10, 90).kernel("too", 120, 10).launch("a", call=(130, 5), runs=(140, 5))
    assert gap(builder, 100) == {"queued on device": 20, "wait row": -1}


def test_without_runtime_calls_the_cause_is_unknown():
    assert gap(TraceBuilder().kernel("a", 10, 90).kernel("b", 120, 10), 100) == {"unknown": 20, "wait row": -1}


def test_a_host_that_stages_a_pageable_copy_is_named():
    builder = TraceBuilder().launch("a", call=(0, 5), runs=(10, 90))
    builder.copy("HtoD", call=(310, 100), runs=(400, 20), memory="pageable")
    assert gap(builder, 100) == {"pageable copy": 90, "host work": 210, "wait row": -1}


def test_activity_of_another_device_does_not_fill_the_gap():
    builder = base().launch("other", call=(1, 2), runs=(100, 100), device=1)
    assert gap(builder, 100)["host work"] == 290


def test_without_any_command_in_the_trace_no_launch_came_right_after_one():
    document = base().document()
    for event in document["traceEvents"]:
        if event.get("cat") == "cuda_runtime":
            event["name"] = "cudaEventQuery"
    bubbles = Timeline(read_bytes(json.dumps(document).encode(), "t.json")).bubbles
    assert (bubbles.by_cause.sum(axis=1) == bubbles.dur).all()


def test_what_a_device_does_before_a_launch_of_which_nothing_is_known_is_unknown():
    builder = TraceBuilder().kernel("a", 10, 10, correlation=3).kernel("b", 60, 10, correlation=4)
    builder.call("cudaLaunchKernel", 65, 5, correlation=90).kernel("c", 80, 40, correlation=90)
    assert gap(builder, 20) == {"unknown": 40, "wait row": -1}


def test_a_gap_that_work_without_rows_was_launched_for_is_unknown():
    builder = TraceBuilder().launch("a", call=(0, 5), runs=(10, 20)).call("cudaLaunchKernel", 20, 5)
    assert gap(builder.launch("b", call=(380, 10), runs=(400, 100)), 30) == {"unknown": 370, "wait row": -1}


def test_a_kernel_that_is_held_until_it_is_loaded_is_warm_up() -> None:
    builder = TraceBuilder().launch("ncclDevKernel_AllReduce", call=(0, 5), runs=(10, 20))
    builder.launch("b", call=(40, 2000), runs=(4400, 100))
    assert gap(builder, 30) == {
        "launching": 10, "launch latency": 20, "warm-up": 4340, "wait row": -1,
    }  # fmt: skip


def test_a_hold_that_nothing_in_the_trace_explains_is_unknown():
    builder = TraceBuilder().launch("a", call=(0, 5), runs=(10, 20)).launch("b", call=(10, 5), runs=(2000, 5))
    assert gap(builder, 30) == {"launch latency": 20, "unknown": 1950, "wait row": -1}
    waiting = TraceBuilder().call("cudaLaunchHostFunc", 9, 1)
    waiting.launch("a", call=(0, 5), runs=(10, 20)).launch("b", call=(10, 5), runs=(2000, 5))
    assert gap(waiting, 30)["queued on device"] == 1950
    beside = builder.launch("c", call=(18, 2), runs=(25, 1900), device=1)
    assert gap(beside, 30)["unknown"] == 1950
    assert gap(beside.call("cudaStreamWaitEvent", 8, 1), 30)["queued on device"] == 1950


def test_a_host_whose_launches_are_far_apart_launches_slowly():
    builder = TraceBuilder()
    for number in range(60):
        builder.launch("a", call=(400 * number, 5), runs=(400 * number + 8, 20))
    builder.launch("b", call=(60 * 400 + 2500, 5), runs=(60 * 400 + 2510, 5))
    causes = Timeline(builder.trace()).overlap
    assert causes is not None and set(causes.idle_by_cause) == {"launching", "host work", "launch latency"}
    assert causes.idle_by_cause["host work"] == pytest.approx(2.877)


def test_what_follows_the_last_wait_of_a_single_step_is_the_hosts():
    builder = TraceBuilder().step(0, 400).launch("a", call=(0, 5), runs=(10, 90)).stream_sync(6, 96, record=True)
    assert gap(builder, 100) == {"wait": 2, "host work": 298, "wait row": 0}
    assert gap(builder.step(400, 100).op("aten::add", 490, 1), 100)["wait"] == 98


def test_a_device_without_a_single_launch_is_idle_for_unknown_reasons():
    builder = TraceBuilder().kernel("a", 10, 10, device=1, correlation=2).kernel("b", 60, 10, device=1, correlation=4)
    builder.call("cudaLaunchKernel", 0, 5, correlation=1).call("cudaLaunchKernel", 30, 5, correlation=9)
    assert gap(builder, 20) == {"unknown": 40, "wait row": -1}
