"""What the rules about waits share."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

from syncscope.rules.base.groups import Group
from syncscope.rules.base.occurrences import Occurrences, of_waits
from syncscope.rules.base.rule import Hit, Inspection, RankRule
from syncscope.schema.findings import Severity
from syncscope.timeline import Timeline
from syncscope.timeline.intervals import Bools
from syncscope.timeline.tables import Waits

CALL_NS = 50_000
"""The most nanoseconds that the call of a wait takes when there is nothing to wait for."""


EVENT_CALL_NS = 20_000
"""The most nanoseconds that waiting for an event takes that has happened. An H200 takes 2–5 µs, an MI300X 2–11."""


class WaitRule(RankRule):
    """A rule that claims waits. The first rule that claims a wait keeps it."""

    counts_as_wait: ClassVar[bool] = True

    @abstractmethod
    def claims(self, waits: Waits, timeline: Timeline) -> Bools:
        """Which of all ``waits`` are this rule's, whichever rule claimed them before."""

    def find(self, inspection: Inspection) -> list[Hit]:
        timeline = inspection.timeline
        waits = timeline.waits
        mine = waits.take(inspection.unclaimed(waits) & self.claims(waits, timeline))
        if not len(mine):
            return []
        inspection.rule_of_wait.update(dict.fromkeys(mine.row.tolist(), self))
        return self.hits(timeline, self.occurrences(mine, timeline))

    def occurrences(self, waits: Waits, timeline: Timeline) -> Occurrences:
        """The occurrences of the waits that the rule claimed."""
        return of_waits(waits, timeline)

    def severity_of(self, group: Group) -> Severity:
        return "note" if waited_for_nothing(group) else self.severity

    def why_unchecked(self, timeline: Timeline) -> str | None:
        why = super().why_unchecked(timeline)
        if why is None and "cpu_op" in self.needs and _unexplained(timeline):
            return "the trace holds no PyTorch ops, so its waits cannot be told apart"
        return why


def waited_for_nothing(group: Group) -> bool:
    """Whether every wait found the queue empty and returned at once, completing no copy of its own. Of a wait for an
    event nobody knows the stream: it counts if it returned as soon as such a call can."""
    waits = group.timeline.waits.take(group.rows.wait)
    empty = (waits.pending == 0) & (waits.stall <= CALL_NS)
    happened = (waits.kind == "event") & (waits.pending < 0) & (waits.stall <= EVENT_CALL_NS)
    return bool(((empty | happened) & (waits.copy_call < 0)).all())


def _unexplained(timeline: Timeline) -> bool:
    """Whether the trace holds waits but neither ops nor an attribution window to explain them."""
    if {"cpu_op", "attribution"} & set(timeline.has):
        return False
    kind = timeline.waits.kind
    return bool(((kind == "stream") | (kind == "copy")).any())
