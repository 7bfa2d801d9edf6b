"""What the rules about races share. The collector finds the races; the rules say what they are."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence

from syncscope.rules.base.question import NoQuestion
from syncscope.rules.base.rule import Hit, Inspection, RankRule
from syncscope.schema.findings import Finding, Site, fingerprint
from syncscope.schema.recording import Recording
from syncscope.timeline import Place, Timeline
from syncscope.timeline.places import Hazard, find_hazards

NOT_LOOKED_FOR = "no window looked for races: record with --hazards"
UNSEEN = (
    "races were looked for, but not those through NumPy or DLPack aliases taken earlier, in other threads, in CUDA "
    "graphs, or in C++ extensions and kernels that PyTorch does not dispatch; compiled functions ran uncompiled"
)
NO_SAVING = NoQuestion("a missing wait makes results wrong, not slow")
MOST_LINES = 3
"""Other lines that a message names."""


class RaceRule(RankRule):
    """A rule about the races that are recorded under its code. There is one finding for each line that races, whatever
    it races with."""

    def why_unchecked(self, timeline: Timeline) -> str | None:
        return None if "hazards" in timeline.has else NOT_LOOKED_FOR

    def why_partial(self, timeline: Timeline) -> str | None:
        return UNSEEN if "hazards" in timeline.has else None

    def find(self, inspection: Inspection) -> list[Hit]:
        trace = inspection.timeline.trace
        return [Hit(finding) for finding in self.find_recorded(trace.recording, trace.rank)]

    def find_recorded(self, recording: Recording | None, rank: int | None) -> list[Finding]:
        """What the rule finds in a recording: it needs no trace."""
        mine = [hazard for hazard in find_hazards(recording) or () if hazard.event.rule == self.code]
        return [self._finding(group, recording, rank) for group in _by_line(mine) if recording is not None]

    @abstractmethod
    def clash(self, hazard: Hazard) -> str:
        """What the two accesses do to each other: follows the one expression, precedes the other's place."""

    def _finding(self, group: Sequence[Hazard], recording: Recording, rank: int | None) -> Finding:
        first, steps = group[0], recording.hazard_steps
        place, site, op = first.place, first.place.site, first.event.access.op
        count = sum(hazard.event.count for hazard in group)
        key = (site.file, site.function, site.expression) if site else ("", op, None)
        return Finding(
            rule=self.code,
            name=self.name,
            severity=self.severity,
            status="unexpected" if place.expected is None else "expected",
            reason=place.expected,
            site=site,
            at=place.at,
            chain=place.chain,
            site_source=place.source,
            earlier=_sites(group),
            rank=rank,
            thread=recording.thread_names.get(str(first.event.tid)),
            op=op,
            count=count,
            per_step=count / steps if steps else None,
            bytes=sum(hazard.event.bytes for hazard in group),
            saving_null_why=NO_SAVING.why,
            message=f"{_subject(place, op)} {self.clash(first)} {_where(group)}",
            fix=self.advise(),
            fingerprint=fingerprint(self.code, *key, place.ordinal),
        )


def _subject(place: Place, op: str) -> str:
    """An access, for a message: its expression, else its op."""
    return (place.site.expression if place.site else None) or op


def _by_line(hazards: Iterable[Hazard]) -> list[list[Hazard]]:
    groups: dict[object, list[Hazard]] = {}
    for hazard in hazards:
        place = hazard.place
        groups.setdefault((place.site, place.ordinal, place.at, place.expected), []).append(hazard)
    return list(groups.values())


def _sites(group: Sequence[Hazard]) -> tuple[Site, ...]:
    """The other lines, each once, the most frequent first."""
    counts: dict[Site, int] = {}
    for hazard in group:
        if hazard.earlier.site is not None:
            counts[hazard.earlier.site] = counts.get(hazard.earlier.site, 0) + hazard.event.count
    return tuple(sorted(counts, key=lambda site: -counts[site]))


def _where(group: Sequence[Hazard]) -> str:
    """Where the other accesses are."""
    places = [f"{site.file}:{site.line} ({site.expression or site.function})" for site in _sites(group)]
    if not places:
        return "an unknown line"
    more = len(places) - MOST_LINES
    return ", ".join(places[:MOST_LINES]) + (f" and {more} more" if more > 0 else "")
