from __future__ import annotations

from collections.abc import Sequence

import pytest

from syncscope.rules import find
from syncscope.schema.findings import Finding
from syncscope.schema.order import ordered
from syncscope.timeline import Timeline
from tests.builders import TID, TraceBuilder
from tests.rules.scenes import blind, findings, line

ALL_REDUCE = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
BY_HAND = line(19, "dist.all_reduce(p.grad)")
BACKWARD = line(31, "loss.backward()")


def training(*reduced: tuple[float, float], steps: int = 2, by_hand: bool = False, skew: float = 0) -> TraceBuilder:
    """Steps of 1000 µs: 600 of compute, collectives at the given times of the step, 100 of compute from 900 on. The
    first collective of the first step takes ``skew`` longer, from before."""
    builder = TraceBuilder(rank=0, world_size=2).recording(*(1000 * i for i in range(steps + 1)))
    for step in range(steps):
        at = 1000.0 * step
        builder.on(TID).launch("backward", call=(at + 1, 5), runs=(at + 10, 600))
        if not by_hand:
            builder.entry("backward", at + 8, at + 890, BACKWARD).on(TID + 1)
        for begin, runs in reduced:
            longer = skew if step == 0 else 0
            builder.launch(ALL_REDUCE, call=(at + 9, 3), runs=(at + begin, runs + longer), stream=13)
        builder.on(TID).launch("sgd", call=(at + 60, 5), runs=(at + 900, 90))
        if by_hand:
            builder.entry("ProcessGroup.allreduce", at + 8, at + 13, BY_HAND)
    return builder


def exposed(builder: TraceBuilder) -> list[Finding]:
    return findings(builder, "OVL302")


def test_a_collective_that_nothing_hides_is_found_at_the_backward_that_starts_it():
    (found,) = exposed(training((620, 200)))
    assert found.site is not None
    assert (found.site.line, found.severity, found.per_step) == (31, "warning", 1)
    assert found.exposed_ms_per_step == pytest.approx(0.2)
    assert "allreduce × 1 a step, with no compute beside them for 0.2 ms a step" in found.message
    assert "what computes next waits for them" in found.message
    assert "another rank comes late" in found.message
    assert "bucket_cap_mb" in found.fix


def test_by_hand_it_is_found_at_its_line_with_the_fix_for_that():
    (found,) = exposed(training((620, 200), by_hand=True))
    assert found.site is not None
    assert found.site.line == 19
    assert "async_op=True" in found.fix


def test_beside_compute_it_is_clean():
    assert exposed(training((20, 200), (300, 200))) == []


def test_a_last_bucket_that_cannot_hide_is_a_note():
    assert [finding.severity for finding in exposed(training((20, 200), (595, 40)))] == ["note"]


def test_most_of_it_exposed_is_more_than_a_note_however_short():
    assert [finding.severity for finding in exposed(training((600, 40)))] == ["warning"]


def test_what_is_under_a_hundredth_of_the_step_is_not_spoken_of():
    assert exposed(training((601, 18))) == []


def test_the_first_step_counts_for_no_more_than_the_others_where_there_are_three():
    assert exposed(training((620, 200), steps=2, skew=60))[0].exposed_ms_per_step == pytest.approx(0.23)
    assert exposed(training((620, 200), steps=3, skew=60))[0].exposed_ms_per_step == pytest.approx(0.2)


def test_sharded_weights_get_their_own_fix():
    builder = training((620, 200))
    for event in builder.events:
        event["name"] = event["name"].replace("AllReduce", "AllGather")
    assert "prefetch" in exposed(builder)[0].fix


def test_sizes_that_the_trace_does_not_tell_are_said_to_be_missing():
    def partly(builder: TraceBuilder) -> Sequence[str]:
        return [entry.why for entry in find(Timeline(builder.trace()))[1] if entry.rule == "OVL302" and entry.partial]

    assert "how large" in partly(training((620, 200)))[0]
    told = training((620, 200))
    for event in told.events:
        if event["cat"] == "kernel" and "nccl" in event["name"]:
            event["args"] |= {"In msg nelems": 10, "Out msg nelems": 10, "dtype": "Float"}
    assert partly(told) == []
    assert exposed(told)[0].bytes == 80
    assert partly(TraceBuilder().launch("k", call=(0, 1), runs=(2, 5))) == []


