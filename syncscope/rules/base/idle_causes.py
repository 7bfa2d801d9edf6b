"""The causes of a device's idle time, and which findings are about the same time."""

from __future__ import annotations

import numpy as np

from syncscope.rules.base.culprits import Culprit, find_slowest_loader
from syncscope.rules.base.idle_places import find_idle_place
from syncscope.rules.base.rule import Hit, Inspection, Rule
from syncscope.schema.findings import Finding, IdleCause
from syncscope.timeline import Place
from syncscope.timeline.pauses import ONCE as PAUSE
from syncscope.timeline.places import NOWHERE
from syncscope.timeline.waits import is_wait

LEAST_CAUSE = 0.01
"""A cause is listed if it explains at least this share of the idle time."""


def find_idle_causes(inspection: Inspection, culprits: list[Culprit], about: dict[str, Rule]) -> tuple[IdleCause, ...]:
    """The causes of the idle time, the longest first. ``culprits`` are the findings whose waits emptied the queue;
    ``about`` names the rule whose findings are about a cause as a whole."""
    overlap = inspection.timeline.overlap
    assert overlap is not None
    causes = []
    for cause, ms in overlap.idle_by_cause.items():
        if ms < LEAST_CAUSE * overlap.idle_ms or cause in ("warm-up", PAUSE):  # no part of each step
            continue
        covering = _covering(cause, inspection, culprits, about)
        place = _place(cause, inspection, culprits)
        covered_by = tuple(dict.fromkeys(finding.fingerprint for finding in covering))
        causes.append(IdleCause(cause=cause, ms_per_step=ms, covered_by=covered_by, site=place.site, at=place.at))
    return tuple(causes)


def _covering(cause: str, inspection: Inspection, culprits: list[Culprit], about: dict[str, Rule]) -> list[Finding]:
    timeline = inspection.timeline
    if cause == "wait":
        return [culprit.finding for culprit in culprits]
    if cause == "allocation":
        memory = set(timeline.waits.row[~is_wait(timeline.waits.kind)].tolist())
        return [hit.finding for hit in inspection.hits if memory & hit.waits]
    if cause == "pageable copy":
        copies = timeline.copies
        staged = set(copies.row[(copies.memory == "pageable") & (copies.launch >= 0)].tolist())
        return [hit.finding for hit in inspection.hits if staged & _copies(hit, inspection)]
    rule = about.get(cause)
    return [] if rule is None else [hit.finding for hit in inspection.hits if hit.finding.rule == rule.code]


def _copies(hit: Hit, inspection: Inspection) -> frozenset[int]:
    """Rows of the copies of a hit, those that its waits complete too."""
    completed = inspection.timeline.waits.copy[np.array(sorted(hit.waits), dtype=np.int64)]
    return hit.copies | frozenset(completed[completed >= 0].tolist())


def _place(cause: str, inspection: Inspection, culprits: list[Culprit]) -> Place:
    if cause == "data loading":
        return find_slowest_loader(inspection.timeline)
    if cause in ("launching", "host work", "host collective", "host idle"):
        idle_place = find_idle_place(inspection.timeline, cause)
        return idle_place.place if idle_place is not None else NOWHERE
    return culprits[0].place(0.0) if cause == "wait" and culprits else NOWHERE
