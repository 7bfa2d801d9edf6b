"""``syncscope report``: from a trace, from a saved report, and from neither."""

import json
from pathlib import Path

import msgspec
import pytest

from syncscope.schema.order import ordered
from syncscope.schema.report import Report
from tests.cli.conftest import Run
from tests.report import sample_run


def test_a_trace_becomes_html(run: Run, folder: Path) -> None:
    done = run("report", "waiting.json.gz", "-o", "report.html")
    assert (done.code, done.out, done.err) == (0, "", "wrote report.html\n")
    assert "loss.item()" in (folder / "report.html").read_text(encoding="utf-8")


def test_a_saved_report_becomes_the_same_html_with_its_trace_beside_it(run: Run, folder: Path) -> None:
    run("analyze", "waiting.json.gz", "-o", "report.json", "-o", "direct.html")
    assert run("report", "report.json", "-o", "saved.html").code == 0
    assert (folder / "saved.html").read_bytes() == (folder / "direct.html").read_bytes()


def test_a_saved_report_alone_has_findings_without_a_picture(run: Run, folder: Path) -> None:
    run("analyze", "waiting.json.gz", "-o", "report.json", "-o", "direct.html")
    (folder / "elsewhere").mkdir()
    (folder / "report.json").rename(folder / "elsewhere" / "report.json")
    assert run("report", "elsewhere/report.json", "-o", "saved.html").code == 0
    text = (folder / "saved.html").read_text(encoding="utf-8")
    assert "loss.item()" in text
    assert len(text) < len((folder / "direct.html").read_text(encoding="utf-8"))


def test_a_saved_report_cannot_make_us_read_outside_its_folder(run: Run, folder: Path) -> None:
    run("analyze", "waiting.json.gz", "-o", "report.json", "-o", "direct.html")
    (folder / "elsewhere").mkdir()
    saved = json.loads((folder / "report.json").read_text())
    saved["traces"][0]["path"] = str(folder / "waiting.json.gz")
    (folder / "elsewhere" / "report.json").write_text(json.dumps(saved))
    run("report", "elsewhere/report.json", "-o", "saved.html")
    direct = (folder / "direct.html").read_text(encoding="utf-8")
    assert len((folder / "saved.html").read_text(encoding="utf-8")) < len(direct)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"schema_version": 1}', "not a report: Object missing required field"),
        ('{"schema_version": 1, ', "not a report: "),
        ('{"schema_version": "x"}', "not a report: "),
        ('{"a": "schema_version", "b": "\\"schema_version\\""}', ""),
        (
            '{"schema_version": 99, "new": true}',
            "was written by a newer syncscope (schema 99; this version reads up to 1)",
        ),
    ],
)
def test_a_report_that_cannot_be_read_is_one_line_and_exit_3(run: Run, folder: Path, text: str, reason: str) -> None:
    (folder / "bad.json").write_text(text)
    done = run("report", "bad.json", "-o", "out.html")
    assert done.code == 3
    assert done.err.startswith(f"error: bad.json: {reason}")
    assert done.err.count("\n") == 1
    assert not (folder / "out.html").exists()


def test_an_output_is_required(run: Run) -> None:
    done = run("report", "waiting.json.gz")
    assert done.code == 2
    assert "--output" in done.err


def test_the_report_itself_is_not_overwritten(run: Run, folder: Path) -> None:
    run("analyze", "waiting.json.gz", "-o", "report.json")
    before = (folder / "report.json").read_bytes()
    assert run("report", "report.json", "-o", "./report.json").code == 2
    assert Report.from_json(before) == Report.from_json((folder / "report.json").read_bytes())


def test_one_phase_of_a_saved_report_can_be_chosen(run: Run, folder: Path) -> None:
    (folder / "report.json").write_text(sample_run.report().to_json())
    assert run("report", "report.json", "--phase", "evaluate", "-o", "one.json").code == 0
    made = Report.from_json((folder / "one.json").read_bytes())
    assert [finding.phase for finding in made.findings] == ["evaluate"]


def test_the_findings_of_a_saved_report_have_the_order_of_today(run: Run, folder: Path) -> None:
    saved = sample_run.report()
    turned = msgspec.structs.replace(saved, findings=tuple(reversed(saved.findings)))
    (folder / "report.json").write_text(turned.to_json())
    assert run("report", "report.json", "-o", "one.json").code == 0
    made = Report.from_json((folder / "one.json").read_bytes())
    order = [finding.fingerprint for finding in ordered(saved.findings, saved.traces)]
    assert [finding.fingerprint for finding in made.findings] == order
    assert [finding.fingerprint for finding in turned.findings] != order


def test_a_phase_that_is_not_there_is_wrong_usage_and_names_the_others(run: Run, folder: Path) -> None:
    (folder / "report.json").write_text(sample_run.report().to_json())
    done = run("report", "report.json", "--phase", "rollout", "-o", "one.json")
    assert (done.code, done.err) == (
        2, "error: --phase: no phase rollout: the phases are start, train, evaluate, epoch end\n"
    )  # fmt: skip
    assert not (folder / "one.json").exists()
    done = run("analyze", "waiting.json.gz", "--phase", "train")
    assert (done.code, done.err) == (2, "error: --phase: no phase train was recorded\n")


def test_a_source_that_does_not_exist_is_3_whatever_is_to_be_written(run: Run) -> None:
    for output in ([], ["-o", "page.html"]):
        done = run("report", "missing.json", *output)
        assert (done.code, done.err) == (3, "error: missing.json: does not exist\n")
