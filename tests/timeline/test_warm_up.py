from __future__ import annotations

import pytest

from syncscope.timeline import Timeline
from syncscope.timeline.warm_up import CAPTURE, COLLECTIVES, COMPILATION, GROWTH, LOADING, SEARCH, START, are_warming_up
from tests.builders import TraceBuilder
from tests.rules.scenes import findings

MS = 1000
"""A millisecond in µs."""


def stretches(builder: TraceBuilder) -> list[tuple[str, float, float]]:
    """Kind, begin and end in µs of each warm-up."""
    found = Timeline(builder.trace()).warm_ups
    return list(zip(found.name, (found.ts / MS).tolist(), (found.end / MS).tolist(), strict=True))


def capturing(builder: TraceBuilder, at: float) -> TraceBuilder:
    """A wait, a capture of two kernels and the graph that is made of them; 100 µs in all."""
    builder.device_sync(at, 10).call("cudaStreamBeginCapture", at + 20, 1)
    builder.call("cudaLaunchKernel", at + 30, 5).call("cudaLaunchKernel", at + 50, 5)
    return builder.call("cudaStreamEndCapture", at + 70, 5).call("cudaGraphInstantiateWithFlags", at + 80, 20)


def test_a_capture_lasts_from_the_last_command_before_it_to_the_first_one_behind() -> None:
    builder = capturing(TraceBuilder().launch("a", call=(0, 5), runs=(10, 5)), 100)
    assert stretches(builder.call("cudaGraphLaunch", 300, 5)) == [(CAPTURE, 5, 300)]


@pytest.mark.parametrize(("fills", "begin"), [([], 5), ([390 * MS], 5), ([389.9 * MS, 390 * MS], 5), ([9 * MS], 9005)])
def test_a_capture_begins_before_pytorch_collects_garbage_whatever_it_fills_then(
    fills: list[float], begin: float
) -> None:
    builder = TraceBuilder().launch("a", call=(0, 5), runs=(10, 5)).device_sync(20, 10)
    for at in fills:
        builder.launch("fill", call=(at, 5), runs=(at + 5, 2))
    builder.call("cudaStreamBeginCapture", 390.2 * MS, 1).call("cudaLaunchKernel", 391 * MS, 5)
    builder.call("cudaStreamEndCapture", 392 * MS, 5).call("cudaGraphLaunch", 400 * MS, 5)
    assert stretches(builder) == [(CAPTURE, begin, 400 * MS)]


def test_graphs_that_are_recorded_again_begin_where_the_host_is_done_with_its_own_work() -> None:
    builder = TraceBuilder()
    for at in (0, 500 * MS):
        builder.op("Torch-Compiled Region", at, 450 * MS).launch("a", call=(at + 1, 5), runs=(at + 10, 5))
        builder.device_sync(at + 20, 10).launch("fill", call=(at + 390 * MS, 5), runs=(at + 390 * MS + 5, 2))
        builder.call("cudaStreamBeginCapture", at + 390.2 * MS, 1).call("cudaLaunchKernel", at + 391 * MS, 5)
        builder.call("cudaStreamEndCapture", at + 392 * MS, 5).call("cudaGraphLaunch", at + 400 * MS, 5)
        builder.device_sync(at + 400 * MS + 10, 10)
    spans = [(CAPTURE, at + 390 * MS + 5, at + 400 * MS) for at in (0, 500 * MS)]
    assert [one for one in stretches(builder) if one[2] - one[1] > MS] == spans


@pytest.mark.parametrize("op", ["Torch-Compiled Region", "CompiledFunction"])
@pytest.mark.parametrize(("captures", "severity"), [(True, "note"), (False, "error")])
def test_waits_in_each_call_that_records_a_graph_are_notes(op: str, captures: bool, severity: str) -> None:
    builder = TraceBuilder()
    for at in range(0, 5000, 1000):
        builder.op(op, at, 900).launch("a", call=(at + 50, 5), runs=(at + 60, 300))
        builder.device_sync(at + 70, 295).launch("b", call=(at + 380, 5), runs=(at + 387, 5))
        if captures:
            capturing(builder, at + 400).call("cudaGraphLaunch", at + 600, 5)
    assert {finding.severity for finding in findings(builder, "SYN109")} == {severity}