def started(kernel: str, *marks: str, op: str = "c10d::x_", times: int = 1, runs: float = 40) -> TraceBuilder:
    """A step of 1000 µs with a collective that nothing computes beside, or several, launched inside annotations."""
    builder = TraceBuilder().step(0, 1000).launch("gemm", call=(1, 5), runs=(10, 300))
    for mark in marks:
        builder.annotation(mark, 15, 80)
    for number in range(times):
        at = 20 + number
        builder.op(op, at, 0.9).launch(kernel, call=(at, 0.5), runs=(320 + (runs + 1) * number, runs), stream=13)
    return builder


REDUCE_SCATTER = "ncclDevKernel_ReduceScatter_Sum_f32(x)"
LOOKUP = "fbgemm::split_embedding_codegen_lookup_sgd_function"
ALL_GATHER, ALL_TO_ALL = "ncclDevKernel_AllGather_RING_LL(x)", "ncclDevKernel_SendRecv(x)"


@pytest.mark.parametrize(
    ("builder", "part"),
    [
        (started(ALL_GATHER, "Optimizer.step#Shampoo.step"), "optimizer shares out"),
        (started(ALL_GATHER, "Optimizer.zero_grad#SGD.zero_grad"), "Fetch ahead: start the next layer's"),
        (started(ALL_GATHER, "Attention", op="Redistribute"), "Each layer needs it before"),
        (started(ALL_GATHER, "FullyShardedDataParallel.forward", op="Redistribute"), "Each layer needs it before"),
        (started(ALL_GATHER, op="autograd::engine::evaluate_function: RedistributeBackward"), "Each layer needs it"),
        (started(ALL_TO_ALL, "## forward ##", "nccl:all_to_all"), "shared experts"),
        (started(ALL_TO_ALL, "## sparse_data_dist ##", "nccl:all_to_all"), "embeddings' all-to-all"),
        (started(ALL_TO_ALL, "# running sparse arch", "nccl:all_to_all"), "embeddings' all-to-all"),
        (started(ALL_TO_ALL, "nccl:all_to_all").op(LOOKUP, 120, 5), "embeddings' all-to-all"),
        (
            started("void deep_ep::internode_ll::combine<3, 10, 7168, 9>(void*)", op="aten::empty"),
            "return_recv_hook=True",
        ),
        (started(ALL_TO_ALL, "nccl:recv 0<-1"), "micro-batch"),
        (started(ALL_TO_ALL), "async_op=True as soon"),
        (started("ncclDevKernel_Broadcast_RING_LL(x)", "DistributedDataParallel.forward"), "broadcast_buffers=False"),
        (started(ALL_REDUCE, op="vllm::all_reduce", times=10), "split the model over fewer ranks"),
        (started(ALL_REDUCE, op="symm_mem::multimem_all_reduce_", times=10), "a fast one already"),
        (started(ALL_REDUCE, op="_c10d_functional::all_reduce", times=10), "split the model over fewer ranks"),
        (
            started(ALL_REDUCE, op="_c10d_functional::all_reduce", times=10).op("autograd::engine", 200, 5),
            "Join them",
        ),
        (
            started("void (anonymous namespace)::all_reduce_two_shot_kernel<half>(x)", op="vllm::y"),
            "a fast one already",
        ),
        (started(ALL_REDUCE, times=10), "Join them"),
        (started(ALL_REDUCE, times=5, runs=120), "async_op=True as soon"),
    ],
)
def test_the_fix_follows_the_collective_its_number_and_what_is_around_it(builder: TraceBuilder, part: str):
    (found,) = exposed(builder)
    assert part in found.fix


def scattered() -> TraceBuilder:
    """A step that gathers, and scatters sums."""
    return started(ALL_GATHER).launch(REDUCE_SCATTER, call=(40, 0.5), runs=(500, 60), stream=13)


def test_sums_scattered_without_a_backward_are_those_of_activations():
    assert all("Each layer needs it before" in found.fix for found in exposed(scattered()))
    trains = scattered().annotation("Optimizer.step#SGD.step", 900, 10)
    assert {found.fix.split(":")[0][:11] for found in exposed(trains)} == {"Fetch ahead", "Start each "}


def test_of_collectives_that_gain_together_the_longest_exposed_comes_first_without_steps():
    builder = TraceBuilder().launch("gemm", call=(1, 5), runs=(10, 300))
    for number, runs in enumerate((60, 400, 90)):
        with_name = builder.annotation(f"part {'abc'[number]}", 20 + 10 * number, 9)
        with_name.op("c10d::x_", 21 + 10 * number, 5)
        with_name.launch(ALL_GATHER, call=(22 + 10 * number, 3), runs=(320 + 500 * number, runs), stream=13)
    found = ordered(exposed(builder))
    assert [one.annotation for one in found] == ["part b", "part c", "part a"]
    assert [one.exposed_ms for one in found] == [0.4, 0.09, 0.06]


