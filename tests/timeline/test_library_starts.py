"""The first use of a library is warm-up; what comes back is not."""

from __future__ import annotations

import pytest

from syncscope.timeline.warm_up import LOADING, NAMED
from tests.builders import TraceBuilder
from tests.rules.scenes import findings
from tests.timeline.test_warm_up import MS, stretches


def matmul(builder: TraceBuilder, at: float, silence: float, kernel: str = "ampere_sgemm") -> TraceBuilder:
    """A matrix product that launches its kernel after some silence, µs."""
    builder.op("aten::addmm", at, silence + 20)
    return builder.launch(kernel, call=(at + silence, 5), runs=(at + silence + 10, 5))


@pytest.mark.parametrize("call", ["cudaOccupancyMaxActiveBlocksPerMultiprocessor", "cudaStreamCreateWithFlags"])
def test_a_question_to_the_driver_that_takes_a_millisecond_loads(call: str) -> None:
    assert stretches(TraceBuilder().call(call, 5, 2 * MS).call(call, 3 * MS, 9)) == [(LOADING, 5, 5 + 2 * MS)]


def test_what_a_library_does_before_it_first_launches_a_kernel_is_its_choice() -> None:
    builder = matmul(matmul(TraceBuilder(), 0, 2 * MS), 5 * MS, 10)
    assert stretches(builder) == [(LOADING, 0, 2 * MS)]


def test_what_a_library_asks_and_sets_before_it_first_launches_a_kernel_is_part_of_its_choice() -> None:
    builder = matmul(matmul(TraceBuilder(), 0, 2 * MS), 5 * MS, 10)
    builder.call("cudaFuncGetAttributes", 900, 17).call("cudaFuncSetAttribute", 1800, 17)
    assert stretches(builder) == [(LOADING, 0, 2 * MS)]


def test_memory_that_an_op_asks_for_before_it_launches_is_no_silence() -> None:
    # In whole microseconds the long call and the short one behind it begin at the same time.
    builder = matmul(TraceBuilder(), 0, 2 * MS).call("cudaMalloc", 5, 2 * MS - 10)
    assert stretches(builder.call("cudaStreamIsCapturing", 5, 0)) == []


def test_silence_that_comes_back_before_a_kernel_is_no_first_use() -> None:
    assert stretches(matmul(matmul(TraceBuilder(), 0, 2 * MS), 5 * MS, 2 * MS)) == []


def test_silence_in_an_op_that_works_on_the_host_is_no_first_use() -> None:
    builder = TraceBuilder().op("aten::nonzero", 0, 3 * MS)
    assert stretches(builder.launch("a", call=(2 * MS, 5), runs=(2 * MS + 10, 5))) == []


def test_memory_given_back_before_the_first_kernel_of_a_library_is_its_start() -> None:
    builder = TraceBuilder().launch("fill", call=(0, 5), runs=(10, 5)).call("cudaFree", 100, 900 * MS)
    assert stretches(builder.launch("sgemm", call=(1000 * MS, 5), runs=(1000 * MS + 10, 5))) == [
        (LOADING, 5, 1000 * MS)
    ]


def test_memory_given_back_behind_it_or_outside_the_op_is_not() -> None:
    builder = TraceBuilder().launch("sgemm", call=(0, 5), runs=(10, 5)).call("cudaFree", 100, 900 * MS)
    assert stretches(builder.launch("sgemm_2", call=(1000 * MS, 5), runs=(1000 * MS + 10, 5))) == []
    emptied = TraceBuilder().launch("fill", call=(0, 5), runs=(10, 5)).call("cudaFree", 100, 900 * MS)
    assert stretches(matmul(emptied, 1000 * MS, 10)) == []


def handle(builder: TraceBuilder, at: float, between: str = "cudaFuncSetAttribute") -> TraceBuilder:
    """A matrix product that gives memory back, and takes some, with another call between."""
    builder.op("aten::mm", at, 400).call("cudaFree", at + 40, 2).call(between, at + 50, 1)
    builder.call("cudaMalloc", at + 60, 20).call("cudaMemcpy", at + 90, 20).call("cudaMalloc", at + 120, 20)
    return builder.launch("ampere_sgemm", call=(at + 300, 5), runs=(at + 310, 5))


def test_a_handle_is_made_once_on_each_thread_however_fast() -> None:
    builder = handle(handle(TraceBuilder(), 0).on(77), 1000)
    assert stretches(builder) == [(LOADING, 40, 140), (LOADING, 1040, 1140)]
    assert stretches(handle(handle(TraceBuilder(), 0), 1000)) == [(LOADING, 40, 140)]
    assert [f.severity for f in findings(handle(TraceBuilder(), 0), "SYN109")] == ["note"]


def test_an_allocator_that_gives_memory_back_for_a_product_makes_no_handle() -> None:
    assert stretches(handle(TraceBuilder(), 0, between="cudaStreamIsCapturing")) == []


def test_warm_up_that_the_program_names_is_warm_up() -> None:
    builder = TraceBuilder().annotation("[net|warmup|forward]", 0, 50).annotation("lr_warmup_step", 60, 20)
    assert stretches(builder.annotation("forward", 90, 5).call("cudaGraphLaunch", 100, 5)) == [(NAMED, 0, 50)]


def test_a_trace_of_a_first_pass_is_noted() -> None:
    builder = matmul(TraceBuilder().launch("fill", call=(0, 5), runs=(10, 5)), 100, 40 * MS)
    (finding,) = findings(matmul(builder, 41 * MS, 10), "OVL303")
    assert (finding.severity, finding.idle_ms_per_step) == ("note", pytest.approx(40, rel=0.01))
    assert "Record later steps" in finding.fix


def convolution(
    builder: TraceBuilder, at: float, silence: float, runs: float, op: str = "aten::cudnn_convolution"
) -> TraceBuilder:
    """A convolution whose kernel, of one name for all shapes, runs for some µs."""
    builder.op(op, at, silence + 20)
    return builder.launch("cutlass_wmma", call=(at + silence, 5), runs=(at + silence + 10, runs))


def test_each_shape_of_a_convolution_has_a_plan_of_its_own() -> None:
    builder = convolution(convolution(TraceBuilder(), 0, 2 * MS, 50), 5 * MS, 2 * MS, 70)
    builder = convolution(builder, 10 * MS, 10, 70)
    assert stretches(builder) == [(LOADING, 0, 2 * MS), (LOADING, 5 * MS, 7 * MS)]


def test_backward_of_a_convolution_chooses_a_kernel_too() -> None:
    builder = convolution(TraceBuilder(), 0, 2 * MS, 50, op="aten::convolution_backward")
    assert stretches(builder) == [(LOADING, 0, 2 * MS)]


def test_what_a_convolution_of_a_known_shape_does_is_no_plan() -> None:
    builder = convolution(convolution(TraceBuilder(), 0, 2 * MS, 50), 5 * MS, 2 * MS, 50)
    assert stretches(builder) == [(LOADING, 0, 2 * MS)]


def test_shapes_that_change_in_every_step_are_no_warm_up() -> None:
    builder = TraceBuilder().steps(0, 5 * MS, 10 * MS)
    assert stretches(convolution(convolution(builder, 0, 2 * MS, 50), 5 * MS, 2 * MS, 70)) == []
