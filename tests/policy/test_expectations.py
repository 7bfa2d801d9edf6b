"""What ``apply`` marks as expected, and what it calls stale."""

from typing import Any

import msgspec
import pytest

from syncscope.policy import Expectation, Policy, apply
from syncscope.schema.report import NotChecked, Report
from tests.report import sample


def expectation(rule: str = "SYN102", **more: Any) -> Expectation:
    return Expectation(
        rule=rule, codes=frozenset({rule}), **{"reason": "one read an epoch", "where": "pyproject.toml:7", **more}
    )


def report(**site: Any) -> Report:
    """One unexpected SYN102 at train.py, Trainer.log_loss."""
    finding = sample.findings()[0]
    assert finding.site is not None
    place = msgspec.structs.replace(finding.site, **{"file": "src/train.py", "function": "Trainer.log_loss", **site})
    found = msgspec.structs.replace(finding, site=place)
    return msgspec.structs.replace(sample.report(found=[found]), stale=(), not_checked=())


@pytest.mark.parametrize(
    ("more", "covered"),
    [
        ({}, True),
        ({"file": "src/train.py"}, True),
        ({"file": "*/train.py"}, True),
        ({"file": "src/*"}, True),
        ({"file": "train.py"}, False),
        ({"file": "SRC/train.py"}, False),
        ({"function": "Trainer.log_*"}, True),
        ({"function": "log_*"}, False),
        ({"file": "src/train.py", "function": "other"}, False),
    ],
)
def test_globs_hold_the_whole_path_and_function(more: dict[str, str], covered: bool) -> None:
    found = apply(report(), Policy(expect=(expectation(**more),)))
    assert (found.findings[0].status == "expected") == covered
    assert (found.findings[0].reason == "one read an epoch") == covered
    assert (found.stale == ()) == covered


def test_another_rule_is_not_covered() -> None:
    assert apply(report(), Policy(expect=(expectation("SYN101"),))).findings[0].status == "unexpected"


def test_a_finding_without_a_line_is_covered_only_by_the_rule_alone() -> None:
    base = report()
    bare = msgspec.structs.replace(base, findings=(msgspec.structs.replace(base.findings[0], site=None),))
    assert apply(bare, Policy(expect=(expectation(file="*"),))).findings[0].status == "unexpected"
    assert apply(bare, Policy(expect=(expectation(),))).findings[0].status == "expected"


def test_an_expectation_that_matches_nothing_is_stale_and_names_its_line() -> None:
    stale = apply(report(), Policy(expect=(expectation("SYN101", where="pyproject.toml:9"),))).stale
    assert [(entry.rule, entry.where, entry.reason) for entry in stale] == [
        ("SYN101", "pyproject.toml:9", "one read an epoch")
    ]


def test_an_expectation_for_a_rule_nobody_could_check_is_not_stale() -> None:
    blind = msgspec.structs.replace(report(), not_checked=(NotChecked(rule="SYN101", why="no runtime calls"),))
    assert apply(blind, Policy(expect=(expectation("SYN101"),))).stale == ()


def test_what_the_recording_expects_keeps_its_own_reason_and_still_answers() -> None:
    base = report()
    said = msgspec.structs.replace(base.findings[0], status="expected", reason="said in the code")
    found = apply(msgspec.structs.replace(base, findings=(said,)), Policy(expect=(expectation(),)))
    assert found.findings[0].reason == "said in the code"
    assert found.stale == ()


def test_applying_twice_changes_nothing_more() -> None:
    policy = Policy(expect=(expectation(), expectation("SYN101", where="pyproject.toml:9")))
    once = apply(report(), policy)
    assert apply(once, policy) == once


def test_expected_findings_go_to_the_end() -> None:
    policy = Policy(expect=(expectation(),))
    found = apply(sample.report(), policy).findings
    assert [finding.rule for finding in found if finding.status == "unexpected"] == ["CPY201", "OVL301"]
    assert [finding.status for finding in found] == ["unexpected", "unexpected", "baseline", "expected", "expected"]


@pytest.mark.parametrize(
    ("most", "per_step", "exceeds"),
    [
        (1, 1.0, None),
        (0.5, 0.4, None),
        (1, 3.0, "expected at most 1 a step, found 3"),
        (0.25, 0.4, "expected at most 0.25 a step, found 0.4"),
        (1, None, "expected at most 1 a step, and the trace has no steps"),
    ],
)
def test_more_than_expected_is_unexpected_and_says_so(most: float, per_step: float | None, exceeds: str | None) -> None:
    base = report()
    often = msgspec.structs.replace(base, findings=(msgspec.structs.replace(base.findings[0], per_step=per_step),))
    found = apply(often, Policy(expect=(expectation(max_per_step=most),)))
    assert found.findings[0].status == ("unexpected" if exceeds else "expected")
    assert found.findings[0].exceeds == exceeds
    assert found.stale == ()


@pytest.mark.parametrize(
    ("most", "waits", "kept"), [(0.01, 1, True), (0.01, 2, False), (0.5, 3, True), (0.5, 4, False), (1, 6, False)]
)
def test_a_limit_allows_for_which_five_steps_were_recorded(most: float, waits: int, kept: bool) -> None:
    base = report()
    seen = msgspec.structs.replace(base.findings[0], count=waits, per_step=waits / 5)
    found = apply(msgspec.structs.replace(base, findings=(seen,)), Policy(expect=(expectation(max_per_step=most),)))
    assert (found.findings[0].status == "expected") == kept


def test_of_two_limits_the_one_that_is_kept_gives_the_reason() -> None:
    base = report()
    often = msgspec.structs.replace(base, findings=(msgspec.structs.replace(base.findings[0], per_step=2.0),))
    strict = expectation(max_per_step=1, reason="one read")
    found = apply(often, Policy(expect=(strict, expectation(max_per_step=4, reason="four reads")))).findings[0]
    assert (found.status, found.reason, found.exceeds) == ("expected", "four reads", None)
