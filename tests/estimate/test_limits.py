"""What the trace leaves to gain, whatever the replay finds."""

from __future__ import annotations

from typing import Any

import pytest

from syncscope import rules
from syncscope.estimate import savings
from syncscope.estimate.answers import Saving
from syncscope.estimate.idle import ONCE
from syncscope.estimate.limits import LAST, Limit, find_computed, find_limits, find_whole_limit
from syncscope.estimate.prepare import prepare
from syncscope.estimate.profiler_cost import Costs
from syncscope.estimate.program import compile_program
from syncscope.estimate.questions import question
from syncscope.estimate.savings import estimate_savings
from syncscope.estimate.study import Study
from syncscope.rules import Hit
from syncscope.schema.findings import Finding
from syncscope.timeline import Timeline
from tests.builders import TraceBuilder

MS = 1000
ALL_TO_ALL = "ncclDevKernel_SendRecv"


def found(builder: TraceBuilder, code: str) -> tuple[Study, list[Hit]]:
    """A trace, and what the rule finds in it."""
    timeline = Timeline(builder.trace())
    program = compile_program(timeline, Costs(*[0.0] * 6))
    assert program is not None
    return Study(timeline, program), [hit for hit in rules.find(timeline)[0] if hit.finding.rule == code]


def limit(builder: TraceBuilder, code: str) -> Limit:
    """The limit of the rule's only finding."""
    study, (hit,) = found(builder, code)
    return find_limits(study, [hit])[0]


def estimated(builder: TraceBuilder, code: str) -> list[Finding]:
    timeline = Timeline(builder.trace())
    every = estimate_savings(prepare(timeline, rules.find(timeline)[0])).findings
    return [finding for finding in every if finding.rule == code]


def reading(*, beside: float = 0, next_launch: float = 1200) -> TraceBuilder:
    """A read that blocks for 800 µs; ``beside`` µs of another stream's compute go on after it."""
    builder = TraceBuilder().launch("gemm", call=(0, 5), runs=(10, 900))
    if beside:
        builder.launch("other", call=(6, 3), runs=(20, 900 + beside), stream=9)
    builder.op("aten::item", 95, 825).op("aten::_local_scalar_dense", 96, 823)
    builder.copy("DtoH", call=(97, 3), runs=(911, 2), memory="pinned", bytes=4).stream_sync(105, 810)
    return builder.launch("next", call=(next_launch, 5), runs=(next_launch + 10, 500))


def test_a_read_gains_no_more_than_the_device_is_late_for_what_is_launched_next() -> None:
    assert limit(reading(), "SYN102").late_ms == pytest.approx((1205 - 910) / MS + 2 / MS)


def test_a_read_gains_no_more_than_it_blocks() -> None:
    assert limit(reading(next_launch=9000), "SYN102").late_ms == pytest.approx(818 / MS + 2 / MS, abs=0.01)


def test_memory_gains_no_more_than_the_device_is_late_until_the_host_waits() -> None:
    # Each call holds the host for 900 us. Behind the first the device is late by 495 us, behind the second, which it
    # computes beside, by nothing; behind the wait it is late by 95 us more, which the calls cannot gain.
    builder = TraceBuilder().steps(0, 3000, 6000)
    for at in (0, 3000):
        builder.launch("gemm", call=(at + 5, 5), runs=(at + 10, 500)).call("cudaMalloc", at + 100, 900)
        builder.launch("gemm", call=(at + 1000, 5), runs=(at + 1005, 1500)).call("cudaFree", at + 1010, 900)
        builder.stream_sync(at + 1920, 586, record=True).launch("gemm", call=(at + 2595, 5), runs=(at + 2600, 395))
    assert limit(builder, "SYN106").ms == pytest.approx(0.495)


