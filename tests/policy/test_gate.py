"""The verdict: by count inside steps of gated rules, and never clean where nothing could be seen."""

from typing import Any

import msgspec
import pytest

from syncscope.policy import Budgets, Override, Policy, check_gate
from syncscope.schema.ranks import MissingRanks
from syncscope.schema.report import NotChecked, Report, Stale, Steps
from tests.report import sample

GATE = Policy(gate=("SYN101", "SYN102"))


def report(**changes: Any) -> Report:
    """One unexpected SYN102, once a step, in a trace of three steps."""
    return msgspec.structs.replace(
        sample.report(found=[msgspec.structs.replace(sample.findings()[0], **changes)]), stale=(), not_checked=()
    )


def clean() -> Report:
    return msgspec.structs.replace(report(), findings=())


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({}, 1),
        ({"severity": "note"}, 1),
        ({"stall_ms_per_step": 0.0, "saving_ms_per_step": 0.0}, 1),
        ({"stall_ms_per_step": None}, 1),
        ({"per_step": 0.001}, 1),
        ({"rule": "CPY202"}, 0),
        ({"status": "expected"}, 0),
        ({"status": "baseline"}, 0),
        ({"per_step": 0.0}, 0),
        ({"per_step": None}, 0),
    ],
)
def test_a_finding_fails_by_rule_status_and_count_inside_steps_alone(changes: dict[str, Any], code: int) -> None:
    assert check_gate(report(**changes), GATE).exit_code == code


def test_in_a_trace_without_steps_every_occurrence_counts() -> None:
    base = report(per_step=None)
    info = msgspec.structs.replace(base.traces[0], steps=Steps(count=0, profiled_ms=None, bare_ms=None, source="none"))
    assert check_gate(msgspec.structs.replace(base, traces=(info,)), GATE).exit_code == 1


def test_a_stale_expectation_fails_a_clean_report() -> None:
    stale = (Stale(rule="SYN102", where="pyproject.toml:7"),)
    assert check_gate(msgspec.structs.replace(clean(), stale=stale), GATE).exit_code == 1


def test_no_waits_in_a_trace_with_runtime_calls_is_clean() -> None:
    assert check_gate(clean(), GATE).exit_code == 0


@pytest.mark.parametrize(("rule", "code"), [("SYN101", 3), ("HAZ401", 0)])
def test_only_a_gated_rule_that_could_not_be_checked_counts(rule: str, code: int) -> None:
    blind = msgspec.structs.replace(clean(), not_checked=(NotChecked(rule=rule, why="no"),))
    assert check_gate(blind, GATE).exit_code == code


def test_what_was_lost_at_the_start_of_a_trace_is_not_clean_either() -> None:
    lost = NotChecked(rule="SYN101", why="a launch at the start has no device row", rest=True)
    assert check_gate(msgspec.structs.replace(clean(), not_checked=(lost,)), GATE).exit_code == 3


def test_a_trace_without_runtime_calls_is_never_clean() -> None:
    base = clean()
    blind = msgspec.structs.replace(base.traces[0], has=("cpu_op", "steps"))
    found = check_gate(msgspec.structs.replace(base, traces=(base.traces[0], blind)), GATE)
    assert found.exit_code == 3
    assert [(entry.rule, entry.trace) for entry in found.not_checked] == [("SYN101", 1), ("SYN102", 1)]


def test_findings_weigh_more_than_what_could_not_be_checked() -> None:
    both = msgspec.structs.replace(report(), not_checked=(NotChecked(rule="SYN101", why="no"),))
    assert check_gate(both, GATE).exit_code == 1


def overridden(*overrides: Override, gate: tuple[str, ...] = ("SYN101", "SYN102")) -> int:
    """The exit code of a report of one SYN102 in train.py."""
    return check_gate(report(), Policy(gate=gate, overrides=overrides)).exit_code


def test_an_override_ignores_and_gates_in_its_own_files_only() -> None:
    assert overridden(Override("train.py", None, ("SYN102",))) == 0
    assert overridden(Override("*.py", None, ("SYN102",))) == 0
    assert overridden(Override("scripts/*", None, ("SYN102",))) == 1
    assert overridden(Override("train.py", None, ("SYN101",))) == 1
    assert overridden(Override("train.py", ("SYN101",))) == 0
    assert overridden(Override("train.py", ("SYN102",)), gate=()) == 1
    assert overridden(Override("scripts/*", ("SYN102",)), gate=()) == 0


def test_of_several_overrides_the_last_gate_counts_and_everything_ignored_is() -> None:
    assert overridden(Override("*", ("SYN101",)), Override("train.py", ("SYN102",))) == 1
    assert overridden(Override("train.py", ("SYN102",)), Override("*", ("SYN101",))) == 0
    assert overridden(Override("*", None, ("SYN102",)), Override("train.py", ("SYN102",))) == 0


