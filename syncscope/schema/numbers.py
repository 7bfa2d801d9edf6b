"""Numbers as recordings hold them, and times as findings and outputs write them."""

from typing import Annotated

import msgspec

Number = Annotated[int, msgspec.Meta(ge=-(1 << 62), le=1 << 62)]
"""A number that stays an int64 when another one is added. Readers refuse any other."""


LEAST_SECONDS_MS = 9999.5
"""From here on a time is written in seconds."""


def milliseconds(ms: float) -> str:
    """``1.63 ms``, ``163 ms``, ``12.4 µs``, ``12.7 s``: three digits in the unit that suits."""
    if ms >= LEAST_SECONDS_MS:
        return f"{three_digits(ms / 1000)} s"
    return f"{three_digits(ms * 1000)} µs" if ms < 0.1 else f"{three_digits(ms)} ms"


def three_digits(number: float) -> str:
    """``1.63``, ``163``, ``2350``: three digits, and all of those before the point."""
    return f"{number:.0f}" if number >= 999.5 else f"{number:.3g}"


def percent(part: float, whole: float | None) -> str:
    """``27 %``, ``2.6 %``, ``under 1 %``: two digits; a dash when there is no whole."""
    if not whole:
        return "—"
    value = 100 * part / whole
    if 0 < value < 1:
        return "under 1 %"
    return f"{value:.2g} %" if value < 9.95 else f"{value:.0f} %"
