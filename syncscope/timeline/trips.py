"""Round trips: data that leaves the device and comes back."""

from __future__ import annotations

import numpy as np
import pandas as pd

from syncscope.timeline.intervals import Bools
from syncscope.timeline.places import Place

LEAST_BYTES = 1024
"""Bytes from which on an equal size is no coincidence of single values and small indices."""


def find_trips(copies: pd.DataFrame, waits: pd.DataFrame, places: tuple[Place, ...]) -> pd.DataFrame:
    """One row a trip: ``there`` and ``back``, index labels of ``copies`` (rows of ``COPIES``).

    A trip is a blocking copy to the host's ordinary memory, then the next copy from there of as many bytes, launched
    by the same thread in the same step when the first was over, from a place that does not lie before it.
    """
    sized = copies[((copies["bytes"] >= LEAST_BYTES) & (copies["launch"] >= 0) & (copies["step"] >= 0)).to_numpy(bool)]
    sized = sized[(sized["memory"] == "pageable").to_numpy(bool)]
    waited = np.append(waits["end"].to_numpy(np.int64), -1)[sized["wait"].to_numpy(np.int64)]
    sized = sized.assign(over=np.maximum(waited, sized["launch_end"]), label=sized.index)
    there = sized[(sized["direction"] == "DtoH").to_numpy(bool)].sort_values("over")
    back = sized[(sized["direction"] == "HtoD").to_numpy(bool)].sort_values("launch_ts")
    keys = ["tid", "step", "bytes"]
    pairs = pd.merge_asof(
        back[[*keys, "launch_ts", "label", "place"]],
        there[[*keys, "over", "label", "place"]],
        left_on="launch_ts", right_on="over", by=keys, suffixes=("_back", "_there"),
    )  # fmt: skip
    pairs = pairs.dropna(subset="label_there").drop_duplicates("label_there").astype({"label_there": "int64"})
    trips: pd.DataFrame = pairs[_further_down(pairs, places)].rename(
        columns={"label_there": "there", "label_back": "back"}
    )
    return trips[["there", "back"]].reset_index(drop=True)


def _further_down(pairs: pd.DataFrame, places: tuple[Place, ...]) -> Bools:
    columns = (pairs[name].astype("int64") for name in ("place_there", "place_back"))
    return np.array([_follows(places[there], places[back]) for there, back in zip(*columns, strict=True)], dtype=bool)


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
