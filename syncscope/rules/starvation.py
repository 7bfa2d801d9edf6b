"""What starves a device: the findings whose waits emptied its queue, and what to do by cause."""

from __future__ import annotations

from typing import NamedTuple

from syncscope.findings import Finding
from syncscope.rules.rule import Case

FIXES = {
    "wait": "Remove the waits named here first: the host can then launch ahead of the device.",
    "data loading": "Load ahead: more DataLoader workers, prefetch_factor, persistent_workers.",
    "allocation": "Let the caching allocator warm up; leave out empty_cache(), and fix shapes that change.",
    "pageable copy": "Copy from pinned memory with non_blocking=True.",
    "host work": "Launch less or faster: torch.compile, CUDA graphs, fused or foreach optimisers, larger batches.",
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
