"""An error is a finding that surely costs something."""

from __future__ import annotations

import msgspec
import pytest

from syncscope.estimate.answers import AHEAD, AHEAD_OF_GUESS, Saving, give_saving
from syncscope.estimate.fit import Fit
from syncscope.schema.findings import Sketch
from tests.report import sample


@pytest.mark.parametrize(
    ("saving", "ranged", "shown_ms", "severity"),
    [
        (Saving(5.0, 4.0, 6.0, 5.0), False, 0.0, "error"),
        (Saving(5.0, 0.0, 9.0, 5.0), False, 5.0, "error"),
        (Saving(5.0, 0.0, 9.0, 5.0), False, 0.02, "warning"),
        (Saving(5.0, 0.0, 9.0, 5.0), False, None, "warning"),
        (Saving(0.5, 0.4, 0.6, 0.5), False, 0.5, "warning"),
        (Saving(None, 4.0, 6.0, 5.0), True, 3.0, "error"),
        (Saving(None, 4.0, 6.0, 5.0), True, 0.02, "warning"),
        (Saving(None, 4.0, 6.0, 5.0), True, None, "error"),
    ],
)
def test_an_error_saves_something_for_sure_and_the_trace_shows_it(
    saving: Saving, ranged: bool, shown_ms: float | None, severity: str
) -> None:
    fit = Fit(0.0, ranged=ranged)
    finding = sample.finding("SYN102", "scalar-read", 1, "reads", severity="error")
    finding = give_saving(finding, saving, Sketch(step_ms=100.0, lanes=()), False, fit, 100.0, shown_ms)
    assert finding.severity == severity


@pytest.mark.parametrize(("idle_ms", "said"), [(2.0, True), (4.9, False), (None, False)])
def test_a_saving_beyond_the_wait_that_is_told_is_explained(idle_ms: float | None, said: bool) -> None:
    finding = sample.finding("LCH501", "launch-bound", 1, None, message="the device waits")
    finding = msgspec.structs.replace(finding, idle_ms_per_step=idle_ms)
    saving, after = Saving(5.0, 4.0, 6.0, 5.0), Sketch(step_ms=95.0, lanes=())
    message = give_saving(finding, saving, after, False, Fit(0.0), 100.0).message
    assert message == "the device waits" + AHEAD * said


@pytest.mark.parametrize(("likely", "said"), [(5.0, True), (2.1, False), (None, False)])
def test_a_likely_saving_beyond_the_wait_is_explained_by_what_the_profiler_adds_too(
    likely: float | None, said: bool
) -> None:
    finding = sample.finding("LCH501", "launch-bound", 1, None, message="the device waits")
    finding = msgspec.structs.replace(finding, idle_ms_per_step=2.0)
    saving, after = Saving(None, 0.0, 6.0, likely), Sketch(step_ms=95.0, lanes=())
    message = give_saving(finding, saving, after, False, Fit(0.0, ranged=True), 100.0).message
    assert message == "the device waits" + AHEAD_OF_GUESS * said
