"""The benchmark of budgets says where verdicts agree, and fails where they do not."""

import random

import pytest

from benchmarks import budgets
from syncscope.schema.report import Report
from tests.policy.test_budgets import report


def recordings(middles: list[float]) -> list[Report]:
    """Reports whose steps expose about so many ms of copies."""
    chance = random.Random(7)
    return [report([middle * chance.uniform(0.97, 1.03) for _ in range(10)]) for middle in middles]


def test_recordings_of_one_program_agree_at_either_side_of_the_spread() -> None:
    row, agree = budgets.assess(recordings([2.0] * 20), "max_exposed_copy_ms")
    assert agree and row.endswith("agree")
    assert " 10/10" in row and "   0/10" in row


def test_a_program_that_changes_halfway_does_not() -> None:
    row, agree = budgets.assess(recordings([2.0] * 10 + [3.0] * 10), "max_exposed_copy_ms")
    assert not agree and "differ: below ['exceeded'], above ['exceeded']" in row


@pytest.mark.parametrize("name", ["max_idle_share", "max_straggling_ms"])
def test_what_cannot_be_checked_does_not_count_as_agreeing(name: str) -> None:
    row, agree = budgets.assess(recordings([2.0] * 4), name)
    assert not agree and "not checked" in row