@pytest.mark.parametrize(("region", "kinds"), [("Torch-Compiled Region", [CAPTURE] * 4), ("step", [CAPTURE])])
def test_waits_in_a_compiled_function_that_captures_are_of_its_graph(region: str, kinds: list[str]) -> None:
    builder = TraceBuilder().op(region, 0, 900).launch("a", call=(50, 5), runs=(60, 5)).device_sync(70, 5)
    capturing(builder.launch("b", call=(80, 5), runs=(90, 5)), 100).call("cudaGraphLaunch", 300, 5)
    builder.device_sync(310, 5).launch("c", call=(1000, 5), runs=(1010, 5)).device_sync(1020, 5)
    assert [kind for kind, *_ in stretches(builder)] == kinds


@pytest.mark.parametrize(
    ("took", "ran", "bytes", "before", "begins"),
    [
        (300, 1, 72, False, True),
        (300, 290, 72, False, False),
        (300, 1, 400_000, False, False),
        (80, 1, 72, False, False),
        (40 * MS, 1, 72, False, False),
        (300, 1, 72, True, False),
    ],
)
def test_the_first_call_of_a_recording_that_takes_long_prepares_the_profiler(
    took: float, ran: float, bytes: int, before: bool, begins: bool
) -> None:
    builder = TraceBuilder()
    if before:
        builder.kernel("launched before", -50, 40)
    builder.copy("HtoD", call=(0, took), runs=(took - ran - 1, ran), memory="pageable", bytes=bytes)
    builder.stream_sync(took + 1, 3).copy("HtoD", call=(60_000, 6), runs=(60_003, 1), memory="pageable", bytes=bytes)
    assert stretches(builder.stream_sync(60_007, 3)) == ([(START, 0, took + 4)] if begins else [])


def test_captures_of_a_program_in_pieces_are_one() -> None:
    builder = capturing(TraceBuilder(), 0).launch("between", call=(150, 5), runs=(160, 5))
    capturing(builder, 200).launch("long after", call=(50 * MS, 5), runs=(50 * MS + 10, 5))
    assert stretches(capturing(builder, 60 * MS)) == [
        (CAPTURE, 0, 50 * MS), (CAPTURE, 50 * MS + 5, 60 * MS + 100)
    ]  # fmt: skip


def test_a_question_whether_a_stream_captures_is_no_capture() -> None:
    assert stretches(TraceBuilder().call("cudaStreamGetCaptureInfo_v2", 0, 5).call("cudaStreamIsCapturing", 9, 1)) == []


@pytest.mark.parametrize(
    ("name", "kind"), [("compile_inner (dynamo_timed)", COMPILATION), ("CUDAGraphNode.record (dynamo_timed)", CAPTURE)]
)
def test_what_torch_compile_times_itself_is_compilation(name: str, kind: str) -> None:
    builder = TraceBuilder().annotation(name, 0, 50).annotation("Torch-Compiled Region: 0/0", 60, 5)
    assert stretches(builder.call("cudaGraphLaunch", 70, 5)) == [(kind, 0, 50)]


def test_frames_of_autotuning_are_compilation() -> None:
    builder = TraceBuilder().frame("<site-packages>/triton/runtime/autotuner.py", 100, "Autotuner.run", 0, 90)
    builder.call("cuLaunchKernel", 70, 5)
    assert stretches(builder) == []
    builder.frame("<site-packages>/triton/runtime/autotuner.py", 120, "Autotuner._bench", 10, 50)
    assert stretches(builder) == [(COMPILATION, 10, 60)]


def test_frames_that_load_the_kernels_of_flashinfer_are_compilation() -> None:
    builder = TraceBuilder().frame("<site-packages>/flashinfer/jit/core.py", 80, "load_cuda_ops", 10, 500)
    assert list(Timeline(builder.launch("k", call=(600, 5), runs=(610, 20)).trace()).warm_ups.name) == ["compilation"]


def test_an_op_whose_library_times_its_kernels_searches() -> None:
    builder = TraceBuilder().op("aten::conv2d", 0, 100).op("aten::cudnn_convolution", 5, 80).event_sync(20, 10)
    assert stretches(builder) == [(SEARCH, 5, 85)]
    assert stretches(TraceBuilder().op("aten::cudnn_convolution", 5, 80).stream_sync(20, 10)) == []
    assert stretches(TraceBuilder().op("aten::convolution_backward", 5, 80).event_sync(20, 10)) == [(SEARCH, 5, 85)]


def test_the_first_launch_of_a_kernel_that_takes_long_loads_it() -> None:
    builder = TraceBuilder().launch("a", call=(0, 2 * MS), runs=(2 * MS + 3, 5))
    builder.launch("a", call=(3 * MS, 2 * MS), runs=(5 * MS + 3, 5))
    assert stretches(builder) == [(LOADING, 0, 2 * MS)]


