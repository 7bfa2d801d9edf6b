"""How long a page takes to open in headless Chromium, and how smoothly a drag moves it."""

from __future__ import annotations

import itertools
import os
import shutil
import statistics
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
PATIENCE_S = 120

OPENED = """
const after = (moment) => requestAnimationFrame(() => requestAnimationFrame(() => { window.opened = moment(); }));
const look = () => {
  if (performance.getEntriesByName('timeline drawn').length || (window.loaded && !document.querySelector('#timeline')))
    after(() => performance.now());
  else requestAnimationFrame(look);
};
addEventListener('load', () => { window.loaded = true; });
requestAnimationFrame(look);
"""
"""The second frame after the timeline is drawn; of a page without one, after it is loaded, scripts and all."""

FRAMES = """
window.frames_ = [];
(function next(now) { window.frames_.push(now); if (window.frames_) requestAnimationFrame(next); })(performance.now());
"""


@dataclass(frozen=True)
class Measured:
    megabytes: float
    open_ms: float | None
    """From the navigation on, the median of several; ``None`` when it did not open in ``PATIENCE_S``."""
    cpu_ms: float | None = None
    """Processor time of the page's main thread until then: what a busy machine does not change."""
    fps: float | None = None
    """Frames a second while a pointer drags; ``None`` where nothing can be dragged."""
    worst_ms: float | None = None
    """The longest time between two frames meanwhile."""


class Browser:
    """The system's Chromium. ``SYNCSCOPE_CHROMIUM`` names another one."""

    def __enter__(self) -> Browser:
        from playwright.sync_api import sync_playwright

        path = os.environ.get("SYNCSCOPE_CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
        self._driver = sync_playwright().start()
        self._browser = self._driver.chromium.launch(executable_path=path, args=ARGUMENTS)
        return self

    def __exit__(self, *_: object) -> None:
        self._browser.close()
        self._driver.stop()

    def measure(self, page: Path, times: int = 3, keys: str = "", drag: str | None = None) -> Measured:
        """Opens ``page``, presses ``keys`` on the element ``drag`` and drags it."""
        opened, busy = [], []
        size = page.stat().st_size / 1e6
        for _ in range(times):
            tab = self._open(page)
            if tab is None:
                return Measured(size, None)
            opened.append(tab.evaluate("window.opened"))
            busy.append(_cpu_ms(tab))
            last = tab if len(opened) == times else tab.close()
        moved = _drag(last, drag, keys) if drag else (None, None)
        last.close()
        return Measured(size, statistics.median(opened), statistics.median(busy), *moved)

    def _open(self, page: Path) -> Any:
        """A tab once the page has opened, ``None`` if that takes too long."""
        from playwright.sync_api import TimeoutError as TooLong

        tab = self._browser.new_page(viewport={"width": 1440, "height": 900})
        tab.set_default_timeout(PATIENCE_S * 1000)
        tab.add_init_script(OPENED)
        tab.metrics = tab.context.new_cdp_session(tab)
        tab.metrics.send("Performance.enable", {"timeDomain": "threadTicks"})
        end = time.monotonic() + PATIENCE_S
        try:
            tab.goto(page.resolve().as_uri(), wait_until="commit")
            while not tab.evaluate("window.opened || 0"):  # the page's policy lets no ``wait_for_function`` in
                if time.monotonic() > end:
                    return None
                tab.wait_for_timeout(50)
        except TooLong:
            return None
        return tab


def _cpu_ms(tab: Any) -> float:
    metrics = tab.metrics.send("Performance.getMetrics")["metrics"]
    return 1000 * next(float(one["value"]) for one in metrics if one["name"] == "TaskDuration")


def _drag(tab: Any, selector: str, keys: str, seconds: float = 3.0) -> tuple[float, float]:
    """Frames a second and the longest time between two, while a pointer drags to and fro."""
    target = tab.locator(selector).first
    target.scroll_into_view_if_needed()
    box = target.bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    tab.mouse.click(x, y)
    for key in keys:
        tab.keyboard.press(key)
    tab.wait_for_timeout(300)
    tab.mouse.move(x, y)
    tab.mouse.down()
    tab.evaluate(FRAMES)
    end, step = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        step += 1
        tab.mouse.move(x + 250 * abs(step % 100 - 50) / 50, y)
    frames = tab.evaluate("(() => { const all = window.frames_; window.frames_ = null; return all; })()")
    tab.mouse.up()
    gaps = [b - a for a, b in itertools.pairwise(frames)]
    return 1000 * len(gaps) / (frames[-1] - frames[0]), max(gaps)
