"""What Dynamo has noted of all that it compiled so far."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def noted_breaks(utils: Any) -> Sequence[Any]:
    found: Sequence[Any] = getattr(utils, "graph_break_reasons", ())
    return found


def count_graphs(utils: Any) -> int:
    """How many graphs Dynamo has made. Asking for a counter that is not there must not make it."""
    return int(getattr(utils, "counters", {}).get("stats", {}).get("unique_graphs", 0))


def is_unsupported(error: BaseException | None) -> bool:
    """Whether Dynamo lets a whole function run uncompiled."""
    return any(kind.__name__ in ("Unsupported", "UserError") for kind in type(error).__mro__)
