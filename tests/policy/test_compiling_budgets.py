"""What torch.compile does is limited over the run."""

from __future__ import annotations

from typing import Any

import pytest

from syncscope.analysis.analyze import analyze_timelines
from syncscope.policy import Expectation, Policy, apply
from syncscope.policy.baseline import check_baseline
from syncscope.policy.gate import check_gate
from syncscope.policy.settings import Budgets
from syncscope.schema.report import Report
from syncscope.schema.verdict import Budget
from syncscope.timeline import Timeline
from tests.builders import TraceBuilder

GUARD = ("train.py", 5, "forward", "x * n")
ITEM = ("train.py", 8, "forward", "y.item()")


def report(builder: TraceBuilder) -> Report:
    return analyze_timelines([Timeline(builder.trace())])


def trained(**recompile: Any) -> TraceBuilder:
    """Ten steps of training, in which a function is compiled three times more and its graph breaks at one line."""
    builder = TraceBuilder().recording(0, 100, 200, phase="train").launch("k", call=(1, 1), runs=(3, 3))
    builder.phase("train", steps=10).run()
    known = {"reason": "n == 2", "count": 4, "warm": 3, "warm_ns": 3_000_000}
    builder.compiled("recompile", 0, GUARD, **{**known, **recompile})
    return builder.compiled("break", 0, ITEM, reason="Tensor.item()", count=4)


def budgets(of: Report, **limits: Any) -> dict[str, Budget]:
    return {one.name: one for one in check_gate(of, Policy(gate=(), budgets=Budgets(**limits))).budgets}


@pytest.mark.parametrize(("allowed", "outcome"), [(0, "exceeded"), (2, "exceeded"), (3, "kept")])
def test_each_recompile_of_a_warm_step_counts(allowed: int, outcome: str) -> None:
    budget = budgets(report(trained()), max_recompiles=allowed)["max_recompiles"]
    assert (budget.outcome, budget.found) == (outcome, 3)
    lines = ": train.py:5 in forward" if outcome == "exceeded" else ""
    assert budget.message == f"3 recompiles in warm steps, {allowed} allowed{lines}"


def test_a_limit_that_is_passed_names_its_lines_the_first_three_of_them() -> None:
    builder = trained()
    for line in range(20, 24):
        builder.compiled("break", 0, ("train.py", line, "forward", f"print({line})"), reason="print", count=4)
    said = budgets(report(builder), max_graph_breaks=0)["max_graph_breaks"].message
    assert said.startswith("5 lines end a compiled graph, 0 allowed: train.py:")
    assert said.count("train.py:") == 3
    assert said.endswith(", and 2 more")


@pytest.mark.parametrize(("allowed", "outcome"), [(0, "exceeded"), (1, "kept")])
def test_a_line_that_breaks_a_graph_counts_once(allowed: int, outcome: str) -> None:
    budget = budgets(report(trained()), max_graph_breaks=allowed)["max_graph_breaks"]
    assert (budget.outcome, budget.found) == (outcome, 1)


def test_nothing_is_limited_by_default() -> None:
    verdict = check_gate(report(trained()), Policy())
    assert verdict.budgets == verdict.unexpected == ()


def test_what_is_expected_does_not_count() -> None:
    policy = Policy(
        gate=(),
        budgets=Budgets(max_recompiles=0),
        expect=(Expectation("CMP7", frozenset({"CMP701"}), "two shapes", "here", function="forward"),),
    )
    held = apply(report(trained()), policy)
    assert [budget.outcome for budget in check_gate(held, policy).budgets] == ["kept"]
    in_a_block = budgets(report(trained(expected="two shapes")), max_recompiles=0)
    assert in_a_block["max_recompiles"].outcome == "kept"


def test_a_baseline_holds_what_a_limit_counts_although_its_rule_is_not_gated() -> None:
    policy = Policy(gate=(), budgets=Budgets(max_recompiles=0, max_graph_breaks=0))
    written = check_baseline(report(trained()), policy, None)
    assert {entry.rule for entry in written.tightened.findings.values()} == {"CMP701", "CMP702"}
    held = check_baseline(report(trained()), policy, written.tightened)
    assert check_gate(held.report, policy).exit_code == 0
    more = report(trained(warm=9).compiled("break", 0, ("train.py", 20, "forward", "print(y)"), count=4))
    found = {
        one.name: one for one in check_gate(check_baseline(more, policy, written.tightened).report, policy).budgets
    }
    assert (found["max_recompiles"].found, found["max_graph_breaks"].found) == (9, 1)
    assert found["max_graph_breaks"].message.endswith("train.py:20 in forward")


def test_a_baseline_forgets_a_break_that_is_gone() -> None:
    policy = Policy(gate=(), budgets=Budgets(max_graph_breaks=0))
    written = check_baseline(report(trained()), policy, None).tightened
    whole = TraceBuilder().recording(0, 100, 200, phase="train").launch("k", call=(1, 1), runs=(3, 3))
    after = check_baseline(report(whole.phase("train", steps=10).run().compiled()), policy, written)
    assert (after.fixed, after.tightened.findings) == (1, {})


def test_without_a_limit_a_baseline_holds_gated_findings_alone() -> None:
    assert check_baseline(report(trained()), Policy(gate=()), None).tightened.findings == {}


def test_a_recording_that_does_not_say_is_not_checked() -> None:
    silent = TraceBuilder().recording(0, 100, 200, phase="train").launch("k", call=(1, 1), runs=(3, 3))
    found = budgets(report(silent), max_recompiles=0, max_graph_breaks=0)
    assert {budget.outcome for budget in found.values()} == {"not checked"}
    assert {budget.found for budget in found.values()} == {None}


def test_gated_a_break_fails_although_no_step_was_counted() -> None:
    verdict = check_gate(report(trained()), Policy(gate=("CMP701", "CMP702")))
    assert {finding.rule for finding in verdict.unexpected} == {"CMP701", "CMP702"}
    assert verdict.exit_code == 1


def test_what_is_compiled_in_a_phase_that_is_not_judged_is_neither_limited_nor_held() -> None:
    builder = trained().phase("evaluate", steps=10)
    of = report(builder.compiled("break", 1, ("eval.py", 3, "forward", "y.tolist()"), reason="tolist", count=4))
    limits = Budgets(max_graph_breaks=0)
    for phases, file in ((None, "train.py"), (("evaluate",), "eval.py")):
        policy = Policy(gate=(), budgets=limits, phases=phases)
        (budget,) = check_gate(of, policy).budgets
        assert (budget.found, budget.message.split(": ")[1].split(":")[0]) == (1, file)
        held = check_baseline(of, policy, None).tightened
        assert [entry.file for entry in held.findings.values()] == [file]
