"""Where a rank meets the others: its collectives, with what its device waited for before each."""

from __future__ import annotations

import numpy as np
import pandas as pd

from syncscope.schema.report import Collective, Delay, Meetings
from syncscope.timeline.intervals import Ints
from syncscope.timeline.places import Place

MOST_OF_A_KIND, MOST_STEPS = 8, 32
"""Meetings of one kind kept of a step: collectives in a row are summed to make do; and steps kept, the first ones."""

MOST_DELAYS, LEAST_DELAY = 4, 10_000
"""Kinds of idle time kept of a meeting, and the shortest in ns."""

POINT_TO_POINT = ("send", "recv", "send_recv")
"""Not all ranks take part, and the two that do may do different things meanwhile."""


def places_behind(idle: pd.DataFrame, waits: pd.DataFrame, loads: pd.DataFrame) -> Ints:
    """For each bubble the place of the fetch of a batch or the wait that it is due to, 0 for nowhere."""
    loads = loads.sort_values("ts", kind="stable")
    emptied = np.append(waits["place"].to_numpy(np.int64), 0)[idle["emptied_by"].to_numpy(np.int64)]
    fetched = np.searchsorted(loads["ts"].to_numpy(np.int64), idle["end"].to_numpy(np.int64), side="left") - 1
    loading = (idle["cause"] == "data loading").to_numpy(bool) & (fetched >= 0)
    return np.where(loading, np.append(loads["place"].to_numpy(np.int64), 0)[fetched], emptied)


def find_meetings(
    collectives: pd.DataFrame,
    idle: pd.DataFrame,
    behind: Ints,
    numbers: Ints,
    places: tuple[Place, ...],
    base_ns: int | None = None,
) -> Meetings | None:
    """The meetings of the steps (of the whole trace, as step 0, where it has no steps).

    ``collectives`` are those of one device, ``idle`` its bubbles, ``behind`` as of ``places_behind``; ``numbers`` are
    those of the steps.
    """
    table = collectives[~collectives["name"].isin(POINT_TO_POINT).to_numpy(bool)]
    inside = table["step"].between(0, MOST_STEPS - 1) | (not len(numbers))
    table = table[inside.to_numpy(bool)].sort_values("ts", kind="stable")
    if not len(table):
        return None
    table = table.assign(
        number=np.append(numbers, 0)[table["step"].to_numpy(np.int64)],
        what=table["name"] + (" of group " + table["group"]).where(table["group"] != "", ""),
    )
    table["block"] = _blocks(table)
    # A bubble delays the collective that comes next.
    slot = np.searchsorted(table["ts"].to_numpy(np.int64), idle["end"].to_numpy(np.int64), side="left")
    block = np.append(table["block"].to_numpy(np.int64), -1)[slot]
    bubbles = idle[["dur", "cause"]].assign(behind=behind, block=block)
    delays: dict[Delay, int] = {}
    lost = {number: _delays(mine, delays, places) for number, mine in bubbles.groupby("block")}
    rows = [_row(part, lost.get(number, {})) for number, part in table.groupby("block", sort=True)]
    return Meetings(collectives=tuple(rows), delays=tuple(delays), base_ns=base_ns)


def _blocks(table: pd.DataFrame) -> Ints:
    """The number of the meeting that each collective belongs to: of one step and one kind. All ranks split alike."""
    kind = table.groupby(["number", "what"])
    size = -(-kind["ts"].transform("size") // MOST_OF_A_KIND)
    return table.groupby(["number", "what", kind.cumcount() // size], sort=False).ngroup().to_numpy().astype(np.int64)


def _delays(bubbles: pd.DataFrame, known: dict[Delay, int], places: tuple[Place, ...]) -> dict[int, int]:
    """Idle ns by what they are due to, numbered in ``known``; the longest first, and no more than a few."""
    found = {}
    sums: pd.DataFrame = bubbles.groupby(["cause", "behind"])["dur"].sum().reset_index()
    longest = sums[(sums["dur"] >= LEAST_DELAY).to_numpy(bool)].nlargest(MOST_DELAYS, "dur")
    for cause, behind, ns in zip(longest["cause"], longest["behind"], longest["dur"], strict=True):
        place = places[int(behind)]
        delay = Delay(
            cause=str(cause), site=place.site, at=place.at, chain=place.chain, site_source=place.source,
            ordinal=place.ordinal,
        )  # fmt: skip
        found[known.setdefault(delay, len(known))] = int(ns)
    return found


def _row(part: pd.DataFrame, lost: dict[int, int]) -> Collective:
    dur, exposed = (round(float(part[column].sum()) * 1e-6, 6) for column in ("dur", "exposed"))
    return Collective(
        step=int(part["number"].iloc[0]), name=str(part["what"].iloc[0]), end_ms=int(part["end"].max()) / 1e6,
        ms=dur, exposed_ms=exposed, idle_ms=tuple(ns / 1e6 for ns in lost.values()), delays=tuple(lost),
    )  # fmt: skip
