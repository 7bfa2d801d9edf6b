from __future__ import annotations

from typing import Any

import pytest

from syncscope.timeline import Timeline
from syncscope.timeline.collectives import HELD, SAME_STREAM, UNQUEUED
from tests.builders import TID, TraceBuilder

ALL_REDUCE = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
SEND_RECV = "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)"
BACKWARD = (("train.py", 31, "step", "loss.backward()"), ("<site-packages>/torch/_tensor.py", 9, "backward"))
US = 1000


def only(builder: TraceBuilder) -> dict[str, Any]:
    """The one collective of a trace, with its place."""
    timeline = Timeline(builder.trace())
    (row,) = timeline.collectives.to_pandas().assign(dur=timeline.collectives.dur).to_dict("records")
    return {**{str(column): value for column, value in row.items()}, "at": timeline.places[row["place"]]}


def reduced(args: dict[str, Any] | None = None, *, stream: int = 13) -> TraceBuilder:
    """A kernel for 50 µs, and an all-reduce launched while it runs, of 40 µs of which 20 are beside it."""
    builder = TraceBuilder().recording(0, 200).launch("gemm", call=(0, 5), runs=(10, 50))
    return builder.launch(ALL_REDUCE, call=(20, 5), runs=(40, 40), stream=stream, args=args)


def test_what_nothing_computes_beside_is_exposed():
    found = only(reduced())
    assert (found["name"], found["dur"], found["exposed"], found["step"]) == ("allreduce", 40 * US, 20 * US, 0)


def test_size_and_group_are_the_traces_own():
    arguments = {"Collective name": "allreduce", "In msg nelems": 1000, "Out msg nelems": 1000, "dtype": "BFloat16"}
    stated = only(reduced({**arguments, "Process Group Name": "3"}))
    assert (stated["bytes"], stated["group"]) == (2000, "3")
    assert (only(reduced())["bytes"], only(reduced())["group"]) == (-1, "")


@pytest.mark.parametrize("arguments", [{"dtype": "Strange"}, {"dtype": "Float", "In msg nelems": 1 << 62}])
def test_a_size_that_makes_no_sense_is_unknown(arguments: dict[str, Any]):
    assert only(reduced({"In msg nelems": 10, "Out msg nelems": 10, **arguments}))["bytes"] == -1


def test_the_line_is_that_of_the_call_of_the_process_group():
    line = ("train.py", 19, "step", "dist.all_reduce(x)")
    found = only(reduced().entry("ProcessGroup.allreduce", 18, 27, line))
    assert (found["at"].site.line, found["at"].entry) == (19, "ProcessGroup.allreduce")


def test_in_a_thread_of_autograd_the_line_is_that_of_backward():
    builder = TraceBuilder().recording(0, 200).entry("backward", 10, 150, *BACKWARD)
    builder.on(TID + 1).launch(ALL_REDUCE, call=(20, 5), runs=(40, 40), stream=13)
    assert only(builder)["at"].site.line == 31


def test_a_librarys_hook_in_backward_is_at_the_line_of_backward_too():
    builder = TraceBuilder().recording(0, 200).entry("backward", 10, 150, *BACKWARD).on(TID + 1)
    builder.launch(ALL_REDUCE, call=(20, 5), runs=(40, 40), stream=13)
    hook = ("<site-packages>/torch/distributed/fsdp/_hooks.py", 7, "post_backward")
    assert only(builder.entry("ProcessGroup.allreduce", 18, 27, hook))["at"].site.line == 31


def test_the_frames_of_a_foreign_trace_give_the_function_that_called_backward():
    builder = TraceBuilder().frame("train.py", 30, "step", 0, 190)
    builder.frame("/x/site-packages/torch/autograd/graph.py", 820, "_engine_run_backward", 10, 140)
    builder.on(TID + 1).launch(ALL_REDUCE, call=(20, 5), runs=(40, 40), stream=13)
    assert (only(builder)["at"].site.function, only(builder)["at"].source) == ("step", "stack")


@pytest.mark.parametrize(
    ("annotation", "name"),
    [
        ("nccl:all_to_all", "all_to_all"),
        ("nccl:_reduce_scatter_base", "reduce_scatter"),
        ("nccl:send 0->1", "send"),
        ("nccl:recv 0<-1", "recv"),
        ("nccl:coalesced", "send_recv"),
        ("## forward ##", "send_recv"),
    ],
)
def test_without_the_op_such_a_kernel_is_named_after_what_nccl_annotates(annotation: str, name: str):
    builder = TraceBuilder().annotation(annotation, 0, 50).op("record_param_comms", 1, 40)
    found = only(builder.launch(SEND_RECV, call=(20, 5), runs=(40, 40), stream=13))
    assert (found["name"], found["marks"]) == (name, (annotation,))


@pytest.mark.parametrize(
    ("op", "name"), [("c10d::alltoall_base_", "all_to_all"), ("c10d::send", "send"), ("aten::gather", "send_recv")]
)
def test_a_kernel_that_serves_several_collectives_is_named_after_the_op(op: str, name: str):
    builder = TraceBuilder().op(op, 0, 50).launch(SEND_RECV, call=(20, 5), runs=(40, 40), stream=13)
    assert only(builder)["name"] == name


