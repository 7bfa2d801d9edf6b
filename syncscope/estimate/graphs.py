"""Which launches CUDA graphs could replay: stretches without a wait, a host copy or an allocation in every step."""

from __future__ import annotations

import numpy as np
import pandas as pd

from syncscope.estimate.chains import roles
from syncscope.estimate.program import Program
from syncscope.timeline import Timeline
from syncscope.timeline.intervals import Ints
from syncscope.trace.names import MEMORY_ROLES

SHORTEST = 4
"""Launches from which on a stretch is worth a graph."""

RECORDABLE = ("launch", "fill", "copy")


def stretches(timeline: Timeline, program: Program) -> list[Ints]:
    """Items of each stretch of launches that every step has, known by what it launches, in order."""
    items = program.items
    role = roles(timeline, items)
    launches = np.isin(role, RECORDABLE) & (items["stream"] >= 0).to_numpy(bool) & (items["engine"] < 0).to_numpy(bool)
    apart = items["mark"] | items["wait"] | items["blocks"] | items["engine"].between(0, 1) | (items["chain"] != 0)
    breaks = apart.to_numpy(bool) | np.isin(role, [*MEMORY_ROLES, "graph-launch"])
    table: pd.DataFrame = pd.DataFrame({
        "item": items.index, "step": items["step"], "number": np.cumsum(breaks), "ran": _names(timeline, program),
    })[launches]  # fmt: skip
    found = [
        (int(rows["step"].iloc[0]), tuple(rows["ran"]), rows["item"].to_numpy(np.int64))
        for _, rows in table.groupby("number")
        if len(rows) >= SHORTEST
    ]
    seen: dict[tuple[int, ...], set[int]] = {}
    for step, ran, _ in found:
        seen.setdefault(ran, set()).add(step)
    return [rows for _, ran, rows in found if len(seen[ran]) == program.steps]


def _names(timeline: Timeline, program: Program) -> Ints:
    """The number of the name of what each item launched, −1 nothing."""
    ran = np.full(len(timeline.calls) + 1, -1, dtype=np.int64)
    known = np.flatnonzero(timeline.launch >= 0)[::-1]
    ran[timeline.launch[known]] = timeline.trace.device["name"].cat.codes.to_numpy()[known]
    found: Ints = ran[program.items["call"].to_numpy(np.int64)]
    return found
