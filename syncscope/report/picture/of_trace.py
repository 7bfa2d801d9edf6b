"""Which picture is of which trace."""

from __future__ import annotations

from collections.abc import Sequence

from syncscope.report.picture.lanes import Lanes
from syncscope.schema.report import TraceInfo


def find_picture(info: TraceInfo, lanes: Sequence[Lanes]) -> int | None:
    """The number of the picture of a trace: of its file, and of its rank where the file holds several."""
    found = [number for number, one in enumerate(lanes) if one.path == info.path]
    of_rank = [number for number in found if lanes[number].rank == info.rank]
    return next(iter(of_rank or found), None)
