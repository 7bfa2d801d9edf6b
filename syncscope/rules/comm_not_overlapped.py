from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import msgspec
import numpy as np
from msgspec.structs import replace

from syncscope.rules.base.collective_advice import (
    FOR_COLLECTIVES,
    is_from_before,
    name_surroundings,
    waits_for_peer,
)
from syncscope.rules.base.groups import Group, to_ms
from syncscope.rules.base.lateness import ALONE, WHICH
from syncscope.rules.base.meetings import count_exposed, is_alone
from syncscope.rules.base.occurrences import Occurrences, places_of
from syncscope.rules.base.question import Intervention
from syncscope.rules.base.rule import Hit, Inspection, RankRule
from syncscope.schema.findings import Severity
from syncscope.schema.numbers import milliseconds, three_digits
from syncscope.timeline import Timeline
from syncscope.timeline.collectives import BESIDE, HELD, SAME_STREAM, UNQUEUED, name_meetings
from syncscope.timeline.intervals import Bools, Ints
from syncscope.timeline.tables import Objects
from syncscope.trace.names import COLLECTIVES

LEAST_EXPOSED = 0.1
"""Exposed share of the collectives' own time below which they count as hidden."""

MOSTLY_HIDDEN, SMALL_SHARE = 0.5, 0.05
"""Exposed share of its own time and of the step below which a collective is a note, as a last bucket is."""

LEAST_MB = 10_000
"""Bytes from which on they are told as megabytes."""

REASONS = {
    SAME_STREAM: "they are on the stream that computes",
    HELD: "what computes next waits for them, and nothing else is left to compute",
    UNQUEUED: "the host launched nothing else to compute until they were over",
}


class CommNotOverlapped(RankRule):
    """A collective runs while nothing computes.

    Why it costs: a collective needs few of a device's multiprocessors and can run beside compute that does not wait
    for it. Where nothing does, the whole step waits for the network. DistributedDataParallel reduces a bucket of
    gradients while the backward computes the next. The last bucket has nothing left to hide behind, and is a note.

    Bad:
        loss.backward()
        for p in model.parameters():
            dist.all_reduce(p.grad)                  # everything is computed, and each waits for the one before

    Good:
        model = DistributedDataParallel(model)       # reduces while it computes
        work = dist.all_reduce(x, async_op=True)     # by hand: start early,
        y = model(z)                                 # compute something that does not need x,
        work.wait()                                  # wait late

    Fine:
        with model.no_sync():                        # gradient accumulation: nothing is reduced
            loss.backward()

    A rank that comes late looks the same from the others: their collectives wait for it. The traces of several ranks
    show that (see DST601), and one alone where a collective takes ten times as long as another that moves as much, or
    far longer than any network needs for its bytes: the rest is waiting, and no part of what it is worth. A collective
    that each layer needs before it goes on cannot be hidden, so it is worth at most what it is exposed for, and no more
    than the shortest that moves as much takes: how fast the devices reach each other is not known beyond that. No other
    is worth more than the compute that there is to hide it behind. Profilers do not start at the same time, so of three
    steps or more a collective of the first counts for no more than a later one.
    """

    code = "OVL302"
    name = "comm-not-overlapped"
    severity = "warning"
    needs = ("runtime", "device")
    gated = False
    question = Intervention.OVERLAP_COLLECTIVES
    needs_async_launches = True
    advice = FOR_COLLECTIVES

    def find(self, inspection: Inspection) -> list[Hit]:
        timeline, once = inspection.timeline, inspection.timeline.collectives_once
        collectives = timeline.collectives.take(once.row)
        dur, exposed = count_exposed(timeline)
        occurrences = Occurrences.at(
            places_of(timeline, collectives.place),
            ts=np.where(collectives.launch >= 0, collectives.launch_ts, collectives.ts), tid=collectives.tid,
            step=collectives.step, ops=collectives.ops, call=collectives.name, sort=collectives.name,
            collective=collectives.row, unit=collectives.row,
            bytes=collectives.bytes, ran=dur, exposed=exposed, cause=collectives.beside,
        )  # fmt: skip
        names, before = name_meetings(timeline.collectives), timeline.launched_before
        hits = (_of_no_step(hit, before) for hit in self.hits(timeline, occurrences))
        return [_with_names(hit, names, meets) for meets, hit in enumerate(hits)]

    def is_needless(self, timeline: Timeline) -> bool:
        return timeline.device is not None and is_alone(timeline)

    def why_partial(self, timeline: Timeline) -> str | None:
        size = timeline.collectives.bytes
        if len(size) and (size < 0).all():
            return "the trace does not say how large its collectives are, nor of which group"
        return None

    def reports(self, group: Group) -> bool:
        return group.is_exposed() and (group.total("exposed") or 0) >= LEAST_EXPOSED * int(group.inside.ran.sum())

    def severity_of(self, group: Group) -> Severity:
        if is_from_before(group):
            return "note"
        hidden = (group.total("exposed") or 0) < MOSTLY_HIDDEN * int(group.inside.ran.sum())
        return "note" if hidden and not group.is_exposed(SMALL_SHARE) else self.severity

    def message(self, group: Group) -> str:
        unlaunched = bool((group.timeline.collectives.launch[group.rows.unit] < 0).all())
        before = is_from_before(group)
        many, per = (group.steps, "a step") if group.steps and not before else (1, "in all")
        names = Counter(group.rows.call).most_common()
        what = ", ".join(f"{name} × {_times(count / many)}" for name, count in names)
        size, exposed = group.total("bytes"), milliseconds(to_ms(group.total("exposed") or 0, many))
        moved = "" if size is None else f" ({_size(size / many)})"
        if unlaunched:
            moved += ", launched before the trace begins" if before else ", whose launches are not in the trace"
        subject = "the program" if group.subject in COLLECTIVES else group.subject
        if waits_for_peer(group):
            waiting = milliseconds(to_ms(int(_waiting(group).sum()), many))
            why, ranks = f"{waiting} of it is waiting for another rank, as {_without_waiting(group)}", WHICH
        else:
            why, ranks = REASONS[group.longest("cause", BESIDE)], ALONE
        during = "of the recorded steps" if before and group.steps else per
        return f"{subject} starts {what} {per}{moved}, with no compute beside them for {exposed} {during}: {why}{ranks}"

    def names(self, group: Group) -> Iterator[str]:
        return name_surroundings(group)


