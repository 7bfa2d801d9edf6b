"""The first steps of a phase, where they take a good part of the run."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from syncscope.report.first_steps import find_first_steps
from syncscope.report.phase_lines import describe_lines
from syncscope.report.recorded_part import describe_part
from syncscope.schema.findings import Site
from syncscope.schema.run import PhaseLine, Run, Stretch
from tests.report.sample_run import START, TRAIN, info, phases, report, run

BACKWARD = Site(file="train.py", line=65, function="step", expression="loss.backward()")


def slow_start(seconds: float = 25.7, **of_first: Any) -> Run:
    """A run of 61.2 s that begins with two steps that take so long."""
    first = Stretch(start_s=0.7, seconds=seconds, phase=TRAIN, steps=2, waits_per_step=5.0, windows=False)
    begin = Stretch(start_s=0.0, seconds=0.7, phase=START, steps=0, waits_per_step=None, windows=False)
    made = list(phases())
    lines = (PhaseLine(site=BACKWARD, share=0.7),)
    made[TRAIN] = msgspec.structs.replace(made[TRAIN], looks=70, lines=lines)
    return run(phases=tuple(made), stretches=(begin, msgspec.structs.replace(first, **of_first)))


def test_they_are_told_with_the_line_that_takes_most() -> None:
    said = (
        "train, 81 % of the run: its first steps take 25.7 s (42 % of the run); 70 % at train.py:65 (loss.backward())"
    )
    assert describe_lines(slow_start()) == [said]
    part = describe_part(report([info(run=slow_start())], ()), 0)
    assert "; 42 % of the run is in the first steps of train, which no window recorded; the run took 61.2 s" in part


def test_little_of_the_run_is_not_told_as_the_part_that_is_missing() -> None:
    assert "first steps" not in describe_part(report([info(run=slow_start(8.0))], ()), 0)
    assert find_first_steps(slow_start(8.0), TRAIN) == 8.0


@pytest.mark.parametrize("of_first", [{"seconds": 6.0}, {"steps": 4}, {"windows": True}, {"phase": START}])
def test_what_is_short_or_holds_more_is_not_the_first_steps(of_first: dict[str, Any]) -> None:
    made = slow_start(**of_first)
    assert find_first_steps(made, TRAIN) is None and describe_lines(made) == []


def test_a_phase_without_steps_has_no_first_ones() -> None:
    assert find_first_steps(slow_start(phase=START, steps=0), START) is None
