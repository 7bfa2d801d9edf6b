"""Memory that warm steps get from the driver and give back."""

from __future__ import annotations

import pytest

from tests.builders import TraceBuilder
from tests.rules.scenes import blind, codes, findings, line, lines_of

EMPTY = [line(30, "torch.cuda.empty_cache()"), ("<site-packages>/torch/cuda/memory.py", 280, "empty_cache", "f()")]


def emptied(steps: int = 3) -> TraceBuilder:
    """Steps of 1 ms: memory is asked for, used, and given back in two pieces; the first step asks before any is."""
    builder = TraceBuilder().recording(*(1000 * i for i in range(steps + 1)))
    for start in range(0, 1000 * steps, 1000):
        builder.call("cudaMalloc", start + 10, 90).launch("gemm", call=(start + 110, 5), runs=(start + 120, 500))
        builder.entry("torch.cuda.empty_cache", start + 198, start + 652, *EMPTY)
        builder.call("cudaFree", start + 200, 430).call("cudaFree", start + 635, 10)
    return builder


def test_what_is_asked_for_again_is_counted_with_the_line_that_gave_it_away():
    found = findings(emptied(), "SYN106")
    assert lines_of(found) == [30]
    assert (found[0].count, found[0].per_step, found[0].severity, found[0].op) == (3, 1, "warning", "cudaFree")
    assert found[0].stall_ms_per_step == pytest.approx(0.090 + 0.430 + 0.010)
    assert "6 × cudaFree, 3 × cudaMalloc" in found[0].message
    assert "empty_cache() out" in found[0].fix


def test_two_calls_in_a_step_are_two():
    builder = emptied(1).launch("gemm", call=(700, 5), runs=(710, 50))
    builder.entry("torch.cuda.empty_cache", 758, 802, *EMPTY).call("cudaFree", 760, 40)
    assert findings(builder, "SYN106")[0].count == 2


def test_the_events_that_it_waits_for_are_its_own():
    builder = TraceBuilder().recording(0, 900).entry("torch.cuda.empty_cache", 8, 52, *EMPTY).event_sync(10, 20)
    assert codes(builder) == ["SYN106"]


def test_it_is_known_by_its_python_frame_too():
    builder = TraceBuilder().steps(0, 500, 1000).frame("train.py", 3, "main", 0, 990)
    for start in (0, 500):
        builder.frame("torch/cuda/memory.py", 270, "empty_cache", start + 100, 300).call("cudaFree", start + 110, 280)
    found = findings(builder, "SYN106")
    assert [finding.site.function for finding in found if finding.site] == ["main"]


@pytest.mark.parametrize("vendor", ["cuda", "hip"])
def test_steps_that_grow_without_giving_back_are_one_finding_of_no_line(vendor: str):
    builder = TraceBuilder(vendor=vendor).steps(0, 1000, 2000)
    for start in (0, 1000):
        for offset in (10, 300):
            builder.op("aten::empty", start + offset, 100).call(f"{vendor}Malloc", start + offset + 2, 90)
            builder.launch("gemm", call=(start + offset + 110, 5), runs=(start + offset + 120, 50))
    found = findings(builder, "SYN106")
    assert [(finding.site, finding.per_step, finding.severity) for finding in found] == [(None, 2, "warning")]
    assert "shapes" in found[0].fix


def test_a_late_growth_in_one_of_many_steps_is_a_note():
    builder = TraceBuilder().steps(0, 1000, 2000, 3000).call("cudaMalloc", 10, 90)
    assert [finding.severity for finding in findings(builder, "SYN106")] == ["note"]


def test_warming_up_before_the_steps_is_nothing():
    assert findings(TraceBuilder().recording(1000, 2000).call("cudaMalloc", 10, 90), "SYN106") == []


def test_without_steps_a_warm_one_cannot_be_told():
    builder = TraceBuilder().call("cudaMalloc", 10, 90)
    assert findings(builder, "SYN106") == []
    assert "no steps" in blind(builder)["SYN106"]


def test_a_trace_without_steps_that_asks_for_no_memory_is_clean():
    assert "SYN106" not in blind(TraceBuilder().launch("k", call=(10, 5), runs=(20, 5)).device_sync(30, 5))


def test_what_pinning_asks_for_is_not_spoken_of_twice():
    pin = line(17, "x.pin_memory()")
    builder = TraceBuilder().recording(0, 1000, 2000)
    for start in (0, 1000):
        builder.entry("Tensor.pin_memory", start + 8, start + 212, pin).call("cudaHostAlloc", start + 20, 150)
    assert findings(builder, "SYN106") == []


def given_back(*times: float) -> TraceBuilder:
    """A trace without steps that gives memory back outside of its ops."""
    builder = TraceBuilder().op("aten::mm", 0, 20).launch("gemm", call=(5, 5), runs=(20, 100))
    for at in times:
        builder.call("cudaFree", at, 50).op("aten::mm", at + 60, 20)
        builder.launch("gemm", call=(at + 65, 5), runs=(at + 80, 100))
    return builder


def test_without_steps_what_is_given_back_outside_of_ops_is_found():
    (found,) = findings(given_back(200, 400), "SYN106")
    assert (found.count, found.severity) == (2, "warning")
    assert "outside of any op, as torch.cuda.empty_cache() does (2 × cudaFree)" in found.message
    assert "empty_cache() out" in found.fix


def test_without_steps_what_an_op_asks_for_is_not():
    builder = TraceBuilder().op("aten::mm", 0, 200).call("cudaFree", 10, 50).call("cudaMalloc", 70, 50)
    builder.launch("gemm", call=(150, 5), runs=(160, 100))
    assert findings(builder, "SYN106") == [] and "SYN106" in blind(builder)


@pytest.mark.parametrize("captures", [True, False])
def test_memory_that_a_capture_gave_away_is_asked_for_again_because_of_it(captures: bool):
    builder = TraceBuilder().recording(0, 1000, 2000)
    for start in (0, 1000):
        builder.launch("gemm", call=(start + 10, 5), runs=(start + 20, 50))
        builder.entry("torch.cuda.empty_cache", start + 198, start + 252, *EMPTY).call("cudaFree", start + 200, 50)
        if captures:
            builder.call("cudaStreamBeginCapture", start + 260, 1).call("cudaLaunchKernel", start + 270, 5)
            builder.call("cudaStreamEndCapture", start + 280, 1).call("cudaGraphInstantiate", start + 285, 20)
        builder.launch("gemm", call=(start + 400, 5), runs=(start + 410, 50))
        builder.call("cudaMalloc", start + 500, 90).launch("gemm", call=(start + 600, 5), runs=(start + 610, 50))
    messages = [found.message for found in findings(builder, "SYN106")]
    assert any("cudaMalloc" in message for message in messages) is not captures
