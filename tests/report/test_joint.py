"""Changes that save more together than each alone."""

from __future__ import annotations

import msgspec
import pytest

from syncscope.report.html import render
from syncscope.report.joint import explain_joint, explain_sum
from syncscope.report.text import to_text
from syncscope.report.verdict_phrases import summarize_report
from syncscope.schema.report import Report
from tests.report.sample import finding, lanes, report, trace_info


def waits(together: float | None, *alone: float, **changes: object) -> Report:
    """Reads that save so many ms of a step of 5.1 ms alone, and ``together``."""
    found = [
        finding("SYN102", "scalar-read", 40 + number, f"x{number}.item()", stall=0.02, saving=saving)
        for number, saving in enumerate(alone)
    ]
    found = [msgspec.structs.replace(one, saving_below_drift=True) for one in found]
    fields = {"saving_all_ms_per_step": together, "saving_all_high_ms_per_step": 2.0, **changes}
    return msgspec.structs.replace(report([trace_info()], found), **fields)


def test_waits_that_hold_the_host_one_for_the_other_save_more_together() -> None:
    made = waits(1.25, 0.02, 0.03)
    why = "one by one they save 50 µs in sum: a wait that is left holds the host as well"
    assert explain_joint(made) == why
    text = " ".join(to_text(made).split())
    assert f"; {why}" in text and "each saves under 1 % alone, all of them together more:" in text
    assert "Each saves under 1 % alone, all of them together more" in render(made, [lanes()])


def test_waits_that_save_the_same_time_save_less_together_than_in_sum() -> None:
    made = waits(1.25, 1.2, 1.1)
    assert explain_joint(made) is None
    why = "one by one they save 2.3 ms in sum: most of it is the same time"
    assert explain_sum(made) == why and f"; {why}" in " ".join(to_text(made).split())
    assert explain_sum(waits(1.25, 0.8, 0.7)) is None, "that is about as much"


def test_the_changes_are_called_by_their_number_where_others_are_not_known_to_save_anything() -> None:
    unknown = {"saving_ms_per_step": None, "saving_low_ms_per_step": None, "saving_high_ms_per_step": None}
    made = waits(0.7, 0.3, 0.4, 0.0)
    assert "all fixed together: saves" in summarize_report(waits(0.7, 0.3, 0.4))
    made = msgspec.structs.replace(
        made, findings=(*made.findings[:2], msgspec.structs.replace(made.findings[2], **unknown))
    )
    assert "2 of them known to save something · these 2 fixed together: saves" in summarize_report(made)


def test_nothing_is_said_where_it_is_not_known_what_one_of_them_saves() -> None:
    made = waits(1.25, 0.02, 0.03)
    unknown = msgspec.structs.replace(made.findings[0], saving_ms_per_step=None, saving_high_ms_per_step=None)
    made = msgspec.structs.replace(made, findings=(unknown, *made.findings[1:]))
    assert explain_joint(made) is None


@pytest.mark.parametrize(
    "made",
    [
        waits(0.06, 0.02, 0.03),  # about the sum
        waits(0.12, 0.02, 0.03),  # more, but little of the step
        waits(None, 0.02, 0.03, likely_saving_all_ms_per_step=None),
        waits(1.25, 0.02, 0.03, saving_all_below_drift=True),
    ],
)
def test_nothing_is_said_where_they_do_not(made: Report) -> None:
    assert explain_joint(made) is None and "one by one" not in to_text(made)
    assert "each saves under 1 %:" in to_text(made)
