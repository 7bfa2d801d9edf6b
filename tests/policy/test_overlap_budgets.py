"""Budgets of overlap: by process group and phase, of idle time, and of ranks that come late."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from syncscope.policy import Budgets, Policy, check_gate
from syncscope.policy.settings import Scope
from syncscope.schema.ranks import BetweenRanks, RankBetween
from syncscope.schema.report import EachStep, Report, TraceInfo
from syncscope.schema.verdict import Budget
from tests.policy.test_phases import info, phase
from tests.report import sample

STEPS = 5


def each(**figures: Any) -> EachStep:
    """Steps of 10 ms; each figure is the same in all of them."""
    same: dict[str, Any] = {
        "length_ms": 10.0,
        "device_ms": 10.0,
        "copy_exposed_ms": 0.0,
        "comm_exposed_ms": 0.0,
        **figures,
    }
    groups = same.pop("groups", None)
    rows: dict[str, Any] = {name: None if value is None else (value,) * STEPS for name, value in same.items()}
    by_group = None if groups is None else {name: (value,) * STEPS for name, value in groups.items()}
    return EachStep(**{"blocked_ms": None, "idle_ms": None, **rows, "comm_exposed_by_group_ms": by_group})


def report(*infos: TraceInfo, between: BetweenRanks | None = None) -> Report:
    return msgspec.structs.replace(sample.report(infos, []), stale=(), not_checked=(), between_ranks=between)


def rank(number: int = 0, *, world_size: int = 1, **figures: Any) -> TraceInfo:
    base = msgspec.structs.replace(sample.trace_info(f"rank{number}.json", number), warnings=())
    return msgspec.structs.replace(base, world_size=world_size, each_step=each(**figures))


def judged(budgets: Budgets, found: Report, **policy: Any) -> list[Budget]:
    return list(check_gate(found, Policy(budgets=budgets, **policy)).budgets)


def outcomes(budgets: Budgets, found: Report, **policy: Any) -> list[str]:
    return [budget.outcome for budget in judged(budgets, found, **policy)]


@pytest.mark.parametrize(
    ("budgets", "figures", "said"),
    [
        (Budgets(max_exposed_comm_ms=1), {"comm_exposed_ms": 2.0}, "collectives are exposed for 2 ms a step"),
        (Budgets(max_idle_share=0.1), {"idle_ms": 4.0}, "the device is idle for 40 % of a step"),
    ],
)
def test_what_is_over_the_limit_is_told(budgets: Budgets, figures: dict[str, Any], said: str) -> None:
    (budget,) = judged(budgets, report(rank(**figures)))
    assert (budget.outcome, budget.message.startswith(said)) == ("exceeded", True)
    small: dict[str, Any] = dict.fromkeys(figures, 0.5)
    assert outcomes(budgets, report(rank(**small))) == ["kept"]


@pytest.mark.parametrize(
    ("budgets", "figures"),
    [(Budgets(max_exposed_comm_ms=1), {"comm_exposed_ms": None}), (Budgets(max_idle_share=1), {"idle_ms": None})],
)
def test_without_device_activity_nothing_is_checked(budgets: Budgets, figures: dict[str, Any]) -> None:
    (budget,) = judged(budgets, report(rank(**figures)))
    assert (budget.outcome, budget.message) == ("not checked", "the trace holds no device activity")


class TestProcessGroups:
    BUDGETS = Budgets(scopes=(Scope(group="tp*", max_exposed_comm_ms=1),))

    @pytest.mark.parametrize(
        ("groups", "outcome"),
        [
            ({"tp": 2.0, "dp": 0.0}, "exceeded"),
            ({"tp": 0.5, "dp": 9.0}, "kept"),
            ({"tp_0": 0.7, "tp_1": 0.7}, "exceeded"),
            ({"dp": 0.0}, "not checked"),
            (None, "not checked"),
        ],
    )
    def test_a_group_has_a_limit_of_its_own(self, groups: dict[str, float] | None, outcome: str) -> None:
        (budget,) = judged(self.BUDGETS, report(rank(groups=groups)))
        assert (budget.outcome, budget.title) == (outcome, "max_exposed_comm_ms of group tp*")

    def test_what_no_group_is_known_of_says_how_to_know(self) -> None:
        (budget,) = judged(self.BUDGETS, report(rank()))
        assert "does not say of which process group" in budget.message


class TestPhases:
    PHASES = (phase("train", recorded=True), phase("evaluate", recorded=True))

    def both(self, train: float, evaluate: float) -> Report:
        infos = [
            info(kind, self.PHASES, main=kind == "train", each_step=each(copy_exposed_ms=copies))
            for kind, copies in (("train", train), ("evaluate", evaluate))
        ]
        return report(*infos)

    def test_a_limit_holds_in_the_phases_that_are_judged(self) -> None:
        budgets = Budgets(max_exposed_copy_ms=1)
        assert outcomes(budgets, self.both(0.5, 9.0)) == ["kept"]
        assert outcomes(budgets, self.both(0.5, 9.0), phases=("train", "evaluate")) == ["kept", "exceeded"]

    def test_a_scope_holds_in_its_own_whether_or_not_it_is_judged(self) -> None:
        budgets = Budgets(scopes=(Scope(phase="evaluate", max_exposed_copy_ms=1),))
        (budget,) = judged(budgets, self.both(9.0, 2.0))
        assert (budget.outcome, budget.trace, budget.title) == ("exceeded", 1, "max_exposed_copy_ms in evaluate")

    def test_a_phase_of_which_no_steps_were_recorded_is_not_checked(self) -> None:
        budgets = Budgets(scopes=(Scope(phase="rollout", max_idle_share=1),))
        (budget,) = judged(budgets, self.both(0.0, 0.0))
        assert (budget.outcome, budget.message) == ("not checked", "no steps of rollout were recorded")

    def test_steps_of_another_phase_do_not_stand_for_one_that_was_only_counted(self) -> None:
        counted = (phase("train"), phase("evaluate", recorded=True))
        only = report(info("evaluate", counted, each_step=each(copy_exposed_ms=0.0)))
        (budget,) = judged(Budgets(max_exposed_copy_ms=1), only)
        assert budget.message == "no steps of a phase that is judged were recorded"


class TestStraggling:
    BUDGETS = Budgets(max_straggling_ms=0.5)

    def between(self, *held: Sequence[float] | None) -> BetweenRanks:
        ranks = tuple(
            RankBetween(
                trace=number, rank=number, collectives=5, last=0, waits_ms_per_step=0.0,
                holds_ms_per_step=sum(steps or ()), holds_each_step_ms=None if steps is None else tuple(steps),
            )
            for number, steps in enumerate(held)
        )  # fmt: skip
        return BetweenRanks(steps=STEPS, collectives=5, reference=0, ranks=ranks)

    def two(self, *held: Sequence[float] | None) -> Report:
        return report(rank(0, world_size=2), rank(1, world_size=2), between=self.between(*held))

    def test_what_ranks_wait_for_the_last_is_limited_once_and_told_of_the_rank_that_holds_most(self) -> None:
        (budget,) = judged(self.BUDGETS, self.two([0.0] * 5, [1.0] * 5))
        assert (budget.outcome, budget.rank, budget.found) == ("exceeded", 1, 1.0)
        assert budget.message.startswith("ranks wait 1 ms a step for the one that comes last")
        assert outcomes(self.BUDGETS, self.two([0.0] * 5, [0.4] * 5)) == ["kept"]

    def test_ranks_that_come_last_by_turns_are_added_up(self) -> None:
        assert outcomes(self.BUDGETS, self.two([1.0, 0, 1.0, 0, 1.0], [0, 1.0, 0, 1.0, 0])) == ["exceeded"]

    def test_one_step_in_which_a_rank_is_late_does_not_fail(self) -> None:
        assert outcomes(self.BUDGETS, self.two([0.0] * 5, [0, 0, 99.0, 0, 0])) == ["kept"]

    @pytest.mark.parametrize(
        ("found", "why"),
        [
            (report(rank(world_size=2)), "the trace of one rank alone does not say who comes last to a collective"),
            (report(rank(world_size=2), rank(1, world_size=2)), "the collectives of the ranks could not be compared"),
        ],
    )
    def test_where_ranks_were_not_compared_it_is_not_checked(self, found: Report, why: str) -> None:
        assert [(budget.outcome, budget.message) for budget in judged(self.BUDGETS, found)] == [("not checked", why)]

    def test_a_report_of_an_earlier_version_is_not_checked(self) -> None:
        assert outcomes(self.BUDGETS, self.two(None, None)) == ["not checked"]

    def test_where_it_is_not_known_of_one_rank_it_is_not_checked(self) -> None:
        assert outcomes(self.BUDGETS, self.two([0.0] * 5, None)) == ["not checked"]

    def test_a_program_of_one_rank_waits_for_none(self) -> None:
        assert outcomes(self.BUDGETS, report(rank())) == ["kept"]


@pytest.mark.parametrize("figure", [float("nan"), float("inf")])
def test_a_figure_that_is_no_number_is_not_checked(figure: float) -> None:
    found = rank(copy_exposed_ms=figure)
    assert outcomes(Budgets(max_exposed_copy_ms=1), report(found)) == ["not checked"]


def test_a_figure_as_large_as_the_budget_keeps_it_however_it_was_added_up() -> None:
    assert outcomes(Budgets(max_exposed_copy_ms=0.3), report(rank(copy_exposed_ms=0.1 + 0.2))) == ["kept"]
    assert outcomes(Budgets(max_exposed_copy_ms=0.3), report(rank(copy_exposed_ms=0.3001))) == ["exceeded"]
