"""Rows that contradict each other: whatever is taken from a trace, another kind of row still speaks of it."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from fixtures.labels import CASES, recordings
from syncscope.rules import find_unchecked
from syncscope.timeline import Timeline
from syncscope.trace import load
from syncscope.trace.reader import read_bytes
from tests.builders import FrameSpec, TraceBuilder
from tests.cli import traces

LINE: FrameSpec = ("train.py", 21, "train_step", "torch.cuda.synchronize()")


def disagreements(trace: TraceBuilder) -> list[tuple[str, str]]:
    return [(one.lost, one.text) for one in Timeline(trace.trace()).disagreements]


def drop(trace: TraceBuilder, wanted: Callable[[str, str], bool]) -> TraceBuilder:
    """The trace without the events whose category and name ``wanted`` is true of."""
    trace.events[:] = [event for event in trace.events if not wanted(event.get("cat", ""), event["name"])]
    return trace


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("mode", ["windows", "full"])
def test_the_rows_of_recordings_agree(case: str, mode: str) -> None:
    for path in recordings(case, mode):
        assert Timeline(load(path, workers=1)).disagreements == ()


def test_the_rows_of_a_whole_trace_agree() -> None:
    assert disagreements(traces.waiting()) == []


def test_a_warning_speaks_of_its_wait() -> None:
    trace = drop(traces.waiting(), lambda cat, name: name == "cudaStreamSynchronize")
    assert ("runtime", "PyTorch warned of 3 waits that the trace does not hold") in disagreements(trace)


def test_a_warning_outside_the_steps_may_be_of_a_wait_before_the_trace() -> None:
    trace = traces.clean().warning(400, LINE)
    assert disagreements(trace) == []


def test_a_recorded_call_of_synchronize_speaks_of_its_wait() -> None:
    def synchronizing() -> TraceBuilder:
        return traces.clean().entry("torch.cuda.synchronize", 50, 80, LINE).device_sync(52, 25)

    assert disagreements(synchronizing()) == []
    ((lost, text),) = disagreements(drop(synchronizing(), lambda cat, name: "Synchronize" in name))
    assert (lost, "a recorded call of synchronize()" in text) == ("runtime", True)


def copying(name: str, *, waits: bool) -> TraceBuilder:
    """Two steps, each with a copy to the host inside a recorded call, and the wait that comes with it."""
    trace = TraceBuilder().recording(0, 100, 200)
    for start in (0, 100):
        trace.copy("DtoH", call=(start + 20, 5), runs=(start + 26, 4), memory="pageable")
        trace.entry(name, start + 15, start + 75, ("train.py", 4, "step", "loss.cpu()"))
        if waits:
            trace.stream_sync(start + 30, 20)
    return trace.stream_sync(190, 2)


def test_a_recorded_copy_to_the_host_speaks_of_its_wait() -> None:
    text = "the program copied from the device in 2 recorded calls of cpu(), and the trace does not hold the waits"
    assert ("runtime", text) in disagreements(copying("Tensor.cpu", waits=False))
    assert disagreements(copying("Tensor.cpu", waits=True)) == []


def test_a_copy_that_may_be_told_not_to_wait_speaks_of_none() -> None:
    assert disagreements(copying("Tensor.to", waits=False)) == []


def test_an_event_that_was_never_recorded_is_not_waited_for() -> None:
    trace = traces.clean().entry("Event.synchronize", 50, 80, LINE)
    assert disagreements(trace) == []
    assert len(disagreements(trace.call("cudaEventRecord", 40, 2))) == 1


def test_a_line_that_waits_in_every_step_of_the_run_speaks_of_its_wait() -> None:
    def counting(steps: int = 50) -> TraceBuilder:
        trace = TraceBuilder().recording(0, 100, 200, phase="train").launch("k", call=(10, 2), runs=(15, 5))
        trace.launch("k", call=(110, 2), runs=(115, 5)).stream_sync(20, 10).warning(31, LINE).stream_sync(
            130, 10
        ).warning(141, LINE)
        return trace.phase("train", steps=50).counted(0, steps, LINE).run()

    def without_waits(trace: TraceBuilder) -> TraceBuilder:
        trace._sites.clear()
        return drop(trace, lambda cat, name: "Synchronize" in name)

    assert disagreements(counting()) == []
    text = "a line waited in every step of the run, and the trace does not hold the wait"
    assert disagreements(without_waits(counting())) == [("runtime", text)]
    assert disagreements(without_waits(counting(49))) == []  # the recorded steps may be the others


def test_a_row_of_a_sync_speaks_of_its_call() -> None:
    trace = drop(traces.clean().stream_sync(50, 30, record=True), lambda cat, name: name == "cudaStreamSynchronize")
    ((lost, text),) = disagreements(trace)
    assert (lost, text) == ("runtime", "a wait is recorded for the device, and its runtime call is not in the trace")


def test_an_op_that_reads_speaks_of_its_wait() -> None:
    def reading(op: str) -> TraceBuilder:
        trace = traces.clean().op(op, 20, 55)
        return trace.copy("DtoH", call=(22, 4), runs=(93, 2), memory="pinned", bytes=4)

    ((lost, text),) = disagreements(reading("aten::_local_scalar_dense"))
    assert (lost, text) == ("runtime", "an op reads a value from the device, and the trace does not hold its wait")
    assert disagreements(reading("aten::copy_")) == []  # with non_blocking=True it does not wait


def test_a_read_on_the_host_does_not_wait() -> None:
    assert disagreements(traces.clean().op("aten::_local_scalar_dense", 20, 5)) == []


def test_a_device_row_speaks_of_its_launch() -> None:
    trace = traces.clean()
    launches = [event for event in trace.events if event["name"] == "cudaLaunchKernel"]
    trace.events.remove(launches[1])
    assert disagreements(trace) == [("runtime", "the device ran something whose launch is not in the trace")]


def test_what_was_launched_before_the_trace_began_has_no_launch() -> None:
    trace = traces.clean()
    trace.events.remove(next(event for event in trace.events if event["name"] == "cudaLaunchKernel"))
    assert disagreements(trace) == []


def test_launches_of_the_driver_may_be_unrecorded() -> None:
    assert disagreements(traces.clean().kernel("triton_poi_fused", 220, 5, correlation=900)) == []


def test_a_copy_speaks_of_its_device_row() -> None:
    trace = traces.clean().copy("HtoD", call=(120, 4), runs=(193, 2), memory="pageable", bytes=4)
    assert disagreements(drop(trace, lambda cat, name: cat == "gpu_memcpy")) == [
        ("device", "a launch or copy has no device row")
    ]


def test_device_rows_that_are_lost_before_all_others_leave_the_rest_of_the_trace_to_look_at() -> None:
    def without(*starts: int) -> TraceBuilder:
        trace = traces.clean(steps=4)
        trace.events[:] = [event for event in trace.events if event["ts"] not in starts]
        return trace

    def unseen(trace: TraceBuilder) -> dict[str, str | None]:
        return {entry.rule: entry.why if entry.rest else None for entry in find_unchecked(Timeline(trace.trace()))}

    assert disagreements(without(12)) == [("device", "a launch or copy at the start of the trace has no device row")]
    assert disagreements(without(12, 212)) == [("device", "2 launches and copies have no device row")]
    assert unseen(without(12))["OVL303"] == "a launch or copy at the start of the trace has no device row"
    assert unseen(without(112))["OVL303"] is None, "nothing of it was seen for sure"


def test_launches_of_a_trace_without_any_device_row_are_counted_where_the_host_waited_for_them() -> None:
    def without_rows(*, waits: bool) -> TraceBuilder:
        trace = TraceBuilder().call("cudaLaunchKernel", 10, 4).call("cudaLaunchKernel", 20, 4)
        return trace.device_sync(30, 5) if waits else trace

    assert disagreements(without_rows(waits=True)) == [("device", "2 launches and copies have no device row")]
    ((lost, _),) = disagreements(without_rows(waits=False))
    assert lost == "runtime", "not one wait, so that the device may still have had them in its queue"


def test_a_copy_that_returns_at_once_had_nothing_to_copy() -> None:
    def copying(us: float) -> TraceBuilder:
        return traces.clean().call("cudaMemcpyAsync", 120, us)

    assert disagreements(copying(0.3)) == []
    assert disagreements(copying(2.0)) == [("device", "a launch or copy has no device row")]


def test_a_launch_at_the_end_has_run_only_where_the_host_waited_for_the_device_behind_it() -> None:
    def ending(*, waits: bool) -> TraceBuilder:
        trace = traces.clean().call("cudaLaunchKernel", 290, 4)
        return trace.device_sync(295, 20) if waits else trace

    assert disagreements(ending(waits=False)) == []
    assert disagreements(ending(waits=True)) == [("device", "a launch or copy has no device row")]


def test_pytorch_s_own_kernels_are_launched_by_the_runtime() -> None:
    trace = traces.clean().kernel("void at::native::vectorized_elementwise_kernel<4>", 220, 5, correlation=900)
    assert disagreements(trace) == [("runtime", "the device ran something whose launch is not in the trace")]


def test_what_a_graph_captures_does_not_run() -> None:
    trace = traces.clean().call("cudaStreamBeginCapture", 110, 1).call("cudaLaunchKernel", 112, 2)
    assert disagreements(trace.call("cudaStreamEndCapture", 116, 1)) == []


@pytest.mark.parametrize(("by", "text"), [(10**6, "3 steps lie outside the time of all events"), (0, None)])
def test_events_speak_of_the_steps(by: int, text: str | None) -> None:
    trace = TraceBuilder().recording(by, by + 100, by + 200, by + 300)
    for start in (0, 100, 200):
        trace.launch("gemm", call=(start + 5, 5), runs=(start + 12, 80))
    assert disagreements(trace) == ([] if text is None else [("steps", text)])


def test_a_runtime_call_speaks_of_its_op() -> None:
    (path,) = recordings("item_logging", "full")
    document = json.loads(gzip.decompress(Path(path).read_bytes()))
    document["traceEvents"] = [e for e in document["traceEvents"] if "aten::" not in e["name"] or "item" in e["name"]]
    found = Timeline(read_bytes(json.dumps(document).encode(), "spoiled.json")).disagreements
    assert [one.lost for one in found] == ["cpu_op"]


def test_the_last_step_of_the_profiler_may_be_empty() -> None:
    trace = TraceBuilder().steps(0, 100, 200)
    trace.launch("gemm", call=(5, 5), runs=(12, 50)).device_sync(60, 5)
    assert disagreements(trace) == []


def test_a_device_without_a_single_launch_lost_them() -> None:
    trace = traces.clean().kernel("gemm", 120, 20, device=1, correlation=900)
    assert disagreements(trace) == [("runtime", "the trace holds no launch of what device 1 ran")]
    assert disagreements(traces.clean().launch("gemm", call=(110, 2), runs=(120, 20), device=1)) == []


def test_what_begins_before_it_was_launched_has_no_true_time() -> None:
    def begun(early: float) -> TraceBuilder:
        return traces.clean().launch("gemm", call=(120, 2), runs=(120 - early, 5))

    ((lost, text),) = disagreements(begun(90))
    assert (lost, text) == ("device", "the device began something before it was launched, so its times are wrong")
    assert disagreements(begun(40)) == []  # the clocks of host and device differ


KINDS = tuple(f"aten::{name}" for name in ("add", "mm", "relu", "sum", "copy_", "mul", "div", "gelu"))


def launching(silent: int, *, at: int = 150, known: int = 600, kinds: tuple[str, ...] = KINDS) -> TraceBuilder:
    """Ops that all launch a kernel, but for ``silent`` of them in a row."""
    builder = TraceBuilder()
    builder.device_sync(-20, 5)
    for number in range(known):
        builder.op(kinds[number % len(kinds)], 20 * number, 10)
        if not at <= number < at + silent:
            builder.launch("kernel", call=(20 * number + 2, 3), runs=(20 * number + 6, 3))
    return builder


@pytest.mark.parametrize(("silent", "at"), [(27, 150), (27, 573), (300, 300)])
def test_many_ops_in_a_row_that_launch_nothing_tell_of_calls_that_were_lost(silent: int, at: int) -> None:
    text = f"{silent} ops in a row launch nothing that do so everywhere else"
    assert ("runtime", text) in disagreements(launching(silent, at=at))


def test_a_few_ops_or_ops_of_a_few_kinds_may_run_on_the_host() -> None:
    assert disagreements(launching(20)) == []
    assert disagreements(launching(100, kinds=tuple(kind for kind in KINDS if kind != "aten::mm"))) == []


def multiplying(silent: int, *, inside: str = "aten::empty", empty: int = 0) -> TraceBuilder:
    """Twenty products that each launch a kernel, but for ``silent`` of them in a row that have another op ``inside``,
    and ``empty`` others."""
    builder = TraceBuilder().device_sync(-20, 5)
    for number in range(20):
        lost = 3 <= number < 3 + silent
        builder.op("aten::addmm", 40 * number, 30).op(inside if lost else "aten::empty", 40 * number + 2, 3)
        if not lost and not 20 - empty <= number:
            builder.launch("gemm", call=(40 * number + 10, 3), runs=(40 * number + 15, 20))
    return builder


def test_a_few_products_in_a_row_that_launch_nothing_tell_of_calls_that_were_lost() -> None:
    text = "4 matrix products in a row launch nothing that do so everywhere else"
    assert disagreements(multiplying(4)) == [("runtime", text)]
    assert disagreements(multiplying(3)) == [], "an expert without tokens multiplies nothing"


def test_products_that_call_other_ops_than_those_of_the_device_run_on_the_cpu() -> None:
    assert disagreements(multiplying(8, inside="aten::resolve_conj")) == []


def test_products_that_launch_nothing_elsewhere_too_tell_nothing() -> None:
    assert disagreements(multiplying(5, empty=3)) == []


def stepping(lost: int, *, kinds: int = 9, around: str = "step") -> TraceBuilder:
    """Six steps of ops of some kinds that launch, three times each, but for those of one step, ``around`` which there
    is another op, and of which the first ``lost`` launch nothing."""
    builder = TraceBuilder().device_sync(-20, 5)
    for step in range(6):
        builder.op(around if step == 4 else "step", 1000 * step, 900)
        for number in range(3 * kinds):
            at = 1000 * step + 30 * number
            builder.op(f"kind {number % kinds}", at, 20)
            if step != 4 or number >= lost:
                builder.launch("k", call=(at + 5, 3), runs=(at + 10, 5))
    return builder


def test_ops_of_several_kinds_in_a_row_tell_of_calls_that_were_lost_also_where_each_is_seldom() -> None:
    assert disagreements(stepping(26)) == [("runtime", "26 ops in a row launch nothing that do so everywhere else")]
    assert disagreements(stepping(25)) == []
    assert disagreements(stepping(26, kinds=7)) == []


def test_ops_that_something_else_calls_may_run_on_the_host() -> None:
    assert disagreements(stepping(26, around="augment")) == []


def test_the_first_rows_of_host_and_device_that_are_gone_together_leave_ops_that_launch_nothing() -> None:
    trace = multiplying(0)
    trace.events[:] = [event for event in trace.events if event["cat"] == "cpu_op" or event["ts"] > 200]
    trace.device_sync(900, 5)
    assert [lost for lost, _ in disagreements(trace)] == ["runtime"]


def test_a_trace_of_others_holds_at_least_the_profilers_own_wait() -> None:
    def computing(*, waits: bool) -> TraceBuilder:
        trace = TraceBuilder().launch("gemm", call=(5, 5), runs=(12, 50))
        return trace.device_sync(65, 5) if waits else trace

    text = "the trace holds not one wait, not even the profiler's own, so it does not say whether the program waits"
    assert disagreements(computing(waits=False)) == [("runtime", text)]
    assert disagreements(computing(waits=True)) == []
    assert disagreements(traces.clean()) == [], "a recording of ours may end without it"
    assert disagreements(TraceBuilder().call("cudaMalloc", 0, 5)) == [], "nothing to wait for"


def test_a_large_tensor_is_formatted_on_the_host() -> None:
    builder = launching(30)
    for number in range(200):
        builder.op("aten::is_nonzero", 20 * 150 + 2 * number, 1)
    assert disagreements(builder) == []


def test_ops_that_are_compiled_launch_nothing() -> None:
    compiled = launching(27).annotation("compile_inner (dynamo_timed)", 20 * 150 - 5, 20 * 27)
    assert disagreements(compiled) == []


def test_ops_that_run_on_the_host_now_and_then_tell_nothing() -> None:
    builder = launching(0)
    for number in range(200):
        builder.op(KINDS[number % 8], 20_000 + 40 * number, 10)
        builder.launch("other", call=(20_015 + 40 * number, 3), runs=(20_019 + 40 * number, 3))
    assert disagreements(builder) == []


def busy(trace: TraceBuilder, *steps: int) -> TraceBuilder:
    """Steps of 1000 µs with launches, and the profiler's own wait."""
    trace.device_sync(-20, 5)
    for step in steps:
        for number in range(12):
            start = 1000 * step + 20 * number
            trace.launch("gemm", call=(start + 2, 3), runs=(start + 6, 3))
    return trace


