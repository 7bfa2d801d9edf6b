"""JUnit XML: valid by Jenkins' schema, red exactly where the gate is."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import msgspec
import pytest
import xmlschema

from syncscope.analysis.analyze import analyze
from syncscope.analysis.merge import merge
from syncscope.policy import Policy, check_gate
from syncscope.report.junit import render
from syncscope.rules import RULES
from syncscope.schema.findings import Finding
from syncscope.schema.report import NotChecked, Report
from syncscope.schema.verdict import Budget, Verdict
from tests.report import sample
from tests.report.hostile import HOSTILE, spoiled, spoiled_verdict
from tests.report.sample_run import rate

HERE = Path(__file__).parent
TRACES = HERE.parents[1] / "fixtures" / "traces"
SCHEMA = xmlschema.XMLSchema(HERE / "schemas" / "junit-10.xsd")


def suites(report: Report, verdict: Verdict | None = None) -> list[ElementTree.Element]:
    text = render(report, verdict)
    SCHEMA.validate(text)
    return list(ElementTree.fromstring(text.encode()))


def states(suite: ElementTree.Element) -> dict[str, str]:
    """Code → ``passed``, or the kind of what is under the case."""
    return {case.attrib["name"].split(" ")[0]: case[0].tag if len(case) else "passed" for case in suite}


def counts(suite: ElementTree.Element) -> tuple[str, ...]:
    return tuple(suite.attrib[name] for name in ("tests", "failures", "errors", "skipped"))


def gate(*codes: str, **what: Any) -> Verdict:
    return Verdict(gate=codes, **what)


@pytest.mark.parametrize("case", ["item_logging", "library_sync", "clean_loop"])
def test_real_traces_are_valid(case: str) -> None:
    report = analyze(TRACES / case / "trace.json.gz")
    outcome = check_gate(report, Policy())
    (suite,) = suites(report, outcome)
    assert counts(suite)[1:] == (str(len({finding.rule for finding in outcome.unexpected})), "0", "0")


@pytest.mark.parametrize("name", HOSTILE.values(), ids=HOSTILE)
def test_hostile_names_leave_it_valid(name: str) -> None:
    suites(spoiled(sample.report(), name), spoiled_verdict(sample.report(), name))


def test_each_gated_rule_is_a_case_that_fails_passes_or_errs() -> None:
    unseen = NotChecked(rule="SYN103", why="no ops in the trace")
    found = sample.findings()
    report = msgspec.structs.replace(sample.report(), stale=())
    (suite,) = suites(report, gate("SYN101", "SYN102", "SYN103", unexpected=found[:1], not_checked=(unseen,)))
    assert states(suite) == {"SYN101": "passed", "SYN102": "failure", "SYN103": "error"}
    assert counts(suite) == ("3", "1", "1", "0")
    failure, error = suite[1][0], suite[2][0]
    assert failure.attrib["message"] == "1 unexpected finding: train.py:42"
    assert "train.py:42  loss.item()\nonce a step · blocked 1.63 ms" in (failure.text or "")
    assert "fix: Keep the value on the device" in (failure.text or "")
    assert error.attrib["message"] == "not checked: no ops in the trace"


def test_a_saving_names_the_step_that_it_is_of() -> None:
    recorded = sample.findings()[0]
    of_run = rate(recorded, 0.0995, 41, run_saving_ms_per_step=0.019)
    for finding, step in ((recorded, "a recorded step"), (of_run, "a step of the run")):
        suite = suites(sample.report(found=[finding]), gate("SYN102", unexpected=(finding,)))[0]
        facts = (suite[0][0].text or "").splitlines()[1].split(" · ")
        (saving,) = (fact for fact in facts if fact.startswith("saves "))
        assert saving.endswith(step)


def test_without_a_verdict_all_rules_are_cases_and_what_nobody_asked_for_is_skipped() -> None:
    (suite, _) = suites(sample.report())
    found = states(suite)
    assert len(found) == len(RULES)
    assert {code for code, state in found.items() if state == "failure"} == {"SYN102", "CPY201"}
    assert {code for code, state in found.items() if state == "skipped"} == {"HAZ401"}


def test_each_trace_is_a_suite_with_its_own_findings() -> None:
    slow, clean = (sample.trace_info(f"run/rank{rank}.json", rank) for rank in (0, 1))
    report = merge([sample.report([slow], sample.findings(0)), sample.report([clean], [])])
    report = msgspec.structs.replace(report, stale=())
    first, second = suites(report, gate("SYN102", unexpected=report.findings[:1]))
    assert (first.attrib["name"], states(first)) == ("run/rank0.json", {"SYN102": "failure"})
    assert (second.attrib["name"], states(second)) == ("run/rank1.json", {"SYN102": "passed"})
    assert {case.attrib["classname"] for case in (*first, *second)} == {"syncscope.rank 0", "syncscope.rank 1"}


def test_stale_expectations_are_failures_of_their_own_suite() -> None:
    expectations = suites(sample.report(), gate("SYN102"))[-1]
    assert expectations.attrib["name"] == "expectations"
    assert counts(expectations) == ("1", "1", "0", "0")
    assert expectations[0][0].attrib["message"].startswith("pyproject.toml:41: SYN103 matches nothing; delete it")


@pytest.mark.parametrize(("outcome", "state"), [("kept", "passed"), ("exceeded", "failure"), ("not checked", "error")])
def test_a_budget_is_a_case_of_its_trace(outcome: Any, state: str) -> None:
    budget = Budget(name="max_stall_share", allowed=0.1, found=0.4, outcome=outcome, message="40 % of 10 %")
    suite = suites(sample.report(), gate(budgets=(budget,)))[0]
    (case,) = suite
    assert case.attrib["name"] == "budget max_stall_share"
    assert (case[0].tag if len(case) else "passed") == state


def test_what_goes_beyond_a_baseline_says_so() -> None:
    more: Finding = msgspec.structs.replace(sample.findings()[0], exceeds="baseline 1, now 2")
    suite = suites(sample.report(found=[more]), gate("SYN102", unexpected=(more,)))[0]
    assert "\nbaseline 1, now 2\n" in (suite[0][0].text or "")
