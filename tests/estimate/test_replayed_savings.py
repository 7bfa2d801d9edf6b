"""Savings are sane, whatever the loop."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import example, given

from syncscope.estimate.edits import Edit
from syncscope.estimate.fit import Fit
from syncscope.estimate.profiler_cost import MEASURED
from syncscope.estimate.program import Program, compile_program
from syncscope.estimate.replay import Scenario
from syncscope.estimate.savings import OFF, REPEATED, Savings, _trim_first, replay_savings
from syncscope.timeline import Timeline
from tests.estimate.simulated import Blocking, Launch, Op, Wait, Work, trace
from tests.estimate.test_replay import loops, usually

SCENARIOS = (Scenario(0.9), Scenario(0.7), Scenario(1.0))
FIT = Fit(0.0, SCENARIOS)
SURE = (Scenario(),)
"""Nothing of the host's scale is left open."""

AHEAD_AT_FIRST: list[Op] = [
    Launch(69, 7, ""), Launch(6, 20, "HtoD"), Launch(159, 20, "HtoD"), Work(124), Launch(6, 7, ""),
    Launch(18, 20, "HtoD"), Blocking(104, 7),
]  # fmt: skip
"""What is left of its step is 0.03 % less than its copies take."""


def program(loop: list[Op], steps: int = 3) -> Program:
    found = compile_program(Timeline(trace([loop] * steps).trace()), MEASURED)
    assert found is not None
    return found


def each_wait(compiled: Program) -> list[dict[int, Edit]]:
    """One question a wait or blocking copy of the step."""
    items = compiled.items
    waits = np.flatnonzero(items.wait | items.blocks)
    return [{int(item): Edit(free=True)} for item in waits]


def ask(compiled: Program, fit: Fit = FIT) -> Savings:
    return replay_savings(compiled, each_wait(compiled), fit)


@given(loops)
@usually
def test_no_saving_is_negative_or_more_than_the_step_and_all_save_at_least_what_each_saves(loop: list[Op]) -> None:
    found = ask(program(loop))
    for saving in (*found.each, found.all):
        assert saving.ms is not None and saving.low is not None and saving.high is not None
        assert 0 <= saving.low <= saving.ms + 1e-6 <= saving.high + 2e-6
        assert saving.high <= found.step_ms + 1e-6
        assert found.all.ms is not None and saving.ms <= found.all.ms


@given(loops)
@example(AHEAD_AT_FIRST)
@usually
def test_all_waits_removed_leave_no_less_than_the_device_is_busy(loop: list[Op]) -> None:
    found = ask(program(loop))
    busy: dict[object, float] = {}
    for op in loop:
        if isinstance(op, Launch | Blocking):
            busy[op.stream] = busy.get(op.stream, 0.0) + op.length / 1000
    # A host that is a little faster than the device may stay ahead of it for all the steps that are replayed, or for
    # the first of them.
    least = min(max(busy.values()), found.step_ms)
    assert found.all.ms is not None
    assert found.step_ms - found.all.ms >= least * (1 - 1e-3)


def test_what_changes_nothing_saves_nothing() -> None:
    (saving,) = replay_savings(program([Work(50), Launch(100), Wait()]), [{0: Edit()}], Fit(0.0, SCENARIOS)).each
    assert (saving.ms, saving.low) == (0.0, 0.0)


def test_savings_do_not_add_up() -> None:
    found = ask(program([Work(50), Launch(300), Wait(), Work(20), Wait(), Launch(10)]))
    assert found.all.ms is not None
    assert found.all.ms > sum(saving.ms or 0.0 for saving in found.each) + 0.03, "one wait stands in for the other"


def test_bounds_hold_the_doubt_of_scenarios_and_of_windows() -> None:
    compiled = program([Work(300), Launch(900), Wait(), Work(100)])
    sure, unsure = (ask(compiled, Fit(0.0, scenarios)) for scenarios in (SCENARIOS[:1], SCENARIOS))
    narrow, wide = sure.all, unsure.all
    assert narrow.ms == wide.ms
    saved = narrow.ms or 0.0
    doubts = OFF * sure.step_ms, REPEATED * saved * (1 - saved / sure.step_ms)
    assert narrow.high == pytest.approx(saved + math.hypot(*doubts), abs=1e-5)
    assert (wide.high or 0.0) > (narrow.high or 0.0)


def test_steps_that_differ_widen_the_bounds() -> None:
    alike: list[list[Op]] = [[Work(300), Launch(400), Wait(), Work(200)]] * 4
    differing: list[list[Op]] = [
        [Work(300), Launch(400), Wait(), Work(200 + 150 * (number % 2))] for number in range(4)
    ]
    widths = []
    for steps in (alike, differing):
        compiled = compile_program(Timeline(trace(steps).trace()), MEASURED)
        assert compiled is not None
        whole = ask(compiled, Fit(0.0, SCENARIOS[:1])).all
        widths.append((whole.high or 0.0) - (whole.low or 0.0))
    assert widths[1] > 2 * widths[0]


def test_where_the_bare_step_is_a_guess_there_are_only_bounds() -> None:
    found = ask(program([Work(50), Launch(300), Wait()]), Fit(0.0, SCENARIOS, ranged=True))
    assert found.all.ms is None and found.all.high is not None


def test_how_long_the_host_work_is_that_a_fix_takes_off_is_less_certain_than_a_wait() -> None:
    compiled = program([Work(600), Launch(50), Work(600), Launch(50)])
    longest = np.flatnonzero(compiled.items.pre > 500_000)
    (halved,) = replay_savings(compiled, [{int(item): Edit(pre=0.5) for item in longest}], Fit(0.0, SURE)).each
    assert halved.ms == pytest.approx(0.6, rel=0.02)
    assert halved.low is not None and halved.high is not None
    assert halved.high - halved.low > 2 * 0.14 * 0.6


def test_the_first_step_saves_no_more_than_the_others_where_all_do() -> None:
    saved = np.array([9.0, 2.0, 1.8, 2.1]).reshape(4, 1, 1)
    assert _trim_first(saved)[:, 0, 0].tolist() == [2.1, 2.0, 1.8, 2.1]


def test_what_only_some_steps_save_stays() -> None:
    saved = np.array([9.0, 0.0, 0.0, 8.0]).reshape(4, 1, 1)
    assert _trim_first(saved)[:, 0, 0].tolist() == [9.0, 0.0, 0.0, 8.0]


def test_savings_are_told_against_the_base() -> None:
    compiled = program([Work(500), Launch(100), Wait()])
    half = {int(item): Edit(pre=0.5) for item in np.flatnonzero(compiled.items.pre > 100_000)}
    whole, left = (replay_savings(compiled, each_wait(compiled), Fit(0.0, SURE), base=base) for base in ({}, half))
    assert left.step_ms < 0.7 * whole.step_ms
