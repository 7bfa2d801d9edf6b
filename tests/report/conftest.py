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

    def __post_init__(self) -> None:
        self.listeners: dict[str, Callable[[Any], None]] = {
            "console": lambda message: self.errors.append(message.text) if message.type != "log" else None,
            "pageerror": lambda error: self.errors.append(str(error)),
            "request": lambda request: self.requests.append(request.url),
        }


@pytest.fixture(scope="session")
def tabs(browser: Any) -> list[Any]:
    """Tabs that no test uses. To open one takes Chromium longer than to load a report into it."""
    return []


def fresh(browser: Any, tabs: list[Any], width: int, height: int, scheme: str) -> Any:
    """An empty tab, as a new one would be: all that a report keeps is in its document and its address."""
    page = tabs.pop() if tabs else browser.new_page()
    page.set_viewport_size({"width": width, "height": height})
    page.emulate_media(media="null", color_scheme=scheme)
    page.mouse.move(0, 0)
    page.set_default_timeout(5_000)
    return page


@pytest.fixture
def show(
    browser: Any, tabs: list[Any], tmp_path: Path, request: pytest.FixtureRequest
) -> Iterator[Callable[..., Opened]]:
    """Opens a page's text from disk, at a width and in a colour scheme."""
    every: list[Opened] = []
    failed = request.session.testsfailed

    def opened(text: str, *, width: int = 1440, height: int = 900, scheme: str = "light", at: str = "") -> Opened:
        file = tmp_path / f"page{len(every)}.html"
        file.write_text(text, encoding="utf-8", newline="\n")
        made = Opened(fresh(browser, tabs, width, height, scheme))
        every.append(made)
        for event, heard in made.listeners.items():
            made.page.on(event, heard)
        made.page.goto(file.as_uri() + at, timeout=20_000)
        made.page.wait_for_selector("html[data-ready]", timeout=20_000)
        return made

    yield opened
    for made in every:
        if request.session.testsfailed > failed:
            made.page.close()  # a key or a button may be down
            continue
        for event, heard in made.listeners.items():
            made.page.remove_listener(event, heard)
        made.page.context.clear_permissions()
        made.page.goto("about:blank")
        tabs.append(made.page)
