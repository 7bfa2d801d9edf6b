"""GitHub annotations: one command for each thing to act on, at its line."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from syncscope.analysis.merge import merge
from syncscope.report.github import render
from syncscope.schema.findings import Finding, Site
from syncscope.schema.report import NotChecked, Report
from syncscope.schema.verdict import Budget, Ratchet, Verdict
from tests.report import sample

QUIET = msgspec.structs.replace(sample.trace_info(), warnings=())


def lines(report: Report, verdict: Verdict | None = None, **how: Any) -> list[str]:
    return render(report, verdict, **how).splitlines()


def scalar_read(**changed: Any) -> Finding:
    return msgspec.structs.replace(sample.findings()[0], **changed)


def alone(finding: Finding, **how: Any) -> str:
    """The one annotation of a gate that a finding stands against."""
    report = msgspec.structs.replace(sample.report([QUIET], [finding]), stale=())
    first, *others = lines(report, Verdict(gate=("SYN102",), unexpected=(finding,)), **how)
    assert not any(line.startswith("::") for line in others)
    return first


def test_an_unexpected_wait_is_an_error_at_its_line() -> None:
    assert alone(scalar_read()) == (
        "::error file=train.py,line=42,title=SYN102 scalar-read::The host waits for everything queued before it. "
        "(saves 3.7 %25 · once a step · blocked 1.63 ms (27 %25 of the recorded step))"
        "%0AFix: Keep the value on the device and read it once an epoch."
    )


def test_columns_are_told_where_they_are_known() -> None:
    site = Site(file="train.py", line=42, function="f", expression="loss.item()", column=5, end_column=16)
    assert alone(scalar_read(site=site)).startswith("::error file=train.py,line=42,col=5,endColumn=16,title=SYN102")


def test_paths_are_those_of_the_repository() -> None:
    assert alone(scalar_read(), base="services/training").startswith("::error file=services/training/train.py,line=42,")


@pytest.mark.parametrize("file", ["<site-packages>/lib/x.py", "/home/me/x.py", "../x.py"])
def test_a_line_that_is_not_in_the_repository_is_named_instead(file: str) -> None:
    line = alone(scalar_read(site=Site(file=file, line=7, function="f")))
    assert line.startswith(f"::error title=SYN102 scalar-read::{file}:7:%0AThe host waits")


def test_signs_of_the_command_are_escaped() -> None:
    site = Site(file="a,b:c.py", line=7, function="f")
    line = alone(scalar_read(site=site, message="50 % of x, or\n::y"))
    assert line.startswith("::error file=a%2Cb%3Ac.py,line=7,title=")
    assert "::50 %25 of x, or ::y (saves" in line


def test_with_a_verdict_only_what_stands_against_the_gate_is_told() -> None:
    report = sample.report([QUIET])
    budgets = tuple(
        Budget(name=name, allowed=1, found=2, outcome=outcome, message="2 of 1")  # type: ignore[arg-type]
        for name, outcome in (("a", "kept"), ("b", "exceeded"), ("c", "not checked"))
    )
    unseen = (NotChecked(rule="SYN101", why="no ops"), NotChecked(rule="SYN103", why="no ops"))
    said = lines(report, Verdict(gate=(), stale=report.stale, budgets=budgets, not_checked=unseen))
    assert said == [
        "::error file=pyproject.toml,line=41,title=SYN103 stale expectation::SYN103 matches nothing; delete it "
        '(it says "mask in the data loader")',
        "::error title=budget exceeded%3A b::2 of 1",
        "::error title=budget not checked%3A c::2 of 1",
        "::error title=not checked::SYN101, SYN103: no ops",
        "syncscope: failed: 1 stale expectation, 1 budget exceeded, 2 rules not checked, 1 budget not checked"
        " · 1 expected · 1 in the baseline",
    ]


def test_without_a_verdict_the_level_is_that_of_the_impact() -> None:
    said = lines(sample.report([QUIET]))
    assert [line.split(" ")[0] for line in said[:-1]] == ["::warning"] * 4
    assert said[-1] == (
        "syncscope: 3 findings · 1 expected · 1 in the baseline · "
        "all fixed together: saves 0.4 ms (7.8 %) a recorded step"
    )


def test_a_race_is_an_error_and_what_saves_little_a_notice() -> None:
    race, little = scalar_read(rule="HAZ401"), scalar_read(saving_ms_per_step=0.01, saving_below_drift=True)
    said = lines(msgspec.structs.replace(sample.report([QUIET], [race, little]), stale=()))
    assert [line.split(" ")[0] for line in said[:-1]] == ["::error", "::notice"]


def test_a_clean_trace_leaves_no_annotation() -> None:
    report = msgspec.structs.replace(sample.report([QUIET], []), stale=())
    assert lines(report, Verdict(gate=("SYN102",))) == ["syncscope: passed: SYN102"]


def test_the_line_of_a_def_is_said_to_be_one() -> None:
    assert "%0Athe line is that of the def%0AFix: " in alone(scalar_read(site_source="stack"))


def test_below_stands_what_to_do_next() -> None:
    report = msgspec.structs.replace(sample.report([QUIET]), stale=())
    baseline = Ratchet(path="base.json", outcome="held", covered=3, fixed=1)
    assert lines(report, Verdict(gate=("SYN102",), unexpected=report.findings[:1]))[1:] == [
        "syncscope: to accept one: on its line, # syncscope: expect SYN102 -- reason; to accept all that is there now: "
        "--baseline FILE --write-baseline",
        "syncscope: failed: 1 unexpected finding · 1 expected · 1 in the baseline",
    ]
    assert lines(report, Verdict(gate=("SYN102",), baseline=baseline)) == [
        "syncscope: baseline base.json: 1 entry fixed; run with --update to tighten it",
        "syncscope: passed: SYN102 · 1 expected · 1 in the baseline",
    ]


def test_warnings_about_a_trace_are_passed_on() -> None:
    report = msgspec.structs.replace(sample.report(found=[]), stale=())
    assert lines(report)[0].startswith("::warning title=syncscope::The file was cut short")


def test_the_same_line_on_several_ranks_is_one_annotation() -> None:
    infos = [msgspec.structs.replace(sample.trace_info(f"run/{rank}.json", rank), warnings=()) for rank in (0, 1)]
    parts = [sample.report([info], [scalar_read(rank=info.rank)]) for info in infos]
    report = msgspec.structs.replace(merge(parts), stale=())
    said = lines(report, Verdict(gate=("SYN102",), unexpected=report.findings))
    assert [line.startswith("::") for line in said] == [True, False, False]
    assert "; on 2 of 2 traces)" in said[0]


def test_what_goes_beyond_a_baseline_says_so() -> None:
    assert "%0Abaseline 1, now 2%0AFix: " in alone(scalar_read(exceeds="baseline 1, now 2"))
