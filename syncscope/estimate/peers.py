"""When the other ranks came to a collective, as far as their traces tell.

All ranks are done with a collective at one moment, whatever their clocks say, so of two ranks the one that was in it
for a shorter time came later, by the difference.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import msgspec
import numpy as np
import pandas as pd

from syncscope.estimate.program import Program
from syncscope.timeline import Timeline
from syncscope.timeline.collectives import POINT_TO_POINT

SAME = ["step", "what", "order", "many", "bytes"]
"""What ranks share of a collective: the number of its step, its kind, and its place among so many of that kind."""

MOST_PEERS = 64
"""Ranks that are compared at most."""


class Peer(msgspec.Struct, frozen=True, kw_only=True):
    """What the other ranks need to know of one."""

    rank: int
    findings: tuple[str, ...]
    """Fingerprints of those whose savings are told."""
    met: tuple[tuple[int, str, int, int, int, int], ...]
    """``SAME`` and the length in ns of each collective in its steps."""
    fits: bool = True
    """Whether the model fits its trace by itself."""


def telling(peers: Sequence[Peer]) -> tuple[Peer, ...]:
    """The ranks, where one has a finding that another has not, or does not fit by itself; else nothing, for they gain
    alike."""
    differ = len({frozenset(peer.findings) for peer in peers}) > 1 or not all(peer.fits for peer in peers)
    return tuple(peers) if differ and len({peer.rank for peer in peers}) == len(peers) <= MOST_PEERS else ()


def find_met(timeline: Timeline) -> pd.DataFrame:
    """The collectives inside the steps: ``SAME``, ``dur`` (ns) and ``launch``, as in ``Timeline.collectives``."""
    table = timeline.collectives
    table = table[(table["launch"] >= 0).to_numpy(bool) & (table["step"] >= 0).to_numpy(bool)]
    table = table[~table["name"].isin(POINT_TO_POINT).to_numpy(bool)].sort_values("launch_ts", kind="stable")
    numbers = timeline.steps["number"].to_numpy(np.int64)
    found: pd.DataFrame = pd.DataFrame({
        "step": numbers[table["step"].to_numpy(np.int64)],
        "what": (table["name"] + " " + table["group"]).to_numpy(), "bytes": table["bytes"].to_numpy(np.int64),
        "dur": table["dur"].to_numpy(np.int64), "launch": table["launch"].to_numpy(np.int64),
    })  # fmt: skip
    kinds = found.groupby(["step", "what"])
    return found.assign(order=kinds.cumcount(), many=kinds["dur"].transform("size"))


def with_peers(program: Program, met: pd.DataFrame, others: Sequence[Peer]) -> tuple[Program, bool]:
    """The program with ``later`` of each collective that some ``others`` have too, and whether there are any.

    ``met`` are its own. Ranks that did not do the same in a step are not compared in it.
    """
    shortest = np.full(len(met), np.inf)
    for other in others:
        theirs = pd.DataFrame(list(other.met), columns=[*SAME, "dur"]).astype({"what": object})
        theirs = theirs.astype(dict.fromkeys(("step", "order", "many", "bytes"), "int64"))
        found = met[SAME].astype({"what": object}).merge(theirs, how="left", on=SAME)["dur"]
        shortest = np.minimum(shortest, found.fillna(np.inf).to_numpy(dtype=float))
    item = program.item_of[met["launch"].to_numpy(np.int64)]
    known = np.isfinite(shortest) & (item >= 0)
    if not known.any():
        return program, False
    later = np.full(len(program.items), np.nan)
    later[item[known]] = (met["dur"].to_numpy() - shortest)[known]
    return replace(program, items=program.items.assign(later=later)), True


def without_waits(program: Program) -> Program:
    """The program when no other rank comes later to a collective than this one does."""
    later = program.items["later"]
    return replace(
        program,
        items=program.items.assign(
            dur=program.items["dur"] - later.clip(lower=0).fillna(0.0), later=later.clip(upper=0)
        ),
    )
