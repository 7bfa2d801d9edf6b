"""What each rule's fix changes, asked of traces that hold just that."""

from __future__ import annotations

import numpy as np
import pytest

from syncscope import rules
from syncscope.estimate.edits import Edit, Edits, Question
from syncscope.estimate.graph_questions import ask_about_graphs
from syncscope.estimate.prepare import prepare
from syncscope.estimate.profiler_cost import Costs
from syncscope.estimate.program import compile_program
from syncscope.estimate.questions import GRAPH_GAP, PAGEABLE_RATE, QUESTIONS, STACKED, STACKING_RATE, question
from syncscope.estimate.replay import SLOWDOWN, Scenario, replay
from syncscope.estimate.study import PEERS, Study
from syncscope.estimate.waiting import AFTER, BEFORE
from syncscope.rules import Hit
from syncscope.rules.base.question import Intervention
from syncscope.timeline import Timeline
from tests.builders import TraceBuilder
from tests.report.sample import finding
from tests.rules.scenes import line

FREE = Costs(*[0.0] * 6)
COMPARE = "void at::native::vectorized_elementwise_kernel<4, at::native::compare_scalar_kernel<long> >(int)"
STEPS = 4
MIB = 1 << 20


def study(builder: TraceBuilder, step: float = 1000, **recording: object) -> Study:
    """The study of a trace of ``STEPS`` steps of ``step`` µs."""
    builder.recording(*(step * number for number in range(STEPS + 1)), drained=1000 * STEPS + 50, **recording)  # type: ignore[arg-type]
    timeline = Timeline(builder.trace())
    program = compile_program(timeline, FREE)
    assert program is not None
    return Study(timeline, program)


def asked(one: Study, code: str, **rows: object) -> Edits:
    """The question of the rule's finding; of several the first."""
    if rows:
        return question(one, Hit(finding(code, "made-up", 1, "x"), **rows)).by_item()  # type: ignore[arg-type]
    return question(one, next(hit for hit in rules.find(one.timeline)[0] if hit.finding.rule == code)).by_item()


def saved_us(one: Study, changes: Edits | Question) -> float:
    """What a question saves a step in steady_steps state, as traced."""
    order = [number % STEPS for number in range(4 * STEPS)]
    ends = replay(one.program, [{}, changes], [Scenario()], order, profiled=True).ends[:, :, 0]
    before, after = (ends[-1] - ends[2 * STEPS - 1]) / (2 * STEPS)
    return float(before - after) / 1000


def each_step(draw) -> TraceBuilder:
    builder = TraceBuilder()
    for number in range(STEPS):
        draw(builder, 1000 * number)
    return builder


def reading(builder: TraceBuilder, at: float) -> None:
    """700 µs on the device, of which one value is read; then 100 µs of host work to the step's end."""
    builder.launch("gemm", call=(at + 190, 5), runs=(at + 200, 690))
    builder.op("aten::item", at + 195, 715)
    builder.copy("DtoH", call=(at + 200, 5), runs=(at + 891, 2), memory="pinned", bytes=4)
    builder.stream_sync(at + 206, 694)


def test_a_scalar_read_goes_with_its_copy() -> None:
    one = study(each_step(reading))
    changes = asked(one, "SYN102")
    assert {edit.gone for edit in changes.values()} == {True, False}
    assert saved_us(one, changes) == pytest.approx(1000 - 691, abs=3)


def test_an_explicit_wait_becomes_a_wait_of_the_device() -> None:
    def draw(builder: TraceBuilder, at: float) -> None:
        builder.copy("HtoD", call=(at + 10, 5), runs=(at + 20, 400), stream=20, bytes=20 * MIB)
        builder.call("cudaEventRecord", at + 16, 1).event_sync(at + 20, 404, stream=20)
        builder.launch("gemm", call=(at + 600, 5), runs=(at + 610, 380), stream=7)

    one = study(each_step(draw))
    changes = asked(one, "SYN105", waits=frozenset(range(STEPS)))
    assert sum(edit.joins for edit in changes.values()) == STEPS
    assert saved_us(one, changes) == pytest.approx(404 + 3 + AFTER / 1000, abs=3)


