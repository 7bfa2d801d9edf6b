"""Which finding each collective of a rank is part of, so that what ranks show of it together can be told there."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from syncscope.patterns import compile_later
from syncscope.rules.base.rule import Hit
from syncscope.schema.report import Collective, TraceInfo
from syncscope.timeline import Timeline
from syncscope.timeline.collectives import find_met, rows_of_meetings, trim_first_step
from syncscope.timeline.intervals import Ints

OF_RANKS = compile_later(r"^(?:nccl|ucc|xccl|gloo|mpi):|^ProcessGroup\.|^c10d::|^record_param_comms$")
"""Names of what a program does that has other ranks."""


def is_alone(timeline: Timeline) -> bool:
    """Whether a trace shows one process, which nothing in it says has others beside it."""
    trace, tables = timeline.trace, (timeline.ops, timeline.annotations)
    if trace.rank is not None or (trace.world_size or 1) > 1 or (timeline.activities.collective != "").any():
        return False
    return not any(OF_RANKS.match(name) for table in tables for name in set(table.name.tolist()))


def count_exposed(timeline: Timeline) -> tuple[Ints, Ints]:
    """Length and exposed time of each of ``timeline.collectives_once`` (n,), as findings count them, in ns. Those that
    were launched before the recording are of no step, so no later one tells how long they should be."""
    once = timeline.collectives_once
    trimmed = trim_first_step(timeline.collectives.take(once.row), len(timeline.steps))
    before = timeline.launched_before[once.row]
    dur, exposed = (
        np.where(before, whole, np.minimum(whole, most))
        for whole, most in zip((once.dur, once.exposed), trimmed, strict=True)
    )
    return dur, exposed


def link_meetings(info: TraceInfo, timeline: Timeline, hits: Sequence[Hit]) -> TraceInfo:
    """The trace in the report, whose collectives say which of the findings in ``hits`` they are part of."""
    meetings = info.meetings
    if meetings is None:
        return info
    found_in = np.full(len(timeline.collectives), -1, dtype=np.int64)
    exposed = np.zeros(len(timeline.collectives), dtype=np.int64)
    exposed[timeline.collectives_once.row] = count_exposed(timeline)[1]
    for hit in hits:
        if isinstance(hit.finding.meets, int):
            found_in[sorted(hit.collectives)] = hit.finding.meets
    met = find_met(timeline.collectives_here, timeline.steps, timeline.trace.world_size)
    each = (met.row[rows] for rows in rows_of_meetings(met, timeline.steps))
    linked = (
        _link(one, found_in[rows], exposed[rows], timeline.exposed_at_the_end[rows], timeline.collectives.dur[rows])
        for one, rows in zip(meetings.collectives, each, strict=True)
    )
    return msgspec.structs.replace(info, meetings=msgspec.structs.replace(meetings, collectives=tuple(linked)))


def _link(one: Collective, found_in: Ints, exposed: Ints, last: Ints, dur: Ints) -> Collective:
    """The collective with what is told of each: the finding that it is part of, and what of it is exposed."""
    numbers = found_in.tolist()
    same = len(set(numbers)) == 1
    whole = last[:, -1] >= dur
    rows = zip((last / 1e6).tolist(), whole.tolist(), strict=True)
    parts = [() if full else tuple(row) if row[-1] else (0.0,) for row, full in rows]
    return msgspec.structs.replace(
        one,
        each_exposed_ms=tuple((exposed / 1e6).tolist()),
        found_in=tuple(numbers[:1] if same else numbers),
        each_last_ms=() if whole.all() else tuple(parts),
    )
