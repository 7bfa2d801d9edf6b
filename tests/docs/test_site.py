"""The site is whole: rules, commands and names have their place, links lead somewhere, nothing comes from afar."""

from __future__ import annotations

import html
import re
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import typer

import syncscope
from docs.site import commands, python_api, rule_pages
from docs.site.build import BuildError, Staging, build
from docs.site.contents import ROOT, pages
from docs.site.inspection import inspect
from syncscope.cli import app
from syncscope.rules import RULES

LOOKED_AT = ("index.html", "rules/syn102.html", "reference/python.html", "example.html", "evidence.html")


def test_links_lead_somewhere_pages_are_reached_and_nothing_comes_from_another_host(site: Path) -> None:
    assert inspect(site) == []
    assert len(list(site.glob("rules/*.html"))) == len(RULES)


def test_the_example_is_a_report_that_names_no_folder_of_this_machine(site: Path) -> None:
    for name, line in {"one-gpu.html": "all_of_three.py", "two-ranks.html": "workload.py"}.items():
        page = (site / "reports" / name).read_text(encoding="utf-8")
        assert line in page and "dataset.ready" in page
        assert str(ROOT) not in page


def test_every_page_of_the_repository_is_part_of_the_site() -> None:
    shown = {page.source for page in pages()}
    assert {f"docs/{file.name}" for file in (ROOT / "docs").glob("*.md")} <= shown
    assert {"README.md", "CONTRIBUTING.md", "CHANGELOG.md"} <= shown


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code)
def test_the_page_of_a_rule_says_what_the_rule_says(rule: Any) -> None:
    page = rule_pages.render(rule)
    assert page.startswith(f"# {rule.code} {rule.name}\n")
    assert rule.summary in page
    for line in rule.doc.splitlines():
        assert line.strip().removesuffix(":") in page
    shown = re.sub(r"\\(.)|&(lt);", lambda match: match[1] or "<", page)
    for entry in rule.advice:
        assert entry.sentence.replace("{op}", "the op") in shown
        assert all(part.strip() in page for part in entry.before.splitlines())


def test_the_page_of_the_commands_has_every_option() -> None:
    page = html.unescape(commands.render())
    group: Any = typer.main.get_command(app)
    for name in group.commands:
        command = group.get_command(None, name)
        section = page.split(f"## syncscope {name}\n")[1].split("\n## ")[0]
        for parameter in command.params:
            hidden = parameter.param_type_name == "option" and parameter.hidden
            assert hidden or parameter.param_type_name == "argument" or f"{parameter.opts[0]}" in section


def test_the_page_on_python_has_every_name_that_is_exported_and_every_field_of_a_finding() -> None:
    page = python_api.render()
    assert {name for names in python_api.GROUPS.values() for name in names} == {*syncscope.__all__} - {"__version__"}
    section = page.split("### syncscope.Finding\n")[1].split("\n### ")[0]
    assert all(f"| `{name}` |" in section for name in syncscope.Finding.__struct_fields__)
    assert "mode: Mode = 'windows'" in page and "self" not in page.split("### syncscope.profile\n")[1].split("```")[1]


def test_a_link_to_a_file_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    staging = Staging(tmp_path)
    with pytest.raises(FileNotFoundError, match=r"docs/nothing\.md"):
        staging.write("page.md", "[a](nothing.md)", "docs/page.md")
    staging.write("page.md", "[a](../check)", "docs/page.md")
    assert (tmp_path / "page.md").read_text(encoding="utf-8") == "[a](files/check.md)\n"
    assert "exec python -m pytest" in (tmp_path / "files" / "check.md").read_text(encoding="utf-8")


def test_an_anchor_that_is_not_there_ends_the_build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("zensical", reason="Zensical is not installed")
    monkeypatch.setattr("docs.site.build._navigation", lambda: 'nav = [{ "Home" = "index.md" }]')
    monkeypatch.setattr("docs.site.build._write_pages", lambda staging: staging.write("index.md", "# A\n\n[b](#c)\n"))
    with pytest.raises(BuildError, match=r"index\.md:3"):
        build(tmp_path)


@pytest.fixture
def address(site: Path) -> Iterator[str]:
    """The site, served on this machine."""

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(site))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


def test_pages_fit_their_window_and_ask_no_other_host(browser: Any, address: str) -> None:
    asked: list[str] = []
    errors: list[str] = []
    for width, scheme in ((1440, "light"), (390, "dark")):
        tab = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
        tab.on("request", lambda request: asked.append(request.url))
        tab.on("pageerror", lambda error: errors.append(str(error)))
        for name in LOOKED_AT:
            tab.goto(address + name, timeout=20_000)
            tab.wait_for_selector("article h1", timeout=5_000)
            assert tab.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), f"{name} at {width} px"
        tab.close()
    assert [url for url in asked if not url.startswith((address, "data:", "blob:"))] == []
    assert errors == []