def test_a_copy_to_pageable_memory_does_not_wait_in_its_call_either() -> None:
    def draw(builder: TraceBuilder, at: float) -> None:
        builder.launch("gemm", call=(at + 190, 5), runs=(at + 200, 690))
        builder.op("aten::bincount", at + 195, 715)
        builder.copy("DtoH", call=(at + 200, 694), runs=(at + 891, 2), memory="pageable", bytes=8)
        builder.stream_sync(at + 895, 5)

    one = study(each_step(draw))
    assert saved_us(one, asked(one, "SYN103")) == pytest.approx(1000 - 691, abs=10)


def test_an_op_that_is_told_its_size_neither_reads_it_nor_checks_its_input() -> None:
    """``repeat_interleave`` with an ``output_size``."""

    def draw(builder: TraceBuilder, at: float) -> None:
        builder.op("aten::repeat_interleave", at + 5, 80)
        builder.copy("DtoH", call=(at + 10, 10), runs=(at + 22, 2), memory="pinned", bytes=8)
        builder.stream_sync(at + 20, 10)
        builder.launch(COMPARE, call=(at + 40, 5), runs=(at + 47, 2))
        builder.copy("DtoH", call=(at + 60, 10), runs=(at + 72, 2), memory="pinned", bytes=1)
        builder.stream_sync(at + 70, 10)
        builder.launch("gemm", call=(at + 100, 5), runs=(at + 107, 3))

    one = study(each_step(draw))
    changes, items = asked(one, "SYN103"), one.program.items
    gone = [item for item, edit in changes.items() if edit.gone]
    assert sum(items.kernel[gone]) == STEPS and len(gone) == 3 * STEPS
    assert saved_us(one, changes) > 2 * (10 + 10) + 5, "both reads, and the comparison"


def test_a_wait_takes_the_way_to_it_and_back_from_it_with_it() -> None:
    def draw(builder: TraceBuilder, at: float) -> None:
        builder.launch("gemm", call=(at + 10, 5), runs=(at + 17, 3))
        builder.copy("DtoH", call=(at + 40, 6), runs=(at + 48, 2), memory="pinned", bytes=4)
        builder.stream_sync(at + 46, 8)
        builder.launch("gemm", call=(at + 100, 5), runs=(at + 107, 3))

    one = study(each_step(draw))
    calls = (6 + 8) + BEFORE / 1000 + AFTER / 1000
    assert saved_us(one, asked(one, "SYN102", waits=frozenset(range(STEPS)))) == pytest.approx(calls, abs=1.5)


def test_no_more_than_there_is_goes_with_a_wait() -> None:
    def draw(builder: TraceBuilder, at: float) -> None:
        builder.launch("gemm", call=(at + 10, 5), runs=(at + 17, 3))
        builder.copy("DtoH", call=(at + 16, 6), runs=(at + 24, 2), memory="pinned", bytes=4)
        builder.stream_sync(at + 22, 8)
        builder.launch("gemm", call=(at + 32, 5), runs=(at + 39, 3))

    one = study(each_step(draw))
    assert saved_us(one, asked(one, "SYN102", waits=frozenset(range(STEPS)))) == pytest.approx(14 + 1 + 2, abs=1.5)


def blocking(memory: str):
    def draw(builder: TraceBuilder, at: float) -> None:
        builder.op("aten::copy_", at + 10, 420)
        call = (at + 20, 400) if memory == "pageable" else (at + 20, 5)
        builder.copy("HtoD", call=call, runs=(at + 30, 385), memory=memory, bytes=11 * MIB)
        builder.stream_sync(at + 421, 5)
        builder.launch("gemm", call=(at + 500, 5), runs=(at + 520, 470))

    return draw


def test_a_copy_from_pageable_memory_is_made_from_pinned_memory_and_not_waited_for() -> None:
    one = study(each_step(blocking("pageable")))
    (copy,) = {edit for edit in asked(one, "SYN101").values() if np.isfinite(edit.dur)}
    assert copy.free
    assert copy.dur == pytest.approx(1_500 + 11 * MIB / 55, abs=50)
    assert asked(one, "CPY201") == asked(one, "SYN101")
    assert "55 GB/s, as measured on NVIDIA H200" in one.assumptions[0]


