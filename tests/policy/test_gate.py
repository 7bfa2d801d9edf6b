"""The verdict: by count inside steps of gated rules, and never clean where nothing could be seen."""

from typing import Any

import msgspec
import pytest

from syncscope.findings import NotChecked, Report, Stale, Steps
from syncscope.policy import Policy, verdict
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
    assert verdict(report(**changes), GATE).exit_code == code


def test_in_a_trace_without_steps_every_occurrence_counts() -> None:
    base = report(per_step=None)
    info = msgspec.structs.replace(base.traces[0], steps=Steps(count=0, profiled_ms=None, bare_ms=None, source="none"))
    assert verdict(msgspec.structs.replace(base, traces=(info,)), GATE).exit_code == 1


def test_a_stale_expectation_fails_a_clean_report() -> None:
    stale = (Stale(rule="SYN102", where="pyproject.toml:7"),)
    assert verdict(msgspec.structs.replace(clean(), stale=stale), GATE).exit_code == 1


def test_no_waits_in_a_trace_with_runtime_calls_is_clean() -> None:
    assert verdict(clean(), GATE).exit_code == 0


@pytest.mark.parametrize(("rule", "code"), [("SYN101", 3), ("HAZ401", 0)])
def test_only_a_gated_rule_that_could_not_be_checked_counts(rule: str, code: int) -> None:
    blind = msgspec.structs.replace(clean(), not_checked=(NotChecked(rule=rule, why="no"),))
    assert verdict(blind, GATE).exit_code == code


def test_a_trace_without_runtime_calls_is_never_clean() -> None:
    base = clean()
    blind = msgspec.structs.replace(base.traces[0], has=("cpu_op", "steps"))
    found = verdict(msgspec.structs.replace(base, traces=(base.traces[0], blind)), GATE)
    assert found.exit_code == 3
    assert [(entry.rule, entry.trace) for entry in found.not_checked] == [("SYN101", 1), ("SYN102", 1)]


def test_findings_weigh_more_than_what_could_not_be_checked() -> None:
    both = msgspec.structs.replace(report(), not_checked=(NotChecked(rule="SYN101", why="no"),))
    assert verdict(both, GATE).exit_code == 1
