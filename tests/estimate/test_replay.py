"""The replay against a simulation that knows nothing of traces."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fixtures.labels import TRACES
from syncscope import analyze, load, rules
from syncscope.estimate import columns, estimate_savings, prepare
from syncscope.estimate.edits import Edit, Question
from syncscope.estimate.items import TO_DEVICE
from syncscope.estimate.machine import Machine
from syncscope.estimate.profiler_cost import MEASURED
from syncscope.estimate.program import QUEUE, Program, compile_program
from syncscope.estimate.replay import Scenario, replay
from syncscope.estimate.sketches import draw_steps
from syncscope.timeline import Timeline
from syncscope.timeline.intervals import Floats
from tests.builders import TraceBuilder
from tests.estimate.simulated import Blocking, Launch, Op, Wait, Work, simulate, trace

LOOP: list[Op] = [Work(40), Launch(200), Launch(100), Wait(), Work(60), Launch(50)]


def program(steps: list[list[Op]]) -> Program:
    found = compile_program(Timeline(trace(steps).trace()), MEASURED)
    assert found is not None
    return found


def waits(compiled: Program) -> list[int]:
    return np.flatnonzero(compiled.items.wait).tolist()


def ends_us(compiled: Program, *questions: dict[int, Edit]) -> list[list[float]]:
    """Ends of the steps for each question, as they were traced."""
    ends = replay(compiled, questions, [Scenario()], profiled=True).ends[:, :, 0] / 1000
    return ends.T.tolist()


def test_the_unchanged_steps_end_as_they_did() -> None:
    steps = [LOOP] * 3
    assert ends_us(program(steps), {}) == [pytest.approx(simulate(steps).ends)]


def test_without_its_wait_the_host_runs_ahead() -> None:
    compiled = program([LOOP] * 3)
    without = {item: Edit(free=True) for item in waits(compiled)}
    assert ends_us(compiled, without) == [pytest.approx(simulate([LOOP] * 3, without=["wait"]).ends)]


def test_questions_are_answered_side_by_side_as_each_by_itself() -> None:
    compiled = program([LOOP] * 4)
    questions = [{item: Edit(free=True)} for item in waits(compiled)]
    assert ends_us(compiled, *questions) == [ends_us(compiled, question)[0] for question in questions]


def test_a_copy_from_pageable_memory_blocks_the_host_until_it_is_done() -> None:
    steps: list[list[Op]] = [[Launch(300), Blocking(100), Work(20), Launch(50)]] * 3
    assert ends_us(program(steps), {}) == [pytest.approx(simulate(steps).ends)]


@pytest.mark.parametrize(("runs_us", "blocks"), [(17, False), (80, True)])
def test_a_copy_sent_as_fast_as_from_pinned_memory_had_been_staged_and_waited_for_no_device(
    runs_us: float, blocks: bool
) -> None:
    builder = TraceBuilder().copy("HtoD", call=(10, 100), runs=(70, runs_us), memory="pageable", bytes=786_432)
    builder.launch("gemm", call=(200, 5), runs=(210, 50)).recording(0, 300)
    compiled = compile_program(Timeline(builder.trace()), MEASURED)
    assert compiled is not None
    assert compiled.items.blocks.any() == blocks


def test_streams_run_beside_each_other_until_a_wait_for_all() -> None:
    steps: list[list[Op]] = [[Launch(300), Launch(200, 20, "HtoD"), Work(10), Wait(None), Work(30)]] * 3
    assert ends_us(program(steps), {}) == [pytest.approx(simulate(steps).ends)]


def test_kernels_of_two_streams_do_not_share_the_device_for_free() -> None:
    steps: list[list[Op]] = [[Launch(300), Wait(), Launch(200, 20), Wait(20)]] * 3
    compiled = program(steps)
    without = {item: Edit(free=True) for item in waits(compiled)}
    assert ends_us(compiled, without)[0][-1] >= 3 * 500


def test_a_copy_of_its_own_stream_starts_a_step_early() -> None:
    steps: list[list[Op]] = [[Launch(100, 7, "HtoD"), Launch(300), Work(5)]] * 6
    compiled = program(steps)
    copies = np.flatnonzero(compiled.items.engine == TO_DEVICE)
    ends = ends_us(compiled, {}, {int(item): Edit(early=True) for item in copies})
    assert np.diff(ends[0])[-1] == pytest.approx(402)
    assert np.diff(ends[1])[-1] == pytest.approx(301)


def test_what_follows_a_copy_that_left_its_stream_waits_for_other_streams_all_the_same() -> None:
    report = analyze(TRACES / "copies_serialised" / "trace.json.gz", select=["OVL301"])
    (out,) = [found for found in report.findings if found.site is not None and found.site.line == 17]
    assert out.saving_ms_per_step is not None and out.exposed_ms_per_step is not None
    assert out.saving_ms_per_step == pytest.approx(out.exposed_ms_per_step, rel=0.05)


def test_a_full_queue_holds_the_host() -> None:
    steps: list[list[Op]] = [[Launch(50)] * 400] * 4
    compiled = program(steps)
    replayed = replay(compiled, [{}], [Scenario()], [0, 1, 2, 3] * 2, profiled=True)
    behind = (replayed.device - replayed.host)[-1, 0, 0] / 51_000
    assert QUEUE - 130 <= behind <= QUEUE + 130


def test_later_launches_wait_on_the_device_where_the_host_does_not_any_more() -> None:
    steps: list[list[Op]] = [[Launch(300, 20, "HtoD"), Wait(20), Launch(100)]] * 2
    compiled = program(steps)
    gone, joined = ({item: Edit(free=True, joins=joins) for item in waits(compiled)} for joins in (False, True))
    free, held = ends_us(compiled, gone, joined)
    assert free[0] == pytest.approx(305)
    assert held[0] == pytest.approx(305 + 1 + 100)


ops = st.one_of(
    st.builds(Work, st.integers(1, 300)),
    st.builds(Launch, st.integers(6, 400), st.just(7), st.just("")),
    st.builds(Launch, st.integers(6, 400), st.just(20), st.sampled_from(["HtoD", "DtoH"])),
    st.builds(Blocking, st.integers(30, 200), st.just(7)),
    st.builds(Wait, st.sampled_from([7, 20, None]), st.just("wait")),
)
loops = st.lists(ops, min_size=1, max_size=12).filter(lambda loop: any(isinstance(op, Launch) for op in loop))
usually = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@given(loops, st.integers(2, 4))
@usually
def test_any_loop_replays_as_it_ran(loop: list[Op], many: int) -> None:
    steps = [loop] * many
    assert ends_us(program(steps), {})[0] == pytest.approx(simulate(steps).ends)


@given(loops, st.integers(2, 4))
@usually
def test_without_waits_no_step_beats_the_device(loop: list[Op], many: int) -> None:
    compiled = program([loop] * many)
    (ends,) = ends_us(compiled, {item: Edit(free=True) for item in waits(compiled)})
    busy: dict[object, int] = {}
    for op in loop:
        if isinstance(op, Launch | Blocking):
            busy[op.stream] = busy.get(op.stream, 0) + op.length
    assert ends[-1] >= many * max(busy.values())


shares = st.sampled_from([0.0, 0.25, 1.0])
edits = st.builds(Edit, shares, shares, st.booleans(), gap=st.sampled_from([0.0, 500.0, np.inf]))


@given(loops, st.integers(2, 4), st.data())
@usually
def test_stretches_are_what_their_items_are_one_by_one(loop: list[Op], many: int, data: st.DataObject) -> None:
    compiled = program([loop] * many)
    some = st.dictionaries(st.integers(0, len(compiled.items) - 1), edits)
    questions = [{}, data.draw(some), data.draw(some)]
    scenarios = [Scenario(), Scenario(host=0.7), Scenario(host=1.1, pageable=1.2)]
    joined = replay(compiled, questions, scenarios, profiled=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Machine, "_apart", lambda _, items, __: np.ones(len(items), dtype=bool))
        apart = replay(compiled, questions, scenarios, profiled=True)
    np.testing.assert_allclose(joined.host, apart.host)
    np.testing.assert_allclose(joined.device, apart.device)


every_edit = st.builds(
    Edit, shares, shares, st.booleans(), st.booleans(), st.booleans(), gap=st.sampled_from([0.0, np.inf]),
    dur=st.sampled_from([1_000.0, np.inf]), early=st.booleans(),
)  # fmt: skip


@given(loops, st.integers(2, 4), st.data())
@usually
def test_questions_that_come_and_go_are_answered_as_those_that_stay(
    loop: list[Op], many: int, data: st.DataObject
) -> None:
    compiled = program([loop] * many)
    some = st.dictionaries(st.integers(0, len(compiled.items) - 1), every_edit, max_size=3)
    questions = [{}, {0: Edit(own=0.5)}, *data.draw(st.lists(some, max_size=12))]
    scenarios = [Scenario(), Scenario(host=0.7), Scenario(host=1.1, pageable=1.2)]
    order = [number % many for number in range(2 * many)]
    staying = replay(compiled, questions, scenarios, order, profiled=True, drawn=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("syncscope.estimate.edits.FEW", 0)
        patch.setattr("syncscope.estimate.edits.OFTEN", 2.0)
        patch.setattr(columns, "SPARE", 1)
        patch.setattr(columns, "FULL", data.draw(st.integers(1, 3)))
        coming = replay(compiled, questions, scenarios, order, profiled=True, drawn=True)
    assert coming.parts and not staying.parts
    np.testing.assert_allclose(coming.ends, staying.ends, rtol=1e-9)
    names = [f"stream {number}" for number in range(len(compiled.streams))]
    for one, other in zip(draw_steps(coming, names), draw_steps(staying, names), strict=True):
        assert one.step_ms == pytest.approx(other.step_ms, abs=2e-6)


def test_a_question_has_columns_only_while_more_than_the_time_differs(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = program([LOOP] * 30)
    questions = [{}, *({item: Edit(free=True)} for item in waits(compiled))]
    monkeypatch.setattr("syncscope.estimate.edits.FEW", 0)
    ran = Machine(
        compiled, list(map(Question.of, questions)), np.array([Scenario()]), frozenset(range(30)), True, (), frozenset()
    )
    for number in range(30):
        ran.step(number, number, drawn=number == 29)
        assert ran._columns.slots <= 1 + columns.SPARE
    saved = -ran._columns.later[1:, 0]
    assert (saved[: -columns.FULL] > 0).all()


def test_it_looks_for_questions_that_need_no_columns_once_some_have_gathered(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = program([LOOP] * 30)
    every = waits(compiled)
    questions = [Question.of(question) for question in ({}, *({item: Edit(free=True)} for item in every))]
    monkeypatch.setattr("syncscope.estimate.edits.FEW", 0)
    left: list[int] = []
    leave = columns.Columns.leave

    def noted(self: columns.Columns, known: Floats) -> None:
        before = len(self.visiting)
        leave(self, known)
        left.append(before - len(self.visiting))

    monkeypatch.setattr(columns.Columns, "leave", noted)
    ran = Machine(compiled, questions, np.array([Scenario()]), frozenset(range(30)), True, (), frozenset())
    for number in range(30):
        ran.step(number, number, drawn=number == 29)
    assert sum(left) >= len(every) - columns.FULL
    assert len(left) <= len(every) / (columns.FULL - 2)


@given(loops, st.integers(2, 4))
@usually
def test_no_change_makes_a_step_longer(loop: list[Op], many: int) -> None:
    compiled = program([loop] * many)
    n = len(compiled.items)
    changed = [dict.fromkeys(range(n), edit) for edit in (Edit(free=True), Edit(gone=True), Edit(pre=0.5, own=0.5))]
    unchanged, *others = ends_us(compiled, {}, *changed)
    for ends in others:
        assert (np.array(ends) <= np.array(unchanged) + 1e-6).all()


def test_a_full_queue_holds_questions_that_come_and_go_as_those_that_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    timeline = Timeline(load(TRACES / "small_copies" / "trace.json.gz"))
    prepared = prepare(timeline, rules.find(timeline)[0], None)
    staying = estimate_savings(prepared)
    monkeypatch.setattr("syncscope.estimate.edits.FEW", 0)
    monkeypatch.setattr("syncscope.estimate.edits.OFTEN", 2.0)
    monkeypatch.setattr(columns, "SPARE", 1)
    monkeypatch.setattr(columns, "FULL", 1)
    coming = estimate_savings(prepared)
    for one, other in zip(staying.findings, coming.findings, strict=True):
        assert other.likely_saving_ms_per_step == pytest.approx(one.likely_saving_ms_per_step, abs=2e-6)
        assert other.after == one.after