def test_a_first_launch_on_an_idle_device_loads_however_late_its_kernel_starts() -> None:
    builder = TraceBuilder().launch("a", call=(0, 5), runs=(10, 20))
    builder.launch("b", call=(100, 12 * MS), runs=(14.5 * MS, 3))
    assert stretches(builder) == [(LOADING, 100, 12.1 * MS)]


def test_a_first_launch_that_met_a_full_queue_does_not_load() -> None:
    assert stretches(TraceBuilder().launch("a", call=(0, 2 * MS), runs=(4 * MS, 5))) == []
    queued = TraceBuilder().launch("a", call=(0, 5), runs=(10, 4 * MS))
    assert stretches(queued.launch("b", call=(100, 2 * MS), runs=(4.1 * MS, 5))) == []


def test_behind_launches_whose_kernels_were_lost_a_long_one_may_have_met_a_full_queue() -> None:
    builder = TraceBuilder().launch("a", call=(0, 5), runs=(10, 20)).call("cudaLaunchKernel", 50, 5)
    assert stretches(builder.launch("b", call=(100, 2 * MS), runs=(4 * MS, 5))) == []


def fused(builder: TraceBuilder, at: float, *, after: float, call: str = "cuLaunchKernel") -> TraceBuilder:
    """A scripted function that launches a fused kernel after some time."""
    builder.op("scripted", at, after + 20).op("fused_add", at + after, 15)
    builder.launch("fused_add", call=(at + after + 5, 5), runs=(at + after + 12, 5))
    builder.events[-2]["name"] = call
    return builder


def test_silence_before_the_first_launch_of_a_kernel_made_at_run_time_is_compilation() -> None:
    builder = fused(fused(TraceBuilder(), 0, after=300 * MS), 400 * MS, after=10)
    assert stretches(builder) == [(COMPILATION, 0, 300 * MS)]


def test_ops_that_a_compiler_evaluates_do_not_end_its_silence() -> None:
    builder = fused(TraceBuilder(), 0, after=150 * MS)
    builder.op("defaults", 30 * MS, 4).op("defaults", 90 * MS, 4).op("defaults", 92 * MS, 4)
    assert stretches(builder) == [(COMPILATION, 0, 150 * MS)]


def test_ops_that_take_long_or_are_many_are_no_silence_of_a_compiler() -> None:
    builder = fused(TraceBuilder(), 0, after=150 * MS).op("aten::sort", 100 * MS, 20 * MS)
    assert stretches(builder) == [(COMPILATION, 0, 100 * MS)]
    builder = fused(TraceBuilder(), 0, after=150 * MS)
    for at in range(40):
        builder.op("aten::add", 100 * MS + at * 10, 5)
    assert stretches(builder) == [(COMPILATION, 0, 100 * MS)]


def test_silence_that_each_launch_of_a_kernel_has_is_the_program_s_own_work() -> None:
    builder = fused(fused(TraceBuilder(), 0, after=300 * MS), 400 * MS, after=300 * MS)
    assert stretches(builder) == []


def test_nothing_is_compiled_for_a_kernel_of_the_program_s_own_binary_or_before_its_op() -> None:
    assert stretches(fused(TraceBuilder(), 0, after=300 * MS, call="cudaLaunchKernel")) == []
    assert stretches(fused(TraceBuilder().op("aten::empty", 0, 5), 300 * MS, after=10)) == []


def test_a_launch_that_waits_for_its_kernel_does_not_load() -> None:
    assert stretches(TraceBuilder().launch("a", call=(0, 2 * MS), runs=(10, 2 * MS - 20))) == []


def scripted(*begins: float) -> TraceBuilder:
    """A function that TorchScript compiled and falls back from, a copy before each of its runs."""
    builder = TraceBuilder()
    for begin in begins:
        builder.op("aten::mul", begin - 100 * MS, 50).op("delta", begin, 100).op("fallback_function", begin + 10, 80)
        builder.launch("sub", call=(begin + 20, 5), runs=(begin + 30, 10))
    return builder


def test_silence_before_the_first_run_of_a_scripted_function_is_compilation() -> None:
    builder = scripted(100 * MS).op("delta", 101 * MS, 100).op("fallback_function", 101 * MS + 10, 80)
    assert stretches(builder) == [(COMPILATION, 50, 100 * MS)]


def test_silence_before_each_run_of_a_scripted_function_is_not() -> None:
    assert stretches(scripted(100 * MS, 300 * MS)) == []


def test_calls_that_load_modules_load() -> None:
    assert stretches(TraceBuilder().call("cuModuleLoadData", 5, 30)) == [(LOADING, 5, 35)]