def test_copies_gathered_gain_no_more_than_the_device_does_not_compute() -> None:
    builder = TraceBuilder().steps(0, 2000, 4000, 6000)
    for at in (0, 2000, 4000):
        builder.launch("gemm", call=(at + 1, 4), runs=(at + 10, 1890))
        for number in range(20):
            here = at + 40 * number
            builder.op("aten::copy_", here + 5, 19).frame("train.py", 3, "step", here + 4, 22)
            builder.copy("HtoD", call=(here + 10, 5), runs=(here + 17, 1), stream=9, memory="pinned", bytes=4096)
    assert limit(builder, "CPY203").ms == pytest.approx(0.11, abs=0.002)


def test_memory_gains_no_more_than_makes_each_step_as_short_as_the_shortest() -> None:
    builder = TraceBuilder().steps(0, 1000, 4000, 5100)
    for at, held in ((0, 50), (1000, 2200), (4000, 50)):
        builder.call("cudaMalloc", at + 10, held)
        builder.launch("gemm", call=(at + held + 20, 5), runs=(at + held + 30, 700))
    assert limit(builder, "SYN106").ms == pytest.approx((50 + 2050 + 150) / 3 / MS)


def test_a_wait_gains_no_more_than_is_idle_besides_the_spaces_between_queued_kernels() -> None:
    builder = TraceBuilder()
    for number in range(300):
        builder.launch("tiny", call=(3 * number, 2), runs=(1000 + 10 * number, 7))
    builder.device_sync(950, 3060).launch("gemm", call=(4050, 5), runs=(4060, 500))
    assert limit(builder, "SYN105").ms == pytest.approx((4055 - 3997) / MS, abs=0.005)
    after = limit(builder.launch("replayed", call=(4055, 5), runs=(4560, 500), stream=9), "SYN105").ms
    assert after == pytest.approx((4055 - 3997) / MS, abs=0.005)
    beside = limit(builder.launch("other", call=(900, 5), runs=(1000, 500), stream=9), "SYN105").ms
    assert beside is not None and beside > 3


@pytest.mark.parametrize(("others", "gained"), [(True, 0.2), (False, 0.8)])
def test_what_the_host_is_ahead_it_loses_in_the_next_wait_that_is_not_the_finding_s(
    *, others: bool, gained: float
) -> None:
    # Two reads of 400 us, behind each of which the device is idle for 100 us, then for 1000 us where the host works.
    builder = TraceBuilder()
    for at in (0, 4000):
        builder.launch("gemm", call=(at, 5), runs=(at + 10, 400)).op("aten::item", at + 20, 396)
        builder.op("aten::_local_scalar_dense", at + 21, 394)
        builder.copy("DtoH", call=(at + 22, 3), runs=(at + 411, 0.5), memory="pinned", bytes=4)
        builder.stream_sync(at + 30, 385).launch("gemm", call=(at + 505, 5), runs=(at + 515, 400))
        if others:
            builder.device_sync(at + 600, 320)
        for number in range(10):
            here = at + 1000 + 100 * number
            builder.launch("tiny", call=(here, 5), runs=(here + 10, 5))
    assert limit(builder, "SYN102").ms == pytest.approx(gained, abs=0.05)


def test_a_copy_and_the_wait_behind_it_gain_the_time_that_the_copy_takes_once() -> None:
    # The first wait is for work of before the trace; of 700 us until the next kernel the second copy takes 600.
    builder = TraceBuilder().op("aten::copy_", 0, 3050)
    builder.copy("HtoD", call=(10, 5), runs=(3000, 1), memory="pageable", bytes=1024).stream_sync(20, 3000)
    builder.launch("gemm", call=(3060, 5), runs=(3070, 430)).op("aten::copy_", 3495, 665)
    builder.copy("HtoD", call=(3500, 620), runs=(3510, 600), memory="pageable", bytes=6_000_000)
    builder.stream_sync(4125, 10).launch("next", call=(4195, 5), runs=(4200, 400)).device_sync(4210, 395)
    builder.launch("last", call=(4700, 5), runs=(4710, 500))
    assert limit(builder, "SYN101").ms == pytest.approx((3065 - 3001 + 4200 - 3500 + 1) / MS, abs=0.01)


