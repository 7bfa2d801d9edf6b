from __future__ import annotations

import pytest

from syncscope.timeline import Timeline
from tests.builders import TID, TraceBuilder

US = 1000
OTHER = 5000


def timeline(builder: TraceBuilder) -> Timeline:
    return Timeline(builder.trace())


def item(builder: TraceBuilder, start: float) -> TraceBuilder:
    """``t.item()`` as torch 2.11 does it: 20 µs of op, a copy to pinned memory, and the wait."""
    return (
        builder.op("aten::item", start, 20)
        .op("aten::_local_scalar_dense", start + 1, 18)
        .copy("DtoH", call=(start + 2, 4), runs=(start + 8, 2), memory="pinned", bytes=4)
        .stream_sync(start + 7, 10)
    )


def test_a_wait_knows_its_ops_copy_step_and_length():
    view = timeline(item(TraceBuilder().steps(0, 100, 200), 110))
    wait = view.waits
    assert len(wait) == 1
    assert (wait.ts[0], wait.dur[0], wait.kind[0], wait.tid[0], wait.step[0]) == (117 * US, 10 * US, "stream", TID, 1)
    assert wait.ops[0] == ("aten::item", "aten::_local_scalar_dense")
    assert wait.copy[0] == 0
    assert view.copies.wait.tolist() == [0]
    assert wait.stall[0] == 10 * US


def test_polling_and_device_side_waits_are_no_waits():
    builder = (
        TraceBuilder()
        .call("cudaEventQuery", 10, 1)
        .call("cudaStreamWaitEvent", 20, 1)
        .launch("k", call=(30, 5), runs=(40, 5))
    )
    assert not len(timeline(builder).waits)


def test_allocation_calls_are_kept_apart_from_waits_and_out_of_coverage():
    builder = TraceBuilder().step(0, 100).call("cudaMalloc", 10, 5).call("cudaFree", 20, 5).stream_sync(40, 5)
    view = timeline(builder.call("cudaHostAlloc", 50, 5).call("cudaFreeHost", 60, 5))
    assert view.waits.kind.tolist() == ["alloc", "free", "stream", "alloc", "free"]
    assert view.info().coverage.waits == 1


def test_a_stream_wait_completes_the_copy_of_its_own_op_only():
    builder = (
        TraceBuilder()
        .op("aten::copy_", 0, 20)
        .copy("HtoD", call=(2, 4), runs=(8, 4))
        .op("aten::nonzero", 30, 30)
        .stream_sync(40, 10)
        .stream_sync(80, 10)  # torch.cuda.current_stream().synchronize(): no op around it
    )
    assert timeline(builder).waits.copy.tolist() == [-1, -1]


def test_of_two_waits_after_one_copy_the_first_completes_it():
    builder = (
        TraceBuilder()
        .op("aten::copy_", 0, 100)
        .copy("HtoD", call=(2, 4), runs=(8, 4))
        .stream_sync(10, 10)
        .stream_sync(30, 10)
    )
    assert timeline(builder).waits.copy.tolist() == [0, -1]


def test_without_ops_only_questions_may_lie_between_a_copy_and_its_wait():
    asked = TraceBuilder().copy("DtoH", call=(0, 4), runs=(6, 2)).call("cudaStreamIsCapturing", 5, 1).stream_sync(8, 10)
    launched = (
        TraceBuilder().copy("DtoH", call=(0, 4), runs=(6, 2)).launch("k", call=(5, 2), runs=(9, 3)).stream_sync(8, 9)
    )
    assert timeline(asked).waits.copy.tolist() == [0]
    assert timeline(launched).waits.copy.tolist() == [-1]
    assert timeline(asked).waits.ops_known.tolist() == [False]


def test_a_copy_call_that_lasts_counts_as_blocked_where_the_trace_has_no_row_of_the_device():
    held = TraceBuilder().op("aten::copy_", 0, 900).call("cudaMemcpyAsync", 10, 700).stream_sync(720, 5)
    launched = TraceBuilder().op("aten::copy_", 0, 900).call("cudaMemcpyAsync", 10, 12).stream_sync(720, 5)
    assert timeline(held).waits.stall.tolist() == [715 * US]
    assert timeline(launched).waits.stall.tolist() == [5 * US]


def test_a_copy_that_takes_less_than_a_microsecond_may_begin_when_its_wait_does():
    builder = TraceBuilder().op("aten::copy_", 0, 100).stream_sync(10, 7)
    view = timeline(builder.copy("HtoD", call=(10, 0), runs=(10, 2), memory="pageable"))
    assert (view.waits.copy.tolist(), view.copies.wait.tolist()) == ([0], [0])


def test_a_wait_after_a_pageable_copy_counts_the_time_in_the_copy_call():
    builder = (
        TraceBuilder()
        .op("aten::copy_", 0, 100)
        .copy("DtoH", call=(10, 50), runs=(50, 8), memory="pageable")
        .stream_sync(62, 3)
    )
    wait = timeline(builder).waits
    assert (wait.begin[0], wait.stall[0], wait.dur[0]) == (10 * US, 55 * US, 3 * US)


