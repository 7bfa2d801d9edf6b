"""The figures of the report that a timeline gives: overlap, steps, coverage, what the trace holds."""

from __future__ import annotations

import pytest

from syncscope.schema.expressions import ops_of_expression
from syncscope.schema.recording import Attributed
from syncscope.schema.report import Kernel
from syncscope.timeline import Timeline
from tests.builders import TraceBuilder

STEP = ("train.py", 12, "step", "loss.item()")


def test_overlap_is_per_step_and_counts_each_moment_once():
    builder = (
        TraceBuilder()
        .steps(0, 100, 200)
        .launch("gemm", call=(0, 2), runs=(10, 50))
        .launch("gemm", call=(3, 2), runs=(30, 50), stream=8)  # computes until 80
        .copy("HtoD", call=(6, 2), runs=(60, 40), stream=9)  # 20 of 40 exposed
        .launch("ncclDevKernel_AllReduce_Sum_f32_RING_LL(args)", call=(9, 2), runs=(70, 40), stream=11)  # 30 exposed
        .copy("DtoD", call=(102, 2), runs=(150, 10))
    )
    found = Timeline(builder.trace()).overlap
    assert found is not None
    assert found.compute_ms == pytest.approx(0.035)
    assert found.copy_ms == pytest.approx(0.020)
    assert found.copy_exposed_ms == pytest.approx(0.010)
    assert found.comm_ms == pytest.approx(0.020)
    assert found.comm_exposed_ms == pytest.approx(0.015)
    assert found.device_busy_ms == pytest.approx(0.055)
    assert found.idle_ms == pytest.approx(0.045)
    assert sum(found.idle_by_cause.values()) == pytest.approx(0.045)


def test_without_steps_the_figures_are_of_the_whole_trace():
    found = Timeline(TraceBuilder().launch("k", call=(0, 2), runs=(10, 50)).trace()).overlap
    assert found is not None
    assert (found.compute_ms, found.idle_ms) == (pytest.approx(0.050), 0)


def test_the_kernel_that_runs_for_longest_is_named_where_the_device_computes_for_most_of_the_time():
    def longest(small: float):
        builder = TraceBuilder().steps(0, 100, 200)
        for start in (0, 100):
            builder.launch("small", call=(start, 2), runs=(start + 5, small))
            builder.launch("large", call=(start + 3, 2), runs=(start + 45, 50))
        builder.launch("ncclDevKernel_AllReduce_Sum_f32_RING_LL(args)", call=(9, 2), runs=(0, 180), stream=11)
        found = Timeline(builder.trace()).overlap
        return found and found.longest_kernel

    assert longest(40) == Kernel(name="large", ms=0.05)
    assert longest(20) is None


def test_without_device_activity_there_is_no_overlap():
    assert Timeline(TraceBuilder().step(0, 100).stream_sync(10, 5).trace()).overlap is None


def test_steps_are_timed_under_the_profiler_and_bare():
    info = Timeline(TraceBuilder().recording(0, 100, 220, bare_us=[60, 80]).stream_sync(10, 5).trace()).info()
    assert info.steps.count == 2
    assert info.steps.profiled_ms == pytest.approx(0.110)
    assert info.steps.bare_ms == pytest.approx(0.070)
    assert info.steps.source == "user"


def test_a_foreign_trace_has_no_bare_time():
    assert Timeline(TraceBuilder().step(0, 100).stream_sync(10, 5).trace()).info().steps.bare_ms is None


def test_coverage_counts_waits_inside_steps_and_those_with_an_exact_line():
    builder = TraceBuilder().recording(0, 500).stream_sync(10, 10).stream_sync(100, 10).warning(140, STEP)
    builder.stream_sync(600, 10).warning(640, STEP)
    coverage = Timeline(builder.trace()).info().coverage
    assert (coverage.waits, coverage.with_line) == (2, 1)


def test_has_says_what_the_trace_holds():
    foreign = TraceBuilder().step(0, 100).op("aten::item", 10, 50).stream_sync(20, 10, record=True)
    assert Timeline(foreign.trace()).has == ("runtime", "cpu_op", "cuda_sync", "steps")
    ours = TraceBuilder().recording(0, 100).stream_sync(20, 10).warning(60, STEP).attribution(STEP, ops=["aten::item"])
    assert Timeline(ours.trace()).has == ("runtime", "sites", "steps", "attribution")


def test_notes_of_the_recording_reach_the_report():
    builder = TraceBuilder().recording(0, 100, notes=("The window ended early.",)).stream_sync(10, 5)
    assert "The window ended early." in Timeline(builder.trace()).info().warnings


def test_the_figures_of_the_report_are_made_once():
    timeline = Timeline(TraceBuilder().step(0, 100).stream_sync(10, 5).trace())
    assert timeline.info() is timeline.info()


