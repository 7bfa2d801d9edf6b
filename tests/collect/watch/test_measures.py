from __future__ import annotations

import pytest

from syncscope.collect.watch.live_line import text_of
from syncscope.collect.watch.measures import Meter
from tests.collect.watch.runs import phase, run, wait


def test_waits_a_step_are_those_since_the_measures_before() -> None:
    meter = Meter()
    first = meter.measure(run((phase(steps=10),), wait(0, count=20)), 1, None)
    assert first.phases[0].waits_per_step == 2
    then = meter.measure(run((phase(steps=30),), wait(0, count=120)), 1, None)
    assert then.phases[0].waits_per_step == 5


def test_only_counted_steps_count() -> None:
    measures = Meter().measure(run((phase(steps=80, counted=10),), wait(0, count=30)), 1, None)
    assert measures.phases[0].waits_per_step == 3
    assert measures.phases[0].steps == 80


def test_where_no_step_was_counted_nothing_is_said_of_waits() -> None:
    meter = Meter()
    meter.measure(run((phase(steps=10),), wait(0, count=20)), 1, None)
    measures = meter.measure(run((phase(steps=10),), wait(0, count=20)), 1, None)
    assert measures.phases[0].waits_per_step is None
    assert "train/waits_per_step" not in measures.scalars()


def test_waits_before_the_next_counted_step_belong_to_it() -> None:
    meter = Meter()
    meter.measure(run((phase(steps=10),), wait(0, count=20)), 1, None)
    meter.measure(run((phase(steps=10),), wait(0, count=25)), 1, None)
    measures = meter.measure(run((phase(steps=20),), wait(0, count=35)), 1, None)
    assert measures.phases[0].waits_per_step == 1.5


def test_what_may_not_have_waited_is_no_wait() -> None:
    measures = Meter().measure(run((phase(steps=10),), wait(0, count=20), wait(1, count=30, may_wait=True)), 1, None)
    assert measures.phases[0].waits_per_step == 2


def test_what_the_compiler_waits_for_is_no_part_of_a_step() -> None:
    measures = Meter().measure(run((phase(steps=10),), wait(0, count=20), wait(1, count=30, compiling=True)), 1, None)
    assert measures.phases[0].waits_per_step == 2


def test_a_phase_that_is_counted_anew_begins_anew() -> None:
    meter = Meter()
    meter.measure(run((phase(steps=100),), wait(0, count=100)), 1, None)
    measures = meter.measure(run((phase(steps=4),), wait(0, count=8)), 1, None)
    assert measures.phases[0].waits_per_step == 2


def test_scalars_have_the_phase_in_their_name() -> None:
    phases = phase("train", steps=5, seconds=3), phase("epoch end", steps=0, seconds=1)
    scalars = Meter().measure(run(phases, wait(0, count=5)), 4, 2).scalars()
    assert scalars == {
        "lines": 4, "new_lines": 2, "train/waits_per_step": 1, "train/share": pytest.approx(0.75), "train/steps": 5,
        "epoch end/share": pytest.approx(0.25), "epoch end/steps": 0,
    }  # fmt: skip


def test_the_axis_is_the_steps_of_training_else_of_the_longest_phase() -> None:
    phases = phase("train", steps=5, seconds=1), phase("rollout", steps=640, seconds=9)
    assert Meter().measure(run(phases), 0, None).step == 5
    assert Meter().measure(run(phases[1:]), 0, None).step == 640


def test_the_live_line_says_what_the_main_phase_does() -> None:
    phases = phase("train", steps=12345, seconds=1), phase("evaluate", steps=9, seconds=9)
    measures = Meter().measure(run(phases, wait(0, count=12345)), 4, 1)
    assert text_of(measures) == "syncscope: train 12,345 steps, 1 waits a step · 4 lines wait, 1 new"