def made(builder: TraceBuilder, at: float, *, silence: float, inside: bool = True) -> TraceBuilder:
    """An op, or its caller, that is silent for some time before it loads a module and launches its kernel."""
    builder.op("aten::miopen_batch_norm_backward", at if inside else at + silence, silence + 100 if inside else 100)
    builder.call("hipModuleLoadData", at + silence + 5, 30)
    return builder.launch("BatchNormBwd", call=(at + silence + 50, 5), runs=(at + silence + 60, 5))


def test_silence_before_an_op_loads_a_module_is_compilation_though_the_kernel_ran_before() -> None:
    builder = made(made(TraceBuilder(vendor="hip"), 0, silence=120 * MS), 200 * MS, silence=90 * MS)
    compiled = [stretch for stretch in stretches(builder) if stretch[0] == COMPILATION]
    assert compiled == [(COMPILATION, 0, 120 * MS + 5), (COMPILATION, 200 * MS, 290 * MS + 5)]
    for silence, inside in ((2 * MS, True), (120 * MS, False)):
        kinds = {kind for kind, _, _ in stretches(made(TraceBuilder(vendor="hip"), 0, silence=silence, inside=inside))}
        assert COMPILATION not in kinds


def test_a_collective_that_takes_memory_of_its_own_sets_up() -> None:
    builder = TraceBuilder().op("c10d::allreduce_", 0, 90).call("cuMemCreate", 5, 30, category="cuda_driver")
    assert stretches(builder) == [(COLLECTIVES, 0, 90)]
    assert stretches(TraceBuilder().op("c10d::allreduce_", 0, 90).call("cudaMalloc", 5, 30)) == []


def test_allocations_of_the_first_step_alone_are_growth() -> None:
    builder = TraceBuilder().steps(0, 100, 200).call("cudaMalloc", 10, 20)
    assert stretches(builder) == [(GROWTH, 10, 30)]
    assert stretches(builder.call("cudaMalloc", 110, 20)) == []


def test_page_locked_memory_of_the_first_step_alone_is_growth_whatever_the_device_needs() -> None:
    builder = TraceBuilder().steps(0, 100, 200).call("cudaHostAlloc", 10, 20).call("cudaMalloc", 110, 20)
    assert stretches(builder) == [(GROWTH, 10, 30)]
    assert stretches(builder.call("cudaHostAlloc", 150, 20)) == []


def test_waits_of_warm_up_are_notes_of_their_own() -> None:
    builder = TraceBuilder().launch("a", call=(0, 5), runs=(10, 200)).device_sync(6, 204)
    capturing(builder.launch("b", call=(300, 5), runs=(310, 200)), 400)
    plain, once = findings(builder, "SYN105")
    assert (plain.severity, once.severity) == ("error", "note")
    assert "warm-up (graph capture)" in once.message and "Nothing, where it runs once" in once.fix
    assert "warm-up" not in plain.message


def starved(builder: TraceBuilder) -> str:
    (finding,) = findings(builder, "OVL303")
    return f"{finding.severity}: {finding.message}"


def test_a_device_that_idles_while_graphs_are_captured_is_a_note() -> None:
    builder = capturing(TraceBuilder().launch("a", call=(0, 1), runs=(2, 1)), 5)
    text = starved(builder.launch("b", call=(110, 1), runs=(112, 1)))
    assert text.startswith("note: ") and "are warm-up (graph capture)" in text and "%" not in text
    assert findings(builder, "LCH501") == []


def test_idle_time_besides_warm_up_is_still_found() -> None:
    builder = capturing(TraceBuilder().launch("a", call=(0, 1), runs=(2, 1)), 5)
    builder.launch("b", call=(110, 1), runs=(112, 1)).launch("c", call=(500, 1), runs=(502, 1))
    text = starved(builder)
    assert text.startswith("warning: ") and "besides 0.107 ms of warm-up: host work 0.388 ms" in text


def test_what_lies_in_warm_up_of_any_kind_is_what_has_a_kind() -> None:
    builder = capturing(TraceBuilder().launch("a", call=(0, 5), runs=(10, 5)), 100)
    timeline = Timeline(builder.call("cudaGraphLaunch", 300, 5).trace())
    calls = timeline.calls
    inside = are_warming_up(timeline.warm_ups, calls.ts, calls.end, calls.tid)
    assert inside.any() and not inside.all()
    assert (inside == (timeline.warming_up(calls.ts, calls.end, calls.tid) != "")).all()
    assert not are_warming_up(timeline.warm_ups, calls.ts, calls.end, calls.tid + 1).any()