def test_what_was_launched_before_the_recording_is_not_taken_for_as_long_as_the_same_in_a_later_step():
    builder = TraceBuilder().steps(0, 1000, 2000, 3000).kernel(ALL_REDUCE, 400, 300, stream=13, correlation=0)
    for at in (0, 1000, 2000):
        builder.op("c10d::allreduce_", at + 700, 8)
        builder.launch(ALL_REDUCE, call=(at + 701, 5), runs=(at + 720, 20), stream=13)
    (before,) = [one for one in exposed(builder) if one.op == "allreduce"]
    assert (before.exposed_ms, before.exposed_ms_per_step) == (0.3, None)
    assert "with no compute beside them for 0.3 ms of the recorded steps" in before.message


def test_what_records_arguments_is_not_what_the_program_called():
    (found,) = exposed(started(ALL_TO_ALL, "nccl:all_to_all", op="record_param_comms"))
    assert found.op == "all_to_all"
    assert found.message.startswith("the program starts all_to_all × 1 a step")


def test_collectives_side_by_side_are_exposed_once():
    builder = started(ALL_GATHER).launch(ALL_REDUCE, call=(30, 1), runs=(330, 90), stream=17)
    assert sorted(found.exposed_ms_per_step or 0 for found in exposed(builder)) == [0.04, 0.06]


def test_a_collective_counts_no_further_than_the_steps():
    builder = TraceBuilder().step(0, 1000).launch("gemm", call=(1, 5), runs=(10, 300))
    builder.kernel(ALL_REDUCE, 400, 100, stream=13, correlation=0)
    builder.op("c10d::allreduce_", 899, 8).launch(ALL_REDUCE, call=(900, 5), runs=(950, 800), stream=13)
    before, launched = sorted(exposed(builder), key=lambda found: found.exposed_ms or 0)[::-1]
    assert (before.exposed_ms, launched.exposed_ms_per_step) == (0.1, 0.05)
    assert (before.exposed_ms_per_step, before.per_step) == (None, None)
    assert "allreduce × 1 in all, launched before the trace begins, with no compute beside them for 0.1 ms of the" in (
        before.message
    )
    assert (before.severity, launched.severity) == ("note", "warning")
    assert before.fix.startswith("Nothing here")
    assert "launched before the trace begins" not in launched.message


def test_a_launch_that_the_trace_lost_is_none_of_an_earlier_step():
    builder = started(ALL_REDUCE).kernel(ALL_TO_ALL, 500, 60, stream=15)
    (found,) = [one for one in exposed(builder) if "send_recv" in one.message]
    assert "send_recv × 1 a step, whose launches are not in the trace" in found.message
    assert found.severity == "warning"


def test_where_no_launch_of_a_collective_is_known_none_is_of_an_earlier_step():
    builder = TraceBuilder().step(0, 1000).launch("gemm", call=(1, 5), runs=(10, 300)).kernel(ALL_REDUCE, 400, 100)
    (found,) = exposed(builder)
    assert (found.severity, found.fix.startswith("Nothing here")) == ("warning", False)


def all_to_alls(*lengths: float) -> TraceBuilder:
    """Collectives of 8 KB that follow each other, with nothing else to compute."""
    builder = TraceBuilder(rank=0, world_size=2).launch("gemm", call=(1, 5), runs=(10, 20))
    at, size = 40.0, {"In msg nelems": 2048, "Out msg nelems": 2048, "dtype": "Float"}
    for dur in lengths:
        builder.op("c10d::alltoall_base_", at - 9, 8).launch(
            ALL_TO_ALL, call=(at - 8, 4), runs=(at, dur), stream=13, args=size
        )
        at += dur + 20
    return builder


def test_how_long_the_same_takes_without_waiting_is_of_what_ran_in_full():
    """The first step's collective counts for no more than a later one, of which most is waiting."""
    builder = TraceBuilder(rank=0, world_size=2).recording(0, 20_000, 40_000, 60_000, 80_000)
    size = {"In msg nelems": 2048, "Out msg nelems": 2048, "dtype": "Float"}
    for at, dur in ((0, 9_000), (20_000, 40), (40_000, 6_000), (60_000, 6_000)):
        builder.launch("gemm", call=(at + 1, 5), runs=(at + 10, 20))
        builder.op("c10d::alltoall_base_", at + 41, 8).launch(
            ALL_TO_ALL, call=(at + 42, 4), runs=(at + 50, dur), stream=13, args=size
        )
    (found,) = exposed(builder)
    assert "as the same takes 40 µs at the least" in found.message