def test_a_wait_gains_nothing_of_what_is_idle_before_it() -> None:
    builder = TraceBuilder().launch("a", call=(0, 5), runs=(10, 20)).launch("b", call=(3000, 5), runs=(3010, 2000))
    builder.device_sync(3100, 1912).launch("c", call=(5100, 5), runs=(5110, 500))
    assert limit(builder, "SYN105").ms == pytest.approx((5105 - 5010) / MS, abs=0.005)
    in_steps = limit(builder.step(0, 3000, number=1).step(3000, 3000, number=2), "SYN105").ms
    assert in_steps == pytest.approx(1912 / 2 / MS)


def test_kernels_whose_rows_touch_do_not_run_side_by_side() -> None:
    builder = TraceBuilder()
    for number in range(100):
        builder.launch("tiny", call=(3 * number, 2), runs=(1000 + 10 * number, 10.2))
    builder.device_sync(400, 1610).launch("next", call=(2100, 5), runs=(2110, 500))
    assert limit(builder, "SYN105").ms == pytest.approx((2110 - 2000.2) / MS, abs=0.005)


def test_a_read_gains_nothing_while_another_stream_computes() -> None:
    assert limit(reading(beside=2000), "SYN102").late_ms == 0


def test_lateness_counts_only_where_the_replay_is_doubted() -> None:
    known = Limit(ms=3.0, share=0.5, late_ms=1.0)
    assert known.of(4.0, 4.0, doubted=False) == 2.0
    assert known.of(8.0, 8.0, doubted=False) == 3.0
    assert known.of(8.0, 8.0, doubted=True) == 1.0
    assert Limit().of(8.0, 0.5, doubted=True) == 8.0


def late_then_reading(*steps: float) -> TraceBuilder:
    """The device waits 900 µs for a launch, then a read holds the host, and it waits 290 µs for the next."""
    builder = TraceBuilder().steps(*steps) if steps else TraceBuilder()
    builder.launch("first", call=(0, 5), runs=(10, 100)).launch("gemm", call=(1000, 5), runs=(1010, 900))
    builder.op("aten::item", 1095, 825).op("aten::_local_scalar_dense", 1096, 823)
    builder.copy("DtoH", call=(1097, 3), runs=(1911, 2), memory="pinned", bytes=4).stream_sync(1105, 810)
    return builder.launch("next", call=(2190, 5), runs=(2200, 500))


def test_of_what_is_left_without_the_profiler_a_read_gains_the_share_that_comes_behind_it() -> None:
    one = limit(late_then_reading(), "SYN102")
    assert one.of_left == pytest.approx((2200 - 1913 + 3) / (900 + 2200 - 1913 + 3), abs=0.01)
    assert one.of(3.0, 0.4, doubted=False) == pytest.approx(0.4 * one.of_left)


def test_the_end_of_a_step_is_followed_by_the_next() -> None:
    assert limit(late_then_reading(0, 2800), "SYN102").of_left == 1.0


def test_no_figure_of_a_saving_exceeds_its_limit() -> None:
    assert Saving(5.0, 4.5, 9.0, 5.0).capped(2.0, step_ms=100.0) == Saving(2.0, 1.5, 2.0, 2.0)
    assert Saving(5.0, 0.5, 9.0, 5.0).capped(2.0, step_ms=100.0) == Saving(2.0, 0.0, 2.0, 2.0)
    assert Saving(None, 4.5, 9.0, 5.0).capped(4.5, step_ms=100.0) == Saving(None, 4.0, 4.5, 4.25)
    assert Saving(None, 1.0, 9.0, 5.0).capped(4.5, step_ms=100.0) == Saving(None, 0.5, 4.5, 4.0)
    assert Saving(None, 1.0, 9.0, 5.0).capped(2.0, step_ms=100.0) == Saving(None, 0.0, 2.0, 1.0)
    assert Saving(None, 1.0, 9.0, 5.0).capped(6.0, step_ms=100.0) == Saving(None, 1.0, 6.0, 5.0)
    assert Saving(None, 0.5, 9.0, None).capped(0.1, step_ms=100.0) == Saving(None, 0.1, 0.1, None, below_drift=True)


