"""A page is the same for GitHub and in the site."""

from __future__ import annotations

import json
from pathlib import Path

from docs.site import notebook_pages
from docs.site.markdown import adapt, cell, fenced, link_codes, move_links
from docs.site.python_api import describe, signature


def test_a_list_and_a_table_begin_after_an_empty_line() -> None:
    assert adapt("text\n- one\n- two\n") == "text\n\n- one\n- two\n"
    assert adapt("text\n| a |\n|---|\n") == "text\n\n| a |\n|---|\n"
    assert adapt("- one\n  goes on\n- two\n") == "- one\n  goes on\n- two\n"


def test_code_stays_as_it_is() -> None:
    block = "```text\nabove\n- no list <!-- kept --> [a](b.md)\n```\n"
    assert adapt(block) == block
    assert move_links(block, lambda _: "moved") == block
    assert move_links("`[a](b.md)` [a](b.md)", lambda _: "moved") == "`[a](b.md)` [a](moved)\n"


def test_comments_go_and_a_pipe_in_the_code_of_a_table_needs_no_escape() -> None:
    assert adapt("<!-- note -->\n| `a\\|b` | c \\| d |\n") == "\n| `a|b` | c \\| d |\n"


def test_links_within_the_repository_are_moved_with_their_anchors() -> None:
    text = '[a](b.md#c) [d](https://x.org/b.md) [e](#f) <img src="g.png">'
    assert move_links(text, str.upper) == '[a](B.MD#c) [d](https://x.org/b.md) [e](#f) <img src="G.PNG">\n'


def test_codes_become_links_in_the_rows_that_are_asked_for() -> None:
    text = "# SYN102\nSYN102\n| SYN102 | `SYN102` |\n"
    assert link_codes(text, {"SYN102": "s.md"}, "|") == "# SYN102\nSYN102\n| [SYN102](s.md) | `SYN102` |\n"
    assert link_codes(text, {"SYN102": "s.md"}).startswith("# SYN102\n[SYN102](s.md)\n")


def test_names_stay_names_in_a_cell_and_in_a_block() -> None:
    assert cell("a|b <c>\n[d]") == "a\\|b &lt;c>\\ [d]".replace("\\ [", " \\[")
    assert fenced("```\n") == "````python\n```\n````\n"


def test_a_docstring_becomes_markdown() -> None:
    shown = describe("Read ``x``, see :class:`.Y`.\n\n::\n\n    with a:\n        b()\n\nThen go on.")
    assert shown == "Read `x`, see `Y`.\n\n\n\n```python\nwith a:\n    b()\n```\n\nThen go on.\n"


def test_a_signature_keeps_its_defaults_and_its_kinds() -> None:
    def function(path: str, *more: int, mode: str = "fast") -> None: ...

    def keyword(path: str, *, mode: str = "fast"): ...

    assert signature(function) == "(path: str, *more: int, mode: str = 'fast') -> None"
    assert signature(keyword) == "(path: str, *, mode: str = 'fast')"


def test_a_notebook_shows_its_text_its_code_and_what_needs_no_script(tmp_path: Path) -> None:
    outputs = [
        {"output_type": "display_data", "data": {"image/svg+xml": "<svg/>", "text/plain": "figure"}},
        {"output_type": "display_data", "data": {"text/html": "<script>run()</script>", "text/plain": "<plain>"}},
        {"output_type": "stream", "text": ["said\n"]},
    ]
    cells = [
        {"cell_type": "markdown", "source": ["# Title\n"]},
        {"cell_type": "code", "source": "x = 1", "outputs": outputs},
        {"cell_type": "code", "source": "\n".join("y = 2" for _ in range(30)), "outputs": []},
    ]
    file = tmp_path / "book.ipynb"
    file.write_text(json.dumps({"cells": cells}), encoding="utf-8")
    kept: dict[str, bytes] = {}

    def keep(name: str, content: bytes) -> str:
        kept[name] = content
        return name

    page = notebook_pages.render(file, keep)
    assert page.startswith("# Title\n") and "```python\nx = 1\n```" in page
    assert kept == {"book-1-0.svg": b"<svg/>"} and "![figure](book-1-0.svg)" in page
    assert "<pre>&lt;plain&gt;</pre>" in page and "run()" not in page
    assert "```text\nsaid\n```" in page and '??? note "Code"' in page