def test_what_waits_for_another_rank_is_told_so_with_the_fix_for_that():
    (found,) = exposed(all_to_alls(12, 10, 14, 4500))
    assert "4.49 ms of it is waiting for another rank, as the same takes 10 µs at the least" in found.message
    assert "one rank alone does not show which rank comes late" in found.message
    assert found.fix.startswith("See what the other ranks do")


def test_one_that_takes_longer_than_any_network_waits_though_nothing_is_alike():
    (found,) = exposed(all_to_alls(9000))
    assert "7.84 ms of it is waiting for another rank, as one of its size takes no longer than 1.16 ms" in found.message
    assert found.fix.startswith("See what the other ranks do")


def test_what_takes_as_long_each_time_is_not():
    (found,) = exposed(all_to_alls(800, 810, 790, 805))
    assert "waiting" not in found.message and "async_op=True" in found.fix


def test_where_somebody_kept_the_collectives_alone_nothing_is_told_of_what_runs_beside_them() -> None:
    def reduces(*, computes: bool) -> TraceBuilder:
        builder = TraceBuilder()
        for at in range(0, 50_000, 10_000):
            builder.kernel("ncclDevKernel_AllReduce_Sum_f32(x)", at, 4000)
            if computes:
                builder.kernel("gemm", at + 5000, 1000)
        return builder

    alone = reduces(computes=False)
    assert findings(alone, "OVL302", "OVL303") == [] and Timeline(alone.trace()).overlap is None
    assert {code for code, why in blind(alone).items() if "collectives alone" in why} >= {"OVL302", "OVL303"}
    assert {found.rule for found in findings(reduces(computes=True), "OVL302", "OVL303")} == {"OVL302", "OVL303"}


def test_sends_and_receives_that_start_together_get_the_advice_for_them():
    builder = TraceBuilder(rank=0, world_size=2).steps(0, 1000, 2000)
    for at in (0, 1000):
        builder.launch("forward", call=(at + 1, 5), runs=(at + 10, 300))
        builder.annotation("nccl:coalesced", at + 20, 20)
        builder.launch("ncclDevKernel_SendRecv(ncclDevKernelArgs)", call=(at + 25, 5), runs=(at + 320, 500), stream=13)
    (found,) = exposed(builder)
    assert found.fix.startswith("Start these sends and receives before")
    assert "DistributedDataParallel" not in found.fix


@pytest.mark.parametrize(("many", "size"), [(1, "4 bytes"), (310, "1,240 bytes"), (1 << 20, "4.19 MB")])
def test_a_few_numbers_are_told_in_bytes(many: int, size: str):
    builder = TraceBuilder(rank=0, world_size=2).steps(0, 1000, 2000)
    moves = {"In msg nelems": many, "dtype": "Float", "Process Group Name": "0"}
    for at in (0, 1000):
        builder.launch("forward", call=(at + 1, 5), runs=(at + 10, 300))
        builder.launch(ALL_REDUCE, call=(at + 25, 5), runs=(at + 320, 500), stream=13, args=moves)
    (found,) = exposed(builder)
    assert f"allreduce × 1 a step ({size})" in found.message


@pytest.mark.parametrize(("gradients", "begin"), [(1, "Send less"), (2, "Send less"), (3, "Reduce sooner")])
def test_an_all_reduce_of_one_large_parameter_cannot_be_split(gradients: int, begin: str):
    builder = TraceBuilder(rank=0, world_size=2).steps(0, 2000, 4000)
    size = {"In msg nelems": 1 << 26, "dtype": "Float", "Process Group Name": "0"}
    for at in (0, 2000):
        builder.launch("forward", call=(at + 1, 5), runs=(at + 10, 300))
        builder.on(TID + 1)
        for number in range(gradients):
            builder.op("torch::autograd::AccumulateGrad", at + 20 + 20 * number, 15)
        last = at + 20 * gradients
        builder.op("autograd::engine::evaluate_function: torch::autograd::AccumulateGrad", last - 1, 18)
        builder.op("c10d::allreduce_", last + 3, 8)
        builder.launch(ALL_REDUCE, call=(last + 5, 3), runs=(at + 320, 1000), stream=13, args=size)
        builder.on(TID)
    (found,) = exposed(builder)
    assert found.fix.startswith(begin)
