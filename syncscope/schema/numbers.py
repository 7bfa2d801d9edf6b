"""Numbers as recordings hold them."""

from __future__ import annotations

from typing import Annotated

import msgspec

Number = Annotated[int, msgspec.Meta(ge=-(1 << 62), le=1 << 62)]
"""A number that stays an int64 when another one is added. Readers refuse any other."""
