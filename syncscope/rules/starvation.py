"""What starves a device: the findings whose waits emptied its queue, and what to do by cause."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from syncscope.rules.rule import Case
from syncscope.schema.findings import Finding
from syncscope.timeline import Place, Timeline
from syncscope.timeline.intervals import Union
from syncscope.timeline.places import NOWHERE

PROFILED = 1.5
"""How much slower a profiler with PyTorch's ops makes a host that only launches."""

FIXES = {
    "wait": "Remove the waits named here first: the host can then launch ahead of the device.",
    "data loading": "Load ahead: more DataLoader workers, prefetch_factor, persistent_workers.",
    "allocation": "Let the caching allocator warm up; leave out empty_cache(), and fix shapes that change.",
    "pageable copy": "Copy from pinned memory with non_blocking=True.",
    "collective": "Start the collective earlier or with async_op=True, and keep object collectives and barriers out.",
    "launching": "Launch fewer and larger kernels (see LCH501): torch.compile, CUDA graphs, larger batches.",
    "host work": "Move it out of the thread that launches, or to where the device still has work queued.",
    "launch latency": "Launch fewer, larger kernels: torch.compile, CUDA graphs, larger batches.",
    "queued on device": "Look at what the streams wait for: events between them, or a collective of another rank.",
    "unknown": "Record the runtime calls too (ProfilerActivity.CPU and CUDA), to see what the host did.",
}
"""By the greatest cause."""


class Culprit(NamedTuple):
    """A finding whose waits emptied the queue; idle ms per step that they caused, and of the whole bubbles behind."""

    finding: Finding
    caused_ms: float
    behind_ms: float

    def place(self, least_ms: float) -> Place:
        """Where the waits are, if bubbles of so many ms lie behind them."""
        found = self.finding
        if self.behind_ms < least_ms:
            return NOWHERE
        return Place(site=found.site, at=found.at, chain=found.chain, source=found.site_source)


def loader(timeline: Timeline) -> Place:
    """Where the next batch is fetched for which the device waits the longest."""
    idle, loads = timeline.idle, timeline.loads
    bubbles = Union(idle["ts"].to_numpy(np.int64), idle["end"].to_numpy(np.int64))
    waited = bubbles.within(loads["ts"].to_numpy(np.int64), loads["end"].to_numpy(np.int64))
    by_place = np.bincount(loads["place"].to_numpy(np.int64), weights=waited)
    return timeline.places[int(by_place.argmax())]


def culprits_of(case: Case) -> list[Culprit]:
    """The findings whose waits emptied the queue, the one that caused the most first."""
    idle = case.timeline.idle
    by_wait = idle[idle["emptied_by"] >= 0].groupby("emptied_by")[["wait", "dur"]].sum()
    by_wait = by_wait * 1e-6 / max(len(case.timeline.steps), 1)
    found = []
    for hit in case.hits:
        mine = by_wait[by_wait.index.isin(hit.waits)].sum()
        if hit.waits and mine["wait"] > 0:
            found.append(Culprit(hit.finding, float(mine["wait"]), float(mine["dur"])))
    return sorted(found, key=lambda culprit: -culprit.caused_ms)


def host_scale(timeline: Timeline) -> float:
    """What of the time that the host was recorded to take it takes without the profiler: by the bare steps, else
    assumed."""
    steps = timeline.step_figures
    if steps.bare_ms is None or not steps.profiled_ms:
        return 1 / PROFILED
    return min(1.0, steps.bare_ms / steps.profiled_ms)
