"""The figures of each step, drawn in microseconds; the report has them in milliseconds."""

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