def test_a_hip_copy_that_blocks_is_a_wait_and_its_own_copy():
    view = timeline(
        TraceBuilder(vendor="hip").copy("DtoH", call=(10, 30), runs=(20, 5), memory="host", name="hipMemcpyWithStream")
    )
    assert view.waits.kind.tolist() == ["copy"]
    assert view.waits.copy.tolist() == [0]


def test_a_drivers_wait_inside_a_runtimes_counts_once():
    builder = (
        TraceBuilder()
        .call("urQueueFinish", 10, 30, category="xpu_runtime")
        .call("zeCommandQueueSynchronize", 12, 20, category="xpu_driver")
    )
    assert timeline(builder).waits.name.tolist() == ["urQueueFinish"]


def test_ops_of_another_thread_do_not_enclose_a_wait():
    view = timeline(TraceBuilder().op("aten::item", 0, 100).on(OTHER).stream_sync(10, 10))
    assert view.waits.ops.tolist() == [()]
    assert view.waits.ops_known.tolist() == [False]


def test_pending_is_the_device_work_still_ahead():
    builder = (
        TraceBuilder()
        .launch("k", call=(0, 5), runs=(10, 90))
        .launch("side", call=(6, 2), runs=(10, 190), stream=9)
        .device_sync(20, 180)
        .device_sync(300, 2)
        .launch("late", call=(400, 5), runs=(410, 5))
    )
    assert timeline(builder).waits.pending.tolist() == [180 * US, 0]


def test_pending_of_a_stream_wait_looks_at_its_stream_alone():
    builder = (
        TraceBuilder()
        .launch("k", call=(0, 5), runs=(10, 90), stream=7)
        .launch("side", call=(6, 2), runs=(10, 190), stream=9)
        .stream_sync(20, 80, stream=7, record=True)
        .stream_sync(110, 3, record=False)
    )
    assert timeline(builder).waits.pending.tolist() == [80 * US, -1]


class TestTheProfilersOwn:
    def test_the_last_device_sync_of_a_foreign_trace_is_dropped(self):
        builder = TraceBuilder().device_sync(10, 5).launch("k", call=(20, 5), runs=(30, 5)).device_sync(50, 5)
        assert timeline(builder).waits.ts.tolist() == [10 * US]

    def test_what_another_thread_polls_afterwards_changes_nothing(self):
        builder = TraceBuilder().device_sync(50, 5).on(OTHER).call("cudaEventQuery", 90, 1)
        assert not len(timeline(builder).waits)

    def test_a_device_sync_that_work_follows_is_the_programs(self):
        builder = TraceBuilder().device_sync(50, 5).launch("k", call=(60, 5), runs=(70, 5))
        assert len(timeline(builder).waits) == 1

    def test_with_frames_the_stack_decides(self):
        builder = (
            TraceBuilder()
            .frame("train.py", 3, "main", 0, 200)
            .frame("torch/cuda/__init__.py", 900, "synchronize", 10, 30)
            .device_sync(15, 20)
            .frame("torch/profiler/profiler.py", 800, "step", 100, 90)
            .frame("torch/cuda/__init__.py", 900, "synchronize", 110, 50)
            .device_sync(120, 20)
        )
        assert timeline(builder).waits.ts.tolist() == [15 * US]

    def test_a_recording_holds_every_device_sync_that_the_program_asked_for(self):
        builder = (
            TraceBuilder()
            .recording(100, 200)
            .device_sync(50, 5)  # the profiler's start
            .entry("torch.cuda.synchronize", 148, 162, ("train.py", 9, "step", "torch.cuda.synchronize()"))
            .device_sync(150, 10)
            .device_sync(250, 5)  # the profiler's stop
        )
        assert timeline(builder).waits.ts.tolist() == [150 * US]

    def test_the_programs_own_last_sync_is_kept_in_a_recording(self):
        builder = (
            TraceBuilder()
            .recording(100, 200)
            .entry("torch.cuda.synchronize", 208, 222, ("train.py", 9, "main", "torch.cuda.synchronize()"))
            .device_sync(210, 10)
        )
        assert timeline(builder).waits.step.tolist() == [-1]


@pytest.mark.parametrize(("apart", "joined"), [(2, True), (8, False)])
def test_a_wait_right_behind_a_copy_completes_it_though_clocks_put_them_into_different_ops(apart: float, joined: bool):
    builder = TraceBuilder().op("aten::to", 0, 200).op("aten::copy_", 101, 69)
    builder.copy("DtoH", call=(10, 90), runs=(12, 80), memory="pageable").stream_sync(100 + apart, 5)
    timeline = Timeline(builder.trace())
    assert (timeline.waits.copy_call >= 0).tolist() == [joined]
    assert timeline.waits.ops[0] == ("aten::to", "aten::copy_")
    assert timeline.copies.ops[0] == (("aten::to", "aten::copy_") if joined else ("aten::to",))


def test_a_copy_and_its_wait_are_in_the_op_that_is_further_inside():
    builder = TraceBuilder().op("aten::to", 0, 200).op("aten::copy_", 20, 80)
    builder.copy("DtoH", call=(30, 68), runs=(32, 60), memory="pageable").stream_sync(99, 50)
    timeline = Timeline(builder.trace())
    assert timeline.waits.ops[0] == timeline.copies.ops[0] == ("aten::to", "aten::copy_")
