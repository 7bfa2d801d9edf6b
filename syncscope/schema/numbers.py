"""Numbers as recordings hold them, and times as findings and outputs write them."""

from __future__ import annotations

from typing import Annotated

import msgspec

Number = Annotated[int, msgspec.Meta(ge=-(1 << 62), le=1 << 62)]
"""A number that stays an int64 when another one is added. Readers refuse any other."""


def milliseconds(ms: float) -> str:
    """``1.63 ms``, ``163 ms``, ``12.4 µs``: three digits in the unit that suits."""
    if ms < 0.1:
        return f"{ms * 1000:.3g} µs"
    return f"{ms:.0f} ms" if ms >= 1000 else f"{ms:.3g} ms"
