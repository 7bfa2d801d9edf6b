"""The picture of the table: predicted against measured savings, both as shares of the step, as an SVG."""

from __future__ import annotations

import html
import math
from collections.abc import Callable, Iterator, Sequence

from benchmarks.savings.scores import Row

SIDE, MARGIN = 560, 56
"""Pixels of the plot's square, and around it."""
COLOURS = {"wait": "#2563eb", "transform": "#d97706", "blocked": "#9ca3af"}
LABELS = {
    "wait": "replay, fix removes waits",
    "transform": "replay, fix changes what is done",
    "blocked": "blocked time taken as the saving",
}

Place = Callable[[float], float]
"""Share of the step → pixel."""


def draw(rows: Sequence[Row]) -> str:
    """An SVG document. Points on the diagonal are right; bars are the measured interval and the predicted range."""
    shares = [share for row in rows for share in _shares(row)]
    least, most = min(0.0, *shares), max(0.1, *shares)
    low, high = math.floor(least * 10) / 10, math.ceil(most * 10) / 10

    def x(share: float) -> float:
        return round(MARGIN + SIDE * (share - low) / (high - low), 1)

    def y(share: float) -> float:
        return round(MARGIN + SIDE * (high - share) / (high - low), 1)

    size = SIDE + 2 * MARGIN
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size} {size}" font-family="sans-serif" font-size="12">',
        f'<rect width="{size}" height="{size}" fill="white"/>',
        *(
            f'<path d="M{x(low)} {y(s)}H{x(high)}M{x(s)} {y(low)}V{y(high)}" stroke="#e5e7eb"/>'
            for s in _ticks(low, high)
        ),
        *(f'<text x="{x(s)}" y="{size - MARGIN + 18}" text-anchor="middle">{s:.0%}</text>' for s in _ticks(low, high)),
        *(f'<text x="{MARGIN - 8}" y="{y(s) + 4}" text-anchor="end">{s:.0%}</text>' for s in _ticks(low, high)),
        f'<path d="M{x(low)} {y(low)}L{x(high)} {y(high)}" stroke="#6b7280"/>',
        f'<text x="{size / 2}" y="{size - 8}" text-anchor="middle">measured saving, share of the step</text>',
        f'<text transform="translate(14 {size / 2}) rotate(-90)" text-anchor="middle">answer, share of the step</text>',
    ]
    for row in rows:
        parts += _marks(row, x, y)
    for number, (kind, label) in enumerate(LABELS.items()):
        top = MARGIN + 16 + 18 * number
        parts.append(f'<circle cx="{MARGIN + 14}" cy="{top - 4}" r="4" fill="{COLOURS[kind]}"/>')
        parts.append(f'<text x="{MARGIN + 24}" y="{top}">{label}</text>')
    return "\n".join([*parts, "</svg>", ""])


def _shares(row: Row) -> Iterator[float]:
    """Everything of a row that is drawn, as shares of the step."""
    measured, predicted = row.measured, row.predicted
    drawn = (measured.low, measured.high, predicted.saving, predicted.low, predicted.high, predicted.blocked)
    return (value / measured.step for value in drawn if value is not None)


def _ticks(low: float, high: float) -> list[float]:
    return [tenth / 10 for tenth in range(round(low * 10), round(high * 10) + 1)]


def _marks(row: Row, x: Place, y: Place) -> Iterator[str]:
    step, measured, predicted = row.measured.step, row.measured, row.predicted
    at = x(measured.saving / step)
    if predicted.blocked is not None:
        yield f'<circle cx="{at}" cy="{y(predicted.blocked / step)}" r="2.5" fill="{COLOURS["blocked"]}"/>'
    if predicted.saving is None:
        return
    colour, across = COLOURS[row.pair.kind], y(predicted.saving / step)
    bars = f"M{x(measured.low / step)} {across}H{x(measured.high / step)}"
    if predicted.low is not None and predicted.high is not None:
        bars += f"M{at} {y(predicted.low / step)}V{y(predicted.high / step)}"
    yield f'<path d="{bars}" stroke="{colour}" opacity="0.5"/>'
    title = html.escape(
        f"{row.pair.name}, {row.mode}: measured {measured.saving:.3f}, predicted {predicted.saving:.3f} ms"
    )
    fill = colour if row.mode == "windows" else "white"
    yield f'<circle cx="{at}" cy="{across}" r="4" fill="{fill}" stroke="{colour}"><title>{title}</title></circle>'
