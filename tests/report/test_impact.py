"""What a finding means to a reader, in the words that every output has."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from syncscope.report.impact import Gain, describe_impact, measure_all
from tests.report import sample, sample_run

READ = sample.findings()[0]
INFO = sample.trace_info()


NARROW = {"saving_low_ms_per_step": 0.0, "saving_high_ms_per_step": 0.5}


@pytest.mark.parametrize(
    ("fields", "level", "words", "amount"),
    [
        ({"saving_ms_per_step": 0.51, **NARROW}, "high", "saves 10 %", "0.51 ms"),
        ({"saving_ms_per_step": 0.1326, **NARROW}, "medium", "saves 2.6 %", "0.133 ms"),
        ({"saving_ms_per_step": 0.51}, "high", "saves about 10 %", "0.51 ms, 0 to 1.53 ms"),
        ({"saving_ms_per_step": 0.51, "saving_low_ms_per_step": 0.3}, "high", "saves 10 %", "0.51 ms"),
        ({"saving_ms_per_step": 0.04, "saving_below_drift": True}, "low", "saves under 1 %", None),
        ({"saving_ms_per_step": 0.04, **NARROW}, "low", "saves under 1 %", "40 µs"),
        ({"saving_ms_per_step": 0.0, "saving_high_ms_per_step": 0.0}, "low", "saves nothing", None),
        ({"likely_saving_ms_per_step": 0.51}, "high", "saves about 10 %", "0.51 ms, 0 to 1.53 ms"),
        (
            dict.fromkeys(("saving_low_ms_per_step", "likely_saving_ms_per_step", "saving_high_ms_per_step"), 0.51),
            "high",
            "saves about 10 %",
            "0.51 ms",
        ),
        ({}, "high", "saves at most 30 %", "1.53 ms"),
        ({"saving_low_ms_per_step": 0.2}, "high", "saves up to 30 %", "0.2 to 1.53 ms"),
        ({"saving_high_ms_per_step": None}, "unknown", "saving not known", None),
        ({"saving_ms_per_step": 0.51, "run_per_step": 0.1, **NARROW}, "high", "saves 10 %", "0.51 ms a recorded step"),
        ({"rule": "HAZ401"}, "wrong", "results may be wrong", None),
    ],
)
def test_the_impact_is_the_share_of_the_step(
    fields: dict[str, Any], level: str, words: str, amount: str | None
) -> None:
    open_end = {"saving_ms_per_step": None, "saving_low_ms_per_step": 0.0, "saving_high_ms_per_step": 1.53}
    impact = describe_impact(msgspec.structs.replace(READ, **{**open_end, **fields}), INFO)
    assert (impact.level, impact.words, impact.amount) == (level, words, amount)


def test_of_a_counted_run_it_says_which_step_is_saved() -> None:
    of_windows = msgspec.structs.replace(READ, phase="train", saving_ms_per_step=0.51)
    of_run = msgspec.structs.replace(of_windows, run_saving_ms_per_step=2.0)
    said = [describe_impact(one, sample_run.info()).amount for one in (of_windows, of_run)]
    assert said == ["0.51 ms a recorded step", "2 ms a step of the run"]


def test_what_saves_less_than_can_be_told_may_still_save_something_over_the_run() -> None:
    """Such as a read behind a loader that sets the pace: alone it saves nothing, with the loader's fix it does."""
    read = msgspec.structs.replace(
        READ, phase="train", saving_ms_per_step=0.0, saving_low_ms_per_step=0.0, saving_high_ms_per_step=0.5,
        saving_below_drift=True, run_saving_ms_per_step=0.0,
    )  # fmt: skip
    nothing = msgspec.structs.replace(read, saving_high_ms_per_step=0.0)
    said = [describe_impact(one, sample_run.info()).words for one in (read, nothing)]
    assert said == ["saves under 1 %", "saves nothing"]


def test_over_the_run_a_saving_has_the_range_of_that_of_the_recorded_step() -> None:
    """One of five steps has all of it: of a step of 98.1 ms 12 are saved, or nothing, or 31."""
    of_run = msgspec.structs.replace(
        READ, phase="train", saving_ms_per_step=10.0, saving_low_ms_per_step=0.0, saving_high_ms_per_step=26.0,
        run_saving_ms_per_step=12.0,
    )  # fmt: skip
    impact = describe_impact(of_run, sample_run.info())
    assert (impact.words, impact.amount) == ("saves about 12 %", "12 ms, 0 to 31.2 ms a step of the run")


@pytest.mark.parametrize(
    ("most", "gain"),
    [
        (0.9, Gain(ms=0.5, low=0.1, high=0.8, kind="likely", step_ms=5.1)),
        (2.0, Gain(ms=2.0, low=0.1, high=2.0, kind="between", step_ms=5.1)),
        (None, Gain(ms=0.5, low=0.1, high=2.0, kind="likely", step_ms=5.1)),
    ],
)
def test_all_together_are_what_is_likely_unless_half_of_the_most_is_more(most: float | None, gain: Gain) -> None:
    report = msgspec.structs.replace(
        sample.report(),
        saving_all_ms_per_step=None,
        saving_all_low_ms_per_step=0.1,
        likely_saving_all_ms_per_step=0.5,
        likely_saving_all_high_ms_per_step=None if most is None else 0.8,
        saving_all_high_ms_per_step=most or 2.0,
    )
    assert measure_all(report) == gain
