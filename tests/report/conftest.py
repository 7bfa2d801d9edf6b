"""Pages, opened in a browser."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest


@dataclass
class Opened:
    """A page and everything it said or asked for."""

    page: Any
    errors: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)


@pytest.fixture
def show(browser: Any, tmp_path: Path) -> Iterator[Callable[..., Opened]]:
    """Opens a page's text from disk, at a width and in a colour scheme."""
    pages: list[Any] = []

    def opened(text: str, *, width: int = 1440, height: int = 900, scheme: str = "light", at: str = "") -> Opened:
        file = tmp_path / f"page{len(pages)}.html"
        file.write_text(text, encoding="utf-8", newline="\n")
        page = browser.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)
        page.set_default_timeout(5_000)
        pages.append(page)
        made = Opened(page)
        page.on("console", lambda message: made.errors.append(message.text) if message.type != "log" else None)
        page.on("pageerror", lambda error: made.errors.append(str(error)))
        page.on("request", lambda request: made.requests.append(request.url))
        page.goto(file.as_uri() + at, timeout=20_000)
        page.wait_for_selector("html[data-ready]", timeout=20_000)
        return made

    yield opened
    for page in pages:
        page.close()