def test_a_finding_without_a_line_is_held_to_the_gate_of_all() -> None:
    policy = Policy(gate=("SYN102",), overrides=(Override("*", ("SYN101",), ("SYN102",)),))
    assert check_gate(report(site=None), policy).exit_code == 1


def test_a_rule_gated_for_some_files_must_be_checked_too() -> None:
    blind = msgspec.structs.replace(clean(), not_checked=(NotChecked(rule="OVL301", why="no"),))
    assert check_gate(blind, GATE).exit_code == 0
    found = check_gate(blind, Policy(gate=GATE.gate, overrides=(Override("src/*", ("OVL301",)),)))
    assert (found.exit_code, found.gate) == (3, ("SYN101", "SYN102", "OVL301"))


def test_only_some_rules_narrows_the_overrides_too() -> None:
    policy = Policy(gate=("SYN101",), overrides=(Override("train.py", ("SYN102", "CPY201"), ("SYN103",)),))
    assert policy.only(("SYN101", "SYN102")).gated == ("SYN101", "SYN102")
    assert policy.only(("CPY201",), ("CPY201",)).gated == ("CPY201",)
    assert policy.only(("SYN101",)).overrides == (Override("train.py", (), ("SYN103",)),)


def waits(*per_step: float, budget: float, **changes: Any) -> Any:
    """The verdict on waits that occur so often a step, under a budget."""
    one = msgspec.structs.replace(sample.findings()[0], **changes)
    found = [msgspec.structs.replace(one, per_step=count, fingerprint=str(n)) for n, count in enumerate(per_step)]
    held = msgspec.structs.replace(sample.report(found=found), stale=(), not_checked=())
    return check_gate(held, Policy(budgets=Budgets(max_unexpected_syncs_per_step=budget)))


def test_waits_within_their_budget_pass_and_are_kept_apart() -> None:
    found = waits(1.0, 0.5, budget=1.5)
    assert found.exit_code == 0
    assert (len(found.unexpected), len(found.within_budget)) == (0, 2)
    assert (found.budgets[0].outcome, found.budgets[0].found) == ("kept", 1.5)


def test_waits_over_their_budget_all_fail() -> None:
    found = waits(1.0, 0.6, budget=1.5)
    assert found.exit_code == 1
    assert (len(found.unexpected), len(found.within_budget)) == (2, 0)
    assert found.exceeded[0].message == "1.6 unexpected waits a step, 1.5 allowed"


def test_the_budget_of_waits_is_not_for_copies() -> None:
    assert waits(1.0, budget=5, rule="CPY201").exit_code == 1


def test_a_budget_of_waits_without_steps_cannot_be_checked_and_lets_nothing_pass() -> None:
    base = report(per_step=None)
    info = msgspec.structs.replace(base.traces[0], steps=Steps(count=0, profiled_ms=None, bare_ms=None, source="none"))
    policy = Policy(budgets=Budgets(max_unexpected_syncs_per_step=100))
    found = check_gate(msgspec.structs.replace(base, traces=(info,)), policy)
    assert len(found.unexpected) == 1
    assert [budget.message for budget in found.unchecked_budgets] == ["the trace has no steps"]


def test_the_budget_of_waits_is_that_of_each_trace_and_one_trace_over_it_lets_no_wait_pass() -> None:
    one = sample.findings()[0]
    often = msgspec.structs.replace(one, fingerprint="often", trace=1, per_step=3.0)
    infos = [sample.trace_info("rank0.json", 0), sample.trace_info("rank1.json", 1)]
    held = msgspec.structs.replace(sample.report(infos, [one, often]), stale=(), not_checked=())
    found = check_gate(held, Policy(budgets=Budgets(max_unexpected_syncs_per_step=2)))
    assert [(budget.rank, budget.outcome, budget.found) for budget in found.budgets] == [
        (0, "kept", 1.0),
        (1, "exceeded", 3.0),
    ]
    assert (len(found.unexpected), found.within_budget) == (2, ())


@pytest.mark.parametrize(("per_step", "outcome"), [(1.0, "not checked"), (3.0, "exceeded")])
def test_where_part_of_a_trace_was_lost_a_budget_may_be_exceeded_and_is_never_kept(
    per_step: float, outcome: str
) -> None:
    base = report(per_step=per_step)
    cut = msgspec.structs.replace(base.traces[0], lost=("The file was cut short.",))
    policy = Policy(budgets=Budgets(max_unexpected_syncs_per_step=2))
    found = check_gate(msgspec.structs.replace(base, traces=(cut,)), policy)
    assert [budget.outcome for budget in found.budgets] == [outcome]


@pytest.mark.parametrize(("given", "code"), [(1, 0), (2, 3)])
def test_one_rank_recorded_alone_is_checked_and_several_without_the_others_are_not(given: int, code: int) -> None:
    missing = MissingRanks(trace=0, world_size=4, given=given, runs=((given, 3),))
    assert check_gate(msgspec.structs.replace(clean(), missing_ranks=(missing,)), GATE).exit_code == code
