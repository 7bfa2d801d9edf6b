"""Whether everybody can use the page: names, landmarks, and what axe-core finds."""

from __future__ import annotations

from typing import Any

import pytest

from syncscope.report.html import render
from tests.report.pages import Show, compared, sample, two_ranks
from tests.report.sample import lanes


def serious(page: Any) -> list[str]:
    """What axe-core finds in the page that is serious or critical."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    found = axe.run(page).response["violations"]
    return [
        f"{one['id']}: {one['nodes'][0]['html'][:120]}" for one in found if one["impact"] in ("serious", "critical")
    ]


@pytest.mark.parametrize(
    ("width", "scheme"),
    [
        (1440, "light"),
        (390, "dark"),
        pytest.param(1440, "dark", marks=pytest.mark.slow),
        pytest.param(390, "light", marks=pytest.mark.slow),
    ],
)
def test_axe_finds_nothing_serious(show: Show, width: int, scheme: str) -> None:
    page = show(render(compared(), [lanes("out/rank0.json", 0)]), width=width, scheme=scheme).page
    folded = page.locator(".finding:visible:not([open]) > summary")
    while folded.count():
        folded.first.click()
    page.locator("#timeline-frame").focus()
    page.keyboard.press("n")
    assert serious(page) == []


def test_axe_would_find_something(show: Show) -> None:
    page = show(sample().replace('<html lang="en">', "<html>")).page
    assert any(said.startswith("html-has-lang") for said in serious(page))


def test_it_has_landmarks_names_and_one_main_heading(show: Show) -> None:
    page = show(two_ranks()).page
    assert page.locator("h1").count() == 1
    assert page.locator("main").count() == 1
    unnamed = page.evaluate(
        """() => [...document.querySelectorAll('button, select, input, a[href]')].filter((node) =>
        !(node.textContent.trim() || node.getAttribute('aria-label') || node.labels?.length)).map((n) => n.outerHTML)"""
    )
    assert unnamed == []
    assert page.locator("html").get_attribute("lang") == "en"
