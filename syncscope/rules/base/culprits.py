"""Find what left a device idle: the findings whose waits emptied its queue, and the loader that it waited for."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from msgspec.structs import replace

from syncscope.rules.base.rule import Inspection
from syncscope.rules.base.sampled_places import find_sampled_place
from syncscope.schema.findings import Finding
from syncscope.timeline import Place, Timeline
from syncscope.timeline.intervals import Union
from syncscope.timeline.places import NOWHERE


class Culprit(NamedTuple):
    """A finding whose waits emptied the queue, with milliseconds a step: idle time that the waits caused, and the whole
    length of the bubbles after them."""

    finding: Finding
    caused_ms: float
    behind_ms: float

    def place(self, least_ms: float) -> Place:
        """Where the waits are, ``NOWHERE`` if the bubbles after them are shorter than ``least_ms`` a step."""
        if self.behind_ms < least_ms:
            return NOWHERE
        finding = self.finding
        return Place(
            site=finding.site, at=finding.at, chain=finding.chain, source=finding.site_source,
            annotation=finding.annotation or "",
        )  # fmt: skip


def find_culprits(inspection: Inspection) -> list[Culprit]:
    """The findings whose waits emptied the queue, the one that caused the most first."""
    timeline, bubbles = inspection.timeline, inspection.timeline.bubbles
    caused, behind = np.zeros((2, len(timeline.waits) + 1), dtype=np.int64)
    np.add.at(caused, bubbles.emptied_by, bubbles.due_to("wait"))
    np.add.at(behind, bubbles.emptied_by, bubbles.dur)
    scale = 1e-6 / max(len(timeline.steps), 1)
    culprits = []
    for hit in inspection.hits:
        waits = sorted(hit.waits)
        if waits and caused[waits].sum() > 0:
            culprits.append(
                Culprit(hit.finding, float(caused[waits].sum() * scale), float(behind[waits].sum() * scale))
            )
    return sorted(culprits, key=lambda culprit: -culprit.caused_ms)


def find_slowest_loader(timeline: Timeline) -> Place:
    """Where the next batch is fetched for which the device waits the longest. Its ``at`` is the line of the program
    that makes the batch on the same thread, where samples tell."""
    bubbles, loads = timeline.bubbles, timeline.loads
    waited = Union(bubbles.ts, bubbles.end).within(loads.ts, loads.end)
    by_place = np.bincount(loads.place, weights=waited)
    place = timeline.places[int(by_place.argmax())]
    sampled = find_sampled_place(timeline, ("data loading",))
    made, asked = sampled.place.site if sampled is not None else None, place.site
    if sampled is None or made is None or asked is None:
        return place
    chain = sampled.place.chain
    lines = [(frame.file, frame.line) for frame in chain]
    here, there = (made.file, made.line), (asked.file, asked.line)
    if here == there or there not in lines:
        return place
    inner = len(lines) - 1 - lines[::-1].index(here)
    return replace(place, at=chain[inner], chain=chain[: inner + 1])