def test_a_trace_with_pinned_copies_tells_their_rate() -> None:
    def draw(builder: TraceBuilder, at: float) -> None:
        blocking("pageable")(builder, at)
        builder.copy("HtoD", call=(at + 600, 5), runs=(at + 991, 6.5), memory="pinned", bytes=100_000_000)

    one = study(each_step(draw))
    asked(one, "CPY201")
    assert one.rate("HtoD").bytes_per_ns == pytest.approx(20_000)
    assert one.assumptions == ()


def test_a_copy_in_line_with_compute_is_fetched_a_step_early() -> None:
    def draw(builder: TraceBuilder, at: float) -> None:
        builder.copy("HtoD", call=(at / 20 + 5, 5), runs=(at + 20, 300), bytes=16 * MIB)
        builder.launch("gemm", call=(at / 20 + 12, 5), runs=(at + 321, 698))

    one = study(each_step(draw), step=50)
    assert saved_us(one, asked(one, "OVL301")) == pytest.approx(301, abs=5)


def test_copies_out_and_in_run_at_the_same_time() -> None:
    def draw(builder: TraceBuilder, at: float) -> None:
        here = at / 20
        builder.call("cudaEventRecord", here + 1, 1).call("cudaStreamWaitEvent", here + 3, 1)
        builder.copy("DtoH", call=(here + 5, 2), runs=(at + 20, 200), bytes=10 * MIB, stream=20)
        builder.copy("HtoD", call=(here + 8, 2), runs=(at + 221, 300), bytes=16 * MIB, stream=20)
        builder.call("cudaEventRecord", here + 12, 1).call("cudaStreamWaitEvent", here + 14, 1)
        builder.launch("gemm", call=(here + 20, 2), runs=(at + 524, 490))

    one = study(each_step(draw), step=50)
    changes = asked(one, "OVL304", copies=frozenset(range(1, 2 * STEPS, 2)))
    assert {edit.beside for edit in changes.values()} == {True}
    assert saved_us(one, changes) == pytest.approx(201 - 0.05 * 300, abs=8)


def test_many_small_copies_become_one() -> None:
    def draw(builder: TraceBuilder, at: float) -> None:
        for number in range(20):
            here = at + 40 * number
            builder.copy("HtoD", call=(here + 10, 5), runs=(here + 17, 1), memory="pageable", bytes=4096)
            builder.stream_sync(here + 16, 6).entry("Tensor.to", here + 5, here + 24, line(3, "x.to('cuda')"))
        builder.launch("gemm", call=(at + 810, 5), runs=(at + 820, 100))

    one = study(each_step(draw))
    changes = asked(one, "CPY203")
    assert sum(edit.gone for edit in changes.values()) == 19 * STEPS
    assert saved_us(one, changes) == pytest.approx(19 * (40 - STACKED / 1000), rel=0.05)


def test_large_copies_gathered_are_stacked_and_staged_by_the_host() -> None:
    def draw(builder: TraceBuilder, at: float) -> None:
        for number in range(20):
            here = at + 40 * number
            builder.copy("HtoD", call=(here + 10, 5), runs=(here + 17, 1), memory="pageable", bytes=32_768)
            builder.stream_sync(here + 16, 6).entry("Tensor.to", here + 5, here + 24, line(3, "x.to('cuda')"))
        builder.launch("gemm", call=(at + 810, 5), runs=(at + 820, 100))

    one = study(each_step(draw))
    remains = 19 * (STACKED + 32_768 / STACKING_RATE) + 20 * 32_768 / PAGEABLE_RATE
    assert saved_us(one, asked(one, "CPY203")) == pytest.approx(19 * 40 - remains / 1000, rel=0.08)


def test_one_copy_a_step_is_one_copy_already() -> None:
    one = study(each_step(blocking("pageable")))
    assert asked(one, "CPY203", copies=frozenset(range(STEPS))) == {}


