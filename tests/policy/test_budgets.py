"""Budgets in time: exceeded only beyond what the steps differ by, and never clean where they cannot be judged."""

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from syncscope.policy import Budgets, Policy, check_gate
from syncscope.schema.report import EachStep, Report
from syncscope.schema.verdict import Budget
from tests.report import sample

COPIES = Budgets(max_exposed_copy_ms=2)
STALLS = Budgets(max_stall_share=0.5)


def report(*copies: Sequence[float], **more: Any) -> Report:
    """A clean report whose traces expose so many ms of copies in each step, of 10 ms."""
    infos = [
        msgspec.structs.replace(
            sample.trace_info(f"rank{rank}.json", rank),
            each_step=EachStep(
                **{"length_ms": (10.0,) * len(each), "blocked_ms": None, "copy_exposed_ms": tuple(each), **more}
            ),
        )
        for rank, each in enumerate(copies)
    ]
    return msgspec.structs.replace(sample.report(infos, []), stale=(), not_checked=())


def judged(budgets: Budgets, found: Report) -> Budget:
    (budget,) = check_gate(found, Policy(budgets=budgets)).budgets
    return budget


@pytest.mark.parametrize(
    ("copies", "outcome"),
    [
        ([1.0, 1.0, 1.0, 1.0, 1.0], "kept"),
        ([2.0, 2.0, 2.0, 2.0, 2.0], "kept"),
        ([2.1, 2.1, 2.1, 2.1, 2.1], "exceeded"),
        ([1.0, 1.0, 1.0, 1.0, 99.0], "kept"),  # one bad step
        ([1.9, 1.9, 2.1, 2.2, 2.3], "kept"),  # over in the median, within the spread
        ([0.0, 2.1, 2.1, 2.2, 9.0], "exceeded"),  # three of four are over
        ([9.0, 2.1, 2.2, 0.0, 2.1], "exceeded"),  # whatever their order
    ],
)
def test_a_budget_fails_only_beyond_the_spread_of_the_steps(copies: list[float], outcome: str) -> None:
    found = check_gate(report(copies), Policy(budgets=COPIES))
    assert found.budgets[0].outcome == outcome
    assert found.exit_code == (1 if outcome == "exceeded" else 0)


def test_a_budget_says_what_was_found_and_what_is_allowed() -> None:
    budget = judged(COPIES, report([1.9, 1.9, 2.1, 2.2, 2.3]))
    assert (budget.found, budget.low, budget.high) == (2.1, 1.9, 2.2)
    assert budget.message == (
        "copies are exposed for 2.1 ms a step (the middle half of 5 steps: 1.9 ms to 2.2 ms), 2 ms allowed, "
        "within the spread"
    )


def test_the_share_of_stalls_is_that_of_each_step() -> None:
    budget = judged(STALLS, report([0.0] * 3, length_ms=(10.0, 20.0, 40.0), blocked_ms=(6.0, 12.0, 24.0)))
    assert (budget.outcome, budget.found) == ("exceeded", 0.6)
    assert budget.message.startswith("the host is blocked for 60 % of a step ")


@pytest.mark.parametrize(
    ("budgets", "found", "why"),
    [
        (COPIES, report([9.0, 9.0]), "needs at least 3 steps, and there are 2"),
        (COPIES, report([], copy_exposed_ms=None), "the trace holds no device activity"),
        (STALLS, report([]), "the trace holds no runtime calls"),
        (COPIES, msgspec.structs.replace(sample.report(found=[]), stale=(), not_checked=()), "the trace has no steps"),
    ],
)
def test_a_budget_that_cannot_be_checked_is_not_clean(budgets: Budgets, found: Report, why: str) -> None:
    outcome = check_gate(found, Policy(budgets=budgets))
    assert outcome.exit_code == 3
    assert [(budget.found, budget.message) for budget in outcome.unchecked_budgets] == [(None, why)]


def test_every_trace_is_checked_on_its_own() -> None:
    found = check_gate(report([1.0] * 3, [9.0] * 3), Policy(budgets=COPIES))
    assert [(budget.rank, budget.outcome) for budget in found.budgets] == [(0, "kept"), (1, "exceeded")]


def test_without_budgets_none_is_checked() -> None:
    assert check_gate(report([9.0] * 3), Policy()).budgets == ()
