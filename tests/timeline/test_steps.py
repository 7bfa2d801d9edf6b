"""The figures of each step, drawn in microseconds; the report has them in milliseconds."""

import pytest

from syncscope.schema.report import EachStep
from syncscope.timeline import Timeline
from tests.builders import TraceBuilder


def each_step(trace: TraceBuilder) -> EachStep:
    found = Timeline(trace.trace()).info().each_step
    assert found is not None
    return found


def us(figures: tuple[float, ...] | None) -> list[int]:
    assert figures is not None
    return [round(ms * 1000) for ms in figures]


def test_each_step_has_its_length() -> None:
    assert us(each_step(TraceBuilder().steps(0, 100, 250).kernel("gemm", 10, 20)).length_ms) == [100, 150]


def test_a_wait_blocks_the_steps_it_lies_in() -> None:
    trace = TraceBuilder().steps(0, 100, 200, 300).stream_sync(10, 20).stream_sync(190, 40)
    assert us(each_step(trace).blocked_ms) == [20, 10, 30]


def test_threads_that_are_blocked_at_once_count_once() -> None:
    trace = TraceBuilder().steps(0, 100).stream_sync(10, 40).on(7).stream_sync(30, 40)
    assert us(each_step(trace).blocked_ms) == [60]


def test_the_host_is_blocked_while_any_thread_is() -> None:
    # Two threads, each blocked for 0.8 ms of a step of 1 ms.
    builder = TraceBuilder().steps(0, 1000).stream_sync(100, 800).on(7).stream_sync(100, 800)
    timeline = Timeline(builder.trace())
    assert timeline.blocked_ms_per_step == pytest.approx(0.8)
    each = timeline.info().each_step
    assert each is not None and each.blocked_ms == (pytest.approx(0.8),)


def test_blocked_time_is_the_mean_of_the_steps_and_leaves_out_what_lies_between_them() -> None:
    builder = TraceBuilder().steps(0, 1000, 2000).stream_sync(500, 300).stream_sync(1900, 500)
    assert Timeline(builder.trace()).blocked_ms_per_step == pytest.approx((0.3 + 0.1) / 2)


def test_without_steps_blocked_time_is_that_of_the_whole_trace() -> None:
    builder = TraceBuilder().stream_sync(100, 800).on(7).stream_sync(500, 800)
    assert Timeline(builder.trace()).blocked_ms_per_step == pytest.approx(1.2)


def test_without_runtime_calls_blocked_time_is_unknown() -> None:
    assert Timeline(TraceBuilder().steps(0, 1000).kernel("gemm", 10, 20).trace()).blocked_ms_per_step is None


def test_a_pageable_copy_blocks_inside_its_own_call() -> None:
    trace = TraceBuilder().steps(0, 100, 200)
    trace.copy("HtoD", call=(10, 30), runs=(15, 20), memory="pageable")
    trace.copy("HtoD", call=(110, 30), runs=(115, 20), memory="pinned")
    assert us(each_step(trace).blocked_ms) == [30, 0]


def test_a_copy_counts_in_the_step_that_asked_for_it_less_what_compute_hides() -> None:
    trace = TraceBuilder().steps(0, 100, 200).launch("gemm", call=(5, 2), runs=(90, 20))
    trace.copy("HtoD", call=(10, 2), runs=(100, 30), stream=8)
    trace.copy("HtoD", call=(20, 2), runs=(120, 20), stream=9)
    trace.copy("DtoD", call=(110, 2), runs=(150, 20))
    assert us(each_step(trace).copy_exposed_ms) == [30, 0]


def test_what_cannot_be_seen_is_missing_not_zero() -> None:
    blind = each_step(TraceBuilder().steps(0, 100).kernel("gemm", 10, 20))
    assert blind.blocked_ms is None and blind.copy_exposed_ms is not None
    idle = each_step(TraceBuilder().steps(0, 100).stream_sync(10, 20))
    assert idle.blocked_ms is not None and idle.copy_exposed_ms is None
    assert Timeline(TraceBuilder().kernel("gemm", 10, 20).trace()).info().each_step is None


ALL_REDUCE = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"


def reducing(*groups: str) -> TraceBuilder:
    """Two steps of 100 µs with 40 of compute, and all-reduces of 30 of which 10 run beside it."""
    trace = TraceBuilder().steps(0, 100, 200)
    for start, group in zip((0, 100), groups, strict=True):
        args = {"Process Group Name": group} if group else {}
        trace.launch("gemm", call=(start + 5, 2), runs=(start + 10, 40))
        trace.launch(ALL_REDUCE, call=(start + 8, 2), runs=(start + 40, 30), stream=13, args=args)
    return trace


def test_a_collective_counts_in_the_step_that_launched_it_and_for_its_group() -> None:
    each = each_step(reducing("dp", "tp"))
    assert us(each.comm_exposed_ms) == [20, 20]
    groups = {group: us(figures) for group, figures in (each.comm_exposed_by_group_ms or {}).items()}
    assert groups == {"dp": [20, 0], "tp": [0, 20]}