def test_collectives_of_one_place_each_save_no_more_than_their_own_exposed_time() -> None:
    builder = TraceBuilder().launch("gemm", call=(0, 5), runs=(10, 3 * MS))
    for at, op, length in ((100, "dispatch", 500), (200, "combine", 2 * MS)):
        builder.annotation(op, at, 50).op("c10d::alltoall_base_", at + 5, 40)
        begin = 3 * MS + 20 if op == "dispatch" else 3 * MS + 600
        builder.launch(ALL_TO_ALL, call=(at + 10, 5), runs=(begin, length), stream=9)
    builder.launch("gemm", call=(300, 5), runs=(5 * MS + 700, 3 * MS))
    study, hits = found(builder, "OVL302")
    limits = {hit.finding.annotation: one.ms for hit, one in zip(hits, find_limits(study, hits), strict=True)}
    assert limits == {"dispatch": pytest.approx(0.5), "combine": pytest.approx(2.0)}
    moved = [{number for number, edit in question(study, hit).by_item().items() if edit.early} for hit in hits]
    assert [len(one) for one in moved] == [1, 1] and moved[0] != moved[1]


def test_a_copy_that_follows_what_an_earlier_recording_left_over_can_be_tried() -> None:
    """Its call begins before the device's first row of this recording does, and is part of what is replayed."""
    builder = TraceBuilder().kernel("left over", 0, 50)
    builder.copy("HtoD", call=(3 * MS, 10 * MS), runs=(3 * MS + 265, 9700), memory="pageable", bytes=48_000_000)
    builder.stream_sync(13 * MS + 5, 100).launch("gemm", call=(13_200, 5), runs=(13_210, 9 * MS))
    (finding,) = estimated(builder, "OVL301")
    assert finding.saving_high_ms_per_step == pytest.approx(9.7, rel=0.1)


def test_idle_time_gives_no_more_than_there_is_of_it() -> None:
    builder = TraceBuilder().launch("a", call=(0, 5), runs=(10, 200))
    builder.launch("b", call=(10 * MS, 5), runs=(10 * MS + 10, 200))
    (finding,) = estimated(builder, "OVL303")
    share = (finding.idle_ms_per_step or 0.0) / (10 * MS + 200) * MS
    assert finding.saving_high_ms_per_step == pytest.approx(9.8 * share, rel=0.1)
    assert (finding.saving_high_ms_per_step or 0.0) < (finding.idle_ms_per_step or 0.0)


def test_nothing_is_gained_from_idle_time_of_which_nothing_is_known() -> None:
    """The device did something for 20 ms that has no row, and was idle for 10 ms more, behind a read."""
    builder = TraceBuilder().launch("earlier", call=(0, 5), runs=(10, 5)).call("cudaLaunchKernel", 20, 5)
    builder.op("aten::item", 95, 20_825).op("aten::_local_scalar_dense", 96, 20_823)
    builder.copy("DtoH", call=(97, 3), runs=(20_511, 2), memory="pinned", bytes=4).stream_sync(105, 20_810)
    timeline = Timeline(builder.launch("next", call=(30_950, 5), runs=(30_960, 500)).trace())
    assert find_whole_limit(timeline) == pytest.approx(10.449, abs=0.001)
    assert find_whole_limit(Timeline(reading().trace())) is None


