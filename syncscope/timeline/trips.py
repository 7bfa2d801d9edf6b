"""Round trips: data that leaves the device and comes back."""

from __future__ import annotations

import numpy as np
import pandas as pd

from syncscope.timeline.places import Place

LEAST_BYTES = 1024
"""Bytes from which on an equal size is no coincidence of single values and small indices."""


def find_trips(copies: pd.DataFrame, waits: pd.DataFrame, places: tuple[Place, ...]) -> list[tuple[int, int]]:
    """For each trip the copy to the host and the one back, as index labels of ``copies`` (rows of ``COPIES``).

    A trip is a blocking copy to the host's ordinary memory, and one from there of as many bytes, launched by the same
    thread in the same step when the first was over, from a place that does not lie before it. Of several that went,
    the last comes back first.
    """
    sized = copies[((copies["bytes"] >= LEAST_BYTES) & (copies["launch"] >= 0) & (copies["step"] >= 0)).to_numpy(bool)]
    sized = sized[(sized["memory"] == "pageable").to_numpy(bool)]
    waited = np.append(waits["end"].to_numpy(np.int64), -1)[sized["wait"].to_numpy(np.int64)]
    leaves = (sized["direction"] == "DtoH").to_numpy(bool)
    over = np.maximum(waited, sized["launch_end"].to_numpy(np.int64))
    sized = sized.assign(when=np.where(leaves, over, sized["launch_ts"])).sort_values("when", kind="stable")
    trips: list[tuple[int, int]] = []
    away: dict[tuple[int, int, int], list[int]] = {}
    columns = (sized[name].tolist() for name in ("tid", "step", "bytes", "direction", "place"))
    for label, tid, step, size, direction, place in zip(sized.index.tolist(), *columns, strict=True):
        waiting = away.setdefault((tid, step, size), [])
        if direction == "DtoH":
            waiting.append(label)
        elif direction == "HtoD" and waiting:
            there = waiting.pop()
            if _follows(places[int(copies["place"].loc[there])], places[place]):
                trips.append((there, label))
    return trips


def _follows(there: Place, back: Place) -> bool:
    """Whether the second place lies behind the first in the program: where their stacks part, its line is not before.
    Otherwise it is the next round of a loop, which begins with new data."""
    if there.source != "hook" or back.source != "hook":
        return False
    for one, other in zip(there.chain, back.chain, strict=False):
        if one != other:
            same = (one.file, one.function) == (other.file, other.function)
            return not same or (other.line or 0) > (one.line or 0)
    return True