def test_groups_are_told_apart_only_where_every_collective_says_its_own() -> None:
    assert each_step(reducing("dp", "")).comm_exposed_by_group_ms is None
    assert each_step(TraceBuilder().steps(0, 100).kernel("gemm", 10, 20)).comm_exposed_by_group_ms == {}


def test_a_step_ends_on_the_device_when_what_it_launched_has_run() -> None:
    # The host is far ahead: it launches both steps in the first 100 µs.
    trace = TraceBuilder().steps(0, 50, 400).launch("gemm", call=(5, 2), runs=(10, 200))
    trace.launch("gemm", call=(55, 2), runs=(220, 150))
    each = each_step(trace)
    assert us(each.device_ms) == [210, 190]
    assert us(each.idle_ms) == [10, 40]


def test_idle_time_of_the_steps_is_that_of_the_trace() -> None:
    timeline = Timeline(reducing("dp", "tp").trace())
    each, overlap = timeline.info().each_step, timeline.overlap
    assert each is not None and each.idle_ms is not None and overlap is not None
    assert sum(each.idle_ms) / 2 == pytest.approx(overlap.idle_ms)


def test_the_group_of_a_collective_is_that_of_the_recorded_call_that_started_it() -> None:
    trace = TraceBuilder().recording(0, 100, 200)
    for start in (0, 100):
        trace.launch("gemm", call=(start + 5, 2), runs=(start + 10, 40))
        trace.launch(ALL_REDUCE, call=(start + 8, 2), runs=(start + 60, 10), stream=13)
        trace.entry("ProcessGroup.allreduce", start + 7, start + 11, ("train.py", 3, "step"), group="tp")
        # DDP starts its own on a thread of autograd, while the program's is in backward.
        trace.entry("backward", start + 20, start + 40, ("train.py", 4, "step"), group="dp")
        trace.on(7).launch(ALL_REDUCE, call=(start + 25, 2), runs=(start + 80, 5), stream=13).on(1)
    each = each_step(trace)
    groups = {group: us(figures) for group, figures in (each.comm_exposed_by_group_ms or {}).items()}
    assert groups == {"tp": [10, 10], "dp": [5, 5]}


def running_ahead(runs: float, steps: int = 3) -> TraceBuilder:
    """Steps of 100 µs that each launch a kernel, which the device runs one after the other."""
    trace = TraceBuilder().steps(*(100 * step for step in range(steps + 1)))
    for step in range(steps):
        trace.launch("gemm", call=(100 * step + 5, 2), runs=(10 + runs * step, runs))
    return trace.device_sync(100 * steps + 5, max(runs - 100, 0) * steps + 10)


def test_steps_that_the_device_outlasts_are_as_long_as_it_takes() -> None:
    timeline = Timeline(running_ahead(400).trace())
    assert timeline.span == (0, 1_210_000)
    assert timeline.step_figures.profiled_ms == pytest.approx(1.21 / 3, abs=1e-5)
    assert "the device sets the pace" in timeline.info().warnings[0]


@pytest.mark.parametrize(("held", "outlasted"), [(0, False), (300, True)])
def test_a_host_that_gets_ahead_of_what_the_device_holds_back_leaves_it_for_later(held: float, outlasted: bool) -> None:
    # The device computes 75 of 100 us a step; it begins the first `held` us later than it could.
    trace = TraceBuilder().steps(0, 100, 200, 300)
    for step in range(3):
        trace.launch("gemm", call=(100 * step + 5, 2), runs=(max(100 * step + 10, held + 75 * step + 30), 75))
    timeline = Timeline(trace.trace())
    assert timeline.outlasted == (int((held + 75 * 2 + 30 + 75) * 1000) if outlasted else None)


def test_a_single_step_is_as_long_as_its_work_takes_the_device() -> None:
    timeline = Timeline(running_ahead(400, steps=1).trace())
    assert timeline.span == (0, 410_000)
    assert "the device takes 0.41 ms for it" in timeline.info().warnings[0]


def test_a_device_that_keeps_up_or_is_a_little_behind_a_single_step_changes_nothing() -> None:
    late = TraceBuilder().steps(0, 100).launch("gemm", call=(80, 2), runs=(85, 60)).device_sync(150, 5)
    waiting = TraceBuilder().steps(0, 100).launch(ALL_REDUCE, call=(80, 2), runs=(85, 400)).device_sync(110, 380)
    for trace in (running_ahead(90), late, waiting):
        timeline = Timeline(trace.trace())
        assert timeline.outlasted is None and timeline.info().warnings == ()


def behind(before: float, done: float, stream: int = 7) -> TraceBuilder:
    """Steps of 100 µs whose work the device ends by ``done``, after work that no call of the trace launched."""
    trace = TraceBuilder().steps(0, 100, 200).kernel("earlier", 5, before - 5, stream=stream)
    trace.launch("gemm", call=(10, 2), runs=(before, 80), stream=7)
    return trace.launch("gemm", call=(110, 2), runs=(before + 80, done - before - 80), stream=7)