def test_a_round_trip_stays_on_the_device() -> None:
    def draw(builder: TraceBuilder, at: float) -> None:
        builder.launch("gemm", call=(at + 5, 5), runs=(at + 20, 500))
        builder.copy("DtoH", call=(at + 12, 520), runs=(at + 521, 10), memory="pageable", bytes=MIB)
        builder.copy("HtoD", call=(at + 540, 60), runs=(at + 550, 45), memory="pageable", bytes=MIB)
        builder.launch("gemm", call=(at + 605, 5), runs=(at + 612, 380))

    one = study(each_step(draw))
    changes = asked(one, "CPY204", copies=frozenset(range(2 * STEPS)))
    assert sum(edit.gone for edit in changes.values()) == 2 * STEPS
    assert saved_us(one, changes) == pytest.approx(1000 - 882, abs=15)


def computed_on_the_host(builder: TraceBuilder, at: float) -> None:
    """A kernel whose result the host works on for 300 µs before it goes back."""
    builder.launch("gemm", call=(at + 20, 5), runs=(at + 35, 200))
    builder.copy("DtoH", call=(at + 40, 210), runs=(at + 236, 10), memory="pageable", bytes=4096)
    builder.call("cudaStreamIsCapturing", at + 545, 1)
    builder.copy("HtoD", call=(at + 550, 10), runs=(at + 555, 3), memory="pageable", bytes=4096)
    builder.launch("gemm", call=(at + 580, 5), runs=(at + 590, 100))


def test_what_the_host_makes_between_two_copies_of_a_round_trip_goes_with_them() -> None:
    one = study(each_step(computed_on_the_host))
    changes = asked(one, "CPY204", copies=frozenset(range(2 * STEPS)))
    usual = one.usual_dispatch / 1000  # the device makes it: one op
    copies = 250 - 45 + 10  # neither the wait in the first call nor the second call
    assert saved_us(one, changes) == pytest.approx(300 - usual + copies, abs=5)


def test_a_batch_that_is_loaded_in_a_round_trip_is_loaded_all_the_same() -> None:
    def draw(builder: TraceBuilder, at: float) -> None:
        computed_on_the_host(builder, at)
        builder.entry("DataLoader", at + 260, at + 500, line(3, "next(batches)"))

    one = study(each_step(draw))
    changes = asked(one, "CPY204", copies=frozenset(range(2 * STEPS)))
    assert {edit.pre for edit in changes.values()} == {1.0}


def test_a_print_goes_with_its_kernels_and_its_host_work() -> None:
    def draw(builder: TraceBuilder, at: float) -> None:
        builder.launch("gemm", call=(at + 5, 5), runs=(at + 20, 300))
        for number in range(7):
            builder.launch("format", call=(at + 60 + 8 * number, 5), runs=(at + 321 + 3 * number, 2))
        builder.stream_sync(at + 120, 230).stream_sync(at + 600, 5)
        builder.launch("gemm", call=(at + 650, 5), runs=(at + 660, 300))

    one = study(each_step(draw))
    one.timeline.__dict__["prints"] = np.repeat(np.arange(STEPS), 2)
    changes = asked(one, "SYN104", waits=frozenset(range(2 * STEPS)))
    assert sum(edit.gone for edit in changes.values()) == 9 * STEPS
    assert saved_us(one, changes) == pytest.approx(1000 - 602, abs=60)


def test_pinning_goes_and_its_copy_stays() -> None:
    def draw(builder: TraceBuilder, at: float) -> None:
        builder.entry("Tensor.pin_memory", at + 10, at + 510, line(3, "x.pin_memory()"))
        builder.copy("HtoD", call=(at + 520, 5), runs=(at + 530, 100), bytes=5 * MIB)
        builder.launch("gemm", call=(at + 540, 5), runs=(at + 631, 200))

    one = study(each_step(draw))
    changes = asked(one, "CPY202")
    assert not any(edit.gone for edit in changes.values())
    assert saved_us(one, changes) == pytest.approx(500, abs=5)


