"""Waits inside collectives: one finding a call, before the rules that would take its parts."""

from __future__ import annotations

from tests.builders import TID, FrameSpec, TraceBuilder
from tests.rules.scenes import blind, chain, codes, findings, line, waiting

C10D = "<site-packages>/torch/distributed/distributed_c10d.py"
LOGGED: FrameSpec = ("<site-packages>/torch/distributed/c10d_logger.py", 83, "wrapper", "func(*args, **kwargs)")


def inside(number: int, function: str, expression: str) -> tuple[str, int, str, str]:
    return (C10D, number, function, expression)


def gathered(builder: TraceBuilder, start: float) -> TraceBuilder:
    """``all_gather_object`` as it waits: two copies to the device, a read, a copy back."""
    user = line(22, "dist.all_gather_object(parts, metrics)")
    parts: list[tuple[int, tuple[str, ...], str, tuple[str, int, str, str]]] = [
        (3501, ("aten::to", "aten::copy_"), "HtoD", inside(3410, "_object_to_tensor", "data.to(device)")),
        (3501, ("aten::to", "aten::copy_"), "HtoD", inside(3420, "_object_to_tensor", "size.to(device)")),
        (3514, ("aten::item",), "DtoH", inside(3514, "all_gather_object", "max(sizes).item()")),
        (3530, ("aten::to", "aten::copy_"), "DtoH", inside(3433, "_tensor_to_object", "tensor.cpu()")),
    ]
    for number, (outer, ops, direction, inner) in enumerate(parts):
        at = start + 100 * number
        waiting(builder, at, *ops, copy=direction, memory="pageable" if "to" in ops[0] else "pinned", size=64)
        stack = [user, LOGGED, inside(outer, "all_gather_object", "…")]
        builder.warning(at + 70, *stack, *([inner] if inner[2] != "all_gather_object" else []))
    return builder


def test_a_call_with_objects_is_one_finding_at_the_users_line_and_its_copies_are_none():
    builder = gathered(gathered(TraceBuilder().recording(0, 1000), 5), 505)
    found = findings(builder)
    assert [(f.rule, f.count) for f in found if not f.rule.startswith("OVL")] == [("SYN110", 2)]
    call = found[0]
    assert call.site is not None
    assert call.at is not None
    assert (call.site.line, call.at.line) == (22, 22)
    assert "4 times a call" in call.message
    assert "gloo" in call.fix
    assert call.stall_ms_per_step is not None


def test_a_barrier_is_known_by_its_recorded_call():
    builder = TraceBuilder().recording(0, 1000)
    for start in (0, 500):
        stack = [line(17, "dist.barrier()"), LOGGED, inside(5349, "barrier", "group.barrier(opts=opts)")]
        builder.entry("ProcessGroup.barrier", start + 8, start + 102, *stack).stream_sync(start + 10, 90)
    found = findings(builder, "SYN105", "SYN109", "SYN110")
    assert [(finding.rule, finding.count) for finding in found] == [("SYN110", 2)]
    assert found[0].message.startswith("dist.barrier() makes the host wait for all ranks")
    assert "outside the steps" in found[0].fix


def test_without_lines_the_op_tells():
    found = findings(chain("c10d::barrier", "record_param_comms", copy=None), "SYN105", "SYN109", "SYN110")
    assert [(finding.rule, finding.op) for finding in found] == [("SYN110", "c10d::barrier")]


def test_older_versions_wait_right_behind_the_barriers_op():
    builder = TraceBuilder().step(0, 1000).op("c10d::barrier", 10, 50).op("record_param_comms", 12, 40)
    builder.stream_sync(70, 100)
    assert codes(builder) == ["SYN110"]


def test_a_wait_behind_something_else_is_no_barriers():
    builder = TraceBuilder().step(0, 1000).op("c10d::barrier", 10, 50).op("aten::mm", 62, 5).stream_sync(70, 100)
    assert codes(builder) == ["SYN105"]


def test_a_copy_that_backward_makes_outside_its_functions_is_ddps_question():
    builder = TraceBuilder().recording(0, 1000)
    waiting(builder, 10, "aten::copy_", memory="pageable", size=32)
    engine = ("<site-packages>/torch/autograd/graph.py", 869, "_engine_run_backward", "run_backward()")
    found = findings(builder.warning(100, line(30, "loss.backward()"), engine), "SYN101", "CPY201", "SYN110")
    assert [finding.rule for finding in found] == ["SYN110"]
    assert "find_unused_parameters" in found[0].fix


def test_its_line_is_that_of_backward_though_a_thread_of_autograd_waits():
    builder = TraceBuilder().recording(0, 1000, thread_names={str(TID): "MainThread"})
    engine = ("<site-packages>/torch/autograd/__init__.py", 381, "backward", "_engine_run_backward()")
    builder.entry("backward", 5, 300, line(30, "loss.backward()"), engine)
    found = findings(waiting(builder.on(77), 50, "aten::copy_", memory="pageable", size=32), "SYN101", "SYN110")
    assert [(finding.rule, finding.site and finding.site.line) for finding in found] == [("SYN110", 30)]


def test_where_ops_are_unknown_that_nothing_warned_of_it_tells():
    builder = TraceBuilder().recording(0, 1000, thread_names={str(TID): "MainThread"})
    engine = ("<site-packages>/torch/autograd/__init__.py", 381, "backward", "_engine_run_backward()")
    builder.entry("backward", 5, 300, line(30, "loss.backward()"), engine)
    found = findings(waiting(builder.on(77), 50, memory="pageable", size=32), "SYN101", "CPY201", "SYN110")
    assert [finding.rule for finding in found] == ["SYN110"]
    assert "find_unused_parameters" in found[0].fix


def test_without_lines_that_question_is_known_by_the_search_in_forward():
    builder = TraceBuilder().step(0, 1000).op("torch.distributed.ddp.reducer::search_unused_parameters", 5, 10)
    waiting(builder, 20, "aten::copy_", memory="pageable", size=32)  # on the thread of forward: the program's own
    waiting(builder.on(77), 200, "aten::copy_", memory="pageable", size=32)
    found = findings(builder, "SYN101", "SYN110")
    assert [(finding.rule, finding.thread) for finding in found] == [("SYN110", None), ("SYN101", None)]
    assert "find_unused_parameters" in found[0].fix


def test_a_read_in_the_users_own_code_inside_a_collective_is_that_lines():
    builder = TraceBuilder().recording(0, 1000)
    stack = [line(22, "dist.all_gather_object(parts, metrics)"), LOGGED, inside(3501, "all_gather_object", "…")]
    waiting(builder, 10, "aten::item").warning(100, *stack, line(70, "self.total.item()"))
    assert codes(builder) == ["SYN102"]


def test_a_collective_that_holds_no_host_is_clean():
    builder = TraceBuilder().step(0, 1000).op("c10d::allreduce_", 10, 50)
    builder.launch("ncclDevKernel_AllReduce_Sum_f32_RING_LL", call=(20, 5), runs=(40, 300))
    assert codes(builder) == []


def test_what_polling_hides_is_said_where_ranks_communicate():
    builder = TraceBuilder().launch("ncclDevKernel_AllReduce_Sum_f32_RING_LL", call=(20, 5), runs=(40, 300))
    assert "polls" in blind(builder)["SYN110"]
    assert "SYN110" not in blind(TraceBuilder().launch("gemm", call=(20, 5), runs=(40, 300)).device_sync(30, 320))