def test_a_device_that_stays_behind_its_host_is_counted_from_when_it_begins_what_the_steps_launched() -> None:
    assert Timeline(behind(40, 230).trace()).span == (40_000, 230_000)


def test_a_device_that_is_behind_at_one_end_alone_is_counted_by_the_steps_of_the_host() -> None:
    assert Timeline(behind(40, 205).trace()).span == (0, 200_000)


def test_work_without_a_call_on_a_stream_of_its_own_says_nothing_of_when_it_was_launched() -> None:
    assert Timeline(behind(40, 230, stream=9).trace()).span == (0, 200_000)


def test_the_steps_of_a_recording_of_ones_own_begin_with_the_host() -> None:
    trace = behind(40, 230).recording(0, 100, 200)
    assert Timeline(trace.trace()).span == (0, 200_000)


@pytest.mark.parametrize(("begin", "told"), [(20_000, True), (0, False)])
def test_what_the_host_did_before_the_first_work_is_told_where_no_step_holds_it(begin: float, told: bool) -> None:
    builder = TraceBuilder().op("aten::randperm", 0, 10).annotation("enumerate(DataLoader)#_It.__next__", 20, 15_000)
    builder.launch("k", call=(begin + 100, 5), runs=(begin + 110, 20)).device_sync(begin + 110, 25)
    warnings = Timeline(builder.trace()).info().warnings
    assert [
        ("before the device's first work" in one, "15 ms of them in the data loader" in one) for one in warnings
    ] == ([(True, True)] if told else [])


def test_what_is_done_once_is_no_part_of_what_the_time_before_the_first_work_is_held_against() -> None:
    builder = TraceBuilder().annotation("enumerate(DataLoader)#_It.__next__", 0, 15_000)
    builder.launch("fill", call=(15_100, 5), runs=(15_110, 20)).op("aten::mm", 15_200, 30_020)
    builder.launch("ampere_sgemm", call=(45_200, 5), runs=(45_210, 20)).device_sync(45_240, 5)
    (warning,) = Timeline(builder.trace()).info().warnings
    assert "15.1 ms before the device's first work, 15 ms of them in the data loader" in warning


@pytest.mark.parametrize(("takes", "told"), [(20_000, True), (5_000, False)])
def test_what_the_host_did_behind_the_last_work_is_told_where_no_step_holds_it(takes: float, told: bool) -> None:
    builder = TraceBuilder().launch("k", call=(0, 5), runs=(10, 20)).op("aten::expand", 30, takes)
    builder.device_sync(30 + takes, 5)
    said = "nothing is said of the 20 ms behind the device's last work: where they come back, mark the steps"
    assert Timeline(builder.trace()).info().warnings == ((f"{said} (prof.step())",) if told else ())
    assert Timeline(builder.step(0, 30_000).trace()).info().warnings == ()


@pytest.mark.parametrize(("waits", "told"), [(18_000, True), (7_000, False)])
def test_a_wait_for_what_was_launched_before_the_trace_is_told_however_long_the_device_works_then(
    waits: float, told: bool
) -> None:
    builder = TraceBuilder().op("aten::to", 0, waits + 40).stream_sync(10, waits)
    builder.launch("k", call=(20_000, 5), runs=(20_010, 90_000))
    warnings = Timeline(builder.trace()).info().warnings
    assert [one.startswith("the trace begins with a wait of 18 ms for work that") for one in warnings] == [True] * told


def test_steps_hold_what_comes_before_their_first_work() -> None:
    builder = TraceBuilder().steps(0, 30_000).op("aten::randperm", 0, 10)
    builder.launch("k", call=(20_000, 5), runs=(20_010, 20)).device_sync(20_010, 25)
    assert Timeline(builder.trace()).info().warnings == ()


def interrupted(drained: float, *, runs: float = 60) -> Timeline:
    """Two steps of 1 ms, whose last kernel ``runs`` for so many µs, and a part of another one."""
    builder = TraceBuilder()
    for begin in (0, 1000):
        builder.launch("gemm", call=(begin + 940, 5), runs=(begin + 950, runs))
    builder.launch("gemm", call=(2100, 5), runs=(2110, 50))
    return Timeline(builder.recording(0, 1000, 2000, drained=drained).trace())


@pytest.mark.parametrize(("drained", "end"), [(2030, 2030), (9000, 2010)])
def test_a_window_that_was_ended_in_the_midst_of_a_step_is_as_long_as_its_whole_steps(
    drained: float, end: float
) -> None:
    """Scores were computed on the host before the next step, say."""
    timeline = interrupted(drained)
    assert timeline.span == (0, end * 1000)
    assert timeline.info().steps.profiled_ms == pytest.approx(end / 2000)


def test_it_lasts_until_the_device_has_done_what_the_steps_launched() -> None:
    assert interrupted(9000, runs=700).span == (0, 2650 * 1000)