def test_a_step_without_calls_between_others_that_have_many_lost_them() -> None:
    trace = busy(TraceBuilder().steps(0, 1000, 2000, 3000, 4000), 0, 2, 3)
    assert disagreements(trace) == [("runtime", "a step has no runtime call, and all others have many")]


@pytest.mark.parametrize(("end", "lost"), [(3300, False), (4000, True), (9000, False)])
def test_a_last_step_without_calls_lost_them_where_it_is_as_long_as_the_others(end: int, lost: bool) -> None:
    trace = busy(TraceBuilder().steps(0, 1000, 2000, 3000, end), 0, 1, 2).op("aten::ones", 3010, 5)
    assert bool(disagreements(trace)) == lost


def test_copies_that_block_do_not_show_that_rows_of_waits_were_kept() -> None:
    def copying(times: int, *, waits: bool) -> TraceBuilder:
        trace = TraceBuilder().launch("gemm", call=(5, 5), runs=(12, 50))
        for number in range(times):
            at = 100 + 40 * number
            trace.call("hipMemcpyWithStream", at, 20, correlation=50 + number)
            trace.memcpy("DtoH", at + 5, 10, correlation=50 + number)
        return trace.device_sync(300, 5) if waits else trace

    assert disagreements(copying(2, waits=True)) == []
    ((lost, text),) = disagreements(copying(2, waits=False))
    assert lost == "runtime"
    assert text.startswith("the trace holds no wait but 2 copies that block, not even the profiler's own")
    assert "no wait but a copy that blocks" in disagreements(copying(1, waits=False))[0][1]
    unseen = {one.rule for one in find_unchecked(Timeline(copying(1, waits=False).trace()))}
    assert {"SYN101", "SYN102", "SYN105", "CPY202"} <= unseen
