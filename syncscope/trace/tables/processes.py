"""Files into which the traces of several ranks were merged: the rows of each of the processes, and its rank."""

from __future__ import annotations

import re
from collections.abc import Iterable

import numpy as np

from syncscope.patterns import compile_later
from syncscope.trace.decoding.events import NO_ARGS, Event
from syncscope.trace.decoding.numbers import Int, integer
from syncscope.trace.rows import Rows
from syncscope.trace.sets import different

LEAST_ROWS = 0.01
"""Of the devices' rows, at least as many are of a process that counts."""


NAMES_RANK = compile_later(r"\brank[ _:#-]*(\d{1,6})\b", re.IGNORECASE)
"""How mergers call a process: ``RANK 3 - CPU``."""


def find_ranks(metadata: Iterable[Event], merged: dict[int, Int]) -> dict[int, int]:
    """The rank of each of the ``merged`` processes by what the file calls it; empty where it does not tell them all
    apart."""
    ranks = {pid: rank for pid, rank in _named_ranks(metadata).items() if pid in merged}
    return ranks if len(set(ranks.values())) == len(merged) else {}


def find_merged(metadata: Iterable[Event], runtime: Rows, device: Rows, processes: Int) -> dict[int, Int]:
    """Of each process that launches work what the file calls its devices' processes, where there are several and none
    uses another's: the ranks of a run whose traces were merged. Where the file holds devices alone, they are what it
    calls the devices of ranks. Empty for the trace of one process.

    ``processes`` (n,) are those of the rows of devices.
    """
    if len(runtime) == 0:
        return _merged_devices(_named_ranks(metadata), processes)
    if (runtime["pid"] == runtime["pid"][0]).all():
        return {}
    owner = find_owners(runtime, device)
    pids, counts = np.unique(owner[owner >= 0], return_counts=True)
    pids = pids[counts >= LEAST_ROWS * len(device)]
    devices = {int(pid): different(processes[owner == pid]) for pid in pids.tolist()}
    every = np.concatenate([*devices.values(), np.empty(0, dtype=np.int64)])
    return devices if len(devices) > 1 and len(different(every)) == len(every) else {}


def _named_ranks(metadata: Iterable[Event]) -> dict[int, int]:
    """The rank that each process is named after."""
    ranks: dict[int, int] = {}
    for event in metadata:
        name = (event.args or NO_ARGS).name
        named = NAMES_RANK.search(name) if event.name == "process_name" and isinstance(name, str) else None
        if named is not None:
            ranks[integer(event.pid)] = int(named[1])
    return ranks


def _merged_devices(ranks: dict[int, int], processes: Int) -> dict[int, Int]:
    """The processes of each rank, under the first of them, where every row of a device is of a named rank."""
    of_rank: dict[int, list[int]] = {}
    for pid in different(processes).tolist():
        if pid not in ranks:
            return {}
        of_rank.setdefault(ranks[pid], []).append(pid)
    return {pids[0]: np.array(pids, dtype=np.int64) for pids in of_rank.values()} if len(of_rank) > 1 else {}


def find_owners(runtime: Rows, device: Rows) -> Int:
    """The process that launched each row of a device, −1 where the file does not hold the launch."""
    known = np.flatnonzero(runtime["correlation"] >= 0)
    known = known[np.argsort(runtime["correlation"][known], kind="stable")]
    if not len(known):
        return np.full(len(device), -1, dtype=np.int64)
    keys = runtime["correlation"][known]
    slot = np.minimum(np.searchsorted(keys, device["correlation"]), len(keys) - 1)
    return np.where(keys[slot] == device["correlation"], runtime["pid"][known[slot]], -1)
