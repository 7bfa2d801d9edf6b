"""Places of a report as links of a terminal."""

from __future__ import annotations

import sys
from pathlib import Path
from urllib.parse import quote

import pytest

from syncscope.cli.links import EDITORS, PLAIN, address_of, terminal_links
from syncscope.schema.findings import Frame, Site


@pytest.fixture
def project(folder: Path) -> Path:
    (folder / "pyproject.toml").touch()
    (folder / "a b.py").write_text("x = 1\n")
    return folder.resolve()


SITE = Site(file="a b.py", line=7, function="f", column=5)


def test_a_place_leads_to_its_file_or_to_the_line_in_an_editor(project: Path) -> None:
    path = quote((project / "a b.py").as_posix())
    assert address_of(SITE, project, PLAIN) == f"file://{path}"
    assert address_of(SITE, project, EDITORS["vscode"]) == f"vscode://file{path}:7:5"
    frame = Frame(file="a b.py", line=None, function="f")
    assert address_of(frame, project, "my:{path}?{line},{column}") == f"my:{path}?1,1"


@pytest.mark.parametrize("name", ["missing.py", "../outside.py", "/etc/passwd", "<site-packages>/x.py", "a\0b", "."])
def test_only_files_of_the_project_are_linked(project: Path, name: str) -> None:
    (project.parent / "outside.py").touch()
    assert address_of(Frame(file=name, line=1, function="f"), project, PLAIN) is None


def test_links_are_for_terminals_and_the_editor_is_chosen(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert terminal_links(project) is None
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("SYNCSCOPE_EDITOR", "zed")
    link = terminal_links(project)
    assert link is not None and str(link(SITE)).startswith("zed://file/")
    monkeypatch.setenv("SYNCSCOPE_EDITOR", "an editor that nobody knows")
    link = terminal_links(project)
    assert link is not None and str(link(SITE)).startswith("file:///")
    monkeypatch.setenv("TERM", "dumb")
    assert terminal_links(project) is None
