"""Does the model fit the trace, and by what does the profiler slow the host."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from syncscope.estimate.fit import LEAST, MISFIT, MOST_BARE, USUAL, WARM, Fit, fit, steady_steps
from syncscope.estimate.profiler_cost import Costs
from syncscope.estimate.program import Program, compile_program
from syncscope.estimate.replay import Replayed, Scenario, replay
from syncscope.timeline import Timeline
from tests.builders import TraceBuilder
from tests.estimate.simulated import Blocking, Launch, Op, Wait, Work, trace

FREE = Costs(*[0.0] * 6)
HOST_BOUND: list[Op] = [Work(300), Launch(40), Work(200), Launch(40), Wait(), Work(100)]
DEVICE_BOUND: list[Op] = [Work(10), Launch(900), Launch(900)]


def program(loop: list[Op], steps: int = 4) -> Program:
    found = compile_program(Timeline(trace([loop] * steps).trace()), FREE)
    assert found is not None
    return found


def bare(compiled: Program, scenario: Scenario, steps: int = 10) -> tuple[int, ...]:
    """Lengths of bare steps as they are in a scenario."""
    order = [number % compiled.steps for number in range(steps)]
    ends = replay(compiled, [{}], [scenario], order).ends[:, 0, 0]
    return tuple(round(after - before) for before, after in zip([0.0, *ends], ends, strict=False))


@pytest.mark.parametrize("scale", [0.65, 0.8, 1.0, 1.2])
def test_the_scale_of_the_host_is_found_where_the_host_bounds_the_step(scale: float) -> None:
    compiled = program(HOST_BOUND)
    found = fit(compiled, bare(compiled, Scenario(scale)))
    assert found.scenarios[0].host == pytest.approx(scale, abs=0.02)
    assert found.why is None and not found.ranged


def test_where_the_device_bounds_the_step_the_usual_scale_is_taken_and_the_doubt_is_large() -> None:
    compiled = program(DEVICE_BOUND)
    likely, least, most = fit(compiled, bare(compiled, Scenario(0.7))).scenarios
    assert likely.host == pytest.approx(USUAL, abs=0.01)
    assert most.host - least.host > 0.25


def test_bare_steps_that_differ_allow_more_scales() -> None:
    compiled = program(HOST_BOUND)
    usual = bare(compiled, Scenario(0.8), 40)[20]
    alike, unlike = (tuple(usual * (100 + off) // 100 for off in (-far, 0, far) * 4) for far in (0, 8))
    widths = []
    for lengths in (alike, unlike):
        likely, least, most = fit(compiled, lengths, usual / 1e6).scenarios
        assert likely.host == pytest.approx(0.8, abs=0.02)
        widths.append(most.host - least.host)
    assert widths[1] > 2 * widths[0]


def test_one_mean_of_bare_steps_will_do() -> None:
    compiled = program(HOST_BOUND)
    lengths = bare(compiled, Scenario(0.8), 40)
    found = fit(compiled, (), sum(lengths[20:]) / 20 / 1e6)
    assert found.scenarios[0].host == pytest.approx(0.8, abs=0.02)


def test_what_is_given_counts_before_what_was_recorded() -> None:
    compiled = program(HOST_BOUND)
    lengths = bare(compiled, Scenario(0.8), 40)
    assert fit(compiled, bare(compiled, Scenario(1.0)), sum(lengths[20:]) / 20 / 1e6).scenarios[0].host < 0.85


def test_of_many_bare_steps_only_the_first_are_replayed(monkeypatch: pytest.MonkeyPatch) -> None:
    replayed: list[int] = []

    def count(*given: Any, **more: Any) -> Replayed:
        replayed.append(len(given[3]) if len(given) > 3 else 0)
        return replay(*given, **more)

    monkeypatch.setattr("syncscope.estimate.fit.replay", count)
    for loop in (HOST_BOUND, DEVICE_BOUND):
        compiled = program(loop)
        few, many = (fit(compiled, bare(compiled, Scenario(0.8), steps)) for steps in (MOST_BARE, 4 * MOST_BARE))
        assert many.scenarios[0].host == pytest.approx(few.scenarios[0].host, abs=0.02)
    assert max(replayed) == MOST_BARE


def test_without_a_bare_step_the_scale_is_a_guess_between_bounds() -> None:
    found = fit(program(HOST_BOUND), ())
    assert found.ranged
    assert found.scenarios[1:] == (Scenario(LEAST, 1.0, 1.0), Scenario(1.0, 1.0, 1.0))


def test_a_profiler_that_cost_more_than_was_measured_is_taken_off_too() -> None:
    compiled = program(HOST_BOUND)
    found = fit(compiled, bare(compiled, Scenario(0.45)))
    assert found.scenarios[0].host == pytest.approx(0.45, abs=0.02)
    assert not found.doubt and found.doubt_why is None


@pytest.mark.parametrize(
    ("factor", "says"),
    [(0.75, "the recorded steps are 33 % longer"), (1.5, "bare steps of 2.71 ms are 50 % longer")],
)
def test_a_bare_step_that_no_scale_meets_leaves_the_recorded_step_and_a_doubt(factor: float, says: str) -> None:
    compiled = program(DEVICE_BOUND)
    found = fit(compiled, tuple(round(length * factor) for length in bare(compiled, Scenario())))
    assert found.why is None and found.scenarios[0].host == USUAL
    assert found.doubt == pytest.approx(abs(1 / factor - 1) / 2, abs=0.01)
    assert found.doubt_why is not None and says in found.doubt_why
    assert found.doubt_why.startswith("savings are those of the recorded steps, and ranges are wider: ")


@pytest.mark.parametrize(("factor", "says"), [(0.4, "the recorded steps are"), (3.0, "the bare steps of 5.4")])
def test_bare_steps_that_are_something_else_leave_no_answer(factor: float, says: str) -> None:
    compiled = program(DEVICE_BOUND)
    found = fit(compiled, tuple(round(length * factor) for length in bare(compiled, Scenario())))
    assert found.scenarios == ()
    assert found.why is not None and found.why.startswith(says)


def test_a_replay_that_misses_the_trace_is_doubted_for_it() -> None:
    compiled = program(HOST_BOUND)
    found = fit(replace(compiled, host_ns=compiled.host_ns * (1 + 2 * MISFIT)), bare(compiled, Scenario()))
    assert found.misfit == pytest.approx(-0.0566, abs=0.001)
    assert found.doubt == pytest.approx(0.0283, abs=0.001)
    assert found.doubt_why is not None
    assert found.doubt_why.startswith("ranges are wider: replayed, the recorded steps take 5.7 % less time")


def test_a_replay_far_from_the_trace_is_a_misfit() -> None:
    compiled = program(HOST_BOUND)
    found = fit(replace(compiled, host_ns=compiled.host_ns * 3), bare(compiled, Scenario()))
    assert found.scenarios == ()
    assert found.why is not None and found.why.startswith("replayed, the recorded steps take 67 % less time")


def test_the_time_of_pageable_copies_is_fitted_too() -> None:
    compiled = program([Work(20), Blocking(600), Work(20), Launch(100), Wait()])
    found = fit(compiled, bare(compiled, Scenario(0.95, 1.1)))
    assert found.scenarios[0].pageable == pytest.approx(1.1, abs=0.03)
    assert len(found.scenarios) == 5


def test_steady_state_begins_with_the_steps_before_and_counts_whole_rounds() -> None:
    assert steady_steps(program(HOST_BOUND, 4)) == ([2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3], WARM)
    order, warm = steady_steps(program(HOST_BOUND, 9))
    assert len(order) == WARM + 9 and warm == WARM


def test_huge_steps_are_replayed_less_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("syncscope.estimate.fit.MOST_ITEMS", 10)
    assert steady_steps(program(HOST_BOUND, 4)) == ([2, 3, 0, 1, 2, 3], 2)


def test_a_loader_of_unknown_kind_is_looked_at_both_ways() -> None:
    builder = TraceBuilder()
    for step in range(4):
        at = 1000 * step
        builder.entry("DataLoader", at + 10, at + 500).launch("k", call=(at + 510, 5), runs=(at + 520, 400))
    compiled = compile_program(Timeline(builder.recording(*range(0, 4001, 1000), drained=4000).trace()), FREE)
    assert compiled is not None and compiled.workers is None
    found: Fit = fit(compiled, (1_000_000,) * 4)
    assert [scenario.worker_paced for scenario in found.scenarios] == [1.0, 1.0, 1.0, 0.0, 0.0]