def test_memory_is_neither_asked_for_nor_given_back() -> None:
    def draw(builder: TraceBuilder, at: float) -> None:
        builder.call("cudaMalloc", at + 10, 100).launch("gemm", call=(at + 120, 5), runs=(at + 130, 500))
        builder.call("cudaFree", at + 140, 495)

    one = study(each_step(draw))
    kinds = one.timeline.waits.kind.tolist()
    assert set(kinds) == {"alloc", "free"}
    changes = asked(one, "SYN106", waits=frozenset(range(len(kinds))))
    assert saved_us(one, changes) == pytest.approx(1000 - 501, abs=5)


def test_launches_that_all_wait_return_at_once() -> None:
    def draw(builder: TraceBuilder, at: float) -> None:
        for number in range(5):
            builder.launch("gemm", call=(at + 10 + 190 * number, 120), runs=(at + 15 + 190 * number, 110))

    one = study(each_step(draw), launch_blocking=True)
    assert saved_us(one, asked(one, "SYN108", copies=frozenset())) > 400


def small_kernels(builder: TraceBuilder, at: float) -> None:
    for number in range(90):
        builder.launch("tiny", call=(at + 10 * number + 4, 4), runs=(at + 10 * number + 10, 2))


def test_launches_that_every_step_repeats_are_one_graph() -> None:
    one = study(each_step(small_kernels))
    changes = asked(one, "LCH501", copies=frozenset())
    assert len(changes) == 89 * STEPS
    assert saved_us(one, changes) == pytest.approx(1000 - 120, abs=120)


def test_a_break_that_waits_costs_the_python_around_it_too() -> None:
    def broken(builder: TraceBuilder, at: float) -> None:
        builder.launch("first", call=(at + 5, 5), runs=(at + 20, 200))
        builder.copy("DtoH", call=(at + 15, 5), runs=(at + 222, 3), memory="pinned", bytes=4)
        builder.stream_sync(at + 25, 205)
        builder.launch("second", call=(at + 630, 5), runs=(at + 640, 300))

    one = study(each_step(broken))
    wait = frozenset(range(len(one.timeline.waits)))
    changes = asked(one, "CMP702", waits=wait)
    assert all(changes[item].free for item in one.waits(Hit(finding("CMP702", "made-up", 1, "x"), waits=wait)))
    assert saved_us(one, changes) == pytest.approx(1000 - 200 - 3 - 300, abs=80)
    last = asked(one, "CMP702", waits=frozenset({len(wait) - 1}))
    assert 0 < saved_us(one, last) < saved_us(one, changes)


def test_a_wait_behind_the_last_launch_of_a_step_breaks_no_graph_in_two() -> None:
    def ended(builder: TraceBuilder, at: float) -> None:
        builder.launch("first", call=(at + 5, 5), runs=(at + 20, 200))
        builder.stream_sync(at + 25, 205)

    one = study(each_step(ended))
    changes = asked(one, "CMP702", waits=frozenset(range(STEPS)))
    assert set(changes.values()) == {Edit(free=True)}


def test_graphs_are_asked_about_where_launches_do_not_bound_the_step() -> None:
    def large_kernels(builder: TraceBuilder, at: float) -> None:
        for number in range(20):
            builder.launch("gemm", call=(at / 20 + 2 * number, 1), runs=(at + 20 + 50 * number, 48))

    def waiting(builder: TraceBuilder, at: float) -> None:
        small_kernels(builder, at)
        reading(builder, at + 700)

    one = study(each_step(large_kernels), step=50)
    ((name, changes),) = ask_about_graphs(one, [])
    assert name == "CUDA graphs"
    assert saved_us(one, changes) == pytest.approx(19 * (2 - GRAPH_GAP / 1000), rel=0.1)
    assert ask_about_graphs(study(each_step(waiting)), []) == ()


def test_graphs_are_asked_about_where_nothing_is_found_too() -> None:
    def waiting(builder: TraceBuilder, at: float) -> None:
        small_kernels(builder, at)
        reading(builder, at + 700)

    repeating, other = (prepare(study(each_step(draw)).timeline, ()) for draw in (small_kernels, waiting))
    assert [name for name, _ in repeating.asked] == ["CUDA graphs"] and repeating.replay is not None
    assert other.asked == () and other.replay is None