def test_the_last_wait_of_a_trace_without_steps_has_nothing_to_save() -> None:
    builder = TraceBuilder().launch("a", call=(0, 5), runs=(10, 900)).stream_sync(20, 900)
    (finding,) = estimated(builder, "SYN105")
    assert (finding.severity, finding.saving_high_ms_per_step, finding.saving_null_why) == ("note", None, LAST)


def test_waits_of_warm_up_have_nothing_to_save() -> None:
    builder = TraceBuilder().launch("a", call=(0, 5), runs=(10, 900)).device_sync(20, 900)
    builder.call("cudaStreamBeginCapture", 930, 1).call("cudaLaunchKernel", 940, 5)
    builder.call("cudaStreamEndCapture", 950, 5).call("cudaGraphInstantiateWithFlags", 960, 20)
    (finding,) = estimated(builder.launch("b", call=(990, 5), runs=(1000, 900)), "SYN105")
    assert (finding.severity, finding.saving_high_ms_per_step, finding.saving_null_why) == ("note", None, ONCE)


def test_a_wait_in_a_trace_of_others_gains_no_more_than_its_calls_hold_the_host() -> None:
    assert limit(reading(beside=50), "SYN102").ms == pytest.approx((3 + 810) / MS)


def test_a_wait_of_microseconds_is_not_given_what_runs_differ_by() -> None:
    builder = TraceBuilder()
    for start in range(0, 500_000, 100_000):
        builder.launch("gemm", call=(start, 5), runs=(start + 10, 80_000))
        builder.call("cudaEventSynchronize", start + 99_500, 3)
    (finding,) = estimated(builder, "SYN105")
    assert finding.saving_high_ms_per_step == pytest.approx(4 * 3 / MS)  # nothing follows the last


def test_what_cannot_be_replayed_is_no_error_where_it_blocks_for_little() -> None:
    def severity(blocked: float) -> str:
        builder = TraceBuilder().call("cudaLaunchKernel", 0, 5).op("aten::item", 10, blocked + 4)
        builder.stream_sync(12, blocked).call("cudaLaunchKernel", 10_000, 5)
        return estimated(builder.op("aten::mm", 9_999, 7), "SYN102")[0].severity

    assert (severity(2000), severity(20)) == ("error", "warning")


def test_pinning_in_another_thread_gains_no_more_than_pinning_takes() -> None:
    builder = TraceBuilder().launch("gemm", call=(0, 5), runs=(10, 50)).op("aten::pin_memory", 20, 200)
    builder.op("aten::copy_", 230, 20).copy("HtoD", call=(232, 4), runs=(240, 100), memory="pinned", bytes=1 << 20)
    builder.launch("next", call=(300, 5), runs=(400, 500))
    assert limit(builder, "CPY202").ms == pytest.approx(0.2)


def test_time_in_which_a_collective_waits_for_a_late_rank_is_not_to_be_hidden() -> None:
    builder = TraceBuilder(rank=0, world_size=2).launch("gemm", call=(1, 5), runs=(10, 15_000))
    at, size = 15_040.0, {"In msg nelems": 2048, "Out msg nelems": 2048, "dtype": "Float"}
    for dur in (1000, 1010, 1020, 12_000, 1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000):
        builder.op("c10d::alltoall_base_", at - 9, 8)
        builder.launch(ALL_TO_ALL, call=(at - 8, 4), runs=(at, dur), stream=13, args=size)
        at += dur + 20
    study, (hit,) = found(builder, "OVL302")
    exposed = 12 * 1.0 + 0.03 + 12.0
    assert hit.finding.exposed_ms == pytest.approx(exposed)
    assert find_limits(study, [hit])[0].ms == pytest.approx(exposed - 11.0)


