"""The score names everything that falls short of the labels."""

from __future__ import annotations

import msgspec
import pytest

from benchmarks.score import Label, judge, labels_of
from syncscope.schema.report import Coverage, Report, Steps, Tool, TraceInfo
from tests.report.sample import finding

READ = finding("SYN102", "scalar-read", 42, "loss.item()", per_step=2.0)


def report(*findings, with_line=2):
    steps = Steps(count=3, profiled_ms=None, bare_ms=None, source="user")
    covered = Coverage(waits=2, with_line=with_line)
    trace = TraceInfo(
        path="t.json", rank=None, device=None, torch=None, has=(), steps=steps, coverage=covered, overlap=None
    )
    return Report(tool=Tool(name="syncscope", version="0"), traces=(trace,), findings=findings)


def label(line=42, **more):
    return Label(rule="SYN102", line=line, file="train.py", **more)


def test_what_answers_to_its_labels_in_full_falls_short_of_nothing():
    result = judge([label(per_step=2)], report(READ))
    assert result.short == []
    assert vars(result.by_rule["SYN102"]) == {"labels": 1, "found": 1, "exact": 1, "findings": 1, "right": 1}


@pytest.mark.parametrize(
    ("labels", "findings", "short"),
    [
        ([label()], [], "SYN102 at train.py:42 is missed"),
        ([], [READ], f"SYN102 at train.py:42 is invented: {READ.message}"),
        ([label(41)], [READ], "SYN102 at train.py:41 is found at train.py:42"),
        ([label(None)], [READ], "SYN102 is found at train.py:42"),
        ([label(per_step=1)], [READ], "SYN102 at train.py:42 is counted 2 a step instead of 1"),
        ([label(missing="pinned")], [READ], f"SYN102 at train.py:42 does not say 'pinned': {READ.message}"),
        ([label(cause="wait")], [READ], f"SYN102 at train.py:42 does not say '): wait ': {READ.message}"),
        ([label(rank=1)], [], "SYN102 at train.py:42 on rank 1 is missed"),
        ([label(severity="note")], [], "SYN102 at train.py:42 is missed"),
    ],
)
def test_what_falls_short_is_named(labels, findings, short):
    assert judge(labels, report(*findings)).short == [short]


def test_a_finding_on_another_rank_is_another_finding():
    elsewhere = msgspec.structs.replace(READ, rank=0)
    assert judge([label(rank=1)], report(elsewhere)).short == [
        "SYN102 at train.py:42 on rank 1 is missed",
        f"SYN102 at train.py:42 on rank 0 is invented: {READ.message}",
    ]


def test_each_rank_is_counted_by_itself():
    once = msgspec.structs.replace(READ, rank=0, per_step=1.0)
    twice = msgspec.structs.replace(READ, rank=1)
    result = judge([label(per_step=1)], report(once, twice))
    assert result.short == ["SYN102 at train.py:42 is counted 2 a step instead of 1"]


def test_two_findings_at_one_line_are_counted_together():
    half = msgspec.structs.replace(READ, per_step=1.0)
    assert judge([label(per_step=2)], report(half, msgspec.structs.replace(half, at=None))).short == []


def test_a_note_is_counted_only_where_a_label_asks_for_it():
    note = msgspec.structs.replace(READ, severity="note")
    assert judge([], report(note)).short == []
    assert judge([label(severity="note")], report(note)).short == []
    assert judge([label()], report(note)).short == ["SYN102 at train.py:42 is missed"]


def test_a_wait_without_a_line_falls_short():
    assert judge([], report(with_line=1)).short == ["1 of 2 waits have a line"]


def test_an_unknown_key_of_a_label_is_refused():
    with pytest.raises(msgspec.ValidationError, match="colour"):
        msgspec.convert({"rule": "SYN102", "line": 1, "colour": "red"}, Label)


def test_a_label_without_a_rank_holds_for_each_rank(tmp_path, monkeypatch):
    monkeypatch.setattr("benchmarks.score.TRACES", tmp_path)
    (tmp_path / "case").mkdir()
    labels = {"ranks": 2, "labels": [{"rule": "OVL302", "line": 21}, {"rule": "DST601", "line": 22, "rank": 1}]}
    (tmp_path / "case" / "labels.json").write_bytes(msgspec.json.encode(labels))
    assert [(label.rule, label.rank) for label in labels_of("case")] == [("OVL302", 0), ("OVL302", 1), ("DST601", 1)]
