"""The inspection of a site finds what is wrong with it."""

from __future__ import annotations

from pathlib import Path

import pytest

from docs.site.inspection import inspect

START = '<h1 id="top">Start</h1><a href="other.html#part">other</a>'
OTHER = '<h1 id="part">Other</h1><a href="./index.html#top">back</a><a href="https://example.org/">away</a>'


def site(folder: Path, **changed: str) -> list[str]:
    files = {"index.html": START, "other.html": OTHER} | {
        name.replace("_", "."): text for name, text in changed.items()
    }
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    return inspect(folder)


def test_a_whole_site_has_no_problems(tmp_path: Path) -> None:
    assert site(tmp_path) == []


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('<a href="missing.html">', "other.html: missing.html leads nowhere"),
        ('<a href="index.html#missing">', "other.html: index.html#missing leads nowhere"),
        ('<a href="#missing">', "other.html: #missing leads nowhere"),
        ('<img src="missing.png">', "other.html: missing.png leads nowhere"),
        ('<script src="https://cdn.example.org/a.js">', "other.html: loads https://cdn.example.org/a.js"),
        ('<link rel="stylesheet" href="//fonts.example.org/b">', "other.html: loads //fonts.example.org/b"),
        ('<p style="background: url(https://example.org/c.png)">', "other.html: loads url(https://example.org/c.png"),
    ],
)
def test_a_fault_is_named(tmp_path: Path, text: str, problem: str) -> None:
    assert site(tmp_path, other_html=OTHER + text) == [problem]


def test_a_page_that_nobody_links_to_is_named(tmp_path: Path) -> None:
    assert site(tmp_path, lost_html="") == ["lost.html: no page links to it"]


def test_a_style_that_loads_from_another_host_is_named(tmp_path: Path) -> None:
    assert site(tmp_path, a_css='@import "https://example.org/d.css";') == [
        'a.css: loads @import "https://example.org/d.css'
    ]
