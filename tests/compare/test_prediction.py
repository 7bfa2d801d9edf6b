"""Whether a fix brought what was predicted: the saving of what went against the change of the step."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

import syncscope
from syncscope.compare.diff import Diff, diff
from syncscope.compare.prediction import Prediction
from syncscope.report.diff_phrases import describe_doubts, describe_prediction
from syncscope.schema.findings import Finding
from syncscope.schema.report import Report, Steps
from tests.report import sample

TRACES = Path(__file__).parents[2] / "fixtures" / "traces"


def finding(key: str = "a", bounds: tuple[float, float] | None = (2.1, 3.0), line: int = 42, **changes: Any) -> Finding:
    """A SYN102 at a line of its own, whose saving lies within ``bounds``."""
    made = sample.finding("SYN102", "scalar-read", line, f"{key}.item()")
    low, high = bounds or (None, None)
    saving = {"saving_low_ms_per_step": low, "saving_high_ms_per_step": high, "saving_ms_per_step": None}
    return msgspec.structs.replace(made, **{"fingerprint": key, **saving, **changes})


def report(*findings: Finding, bare: float | None = 10.0, profiled: float | None = 11.0, **changes: Any) -> Report:
    steps = Steps(count=3, profiled_ms=profiled, bare_ms=bare, source="user")
    made = sample.report([msgspec.structs.replace(sample.trace_info(), steps=steps)], findings)
    return msgspec.structs.replace(made, **{"not_checked": (), "stale": (), **changes})


def judged(before: Report, after: Report) -> Prediction:
    found = diff(before, after).predicted
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("after", "outcome", "said"),
    [
        (7.6, "as predicted", "predicted to save 2.1 to 3 ms, saved 2.4 ms: as predicted"),
        (6.95, "as predicted", "predicted to save 2.1 to 3 ms, saved 3.05 ms: as predicted"),
        (8.5, "less", "predicted to save 2.1 to 3 ms, saved 1.5 ms: less than predicted"),
        (6.0, "more", "predicted to save 2.1 to 3 ms, saved 4 ms: more than predicted"),
        (10.5, "less", "predicted to save 2.1 to 3 ms, the step is 0.5 ms longer: less than predicted"),
    ],
)
def test_what_came_is_held_against_the_range(after: float, outcome: str, said: str) -> None:
    found = diff(report(finding()), report(bare=after))
    assert found.predicted is not None and found.predicted.outcome == outcome
    assert describe_prediction(found) == said


def test_one_per_cent_of_the_step_beside_the_range_is_still_as_predicted() -> None:
    near, far = (judged(report(finding()), report(bare=bare)).outcome for bare in (8.0 - 0.01, 8.0 + 0.01))
    assert (near, far) == ("as predicted", "less")


def test_nothing_is_judged_where_nothing_went_or_nothing_was_priced() -> None:
    assert diff(report(finding()), report(finding(), bare=7.0)).predicted is None
    assert diff(report(finding(bounds=None)), report(bare=7.0)).predicted is None
    assert describe_prediction(diff(report(), report())) is None


def test_a_step_that_was_not_measured_is_not_judged() -> None:
    found = diff(report(finding()), report(bare=None, profiled=None))
    assert found.predicted is not None
    assert (found.predicted.came_ms, found.predicted.outcome) == (None, "not measured")
    assert "not measured in the same way" in str(describe_prediction(found))


def test_a_step_under_the_profiler_is_told_as_such() -> None:
    found = diff(report(finding(), bare=None), report(bare=None, profiled=8.5))
    assert "saved 2.5 ms under the profiler (the prediction is without it)" in str(describe_prediction(found))


def test_findings_of_one_place_are_one_change() -> None:
    two = finding(), finding(fingerprint="b", rule="CPY201", bounds=(1.0, 2.0))
    said = judged(report(*two), report(bare=7.5))
    assert (said.low_ms, said.high_ms, said.fingerprints) == (2.1, 3.0, ("a",))
    assert judged(report(*reversed(two)), report(bare=7.5)).fingerprints == ("a",)


def test_several_changes_save_no_less_than_the_greatest_and_no_more_than_all_of_them() -> None:
    two = finding(), finding("b", (0.5, 1.0), line=50)
    said = judged(report(*two), report(bare=7.0))
    assert (said.low_ms, said.high_ms, said.saving_ms) == (2.1, 4.0, None)
    bounded = {"saving_all_low_ms_per_step": 2.5, "saving_all_high_ms_per_step": 3.4, "saving_all_ms_per_step": 2.9}
    whole = judged(report(*two, **bounded), report(bare=7.0))
    assert (whole.low_ms, whole.high_ms, whole.saving_ms) == (2.5, 3.4, 2.9)
    most = judged(report(*two, **bounded, likely_saving_all_high_ms_per_step=3.0), report(bare=7.0))
    assert (most.high_ms, most.saving_ms) == (3.4, None)  # what is likely is not said of all of them
    third = finding("c", (0.1, 0.2), line=60)
    some = judged(report(*two, third, **bounded), report(third, bare=7.0))
    assert (some.low_ms, some.high_ms, some.saving_ms) == (2.1, 3.4, None)


def test_what_only_sums_up_others_is_not_counted_again() -> None:
    sums = finding("sum", (2.0, 9.0), site=None, sums_up=True)
    assert judged(report(finding(), sums), report(bare=7.5)).high_ms == 3.0


def test_what_else_changed_is_told() -> None:
    found = diff(report(finding(), finding("b", None, line=50)), report(finding("new", line=70), bare=7.5))
    assert found.predicted is not None
    assert (found.predicted.unpredicted, found.predicted.other_changes) == (1, 1)
    assert describe_doubts(found) == [
        "Nothing was predicted of 1 other fixed finding.",
        "1 other finding is new or changed, which changes the step, too.",
    ]


@pytest.mark.parametrize(
    ("before", "after"),
    [("item_logging", "clean_loop"), ("launch_bound", "launch_graph"), ("isnan_branch", "clean_loop")],
)
def test_recorded_fixes_brought_what_was_predicted(before: str, after: str) -> None:
    found: Diff = diff(*(syncscope.analyze(TRACES / case / "trace.json.gz") for case in (before, after)))
    assert found.step is not None and found.step.measured == "bare"
    assert found.predicted is not None and found.predicted.outcome == "as predicted"
    assert found.predicted.came_ms == found.step.before - found.step.after


def test_programs_that_do_not_do_the_same_work_are_told_apart() -> None:
    overlap = sample.trace_info().overlap
    assert overlap is not None
    more = msgspec.structs.replace(overlap, compute_ms=2 * overlap.compute_ms)
    before, after = report(finding()), report(bare=9.0)
    other = msgspec.structs.replace(
        after, traces=tuple(msgspec.structs.replace(info, overlap=more) for info in after.traces)
    )
    assert describe_doubts(diff(before, after)) == []
    (said,) = describe_doubts(diff(before, other))
    assert said.startswith("The device computes for ") and said.endswith("the programs may not do the same work.")
