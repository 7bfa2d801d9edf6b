"""A notebook as a page: its text, its code, and the outputs that it was saved with."""

from __future__ import annotations

import base64
import html
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from textwrap import indent
from typing import Any

from docs.site.markdown import adapt, fenced

IMAGES = {"image/svg+xml": "svg", "image/png": "png"}

LONG = 12
"""Lines of code that are folded."""

Keep = Callable[[str, bytes], str]
"""Keeps a file beside the page, by its name, and returns the link to it."""


def render(path: Path, keep: Keep) -> str:
    """The page of a notebook (nbformat 4)."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return "\n".join(part for number, cell in enumerate(cells) for part in _cell(cell, f"{path.stem}-{number}", keep))


def _cell(cell: dict[str, Any], name: str, keep: Keep) -> Iterator[str]:
    source = _text(cell["source"])
    if cell["cell_type"] == "markdown":
        yield adapt(source)
    elif cell["cell_type"] == "code" and source:
        block = fenced(source)
        yield block if source.count("\n") < LONG else f'??? note "Code"\n\n{indent(block, "    ")}'
        for number, output in enumerate(cell["outputs"]):
            yield _output(output, f"{name}-{number}", keep)


def _output(output: dict[str, Any], name: str, keep: Keep) -> str:
    """The richest form that needs no script."""
    if "text" in output:
        return fenced(_text(output["text"]), "text")
    data = output.get("data", {})
    for kind, ending in IMAGES.items():
        if kind in data:
            content = _text(data[kind])
            raw = content.encode() if ending == "svg" else base64.b64decode(content)
            return f"![figure]({keep(f'{name}.{ending}', raw)})\n"
    if "text/markdown" in data:
        return adapt(_text(data["text/markdown"]))
    shown = _text(data.get("text/html", ""))
    if shown and "<script" not in shown:
        return f'<div class="output">\n{_in_one_block(shown)}\n</div>\n'
    plain = _text(data.get("text/plain", ""))
    return f"<pre>{html.escape(plain)}</pre>\n" if plain else ""


def _in_one_block(shown: str) -> str:
    """HTML without the empty lines that would end it in Markdown."""
    return "\n".join(line for line in shown.splitlines() if line.strip())


def _text(lines: str | list[str]) -> str:
    return lines if isinstance(lines, str) else "".join(lines)
