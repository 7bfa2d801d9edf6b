"""``syncscope diff``: traces, folders and saved reports, in three formats, and its exit codes."""

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Run


def test_traces_are_compared(run: Run) -> None:
    done = run("diff", "clean.json", "waiting.json.gz", "--select", "SYN")
    assert done.code == 0
    assert "new SYN102 scalar-read · 0 → 1 times a step\n  train.py:21  loss.item()  in train_step\n" in done.out
    assert done.out.endswith("1 new, 0 the same\n")
    assert "fixed SYN102" in run("diff", "waiting.json.gz", "clean.json").out


def test_a_folder_and_a_saved_report_may_stand_for_traces(run: Run, folder: Path) -> None:
    (folder / "run").mkdir()
    (folder / "clean.json").rename(folder / "run" / "clean.json")
    run("analyze", "waiting.json.gz", "-o", "report.json")
    from_report = run("diff", "run", "report.json", "--format", "json")
    assert from_report.code == 0
    assert '"number"' not in from_report.out
    assert json.loads(from_report.out) == json.loads(run("diff", "run", "waiting.json.gz", "--format", "json").out)


def test_json_is_for_other_programs(run: Run) -> None:
    found = json.loads(run("diff", "clean.json", "waiting.json.gz", "--select", "SYN102", "--format", "json").out)
    (change,) = found["changes"]
    assert (change["kind"], change["finding"]["rule"], change["before"], change["after"]) == ("new", "SYN102", 0.0, 1.0)
    assert (found["schema_version"], found["same"], found["step"]["measured"]) == (1, 0, "profiled")


def test_markdown_is_for_a_comment(run: Run) -> None:
    done = run("diff", "clean.json", "waiting.json.gz", "--format", "markdown")
    assert done.out.startswith("### syncscope: ")
    assert done.out.endswith("</details>\n")


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("clean.json",), 2),
        (("clean.json", "clean.json", "--format", "sarif"), 2),
        (("clean.json", "clean.json", "--select", "SYN9"), 2),
        (("clean.json", "missing.json"), 3),
        (("newer.json", "clean.json"), 3),
        (("broken.json", "clean.json"), 3),
    ],
)
def test_wrong_usage_is_2_and_what_cannot_be_read_3(arguments: tuple[str, ...], code: int, run: Run) -> None:
    Path("newer.json").write_text('{"schema_version": 99}')
    Path("broken.json").write_text('{"schema_version": 1, "findings"')
    done = run("diff", *arguments)
    assert done.code == code
    assert done.out == "" and done.err


def test_files_are_written_beside_what_is_printed(run: Run) -> None:
    done = run("diff", "clean.json", "waiting.json.gz", "-o", "diff.html", "-o", "diff.md", "-o", "json=diff.txt")
    assert done.code == 0
    assert done.out.endswith("1 new, 0 the same\n") or "new SYN102" in done.out
    assert Path("diff.html").read_text().startswith("<!doctype html>")
    assert Path("diff.md").read_text().startswith("### syncscope: ")
    assert json.loads(Path("diff.txt").read_text())["schema_version"] == 1
    assert [line for line in done.err.splitlines() if line.startswith("wrote ")] == [
        "wrote diff.html", "wrote diff.md", "wrote diff.txt"
    ]  # fmt: skip


def test_the_page_of_saved_reports_has_the_timelines_of_the_traces_beside_them(run: Run) -> None:
    run("analyze", "waiting.json.gz", "-o", "report.json")
    run("diff", "report.json", "report.json", "-o", "diff.html")
    assert '"timeline":{' in Path("diff.html").read_text()


@pytest.mark.parametrize("output", ["diff.sarif", "sarif=diff.txt", "clean.json", "diff"])
def test_an_output_that_cannot_be_written_is_refused_before_any_work(output: str, run: Run) -> None:
    done = run("diff", "clean.json", "missing.json", "-o", output)
    assert done.code == 2
    assert output.partition("=")[2] in done.err
