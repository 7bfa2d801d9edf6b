"""Write the pages of the site into a folder, and let Zensical render them."""

from __future__ import annotations

import json
import os
import posixpath
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from docs.site import commands, example, notebook_pages, python_api, rule_pages, settings_page
from docs.site.contents import ROOT, SECTIONS, pages
from docs.site.markdown import adapt, fenced, link_codes, move_links

HERE = Path(__file__).parent
FILES = (".png", ".svg", ".json")
"""Endings of linked files that are copied as they are; any other becomes a page with its text."""

LANGUAGES = {".py": "python", ".toml": "toml", ".yml": "yaml"}
WITH_RULES = ("docs/rules.md", "docs/does-it-wait.md")
"""Pages whose tables name rules, which become links."""

ALONE = "---\nhide:\n  - navigation\n---\n\n"
"""The head of a page that has no others beside it."""

UNSEARCHED = "---\nsearch:\n  exclude: true\n---\n\n"
"""The head of a page that the search leaves out."""

FIRST_LINES = 600
"""Of a linked file, so many lines are shown."""


class BuildError(Exception):
    """Zensical refused the pages. ``str`` is what it said."""


@dataclass
class Staging:
    """The folder that Zensical reads."""

    folder: Path
    places: dict[str, str] = field(default_factory=dict)
    """Where a file of the repository is in the site, by its path in the repository."""

    def write(self, path: str, text: str, source: str = "") -> None:
        """Write a page whose links lead from ``source``, a path in the repository; its root without one."""
        moved = move_links(text, lambda target: self.link(target, source, path))
        self._file(path).write_text(moved, encoding="utf-8", newline="\n")

    def change(self, path: str, made: Callable[[str], str]) -> None:
        """Change the text of a page that is written."""
        file = self._file(path)
        file.write_text(made(file.read_text(encoding="utf-8")), encoding="utf-8", newline="\n")

    def keep(self, path: str, content: bytes) -> str:
        """Write a file that is no page. Returns its path."""
        self._file(path).write_bytes(content)
        return path

    def link(self, target: str, source: str, path: str) -> str:
        """What a link of the repository becomes on the page ``path``.

        Raises ``FileNotFoundError`` where the repository has no such file.
        """
        wanted = posixpath.normpath(posixpath.join(posixpath.dirname(source), target))
        if wanted not in self.places:
            self._add(wanted)
        return posixpath.relpath(self.places[wanted], posixpath.dirname(path) or ".")

    def _add(self, source: str) -> None:
        """Add a file of the repository that is no page of its own."""
        file = ROOT / source
        if not file.is_file():
            raise FileNotFoundError(source)
        if file.suffix in FILES:
            self.places[source] = self.keep(f"files/{source}", file.read_bytes())
            return
        self.places[source] = f"files/{source}.md"
        lines = file.read_text(encoding="utf-8").splitlines()
        left = f"\n{len(lines) - FIRST_LINES} more lines are in the repository.\n" if len(lines) > FIRST_LINES else ""
        block = fenced("\n".join(lines[:FIRST_LINES]), LANGUAGES.get(file.suffix, "text"))
        text = f"{UNSEARCHED}# {source}\n\n{block}{left}"
        self._file(self.places[source]).write_text(text, encoding="utf-8", newline="\n")

    def _file(self, path: str) -> Path:
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        return file


def build(folder: Path) -> Path:
    """Build the site in ``folder``, which is emptied. Returns the folder of the HTML.

    Raises ``BuildError`` where Zensical finds a fault, such as a link that leads nowhere.
    """
    shutil.rmtree(folder, ignore_errors=True)
    staging = Staging(folder / "pages", {page.source: page.path for page in pages() if page.source})
    _write_pages(staging)
    settings = (HERE / "zensical.toml").read_text(encoding="utf-8")
    (folder / "zensical.toml").write_text(settings.replace("[project]\n", f"[project]\n{_navigation()}\n", 1))
    command = [sys.executable, "-m", "zensical", "build", "--strict"]
    environment = {**os.environ, "NO_COLOR": "1"}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise BuildError(done.stdout + done.stderr)
    return folder / "site"


def _write_pages(staging: Staging) -> None:
    staging.keep("style.css", (HERE / "style.css").read_bytes())
    codes = {rule.code: rule_pages.path_of(rule) for rule in rule_pages.ordered()}
    for page in pages():
        if page.source is None:
            continue
        file = ROOT / page.source
        if file.suffix == ".ipynb":
            _write_notebook(staging, page.path, file)
            continue
        text = (ALONE if page.path == "index.md" else "") + adapt(file.read_text(encoding="utf-8"))
        staging.write(page.path, text, page.source)
        if page.source in WITH_RULES:
            staging.change(page.path, lambda text: link_codes(text, codes, "|"))
    for rule in rule_pages.ordered():
        path = rule_pages.path_of(rule)
        staging.write(path, rule_pages.render(rule))
        others = {code: posixpath.basename(other) for code, other in codes.items() if code != rule.code}
        staging.change(path, lambda text, others=others: link_codes(text, others))
    staging.write("reference/commands.md", commands.render())
    staging.write("reference/python.md", python_api.render())
    staging.write("reference/configuration.md", settings_page.render())
    (staging.folder / "example.md").write_text(example.PAGE, encoding="utf-8", newline="\n")
    for name, page in example.write_reports().items():
        staging.keep(f"reports/{name}", page.encode())


def _write_notebook(staging: Staging, path: str, file: Path) -> None:
    source = file.relative_to(ROOT).as_posix()

    def keep(name: str, content: bytes) -> str:
        figure = staging.keep(posixpath.join(posixpath.dirname(path), name), content)
        staging.places[posixpath.join(posixpath.dirname(source), name)] = figure
        return name

    staging.write(path, notebook_pages.render(file, keep), source)


def _navigation() -> str:
    """The navigation as a line of TOML."""
    sections = []
    for section in SECTIONS:
        entries = [(page.title, page.path) for page in section.pages]
        if section.title == "Rules":
            entries += [(f"{rule.code} {rule.name}", rule_pages.path_of(rule)) for rule in rule_pages.ordered()]
        listed = [f"{{ {json.dumps(title)} = {json.dumps(path)} }}" for title, path in entries]
        value = json.dumps(entries[0][1]) if len(entries) == 1 else f"[{', '.join(listed)}]"
        sections.append(f"{{ {json.dumps(section.title)} = {value} }}")
    return f"nav = [{', '.join(sections)}]"
