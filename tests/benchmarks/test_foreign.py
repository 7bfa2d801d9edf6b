"""What is judged of findings, and what is found wrong about them."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

import syncscope
from benchmarks.foreign import score
from benchmarks.foreign.judging import SETS, Case, File, Judgement, compare, judge, read_cases
from syncscope.rules import RULES
from syncscope.schema.report import Report
from tests.builders import TraceBuilder
from tests.rules.scenes import chain

RIGHT = Judgement(rule="SYN102", severity=("error", "warning"), op="aten::item", count=(2,))


def trace() -> TraceBuilder:
    """Two steps that read a value, for 20 µs each."""
    return chain("aten::item", "aten::_local_scalar_dense")


@pytest.fixture
def report(tmp_path: Path) -> Report:
    return syncscope.analyze(trace().write(tmp_path / "trace.json"), select=("SYN",))


def case(*judgements: Judgement, first: tuple[str, ...] | None = None) -> Case:
    return Case(device="", program="", files=(), findings=judgements, first=first)


def test_a_finding_that_is_as_judged_is_right(report: Report) -> None:
    (verdict,) = judge(case(RIGHT), report)
    assert (verdict.rule, verdict.wrong) == ("SYN102", ())


@pytest.mark.parametrize(
    ("changed", "aspect"),
    [
        ({"severity": ("note",)}, "severity"),
        ({"op": "aten::copy_"}, "op"),
        ({"count": (3,)}, "count"),
        ({"blocked_ms": 0.08}, "blocked"),
        ({"where": "train.py"}, "place"),
        ({"says": "two values"}, "message"),
        ({"says_not": "one value"}, "message"),
        ({"fix": "DataLoader"}, "fix"),
        ({"fix_not": "device"}, "fix"),
    ],
)
def test_what_is_wrong_is_named(report: Report, changed: dict[str, object], aspect: str) -> None:
    judgement = msgspec.structs.replace(RIGHT, **changed)
    (wrong,) = compare(report.findings[0], judgement, report)
    assert wrong.startswith(f"{aspect}: ")


def test_a_fix_that_is_another_rule_s_may_be_told_as_that_or_point_to_it(report: Report) -> None:
    (read,) = report.findings
    judgement = Judgement(rule="CPY201", severity=RIGHT.severity, fix="SYN102")
    copy = msgspec.structs.replace(read, rule="CPY201")
    both = msgspec.structs.replace(report, findings=(read, copy))
    assert compare(copy, judgement, both) == []
    for fix, wrong in (("See SYN102.", []), ("Copy it once.", ["fix: lacks SYN102"])):
        other = msgspec.structs.replace(copy, fix=fix)
        assert compare(other, judgement, msgspec.structs.replace(report, findings=(read, other))) == wrong


def test_times_are_those_of_the_whole_trace(report: Report) -> None:
    assert compare(report.findings[0], msgspec.structs.replace(RIGHT, blocked_ms=0.04), report) == []


def test_a_count_of_the_steps_alone_is_right_with_its_part_of_the_time(report: Report) -> None:
    whole = msgspec.structs.replace(RIGHT, count=(3, 2), blocked_ms=0.06)
    assert compare(report.findings[0], whole, report) == []


def test_a_finding_that_is_missed_is_wrong_unless_it_need_not_be_there(report: Report) -> None:
    other = Judgement(rule="SYN101", severity=("error",))
    assert [verdict.wrong for verdict in judge(case(RIGHT, other), report)] == [(), ("missed",)]
    free = msgspec.structs.replace(other, severity=("error", "absent"))
    assert [verdict.wrong for verdict in judge(case(RIGHT, free), report)] == [()]


def test_a_finding_is_held_against_the_judgement_that_says_the_most_of_it(report: Report) -> None:
    free = Judgement(rule="SYN102", severity=("error", "warning", "absent"))
    wrong = msgspec.structs.replace(RIGHT, count=(3,))
    assert [verdict.wrong for verdict in judge(case(free, RIGHT), report)] == [()]
    missed = judge(case(msgspec.structs.replace(free, severity=("error",)), RIGHT), report)
    assert [verdict.wrong for verdict in missed] == [(), ("missed",)] and missed[1].what.startswith("None")
    assert [verdict.wrong for verdict in judge(case(free, wrong), report)] == [(), ("missed",)]


def test_a_finding_is_held_against_the_judgement_whose_amount_is_the_closest(report: Report) -> None:
    (finding,) = report.findings
    most = 2 * (finding.saving_high_ms_per_step or 0.0)  # of two steps
    assert most > 0
    wide, close = (msgspec.structs.replace(RIGHT, gains_at_most_ms=ms) for ms in (10 * most, most))
    needless = msgspec.structs.replace(wide, severity=(*wide.severity, "absent"))
    assert [verdict.wrong for verdict in judge(case(needless, close), report)] == [()]


def test_a_finding_that_nobody_judged_is_named(report: Report) -> None:
    (verdict,) = judge(case(), report)
    assert verdict.wrong == ("not judged",)


def test_the_first_finding_is_judged_where_one_stands_out(report: Report) -> None:
    assert [verdict.wrong for verdict in judge(case(RIGHT, first=("SYN102",)), report)] == [(), ()]
    (_, order) = judge(case(RIGHT, first=("OVL303", "LCH501")), report)
    assert order.wrong == ("first: SYN102, not OVL303 or LCH501",)


@pytest.mark.parametrize(("wanted", "wrong"), [("SYN102 in one value", 0), ("SYN102 in another", 1)])
def test_of_a_rule_with_several_findings_the_place_of_the_first_is_judged(
    report: Report, wanted: str, wrong: int
) -> None:
    (_, order) = judge(case(RIGHT, first=(wanted,)), report)
    assert len(order.wrong) == wrong


def test_traces_are_known_by_their_hashes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = trace().write(tmp_path / "any name.json")
    (known,) = score.find_files(tmp_path)
    address = File(repository="a/b", path="c/trace.json", commit="0" * 40, sha256=known)
    there = Case(device="V100", program="a loop", files=(address,), findings=(RIGHT,))
    missing = msgspec.structs.replace(there, files=(msgspec.structs.replace(address, sha256="f" * 64),))
    monkeypatch.setattr(score, "SETS", {"a set": path})
    monkeypatch.setattr(score, "read_cases", lambda path: (there, missing))
    score.main([str(path.parent)])
    shown = capsys.readouterr().out
    assert "github.com/a/b/blob/000000000000/c/trace.json" in shown
    assert shown.count("not in this folder") == 1
    assert "SYN102       1     0" in shown.splitlines()[-2]


@pytest.mark.parametrize("path", SETS.values(), ids=[path.stem for path in SETS.values()])
def test_the_judgements_name_rules_that_exist_and_whole_addresses(path: Path) -> None:
    cases = read_cases(path)
    assert {judgement.rule for case in cases for judgement in case.findings} <= {rule.code for rule in RULES}
    for file in (file for case in cases for file in case.files):
        assert (len(file.commit), len(file.sha256)) == (40, 64)
        assert file.repository.count("/") == 1