def test_cheaper_collectives_gain_no_more_than_the_shortest_of_their_size_takes() -> None:
    def reduced(*sizes: int) -> TraceBuilder:
        builder, at = TraceBuilder(rank=0, world_size=4).launch("gemm", call=(1, 5), runs=(10, 1000)), 1040.0
        for dur, size in zip((400, 1500, 900, 3000), sizes, strict=True):
            elements = {"In msg nelems": size, "Out msg nelems": size, "dtype": "Float"}
            builder.op("vllm::all_reduce", at - 9, 8).op("c10d::allreduce_", at - 8, 7)
            builder.launch("ncclDevKernel_AllReduce_Sum", call=(at - 7, 4), runs=(at, dur), stream=7, args=elements)
            builder.launch("gemm", call=(at + dur + 5, 4), runs=(at + dur + 10, 50))
            at += dur + 100
        return builder

    alike, differing = (
        limit(reduced(*[1 << 21] * 4), "OVL302"),
        limit(reduced(*(1 << n for n in (19, 21, 20, 22))), "OVL302"),
    )
    assert alike.ms == pytest.approx(4 * 0.4)
    assert differing.ms == pytest.approx(5.8)


def test_pinning_gains_no_more_than_it_holds_the_host() -> None:
    builder = TraceBuilder().launch("gemm", call=(0, 5), runs=(10, 400))
    builder.op("aten::pin_memory", 450, 30).op("aten::_pin_memory", 452, 26).op("aten::to", 485, 120)
    builder.copy("HtoD", call=(490, 5), runs=(500, 90), bytes=4096).stream_sync(497, 100)
    builder.launch("next", call=(700, 5), runs=(710, 500))
    assert limit(builder, "CPY202").ms == pytest.approx(30 / MS)


def test_where_many_launches_left_no_row_a_read_gains_no_more_than_the_device_is_late() -> None:
    lost = reading().call("cudaDeviceSynchronize", 2000, 5)
    for number in range(4):
        lost.call("cudaLaunchKernel", 1300 + 10 * number, 5)
    assert limit(lost, "SYN102").ms == limit(reading(), "SYN102").late_ms
    assert limit(reading(beside=50), "SYN102").ms == pytest.approx((810 + 3) / MS)


@pytest.mark.parametrize(("waits", "counted"), [([9000, 1000, 900, 800], 3700), ([9000, 1000, 0, 0], 10000)])
def test_a_first_step_that_also_waits_for_what_was_queued_before_counts_no_more_than_the_next(
    waits: list[float], counted: float
) -> None:
    builder = TraceBuilder().steps(*(10_000 * number for number in range(len(waits) + 1)))
    for number, dur in enumerate(waits):
        start = 10_000.0 * number + 100
        builder.launch("gemm", call=(start, 5), runs=(start + 10, 40))
        if dur:
            builder.op("aten::to", start + 6, dur + 100).op("aten::copy_", start + 7, dur + 98)
            builder.copy("HtoD", call=(start + 10, dur - 20), runs=(start + dur - 50, 30), memory="pageable")
            builder.stream_sync(start + 10 + dur - 20, 20)
    held_ms = counted / MS / len(waits)
    for code in ("SYN101", "CPY201"):
        assert limit(builder, code).ms == pytest.approx(held_ms, rel=0.02)


def test_the_wait_that_ends_a_trace_without_steps_adds_nothing_to_what_those_before_it_gain() -> None:
    def twice(*, after: bool) -> TraceBuilder:
        builder = TraceBuilder().launch("a", call=(0, 5), runs=(10, 100)).device_sync(20, 92)
        builder.launch("b", call=(450, 5), runs=(460, 900)).device_sync(470, 892)
        return builder.launch("c", call=(1900, 5), runs=(1910, 9)) if after else builder

    assert limit(twice(after=False), "SYN105").ms == pytest.approx(92 / MS)
    gained = limit(twice(after=True), "SYN105").ms
    assert gained is not None and gained > 0.5


