"""Numbers as every output writes them."""

from __future__ import annotations

from syncscope.schema.numbers import milliseconds as milliseconds
from syncscope.schema.numbers import percent as percent


def between(low: float, high: float) -> str:
    """``0.1 to 0.4 ms``, ``0 to 3 ms``: the unit once where it is the same. Less than a nanosecond is 0."""
    return span("0" if low < 1e-6 else milliseconds(low), " to ", milliseconds(high))


def span(first: str, word: str, last: str) -> str:
    """Two amounts with a word between them, and the unit once where it is the same: ``14.5 → 14.1 ms``."""
    unit = last.rpartition(" ")[2]
    return f"{first.removesuffix(f' {unit}')}{word}{last}"


def size(number: int) -> str:
    """``12 B``, ``4 MiB``: three digits in the unit that suits."""
    value, unit = float(number), "B"
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if value < 1000 or unit == "TiB":
            break
        value /= 1024
    return f"{value:.3g} {unit}"


def count(number: int, noun: str, plural: str = "") -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {plural or noun + 's'}"


def seconds(value: float) -> str:
    """``35.6 ms``, ``61.2 s``, ``12 min 5 s``, ``3 h 2 min``."""
    if 0 < value < 1:
        return milliseconds(1000 * value)
    if value < 300:
        return f"{value:.3g} s"
    minutes, rest = divmod(round(value), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s" if rest else f"{minutes} min"
    hours, minutes = divmod(round(value / 60), 60)
    return f"{hours} h {minutes} min" if minutes else f"{hours} h"