class TestOpsOfAWindowWithoutOps:
    def window(self, with_ops: bool) -> TraceBuilder:
        """One line waits twice a step, each time in another op; another line copies."""
        copy = ("train.py", 20, "step", "x.to(device, non_blocking=True)")
        builder = TraceBuilder().recording(0, 1000, 2000)
        for start in (0, 1000):
            for at, op in ((100, "aten::first"), (300, "aten::second")):
                if with_ops:
                    builder.op(op, start + at, 50)
                builder.stream_sync(start + at + 10, 20).warning(start + at + 60, STEP)
            if with_ops:
                builder.op("aten::copy_", start + 500, 50)
            builder.copy("HtoD", call=(start + 510, 20), runs=(start + 520, 20))
            builder.entry("Tensor.to", start + 498, start + 555, copy)
        return builder

    def test_the_attribution_window_gives_them_by_stack_and_ordinal(self):
        seen = Timeline(self.window(with_ops=True).trace()).attributed()
        assert [(a.ordinal, a.ops) for a in seen] == [
            (0, ("aten::first",)),
            (1, ("aten::second",)),
            (0, ("aten::copy_",)),
        ]
        timed = Timeline(self.with_table(seen).trace())
        assert timed.waits.ops.tolist() == [("aten::first",), ("aten::second",)] * 2
        assert timed.copies.ops.tolist() == [("aten::copy_",)] * 2
        assert timed.waits.ops_known.all()

    def test_a_step_that_took_another_path_falls_back_to_the_stack(self):
        seen = [a for a in Timeline(self.window(with_ops=True).trace()).attributed() if a.ordinal == 0]
        timed = Timeline(self.with_table(seen).trace())
        assert timed.waits.ops.tolist() == [("aten::first",)] * 4

    def test_a_line_that_the_window_never_saw_falls_back_to_its_expression(self):
        assert Timeline(self.with_table([]).trace()).waits.ops.tolist() == [("aten::item",)] * 4

    def with_table(self, seen: list[Attributed]) -> TraceBuilder:
        builder = self.window(with_ops=False)
        builder._attribution = seen
        return builder


@pytest.mark.parametrize(
    ("expression", "op"),
    [
        ("loss.item()", "aten::item"),
        ("float(x.sum())", "aten::item"),
        ("flag", "aten::is_nonzero"),
        ("loss > 3", "aten::is_nonzero"),
        ("mask.nonzero()", "aten::nonzero"),
        ("torch.where(mask)", "aten::where"),
        ("x.to(device)", "aten::to"),
        ("torch.ops.torchvision.nms(boxes, scores, 0.5)", "torchvision::nms"),
        ("torch.ops.mylib.fused.default(x)", "mylib::fused"),
        ("torch.tensor([1, 2], device='cuda')", "aten::to"),
        ("torch.where(mask, x, y)", None),
        ("model(x)", None),
        ("x[mask]", None),
        ("not python at (", None),
        (None, None),
    ],
)
def test_an_expression_names_its_op_only_where_there_is_no_doubt(expression: str | None, op: str | None):
    assert (ops_of_expression(expression) or (None,))[0] == op


@pytest.mark.parametrize(
    ("listed", "name"), [({0: "MI300X"}, "MI300X"), ({0: "A", 3: "B"}, "B"), ({0: "A", 1: "B"}, None), ({}, None)]
)
def test_a_device_listed_under_another_number_has_the_name_that_all_have(listed, name):
    builder = TraceBuilder().launch("gemm", call=(5, 5), runs=(12, 50), device=3)
    builder.top["deviceProperties"] = [{"id": number, "name": name} for number, name in listed.items()]
    assert Timeline(builder.trace()).info().device == name


def test_rows_of_an_earlier_recording_are_not_part_of_a_trace_without_steps() -> None:
    # Two kernels that nothing in the trace launched, then 3.8 s of which the trace has no host rows.
    left = TraceBuilder().kernel("old", 0, 100).kernel("old", 110, 100)
    found = Timeline(
        left.op("aten::mm", 3_800_000, 50).launch("new", call=(3_800_010, 5), runs=(3_800_020, 90)).trace()
    )
    assert found.span is not None and found.span[1] - found.span[0] == 90_000


def test_what_runs_until_the_host_is_recorded_is_part_of_the_trace() -> None:
    def span(builder: TraceBuilder) -> int:
        found = Timeline(builder.launch("new", call=(1000, 5), runs=(1010, 90)).trace()).span
        assert found is not None
        return found[1] - found[0]

    assert span(TraceBuilder().kernel("queued before", 0, 900)) == 1_100_000
    assert span(TraceBuilder().kernel("before", 0, 100).op("aten::randn", 150, 800)) == 1_100_000


@pytest.mark.parametrize(("devices", "waits"), [(2, True), (1, False)])
def test_a_small_collective_that_takes_long_waits_where_all_ranks_may_be_of_this_host(devices: int, waits: bool):
    builder = TraceBuilder(rank=0, world_size=2)
    builder.top["deviceProperties"] = [{"id": number, "name": "NVIDIA B200"} for number in range(devices)]
    kernel = "ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
    sizes = {"In msg nelems": 8, "Out msg nelems": 16, "dtype": "Long"}
    builder.launch(kernel, call=(0, 2), runs=(10, 393), args=sizes)
    assert [bool(ns) for ns in Timeline(builder.trace()).waiting_for_peers.tolist()] == [waits]
