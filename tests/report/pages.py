"""Pages to open in Chromium, and what a reader sees of their timeline."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from syncscope.report.html import render
from syncscope.schema.findings import Finding
from syncscope.schema.ranks import BetweenRanks, RankBetween, WaitsFor
from syncscope.schema.report import Report
from tests.report.conftest import Opened
from tests.report.sample import findings, lanes, report, trace_info

Show = Callable[..., Opened]
"""The fixture ``show``."""


def sample() -> str:
    return render(report(), [lanes()])


def two_ranks() -> str:
    infos = [trace_info(f"out/rank{rank}.json", rank) for rank in range(2)]
    found: Sequence[Finding] = [msgspec.structs.replace(f, trace=rank) for rank in range(2) for f in findings(rank)]
    return render(report(infos, found), [lanes(info.path, info.rank) for info in infos])


def compared(ranks: int = 2) -> Report:
    """Ranks of which the last one holds all others for 2 ms a step."""
    infos = [trace_info(f"out/rank{rank}.json", rank) for rank in range(ranks)]
    found = [msgspec.structs.replace(f, trace=rank) for rank in range(ranks) for f in findings(rank)]
    last = ranks - 1
    rows = tuple(
        RankBetween(
            trace=rank, rank=rank, collectives=10, last=10 if rank == last else 0,
            waits_ms_per_step=0.0 if rank == last else 2.0, holds_ms_per_step=2.0 if rank == last else 0.0,
            waits_for=() if rank == last else (WaitsFor(trace=last, rank=last, ms_per_step=2.0),),
            clock_offset_ms=0.01 * rank, clock_spread_ms=0.002,
        )
        for rank in range(ranks)
    )  # fmt: skip
    between = BetweenRanks(steps=2, collectives=10, reference=0, ranks=rows)
    return msgspec.structs.replace(report(infos, found), between_ranks=between)


def x_range(page: Any) -> tuple[float, float]:
    """What the timeline shows, in ms since the step's begin, once it is drawn."""
    page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    frame = page.locator("#timeline-frame")
    return float(frame.get_attribute("data-from")), float(frame.get_attribute("data-to"))


def point(page: Any, ms: float, y: float) -> tuple[float, float]:
    """Where on the screen a time lies, ``y`` pixels under the timeline's upper edge."""
    page.locator("#timeline-frame").scroll_into_view_if_needed()
    low, high = x_range(page)
    box = page.locator("#timeline").bounding_box()
    left = 136 if box["width"] >= 560 else 78
    return box["x"] + left + (ms - low) / (high - low) * (box["width"] - left), box["y"] + y


def under(page: Any, ms: float) -> dict[str, tuple[int, str]]:
    """All bars at a time from top to bottom, as a pointer finds them: name → (y, the tip's text)."""
    x, top = point(page, ms, 0)
    tips = page.evaluate(
        """([x, top]) => {
        const [canvas, tip] = [document.getElementById('timeline'), document.getElementById('tip')], found = [];
        for (let y = 30; y < canvas.clientHeight; y += 2) {
          canvas.dispatchEvent(new PointerEvent('pointermove', { clientX: x, clientY: top + y, bubbles: true }));
          if (!tip.hidden) found.push([tip.querySelector('b').textContent, y, tip.textContent]);
        }
        return found; }""",
        [x, top],
    )
    found: dict[str, tuple[int, str]] = {}
    for name, y, text in tips:
        found.setdefault(name, (y, text))
    return found


def pixels(page: Any, ms: float, y: int, wide: int = 16, high: int = 16) -> set[str]:
    """The colours drawn around a time, ``y`` pixels down."""
    x, top = point(page, ms, y)
    box = page.locator("#timeline").bounding_box()
    numbers = page.evaluate(
        """([x, y, w, h]) => [...document.getElementById('timeline').getContext('2d').getImageData(x, y, w, h).data]""",
        [round(x - box["x"] - wide / 2), round(top - box["y"] - high / 2), wide, high],
    )
    return {"#" + bytes(numbers[i : i + 3]).hex() for i in range(0, len(numbers), 4)}


def drawn(page: Any) -> set[str]:
    """All colours of the timeline."""
    numbers = page.evaluate(
        """() => { const c = document.getElementById('timeline');
        return [...c.getContext('2d').getImageData(0, 0, c.width, c.height).data] }"""
    )
    return {"#" + bytes(numbers[i : i + 3]).hex() for i in range(0, len(numbers), 4)}


def nth(page: Any, number: int) -> Any:
    """The card with this place on the page, from 1."""
    return page.locator(".finding").nth(number - 1)


def copied_text(page: Any, number: int) -> str:
    """What a card copied: to the clipboard, else to where it can be copied by hand."""
    nth(page, number).locator("[role=status]:not(:empty)").wait_for()
    by_hand = nth(page, number).locator("textarea.by-hand")
    if by_hand.count():
        return str(by_hand.input_value())
    page.context.grant_permissions(["clipboard-read"])
    return str(page.evaluate("navigator.clipboard.readText()"))


def cards(page: Any) -> int:
    return int(page.locator(".finding:visible").count())
