"""Which finding a bar leads to on the page, from traces to the page's data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from syncscope.analysis.analyze import analyze_files, analyze_timelines, choose_engine, draw_beside
from syncscope.analysis.engine import Engine
from syncscope.analysis.local import Local
from syncscope.policy import Expectation, Policy
from syncscope.report.html_page import make_views
from syncscope.report.picture.lanes import Lanes
from syncscope.report.picture.pack import unpacked
from syncscope.schema.findings import Finding
from syncscope.schema.report import Report
from tests.builders import TraceBuilder
from tests.cli import traces
from tests.report.picture.test_spots import blocking_copy


def owned(report: Report, pictures: tuple[Lanes, ...]) -> list[list[tuple[str, str, Finding | None]]]:
    """For each trace its waits and copies: the bar's kind, its name and the finding it leads to."""
    found = []
    for view in make_views(report, pictures):
        assert view.lanes is not None
        picture = pictures[view.lanes]
        spot, name = unpacked(picture.bars["spot"]).tolist(), unpacked(picture.bars["name"]).tolist()
        mine = []
        for series in picture.series:
            for bar in range(series.first, series.first + series.count):
                if spot[bar] >= 0:
                    owner = view.owners[spot[bar]]
                    finding = None if owner is None else report.findings[owner]
                    mine.append((picture.kinds[series.kind], picture.names[name[bar]], finding))
        found.append(mine)
    return found


def rules(report: Report, pictures: tuple[Lanes, ...]) -> set[tuple[str, str, str | None]]:
    (mine,) = owned(report, pictures)
    return {(kind, name, finding.rule if finding else None) for kind, name, finding in mine}


@pytest.fixture
def copy(tmp_path: Path) -> str:
    return str(blocking_copy().write(tmp_path / "copy.json"))


def test_a_wait_leads_to_its_finding_and_the_copy_to_its_own(copy: str) -> None:
    assert rules(*analyze_files([copy], choose_engine(), pictures=True)) == {
        ("wait", "cudaMemcpyAsync", "SYN101"),
        ("wait", "cudaStreamSynchronize", "SYN101"),
        ("HtoD", "Memcpy HtoD (Pageable -> Device)", "CPY201"),
    }


@pytest.mark.parametrize(
    ("select", "wait", "copied"), [("CPY", "CPY201", "CPY201"), ("OVL301", "OVL301", "OVL301"), ("HAZ", None, None)]
)
def test_of_selected_rules_a_bar_leads_to_what_is_left(
    copy: str, select: str, wait: str | None, copied: str | None
) -> None:
    found = rules(*analyze_files([copy], choose_engine(), select=[select], pictures=True))
    assert {rule for kind, _, rule in found if kind == "wait"} == {wait}
    assert {rule for kind, _, rule in found if kind == "HtoD"} == {copied}


def test_a_policy_changes_no_owner(copy: str) -> None:
    expected = Expectation(rule="SYN101", codes=frozenset({"SYN101"}), reason="meant", where="here:1")
    report, pictures = analyze_files([copy], choose_engine(), policy=Policy(expect=(expected,)), pictures=True)
    assert [finding.status for finding in report.findings if finding.rule == "SYN101"] == ["expected"]
    assert rules(report, pictures) == rules(*analyze_files([copy], choose_engine(), pictures=True))


def ranks(folder: Path, many: int) -> list[str]:
    """Each reads a value of its own at a line of its own."""
    return [
        str(traces.waiting(rank=rank, frame=("train.py", 20 + rank, "step", f"loss{rank}.item()")).write(
            folder / f"rank{rank:02}.json"
        ))
        for rank in range(many)
    ]  # fmt: skip


@pytest.mark.parametrize("where", [choose_engine(), Local(2)], ids=["one process", "two processes"])
@pytest.mark.parametrize("many", [2, 10])
def test_each_ranks_bars_lead_to_its_own_findings(tmp_path: Path, where: Engine, many: int) -> None:
    """Of ten ranks eight are drawn, by a second reading."""
    report, pictures = analyze_files(ranks(tmp_path, many), where, pictures=True)
    assert len(pictures) == min(many, 8)
    drawn = {picture.path for picture in pictures}
    for info, view in zip(report.traces, make_views(report, pictures), strict=True):
        if info.path in drawn:
            found = {report.findings[owner].rank for owner in view.owners if owner is not None}
            assert found == {info.rank}


def test_a_saved_report_has_no_numbers_and_finds_its_rows_again(tmp_path: Path) -> None:
    builder = blocking_copy()
    builder.write(tmp_path / "trace.json")
    report, pictures = analyze_files([str(tmp_path / "trace.json")], choose_engine(), pictures=True)
    text = report.to_json()
    assert '"number"' not in text
    saved = Report.from_json(text)
    assert saved == report.without_numbers() != report
    again, drawn = draw_beside(saved, tmp_path)
    assert again == report
    assert owned(again, drawn) == owned(report, pictures)


def test_a_saved_reports_finding_that_the_rules_no_longer_make_owns_nothing(tmp_path: Path) -> None:
    blocking_copy().write(tmp_path / "trace.json")
    report, _ = analyze_files([str(tmp_path / "trace.json")], choose_engine())
    text = report.to_json().replace('"count": 1', '"count": 7')
    assert {finding for *_, finding in owned(*draw_beside(Report.from_json(text), tmp_path))[0]} == {None}


def test_numbers_do_not_depend_on_what_is_selected(copy: str) -> None:
    from syncscope.timeline import Timeline
    from syncscope.trace import load

    def numbers(**selection: Any) -> dict[str, object]:
        found = analyze_timelines([Timeline(load(copy))], **selection).findings
        return {finding.rule: finding.number for finding in found}

    every = numbers()
    assert len(set(every.values())) == len(every) > 2
    assert numbers(select=["OVL"]) == {rule: number for rule, number in every.items() if rule.startswith("OVL")}


def test_a_rank_without_waits_has_no_owner(tmp_path: Path) -> None:
    builder: TraceBuilder = traces.clean()
    report, pictures = analyze_files([str(builder.write(tmp_path / "clean.json"))], choose_engine(), pictures=True)
    assert owned(report, pictures) == [[]]
