"""What holds for every output: hostile names in it stay names, with and without a verdict."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable
from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest
from markdown_it import MarkdownIt
from rich.console import Console

from syncscope.report import github, html, junit, markdown, sarif
from syncscope.report.escape import terminal
from syncscope.report.text import show
from syncscope.schema.report import Report
from syncscope.schema.verdict import Verdict
from tests.report import sample_run
from tests.report.hostile import HOSTILE, spoiled, spoiled_verdict, unseen

Render = Callable[[Report, Verdict | None], str]

each_name = pytest.mark.parametrize("name", HOSTILE.values(), ids=HOSTILE)
gated = pytest.mark.parametrize("gated", [False, True], ids=["report", "verdict"])


def text(report: Report, verdict: Verdict | None) -> str:
    buffer = io.StringIO()
    show(report, verdict, Console(file=buffer, width=80, color_system=None))
    return buffer.getvalue()


def rendered(render: Render, name: str, gated: bool) -> str:
    report = sample_run.report()
    return render(spoiled(report, name), spoiled_verdict(report, name) if gated else None)


def obeyed(output: str) -> list[str]:
    """The lines of a log that the runner of GitHub Actions would take for a command."""
    lines = re.split(r"[\r\n\v\f\x85\u2028\u2029]", output)
    return [line for line in lines if line.lstrip().startswith("::") or re.search(r"##\[[\w-]+[^\]]*\]", line)]


def understood(line: str) -> tuple[dict[str, str], str]:
    """Properties and message of a command, read as the runner reads it."""
    head, said = line[2:].split("::", 1)
    pairs = (part.split("=", 1) for part in head.split(" ", 1)[1].split(",") if "=" in part)
    signs = (("%0D", "\r"), ("%0A", "\n"), ("%3A", ":"), ("%2C", ","), ("%25", "%"))

    def plain(text: str) -> str:
        for escape, sign in signs:
            text = text.replace(escape, sign)
        return text

    return {key: plain(value) for key, value in pairs}, plain(said)


@gated
@each_name
def test_in_text(name: str, gated: bool) -> None:
    output = rendered(text, name, gated)
    assert unseen(output) == []
    assert obeyed(output) == []


@gated
@each_name
def test_in_github_annotations(name: str, gated: bool) -> None:
    output = rendered(github.render, name, gated)
    lines, plain = output.splitlines(), rendered(github.render, "name", gated).splitlines()
    assert unseen(output) == []
    assert [line.split(" ")[0] for line in lines] == [line.split(" ")[0] for line in plain]
    commands = obeyed(output)
    assert commands == [line for line in lines if not line.startswith("syncscope: ")]
    for properties, said in map(understood, commands):
        assert set(properties) <= {"file", "line", "col", "endColumn", "title"}
        assert properties.get("file") in (None, terminal(name))
        assert terminal(name).strip() in properties["title"] + said


@gated
@each_name
def test_in_junit(name: str, gated: bool) -> None:
    output = rendered(junit.render, name, gated)
    assert unseen(output) == []
    assert obeyed(output) == []
    root, plain = (ElementTree.fromstring(out) for out in (output, rendered(junit.render, "name", gated)))
    assert [element.tag for element in root.iter()] == [element.tag for element in plain.iter()]


@gated
@each_name
def test_in_sarif(name: str, gated: bool) -> None:
    output = rendered(sarif.render, name, gated)
    assert unseen(output) == []
    assert obeyed(output) == []
    (run,) = json.loads(output)["runs"]
    notices = [*run["invocations"][0]["toolExecutionNotifications"]]
    notices += run["invocations"][0]["toolConfigurationNotifications"]
    for message in (entry["message"]["text"] for entry in (*run["results"], *notices)):
        assert not re.search(r"\]\(|\{\d+\}", message)
    for result in run["results"]:
        (location,) = result["locations"]
        uri = location["physicalLocation"]["artifactLocation"]["uri"]
        assert re.fullmatch(r"(?:file:///)?[A-Za-z0-9_.~%/-]+", uri)
        assert ".." not in uri.split("/") or "uriBaseId" not in location["physicalLocation"]["artifactLocation"]


class Tags(HTMLParser):
    """The tags, attributes and text outside code of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, tuple[object, ...]]] = []
        self.prose = ""
        self._code = 0
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, tuple(attrs)))
        self._code += tag == "code"

    def handle_endtag(self, tag: str) -> None:
        self._code -= tag == "code"

    def handle_data(self, data: str) -> None:
        self.prose += "" if self._code else data


@gated
@each_name
def test_in_markdown(name: str, gated: bool) -> None:
    output = rendered(markdown.render, name, gated)
    assert unseen(output) == []
    assert obeyed(output) == []
    reader = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
    page, plain = (Tags(reader.render(out)) for out in (output, rendered(markdown.render, "name", gated)))
    if name:  # an empty expression is left out
        assert [tag for tag in page.tags if tag[0] != "code"] == [tag for tag in plain.tags if tag[0] != "code"]
    assert {tag for tag, _ in page.tags} <= {"h3", "table", "thead", "tbody", "tr", "th", "td", "br", "strong", "code",
                                            "ul", "li", "p"}  # fmt: skip
    assert not re.search(r"[@#]\w", page.prose)


@each_name
def test_in_json(name: str) -> None:
    from syncscope.cli.output import RENDERERS, Content

    report = spoiled(sample_run.report(), name)
    output = RENDERERS["json"](Content(report))
    assert Report.from_json(output) == report.without_numbers()
    assert obeyed(output) == []


@each_name
def test_in_html(name: str) -> None:
    """Names are data, which the page's scripts show as text: no tag is added, and the data is the report."""
    page, plain = (html.render(spoiled(sample_run.report(), text)) for text in (name, "name"))
    assert re.findall(r"<[/!]?[a-zA-Z-]+", page) == re.findall(r"<[/!]?[a-zA-Z-]+", plain)
    data = re.search(r'<script type="application/json"[^>]*>(.*?)</script>', page, re.DOTALL)
    assert data is not None
    assert json.loads(data[1])["report"]["findings"][0]["message"] == name


@pytest.mark.parametrize("render", [text, github.render, junit.render, markdown.render, sarif.render, html.render])
def test_every_format_says_how_often_in_the_run(render: Callable[[Report, Verdict | None], str]) -> None:
    made = sample_run.report()
    output = html.render(made) if render is html.render else render(made, None)
    plain = " ".join(output.replace("\\", "").lower().split())
    for words in ("every 10 steps (41 in 412)", "every step", "in evaluate: 3 a step"):
        assert words in plain
    assert ("in no recorded step: saving not known" if render is text else "no window recorded it") in plain