def test_without_ops_it_is_named_after_the_recorded_call():
    builder = TraceBuilder().recording(0, 100).entry("ProcessGroup.alltoall_base", 15, 30, ("train.py", 3, "step"))
    assert only(builder.launch(SEND_RECV, call=(20, 5), runs=(40, 40), stream=13))["name"] == "all_to_all"


def test_why_nothing_computes_beside_it():
    assert only(reduced(stream=7))["beside"] == SAME_STREAM
    assert only(reduced().launch("sgd", call=(30, 5), runs=(85, 5)))["beside"] == HELD
    assert only(reduced().launch("sgd", call=(90, 5), runs=(98, 5)))["beside"] == UNQUEUED
    assert only(reduced())["beside"] == UNQUEUED


def test_idle_time_before_a_collective_is_told_in_full_though_annotations_part_it() -> None:
    builder = TraceBuilder().step(0, 4000)
    at = 0.0
    for name, idle in (("sparse arch", 2000.0), ("dense arch", 600.0)):
        builder.launch("k", call=(at + 1, 4), runs=(at + 10, 100)).annotation(name, at + 20, 100)
        builder.op("aten::item", at + 21, 92).op("aten::_local_scalar_dense", at + 22, 90)
        builder.copy("DtoH", call=(at + 23, 2), runs=(at + 110, 1), memory="pinned").stream_sync(at + 30, 81)
        at += 110 + idle
    builder.launch("ncclDevKernel_AllReduce_Sum_f32_RING_LL", call=(at, 5), runs=(at + 6, 50), stream=13)
    meetings = Timeline(builder.trace()).info().meetings
    assert meetings is not None
    ((one,), delays) = meetings.collectives, meetings.delays
    works = [ms for ms, number in zip(one.idle_ms, one.delays, strict=True) if delays[number].cause == "host work"]
    assert sum(works) > 2.4


def test_idle_time_of_several_causes_before_a_collective_is_told_by_cause() -> None:
    builder = TraceBuilder().step(0, 4000).launch("k", call=(1, 4), runs=(10, 100))
    builder.op("aten::empty", 500, 910).call("cudaMalloc", 505, 900)
    builder.launch("ncclDevKernel_AllReduce_Sum_f32_RING_LL", call=(3000, 5), runs=(3010, 50), stream=13)
    meetings = Timeline(builder.trace()).info().meetings
    assert meetings is not None
    ((one,), delays) = meetings.collectives, meetings.delays
    told = {delays[number].cause: ms for ms, number in zip(one.idle_ms, one.delays, strict=True)}
    assert told["allocation"] == pytest.approx(0.9)
    assert told["host work"] == pytest.approx(3.01 - 0.11 - 0.9)


def test_of_collectives_that_are_one_meeting_the_length_of_each_is_kept() -> None:
    builder = TraceBuilder()
    for number in range(40):
        builder.launch(ALL_REDUCE, call=(100 * number, 5), runs=(100 * number + 10, 40 + number), stream=13)
    found = Timeline(builder.trace()).info().meetings
    assert found is not None
    assert [one.each_ms for one in found.collectives[:2]] == [(0.04, 0.041), (0.042, 0.043)]


@pytest.mark.parametrize(("steps", "meetings"), [(False, 20), (True, 8)])
def test_of_a_trace_without_steps_no_more_than_two_collectives_in_a_row_are_one_meeting(
    *, steps: bool, meetings: int
) -> None:
    builder = TraceBuilder().step(0, 4100) if steps else TraceBuilder()
    for number in range(40):
        builder.launch(ALL_REDUCE, call=(100 * number, 5), runs=(100 * number + 10, 40), stream=13)
    found = Timeline(builder.trace()).info().meetings
    assert found is not None
    assert len(found.collectives) == meetings


def test_without_a_group_collectives_of_graphs_are_meetings_of_their_own() -> None:
    def meetings(**args: str) -> list[tuple[bool, float]]:
        builder = TraceBuilder().call("cudaGraphLaunch", 0, 5, correlation=90)
        builder.kernel(ALL_REDUCE, 10, 40, stream=13, correlation=90, args=dict(args))
        builder.launch(ALL_REDUCE, call=(100, 5), runs=(110, 30), stream=13, args=dict(args))
        found = Timeline(builder.trace()).info().meetings
        assert found is not None
        return [(one.in_graph, one.ms) for one in found.collectives]

    assert meetings() == [(True, 0.04), (False, 0.03)]
    assert meetings(**{"Process Group Name": "0"}) == [(False, 0.04), (False, 0.03)]


def test_of_a_collective_it_is_told_when_it_is_exposed() -> None:
    builder = TraceBuilder().launch(ALL_REDUCE, call=(0, 5), runs=(10, 80), stream=13)
    builder.launch("gemm", call=(6, 3), runs=(10, 25)).launch("gemm", call=(20, 3), runs=(85, 20))
    (parts,) = Timeline(builder.trace()).exposed_at_the_end.tolist()
    assert parts == [5000, 15_000, 25_000, 35_000, 45_000, 50_000, 50_000, 50_000]
    assert Timeline(TraceBuilder().launch("k", call=(0, 5), runs=(10, 5)).trace()).exposed_at_the_end.shape == (0, 8)
