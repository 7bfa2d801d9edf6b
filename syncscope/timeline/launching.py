"""Whether the host launches as fast as the device works, and what of its launches a CUDA graph could replay."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import reduce
from operator import and_

import numpy as np
import pandas as pd

from syncscope.timeline.intervals import Ints, Union
from syncscope.trace.names import MEMORY_ROLES, SYNC_ROLES

LAUNCHES = ("launch", "graph-launch")
HOST_SIDES = ("HtoD", "DtoH", "HtoH")
MAIN_SHARE = 0.1
"""Share of the launches from which on a thread is one that launches."""


@dataclass(frozen=True)
class Launching:
    """The launches of the steps (of the whole trace where it has no steps)."""

    launches: int
    """Calls that launch a kernel or a graph."""
    own_ns: int
    """Time of the launching threads inside the steps that no wait and no copy from pageable memory took."""
    delay_ns: int
    """Median time from the begin of such a call to the begin of its first kernel: a few µs where the queue is empty."""
    busy_ns: int
    """Time that the kernels run, one by one."""
    graphs: tuple[Ints, ...] | None
    """Launches (rows of ``Timeline.calls``) of each stretch without a wait, a host copy or an allocation that all steps
    repeat, in every step: what could be one graph. ``None`` with fewer than two steps to compare."""

    @property
    def replayable(self) -> int | None:
        """Launches that are gone if every such stretch is one graph."""
        return None if self.graphs is None else sum(len(stretch) - 1 for stretch in self.graphs)


def find_launching(
    calls: pd.DataFrame, device: pd.DataFrame, launch: Ints, step: Ints, blocked: pd.DataFrame, span: tuple[int, int]
) -> Launching | None:
    """``step`` (n,) is the step of each call, −1 outside; ``blocked`` when threads did not run (``ts``, ``end``,
    ``tid``); ``span`` where to look where there are no steps. ``None`` when nothing is launched there."""
    stepped = bool((step >= 0).any())
    role, tid = calls["role"].to_numpy(object), calls["tid"].to_numpy(np.int64)
    mine = np.isin(role, LAUNCHES) & ((step >= 0) | (not stepped))
    if not mine.any():
        return None
    rows = np.flatnonzero((device["kind"] == "kernel").to_numpy(bool) & np.append(mine, False)[launch])
    first = rows[~pd.Series(launch[rows]).duplicated().to_numpy()]
    delay = device["ts"].to_numpy(np.int64)[first] - calls["ts"].to_numpy(np.int64)[launch[first]]
    threads, counts = np.unique(tid[mine], return_counts=True)
    theirs = blocked[blocked["tid"].isin(threads[counts >= MAIN_SHARE * counts.sum()])]
    away = Union(theirs["ts"].to_numpy(np.int64), theirs["end"].to_numpy(np.int64)).clipped(*span).length
    return Launching(
        launches=int(mine.sum()),
        own_ns=span[1] - span[0] - away,
        delay_ns=int(np.median(delay)) if len(delay) else 0,
        busy_ns=int(device["dur"].to_numpy(np.int64)[rows].sum()),
        graphs=_graphs(calls, device, launch, step),
    )


def _graphs(calls: pd.DataFrame, device: pd.DataFrame, launch: Ints, step: Ints) -> tuple[Ints, ...] | None:
    """See :class:`Launching`. A stretch is known by the names of what it launches."""
    numbers = np.unique(step[step >= 0]).tolist()
    if len(numbers) < 2:
        return None
    known = np.flatnonzero(launch >= 0)[::-1]
    ran = np.full(len(calls), -1, dtype=np.int64)
    ran[launch[known]] = device["name"].cat.codes.to_numpy()[known]
    crosses = np.zeros(len(calls), dtype=bool)
    crosses[launch[known]] = device["direction"].isin(HOST_SIDES).to_numpy(bool)[known]
    role = calls["role"].to_numpy(object)
    breaks = np.isin(role, ["graph-launch", *SYNC_ROLES, *MEMORY_ROLES]) | crosses
    inside = np.flatnonzero((role == "launch") & (step >= 0))
    table = pd.DataFrame({"step": step[inside], "stretch": np.cumsum(breaks)[inside], "row": inside})
    found = []
    of_step: dict[int, Counter[tuple[int, ...]]] = {number: Counter() for number in numbers}
    for _, rows in table.groupby(["step", "stretch"]):
        number, stretch = int(rows["step"].iloc[0]), rows["row"].to_numpy(np.int64)
        names = tuple(ran[stretch].tolist())
        of_step[number][names] += 1
        found.append((number, names, stretch))
    # As often as in the step that has the fewest of it.
    common = reduce(and_, of_step.values())
    left = {number: Counter(common) for number in numbers}
    graphs = []
    for number, names, stretch in found:
        if left[number][names]:
            left[number][names] -= 1
            graphs.append(stretch)
    return tuple(graphs)
