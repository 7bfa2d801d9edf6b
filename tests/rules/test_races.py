"""Races are told with both of their lines."""

from __future__ import annotations

import pytest

from syncscope.policy import Policy
from syncscope.policy.gate import check_gate
from syncscope.rules import find
from syncscope.rules.base.race_rule import NOT_LOOKED_FOR, UNSEEN
from syncscope.schema.report import NotChecked
from syncscope.timeline import Timeline
from tests.builders import TraceBuilder
from tests.rules.scenes import blind, findings, line

COPY, OTHER = line(10, 'x.to("cpu", non_blocking=True)'), line(11, "buffer.copy_(x, non_blocking=True)")
READ, WRITE = line(14, "host.mean()"), line(15, "buffer.zero_()")
DTOH, HTOD = {"direction": "DtoH"}, {"direction": "HtoD", "writes": False}
STREAMS = {
    "access_is": {"stream": "stream 1"},
    "earlier_is": {"stream": "the default stream"},
}


def busy() -> TraceBuilder:
    """A trace is of something: one kernel."""
    return TraceBuilder().launch("k", call=(1, 1), runs=(3, 3))


def looked() -> TraceBuilder:
    return busy().recording(0, 100, hazard_steps=2)


def test_a_read_before_arrival_names_both_lines() -> None:
    builder = looked().race("HAZ401", [READ], [COPY], count=4, nbytes=64, op="aten::mean", earlier_is=DTOH)
    (found,) = findings(builder, "HAZ401")
    assert found.site is not None
    assert (found.site.line, found.site.expression, found.op) == (14, "host.mean()", "aten::mean")
    assert (found.severity, found.status, found.site_source) == ("error", "unexpected", "hook")
    assert (found.count, found.per_step, found.bytes) == (4, 2.0, 64)
    assert [site.line for site in found.earlier] == [10]
    assert found.message == (
        "host.mean() reads host memory with no wait after the copy that fills it, at "
        'train.py:10 (x.to("cpu", non_blocking=True))'
    )
    assert "synchronize()" in found.fix


@pytest.mark.parametrize(("side", "doing"), [(HTOD, "read from"), (DTOH, "fill")])
def test_an_overwrite_says_what_the_copy_does(side: dict[str, object], doing: str) -> None:
    builder = looked().race("HAZ402", [WRITE], [OTHER], access_is={"writes": True}, earlier_is=side)
    (found,) = findings(builder, "HAZ402")
    assert f"writes pinned memory with no wait after the copy that may still {doing} it" in found.message


@pytest.mark.parametrize("writes", [True, False])
def test_a_race_between_streams_names_them(writes: bool) -> None:
    access = {**STREAMS["access_is"], "writes": writes}
    builder = looked().race("HAZ403", [READ], [OTHER], access_is=access, earlier_is=STREAMS["earlier_is"])
    (found,) = findings(builder, "HAZ403")
    does = "writes" if writes else "reads"
    assert f"{does} on stream 1 what the default stream may still be writing" in found.message


def test_one_line_is_one_finding_whatever_it_races_with() -> None:
    builder = looked()
    builder.race("HAZ401", [READ], [COPY], count=1).race("HAZ401", [READ], [OTHER], count=5)
    (found,) = findings(builder, "HAZ401")
    assert found.count == 6
    assert [site.line for site in found.earlier] == [11, 10]


def test_many_other_lines_are_counted_not_listed() -> None:
    builder = looked()
    for number in range(20, 26):
        builder.race("HAZ401", [READ], [line(number, f"copy({number})")])
    (found,) = findings(builder, "HAZ401")
    assert found.message.endswith("and 3 more")
    assert len(found.earlier) == 6


def test_two_lines_are_two_findings() -> None:
    builder = looked().race("HAZ401", [READ], [COPY]).race("HAZ401", [line(16, "host.sum()")], [COPY])
    assert len({found.fingerprint for found in findings(builder, "HAZ401")}) == 2


def test_the_site_is_the_users_line_and_at_the_library_s() -> None:
    library = ("<site-packages>/lib/log.py", 7, "write", "t.tolist()")
    builder = looked().race("HAZ401", [READ, library], [COPY])
    (found,) = findings(builder, "HAZ401")
    assert found.site is not None
    assert found.at is not None
    assert (found.site.line, found.at.file, found.at.line) == (14, "<site-packages>/lib/log.py", 7)


def test_an_expected_race_keeps_its_reason() -> None:
    builder = looked().race("HAZ401", [READ], [COPY], expected="a progress bar")
    (found,) = findings(builder, "HAZ401")
    assert (found.status, found.reason) == ("expected", "a progress bar")


def test_nobody_looked_is_not_checked() -> None:
    whys = blind(busy().recording(0, 100))
    assert {whys[code] for code in ("HAZ401", "HAZ402", "HAZ403")} == {NOT_LOOKED_FOR}
    assert "--hazards" in NOT_LOOKED_FOR


def test_a_window_without_races_is_clean_and_says_what_it_cannot_see() -> None:
    builder = busy().recording(0, 100, hazards=(), hazard_steps=2)
    view = Timeline(builder.trace())
    found, entries = find(view)
    assert [hit for hit in found if hit.finding.rule.startswith("HAZ")] == []
    mine = [entry for entry in entries if entry.rule.startswith("HAZ")]
    assert mine == [NotChecked(rule=rule, why=UNSEEN, partial=True) for rule in ("HAZ401", "HAZ402", "HAZ403")]
    assert "hazards" in view.has


def test_what_a_rule_cannot_see_does_not_fail_a_gate() -> None:
    from syncscope.analysis.analyze import analyze_timelines

    gate = Policy(gate=("HAZ401",))
    clean, unseen = busy().recording(0, 100, hazards=()), busy().recording(0, 100)
    racy = looked().race("HAZ401", [READ], [COPY])
    reports = [analyze_timelines([Timeline(builder.trace())]) for builder in (clean, racy, unseen)]
    assert [check_gate(report, gate).exit_code for report in reports] == [0, 1, 3]


def test_the_report_tells_not_looked_for_from_not_seen() -> None:
    import io

    from rich.console import Console

    from syncscope.analysis.analyze import analyze_timelines
    from syncscope.report import text
    from syncscope.report.view import View

    def rendered(builder: TraceBuilder) -> str:
        console = Console(file=io.StringIO(), width=2000)
        text.render(analyze_timelines([Timeline(builder.trace())]), console, View(verbose=True))
        assert isinstance(console.file, io.StringIO)
        return console.file.getvalue()

    assert "not checked HAZ401–HAZ403: no window looked" in rendered(busy().recording(0, 100))
    assert "checked in part HAZ401–HAZ403: races were" in rendered(busy().recording(0, 100, hazards=()))