def _of_no_step(hit: Hit, before: Bools) -> Hit:
    """The hit, whose finding has no figures of a step where all its collectives were launched ``before`` (n,) the
    recording."""
    if not before[sorted(hit.collectives)].all():
        return hit
    return replace(hit, finding=msgspec.structs.replace(hit.finding, per_step=None, exposed_ms_per_step=None))


def _with_names(hit: Hit, names: Objects, meets: int) -> Hit:
    """The hit, whose finding says which collectives it is about; ``names`` (n,) are those of all."""
    kinds = tuple(sorted({str(names[row]) for row in hit.collectives}))
    return replace(hit, finding=msgspec.structs.replace(hit.finding, collectives=kinds, meets=meets))


def _size(count: float) -> str:
    """So many bytes, such as ``881 MB``, ``0.0983 MB`` or ``4 bytes``."""
    return f"{three_digits(count / 1e6)} MB" if count >= LEAST_MB else f"{count:,.0f} bytes"


def _times(count: float) -> str:
    """How often, such as ``1,552`` or ``2.5``."""
    return f"{count:,.0f}" if count >= 100 else f"{count:.3g}"


def _waiting(group: Group) -> Ints:
    """For each collective of a group the exposed ns in which it waits for another rank."""
    return np.minimum(group.timeline.waiting_for_peers[group.rows.unit], group.rows.exposed)


def _without_waiting(group: Group) -> str:
    """How long the collectives of a group take that wait for no other rank."""
    # What ran in full: the first step's count for no more than later ones.
    waiting, ran = group.timeline.waiting_for_peers[group.rows.unit], group.timeline.collectives.dur[group.rows.unit]
    least = milliseconds(to_ms(int((ran - waiting).min())))
    if (waiting == 0).any():
        return f"the same takes {least} at the least"
    return f"one of its size takes no longer than {least}"