def test_a_pause_of_the_host_between_launches_is_nothing_that_graphs_take_away() -> None:
    def pausing(builder: TraceBuilder, at: float) -> None:
        for number in range(20):
            builder.launch("gemm", call=(3 * at + 10 * number + 1200 * (number > 9), 5), runs=(3 * at + 2000, 1))

    assert ask_about_graphs(study(each_step(pausing), step=3000), []) == ()


def test_launches_that_differ_from_step_to_step_are_no_graph_and_cost_at_most_what_the_device_waits() -> None:
    builder = TraceBuilder()
    for number in range(STEPS):
        for launch in range(20 + number):
            builder.launch("tiny", call=(1000 * number + 10 * launch, 4), runs=(1000 * number + 10 * launch + 6, 2))
    one = study(builder)
    changes = asked(one, "LCH501", copies=frozenset())
    assert changes and all(edit == Edit(pre=edit.pre, own=edit.own, gap=edit.gap) for edit in changes.values())
    assert {edit.gap for edit in changes.values()} <= {np.inf, GRAPH_GAP}
    assert 0 < saved_us(one, changes) < 200


def test_launches_that_differ_from_step_to_step_cost_at_most_the_spaces_between_their_kernels_too() -> None:
    builder = TraceBuilder()
    for number in range(STEPS):
        at = 1000 * number
        for launch in range(20 + number):
            builder.launch("tiny", call=(at + 8 * launch, 4), runs=(at + 8 * launch + 6, 2))
        for launch in range(80):
            builder.launch("tiny", call=(at + 200 + 2 * launch, 2), runs=(at + 204 + 9 * launch, 2))
        builder.device_sync(at + 370, 610)
    one = study(builder)
    assert saved_us(one, asked(one, "LCH501", copies=frozenset())) > 500


def test_collectives_run_beside_what_follows_them() -> None:
    def draw(builder: TraceBuilder, at: float) -> None:
        here = at / 20
        builder.launch("gemm", call=(here + 5, 5), runs=(at + 15, 300))
        builder.launch("ncclDevKernel_AllReduce_Sum_f32_RING_LL", call=(here + 12, 5), runs=(at + 316, 300))
        builder.launch("gemm", call=(here + 20, 5), runs=(at + 617, 397))

    one = study(each_step(draw), step=50)
    assert saved_us(one, asked(one, "OVL302")) == pytest.approx(301 - SLOWDOWN * 300, abs=5)
    assert one.assumptions == (PEERS,)


def test_what_happens_outside_the_steps_changes_nothing() -> None:
    builder = each_step(reading)
    builder.copy("DtoH", call=(4100, 5), runs=(4110, 2), memory="pinned", bytes=4).stream_sync(4110, 8)
    one = study(builder)
    last = frozenset({len(one.timeline.waits) - 1})
    assert asked(one, "SYN102", waits=last) == {}


def test_every_intervention_has_a_question_and_is_some_rules() -> None:
    assert set(QUESTIONS) == set(Intervention)
    assert set(Intervention) <= {rule.question for rule in rules.RULES}


def test_where_graphs_are_recorded_in_each_step_the_host_need_not_record_them() -> None:
    def draw(builder: TraceBuilder, at: float) -> None:
        builder.launch("gemm", call=(at + 10, 5), runs=(at + 20, 100))
        builder.call("cudaStreamBeginCapture", at + 100, 1).call("cudaLaunchKernel", at + 300, 5)
        builder.call("cudaStreamEndCapture", at + 500, 1).call("cudaGraphInstantiate", at + 510, 90)
        builder.launch("gemm", call=(at + 700, 5), runs=(at + 710, 200))

    one = study(each_step(draw))
    changes = asked(one, "CMP703", waits=frozenset())
    calls = one.timeline.calls
    recording = one.items(np.flatnonzero(calls.named(lambda name: "Capture" in name or "Instantiate" in name)))
    assert len(recording) == 3 * STEPS
    assert all(changes[item].own == changes[item].pre == 0 for item in recording)
    assert saved_us(one, changes) > 400


def test_edits_of_one_item_add_up() -> None:
    one, other = Edit(own=0.5, dur=10.0, joins=True), Edit(free=True, dur=7.0, joins=True)
    assert one.combine(other) == Edit(own=0.5, free=True, joins=True, dur=7.0)