def test_the_result_of_a_call_saves_nothing_however_long_the_host_uses_it() -> None:
    builder = TraceBuilder().step(0, 9000).launch("gemm", call=(0, 5), runs=(10, 500))
    builder.op("aten::to", 20, 700).op("aten::_to_copy", 21, 698).op("aten::copy_", 22, 696)
    builder.copy("DtoH", call=(30, 5), runs=(520, 100), memory="pinned", bytes=1 << 20).stream_sync(40, 600)
    (copy,) = estimated(builder.op("numpy_to_pil", 800, 8000), "SYN101")
    assert copy.saving_high_ms_per_step is None and copy.saving_null_why == LAST


def test_what_is_beside_much_warm_up_is_told_as_a_share_of_all() -> None:
    def waits(*, loads: float) -> Finding:
        builder = TraceBuilder().launch("first", call=(0, 10), runs=(12, 20))
        builder.op("aten::mm", 100, loads + 100).launch("gemm", call=(110, loads), runs=(loads + 115, 20))
        at = loads + 1000
        builder.launch("a", call=(at, 5), runs=(at + 8, 60)).device_sync(at + 10, 60)
        builder.launch("b", call=(at + 100, 5), runs=(at + 108, 60))
        (finding,) = estimated(builder, "SYN105")
        return finding

    assert waits(loads=10).severity == "error"
    much = waits(loads=300 * MS)
    assert much.severity == "warning" and much.saving_below_drift


def test_no_change_saves_what_the_busiest_stream_computes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two streams compute side by side for a part of the step, and the host works for the rest of it."""
    builder = TraceBuilder()
    for number in range(4):
        at = number * 10 * MS
        builder.step(at, 10 * MS, number=number).op("aten::mm", at + 9 * MS, 400)
        builder.launch("gemm", call=(at + 9 * MS, 5), runs=(at + 9 * MS + 10, 600))
        builder.launch("other", call=(at + 9 * MS + 6, 5), runs=(at + 9 * MS + 20, 700), stream=9)
    timeline = Timeline(builder.trace())
    assert find_computed(timeline) == pytest.approx(0.7)
    left: list[float] = []

    def join(*known: Any) -> Saving:
        left.append(known[-1])
        return Saving()

    monkeypatch.setattr(savings, "join", join)
    estimate = estimate_savings(prepare(timeline, rules.find(timeline)[0]))
    assert estimate.replay is not None and estimate.replay.step_ms is not None
    assert left == [pytest.approx(estimate.replay.step_ms - 0.7, abs=1e-5)]


def test_what_the_device_computes_is_all_of_it_where_one_kernel_follows_the_other() -> None:
    assert find_computed(Timeline(reading().trace())) == pytest.approx((900 + 500) / MS)


def test_a_trace_without_steps_is_replayed_from_the_device_s_first_work_on() -> None:
    # 100 ms of waiting for work of before the trace, then 10 ms; behind the last kernel the host waits for 20 ms more.
    builder = TraceBuilder().op("aten::copy_", 0, 100_010)
    builder.copy("HtoD", call=(10, 5), runs=(100_000, 1), memory="pageable", bytes=1024).stream_sync(20, 99_986)
    builder.launch("gemm", call=(100_020, 5), runs=(100_030, 9_970)).device_sync(100_040, 29_960)
    timeline = Timeline(builder.trace())
    replayed = estimate_savings(prepare(timeline, rules.find(timeline)[0])).replay
    assert replayed is not None and replayed.step_ms == pytest.approx(10, abs=0.02)
    (copied,) = estimated(builder, "SYN101")
    assert copied.stall_ms == pytest.approx(16 / MS)
    (copied,) = estimated(builder.step(0, 130_000), "SYN101")
    assert copied.stall_ms_per_step == pytest.approx(99_996 / MS)


def test_a_read_that_is_little_of_what_the_host_does_is_no_error() -> None:
    (alone,) = estimated(reading(), "SYN102")
    (beside,) = estimated(reading().op("aten::expand", 2000, 98_000), "SYN102")
    assert (alone.severity, beside.severity) == ("error", "warning")
    assert alone.likely_saving_ms_per_step == beside.likely_saving_ms_per_step is not None
