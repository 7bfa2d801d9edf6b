"""Draw the README's picture, the report on a recording made on an H200: ``python docs/picture.py``.

Needs Playwright and a Chromium, as the page's tests do.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

from syncscope.analysis.analyze import analyze_files, choose_engine
from syncscope.report import html

HERE = Path(__file__).parent
TRACE = HERE.parent / "benchmarks" / "savings" / "recordings" / "all_of_three.medium" / "trace.json.gz"
PICTURES = {"light": HERE / "report.png", "dark": HERE / "report-dark.png"}
WIDTH, MARGIN = 1200, 8
"""Pixels of the page, and below what is shown of it."""

FOLD = "for (const card of document.querySelectorAll('#cards details')) card.open = false"
SHOWN = "Math.ceil(document.querySelector('#legend').getBoundingClientRect().bottom + window.scrollY)"


def page() -> str:
    return html.render(*analyze_files([str(TRACE)], choose_engine(), pictures=True))


def main() -> None:
    names = ("chromium", "chromium-browser", "google-chrome")
    path = os.environ.get("SYNCSCOPE_CHROMIUM") or next(filter(None, map(shutil.which, names)), None)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        file = Path(folder) / "report.html"
        file.write_text(page(), encoding="utf-8", newline="\n")
        browser = driver.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
        for scheme, picture in PICTURES.items():
            tab = browser.new_page(viewport={"width": WIDTH, "height": 900}, color_scheme=scheme)
            tab.goto(file.as_uri())
            tab.wait_for_selector("html[data-ready]")
            tab.evaluate(FOLD)
            tab.wait_for_timeout(500)  # the canvas draws itself anew
            clip = {"x": 0, "y": 0, "width": WIDTH, "height": tab.evaluate(SHOWN) + MARGIN}
            tab.screenshot(path=str(picture), clip=clip, full_page=True)
        browser.close()


if __name__ == "__main__":
    main()
