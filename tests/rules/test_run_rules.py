"""Rules of a run are asked in general: another one is merged, left out and shown as the first is."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pytest

from syncscope import rules
from syncscope.advice import Advice
from syncscope.analysis import merge as merging
from syncscope.analysis.analyze import only
from syncscope.analysis.merge import merge
from syncscope.report.notable import notable
from syncscope.rules import RunRule
from syncscope.rules.base.question import NoQuestion
from syncscope.rules.base.rule import RunFindings
from syncscope.schema.catalogue import rules_by_code
from syncscope.schema.findings import Finding
from syncscope.schema.report import NotChecked, Report, TraceInfo
from syncscope.timeline.places import NOWHERE
from tests.report import sample
from tests.rules.test_catalogue import entry_of


class SlowestRank(RunRule):
    """The last of all ranks is the slowest."""

    code = "DST699"
    name = "slowest-rank"
    severity = "note"
    needs = ()
    gated = False
    question = NoQuestion("it is made up")
    advice = (Advice("", "Be faster."),)

    def can_compare(self, info: TraceInfo) -> bool:
        return info.rank is not None

    def leave_out(self, report: Report) -> Report:
        return msgspec.structs.replace(report, saving_all_ms_per_step=None)

    def compare(self, traces: Sequence[TraceInfo], findings: Sequence[Finding]) -> RunFindings:
        assert not any(finding.rule == self.code for finding in findings)
        if len(traces) == 1:
            return RunFindings(not_checked=(NotChecked(rule=self.code, why="alone"),))
        fields = {"count": 1, "per_step": 1.0, "message": "it is slow", "fix": self.advise()}
        return RunFindings((self.finding(NOWHERE, trace=len(traces) - 1, **fields),))


@pytest.fixture
def rule(monkeypatch: pytest.MonkeyPatch) -> RunRule:
    made_up = SlowestRank()
    every = (*rules.RUN_RULES, made_up)
    monkeypatch.setattr(rules, "RUN_RULES", every)
    monkeypatch.setattr(merging, "RUN_RULES", every)
    monkeypatch.setitem(rules.BY_CODE, made_up.code, made_up)
    monkeypatch.setitem(rules_by_code(), made_up.code, entry_of(made_up))
    return made_up


def rank(number: int) -> Report:
    return merge([sample.report([sample.trace_info(f"rank{number}.json", number)], sample.findings(rank=number))])


def slowest(report: Report) -> list[int]:
    return [finding.trace for finding in report.findings if finding.rule == SlowestRank.code]


def test_what_was_found_between_some_ranks_gives_way_to_what_is_found_between_all(rule: RunRule) -> None:
    assert [entry.why for entry in rank(0).not_checked if entry.rule == rule.code] == ["alone"]
    two = merge([rank(0), rank(1)])
    three = merge([two, rank(2)])
    assert (slowest(two), slowest(three)) == ([1], [2])
    assert not any(entry.rule == rule.code for entry in three.not_checked)


def test_a_finding_keeps_what_is_expected_of_it(rule: RunRule) -> None:
    two = merge([rank(0), rank(1)])
    expected = tuple(
        msgspec.structs.replace(finding, status="expected", reason="a small machine")
        if finding.rule == rule.code
        else finding
        for finding in two.findings
    )
    again = merge([msgspec.structs.replace(two, findings=expected)])
    (found,) = [finding for finding in again.findings if finding.rule == rule.code]
    assert (found.status, found.reason) == ("expected", "a small machine")


def test_a_selection_without_it_leaves_out_what_it_is_read_with(rule: RunRule) -> None:
    report = rank(0)
    assert only(report, frozenset({rule.code})).saving_all_ms_per_step == report.saving_all_ms_per_step is not None
    assert only(report, frozenset({"SYN102"})).saving_all_ms_per_step is None


def test_the_ranks_it_finds_are_notable(rule: RunRule) -> None:
    report = merge([rank(number) for number in range(9)])
    assert slowest(report) == [8]
    assert notable(report, 2) == [0, 8]
