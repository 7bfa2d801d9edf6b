"""``--format`` and ``--output``: several at once, standard output, and where files lie in the repository."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from syncscope.cli.output import folder_in_repository
from tests.cli.conftest import Run


def test_several_outputs_are_written_at_once(run: Run, folder: Path) -> None:
    names = ["a.sarif", "b.sarif.json", "c.xml", "d.md", "e.json", "f.txt", "github=g.log", "sarif=h"]
    done = run("check", "waiting.json.gz", *(part for name in names for part in ("-o", name)))
    written = ["a.sarif", "b.sarif.json", "c.xml", "d.md", "e.json", "f.txt", "g.log", "h"]
    assert (done.code, done.err) == (1, "".join(f"wrote {name}\n" for name in written))
    assert done.out.endswith("failed: 1 unexpected finding\n")
    for name in ("a.sarif", "b.sarif.json", "h"):
        assert json.loads((folder / name).read_text())["runs"][0]["results"][0]["ruleId"] == "SYN102"
    assert ElementTree.parse(folder / "c.xml").getroot()[0].attrib["failures"] == "1"
    assert (folder / "d.md").read_text().startswith("### syncscope: failed")
    assert "failed: 1 unexpected finding" in (folder / "f.txt").read_text()
    assert (folder / "g.log").read_text().startswith("::error file=train.py,line=21,")


@pytest.mark.parametrize(
    ("format", "start"),
    [
        ("json", '{\n  "schema_version"'),
        ("sarif", '{\n  "$schema"'),
        ("junit", "<?xml "),
        ("github", "::error file=train.py,line=21,"),
        ("markdown", "### syncscope: failed"),
        ("text", "step      "),
    ],
)
def test_standard_output_gets_one_format_alone(run: Run, format: str, start: str) -> None:
    for arguments in (["--format", format], ["-o", f"{format}=-"]):
        done = run("check", "waiting.json.gz", *arguments)
        assert (done.code, done.err) == (1, "")
        assert done.out.startswith(start)
        assert done.out.count(start) == 1


def test_standard_output_cannot_be_named_twice(run: Run) -> None:
    for arguments in (["--format", "json", "-o", "github=-"], ["-o", "json=-", "-o", "github=-"]):
        done = run("check", "waiting.json.gz", *arguments)
        assert (done.code, done.out, done.err) == (2, "", "error: -: is named twice\n")


def test_standard_output_needs_a_format(run: Run) -> None:
    done = run("analyze", "waiting.json.gz", "-o", "-")
    assert done.code == 2
    assert "-: unknown format" in done.err


def test_a_saved_report_can_be_printed(run: Run) -> None:
    run("analyze", "waiting.json.gz", "-o", "report.json")
    assert run("report", "report.json", "-o", "markdown=-").out.startswith("### syncscope: ")


def test_in_github_actions_the_summary_is_appended(run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "summary.md").write_text("before\n")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(folder / "summary.md"))
    assert run("check", "waiting.json.gz").code == 1
    assert (folder / "summary.md").read_text() == "before\n"
    for arguments in (["--format", "github"], ["-o", "github=-"]):
        assert run("check", "waiting.json.gz", *arguments).code == 1
    text = (folder / "summary.md").read_text()
    assert text.startswith("before\n### syncscope: failed")
    assert text.count("### syncscope: failed") == 2


def test_a_summary_that_cannot_be_written_is_an_error(run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(folder / "none" / "summary.md"))
    done = run("check", "clean.json", "--format", "github")
    assert (done.code, done.err.count("\n")) == (2, 1)


def test_files_are_named_from_the_root_of_the_repository(
    run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = folder / "services" / "training"
    project.mkdir(parents=True)
    (folder / ".git").mkdir()
    (project / "pyproject.toml").touch()
    monkeypatch.chdir(project)
    done = run("check", folder / "waiting.json.gz", "--format", "github")
    assert done.out.startswith("::error file=services/training/train.py,line=21,")


def test_the_folder_in_the_repository(tmp_path: Path) -> None:
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    assert folder_in_repository(inner) == ""  # no mark at all
    (tmp_path / ".git").write_text("gitdir: elsewhere\n")  # a worktree's
    assert folder_in_repository(inner) == ""  # the project is the repository
    (tmp_path / "a" / "pyproject.toml").touch()
    assert folder_in_repository(inner) == "a"
