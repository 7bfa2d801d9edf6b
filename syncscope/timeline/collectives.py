"""Collectives: when each ran, how much of it no compute hides, why nothing computes beside it, and where ranks meet."""

from __future__ import annotations

import numpy as np

from syncscope.schema.report import START, Collective, Delay, Meetings
from syncscope.timeline.copies import on_compute_stream
from syncscope.timeline.intervals import Bools, Ints, Union
from syncscope.timeline.overlap import exposed_ns, is_compute
from syncscope.timeline.places import Place
from syncscope.timeline.row_groups import group_rows, number_groups, number_in_group
from syncscope.timeline.tables import (
    CAUSES,
    Activities,
    Bubbles,
    Calls,
    Collectives,
    Loads,
    Marks,
    Objects,
    Ops,
    Steps,
    Waits,
    objects,
)
from syncscope.trace.names import collective_of_call
from syncscope.trace.sets import different

SERVING_SEVERAL = ("send_recv", "collective")
"""Names of kernels that serve several collectives."""

SAME_STREAM, HELD, UNQUEUED = "same stream", "held back", "not queued"
BESIDE = (SAME_STREAM, HELD, UNQUEUED)
"""*same stream*: it ran on a stream that computes. *held back*: what computes next was launched before it was over, and
waited for it. *not queued*: the host launched nothing more until it was over, or nothing more computes."""

MOST_OF_A_KIND, MOST_STEPS = 8, 32
"""How many meetings of each kind are kept in a step, and in how many of the first steps. Where a step has more
meetings, collectives in a row are summed."""

PAIR = 2
"""A trace without steps may be of many rounds, of which sums hide who comes last to some and first to others. So of its
collectives no more than this many in a row are summed, unless more than of all steps would be kept. A pair is better
than one: the kernels of some collectives end before all ranks have, which the next makes good."""

MOST_EACH, MOST_EACH_IN_ALL = 512, 16_384
"""Of a meeting of no more collectives than this the length of each is kept, unless there are more than this in all."""

EIGHTHS = 8
"""In as many parts it is told how much of a collective is exposed."""

MOST_DELAYS, LEAST_DELAY = 4, 10_000
"""How many kinds of idle time are kept of a meeting, and the shortest in ns."""

POINT_TO_POINT, PEERS = ("send", "recv", "send_recv"), "send_recv"
"""Collectives in which not all ranks take part. They are meetings of two ranks that are all there are: what one sends,
the other receives, so both go by one name."""


PAIR_OF_RANKS = 2


def find_collectives(
    activities: Activities, calls: Calls, ops: Ops, annotations: Marks, compute: dict[int, Union]
) -> Collectives:
    """The collectives, named as their kernels say; step and place are unknown yet.

    ``compute`` is when each device computes (``overlap.compute_unions``).
    """
    ran = activities.take(activities.collective != "")
    launch_ts, launch_end, tid = (np.append(column, -1)[ran.launch] for column in (calls.ts, calls.end, calls.tid))
    around = (table.nesting.innermost(tid, launch_ts, launch_end) for table in (ops, annotations))
    op, mark = (np.where(ran.launch >= 0, innermost, -1) for innermost in around)
    return Collectives(
        row=np.arange(len(ran), dtype=np.int64), ts=ran.ts, end=ran.end, device_row=ran.row, launch=ran.launch,
        launch_ts=launch_ts, launch_end=launch_end, tid=tid, name=ran.collective, group=ran.group, bytes=ran.bytes,
        device=ran.device, stream=ran.stream, step=np.full(len(ran), -1, dtype=np.int64), ops=ops.chains(op),
        marks=annotations.chains(mark), exposed=exposed_ns(ran.ts, ran.end, ran.device, compute),
        beside=_beside(ran, activities, calls), in_graph=np.append(calls.do(["graph-launch"]), False)[ran.launch],
        place=np.zeros(len(ran), dtype=np.int64),
    )  # fmt: skip


def name_collectives(collectives: Collectives, places: tuple[Place, ...]) -> Collectives:
    """Name the collectives after what the program called. The kernel names most of them; a kernel that serves several
    collectives (NCCL's all-to-all is sends and receives) is named after the op, recorded call or annotation that
    started it."""
    names = []
    columns = zip(collectives.name, collectives.ops, collectives.marks, collectives.place.tolist(), strict=True)
    for name, chain, marks, place in columns:
        started = (places[place].entry, *chain, *marks) if name in SERVING_SEVERAL else ()
        names.append(next(filter(None, map(collective_of_call, started)), name))
    return collectives.replace(name=objects(names))


def _beside(ran: Activities, activities: Activities, calls: Calls) -> Objects:
    beside = np.full(len(ran), UNQUEUED, dtype=object)
    kernels = activities.take(is_compute(activities) & (activities.launch >= 0))
    launched = calls.ts[kernels.launch]
    for device in different(ran.device):
        here, rows = np.flatnonzero(kernels.device == device), np.flatnonzero(ran.device == device)
        # Was the next compute after each collective launched while the collective still ran?
        slot = np.searchsorted(kernels.ts[here], ran.end[rows], side="left")
        following = np.append(launched[here], ran.end.max())[slot]
        beside[rows[following < ran.end[rows]]] = HELD
    beside[on_compute_stream(ran, activities)] = SAME_STREAM
    return beside


def launched_before(collectives: Collectives, correlations: Ints, calls: Ints) -> Bools:
    """Which collectives (n,) were launched before the recording, which holds the launches of others; ``correlations``
    (n,) are those of their device rows, ``calls`` those of the calls. Correlations count up, so a launch that the trace
    lost has one between those of others."""
    first = int(calls[calls >= 0].min(initial=np.iinfo(np.int64).max))
    before: Bools = (correlations >= 0) & (correlations < first) & bool((collectives.launch >= 0).any())
    return before


def count_once(collectives: Collectives, compute: dict[int, Union], span: tuple[int, int]) -> Collectives:
    """The collectives of one device as far as they run inside ``span`` (ns), each without the exposed time of those
    that began before it: so their exposed times add up to no more than the span."""
    ts, end = np.clip(collectives.ts, *span), np.clip(collectives.end, *span)
    # What is under way when one begins ends where the latest of all before it ends.
    reach = np.maximum.accumulate(np.append(span[0], end))[:-1]
    alone = np.minimum(np.maximum(ts, reach), end)
    return collectives.replace(ts=ts, end=end, exposed=exposed_ns(alone, end, collectives.device, compute))


def trim_first_step(collectives: Collectives, steps: int) -> tuple[Ints, Ints]:
    """Length and exposed time of each collective (n,), in ns.

    Profilers of several ranks start apart. So in a trace of three steps or more, a collective of the first step counts
    for no more than the longest of the later steps at the same place in the step.
    """
    dur, exposed = collectives.dur, collectives.exposed
    if steps < 3 or not len(collectives):
        return dur, exposed
    in_step = number_groups(collectives.step, collectives.name)
    same_place = number_groups(collectives.name, number_in_group(in_step))
    later, first = collectives.step > 0, collectives.step == 0

    def trim(column: Ints) -> Ints:
        longest = np.full(int(same_place.max()) + 1, -1, dtype=np.int64)
        np.maximum.at(longest, same_place[later], column[later])
        most = longest[same_place]
        return np.where(first & (most >= 0) & (column > most), most, column)

    return trim(dur), trim(exposed)


def exposed_at_the_end(collectives: Collectives, compute: dict[int, Union]) -> Ints:
    """How many ns of the last eighth, the last two eighths and so on of each collective (n, 8) are exposed."""
    ends = [
        exposed_ns(collectives.end - collectives.dur * part // EIGHTHS, collectives.end, collectives.device, compute)
        for part in range(1, EIGHTHS + 1)
    ]
    return np.stack(ends, axis=1) if len(collectives) else np.zeros((0, EIGHTHS), dtype=np.int64)


def places_behind(bubbles: Bubbles, waits: Waits, loads: Loads) -> Ints:
    """For each bubble (n,) the place of the fetch of a batch or of the wait that it is due to, 0 for nowhere."""
    order = np.argsort(loads.ts, kind="stable")
    emptied = np.append(waits.place, 0)[bubbles.emptied_by]
    fetched = np.searchsorted(loads.ts[order], bubbles.end, side="left") - 1
    loading = (bubbles.cause == "data loading") & (fetched >= 0)
    return np.where(loading, np.append(loads.place[order], 0)[fetched], emptied)


def name_meetings(collectives: Collectives) -> Objects:
    """What ranks compare collectives (n,) by: the kind, and the process group where the trace has it."""
    kinds = np.where(np.isin(collectives.name, POINT_TO_POINT), PEERS, collectives.name)
    names = zip(kinds, collectives.group, strict=True)
    return objects([f"{name} of group {group}" if group else name for name, group in names])


def find_meetings(
    collectives: Collectives,
    bubbles: Bubbles,
    behind: Ints,
    steps: Steps,
    places: tuple[Place, ...],
    base_ns: int | None = None,
    recorded_from: int | None = None,
    first_work: int | None = None,
    *,
    ranks: int | None = None,
) -> Meetings | None:
    """Find where the rank meets the others: its collectives of the steps, with what its device waited for before each.
    In a trace without steps all of them count, as of step 0.

    ``collectives`` and ``bubbles`` are those of one device, ``behind`` (n,) is that of ``places_behind``;
    ``recorded_from`` is when the recording begins on the host, and ``first_work`` when on the device (ns); ``ranks`` is
    how many there are.
    """
    met = find_met(collectives, steps, ranks)
    if not len(met):
        return None
    number, what, block = _split(met, steps)
    # A bubble delays the collective that comes next.
    delayed = np.append(block, -1)[np.searchsorted(met.ts, bubbles.end, side="left")]
    delays: dict[Delay, int] = {}
    lost = {
        int(delayed[rows[0]]): _find_delays(bubbles.take(rows), behind[rows], delays, places)
        for rows in group_rows(delayed)
    }
    if not len(steps) and recorded_from is not None and first_work is not None and first_work > recorded_from:
        lost.setdefault(0, {})[delays.setdefault(Delay(cause=START), len(delays))] = first_work - recorded_from
    kept, end, dur, exposed = [], met.end, met.dur, met.exposed
    alone = met.in_graph & (met.group == "")
    for rows in group_rows(block):
        first = int(rows[0])
        idle = lost.get(int(block[first]), {})
        kept.append(
            Collective(
                step=int(number[first]), name=str(what[first]), end_ms=int(end[rows].max()) / 1e6,
                ms=_ms(dur[rows]), exposed_ms=_ms(exposed[rows]),
                idle_ms=tuple(ns / 1e6 for ns in idle.values()), delays=tuple(idle),
                each_ms=tuple((dur[rows] / 1e6).tolist()) if len(rows) > 1 and _keeps_each(rows, met) else (),
                in_graph=bool(alone[first]),
            )
        )  # fmt: skip
    begin = int(steps.ts.min()) if len(steps) else recorded_from
    begin_ms = None if begin is None else begin / 1e6
    return Meetings(collectives=tuple(kept), delays=tuple(delays), base_ns=base_ns, begin_ms=begin_ms)


def find_met(collectives: Collectives, steps: Steps, ranks: int | None) -> Collectives:
    """Those of the collectives of one device in which the rank meets the others, of so many ``ranks``."""
    counted = (collectives.step >= 0) & (collectives.step < MOST_STEPS) if len(steps) else collectives.row >= 0
    return collectives.take(counted & ((ranks == PAIR_OF_RANKS) | ~np.isin(collectives.name, POINT_TO_POINT)))


def rows_of_meetings(met: Collectives, steps: Steps) -> list[Ints]:
    """Which of the collectives of ``find_met`` each meeting of ``find_meetings`` is made of; none where they are many
    and not kept one by one."""
    _, _, block = _split(met, steps)
    return [rows if _keeps_each(rows, met) else rows[:0] for rows in group_rows(block)]


def _split(met: Collectives, steps: Steps) -> tuple[Ints, Objects, Ints]:
    """The number of the step of each, what ranks compare it by, and the number of its meeting."""
    number, what = np.append(steps.number, 0)[met.step], name_meetings(met)
    # Of those without a group, a graph's may be of another group than those launched one by one.
    graphs = met.in_graph & (met.group == "")
    kind = objects([f"{name} in a graph" if graph else name for name, graph in zip(what, graphs, strict=True)])
    return number, what, _number_blocks(number, kind, whole=not len(steps))


def _keeps_each(rows: Ints, met: Collectives) -> bool:
    return len(rows) <= MOST_EACH and len(met) <= MOST_EACH_IN_ALL


def _ms(lengths: Ints) -> float:
    return round(float(lengths.sum()) * 1e-6, 6)


def _number_blocks(number: Ints, what: Objects, *, whole: bool) -> Ints:
    """Number the meetings that collectives (n,) belong to, in order of their first collective; ``whole`` where there
    are no steps. A meeting is of one step and one kind; all ranks split them alike."""
    kind = number_groups(number, what)
    many = np.bincount(kind)[kind]
    size = -(-many // MOST_OF_A_KIND)
    if whole:
        size = np.maximum(-(-many // (MOST_OF_A_KIND * MOST_STEPS)), np.minimum(size, PAIR))
    block = number_groups(kind, number_in_group(kind) // size)
    first = np.unique(block, return_index=True)[1]
    return np.argsort(np.argsort(first))[block]


def _find_delays(bubbles: Bubbles, behind: Ints, known: dict[Delay, int], places: tuple[Place, ...]) -> dict[int, int]:
    """Sum idle ns by what they are due to, as a number in ``known``, the longest first and no more than a few."""
    sums = [
        (ns, cause, int(behind[rows[0]]))
        for rows in group_rows(behind)
        for cause, ns in zip(CAUSES, bubbles.by_cause[rows].sum(axis=0).tolist(), strict=True)
    ]
    longest = sorted((one for one in sums if one[0] >= LEAST_DELAY), key=lambda one: -one[0])[:MOST_DELAYS]
    lost: dict[int, int] = {}
    for ns, cause, number in longest:
        place = places[number]
        delay = Delay(
            cause=cause, site=place.site, at=place.at, chain=place.chain, site_source=place.source,
            ordinal=place.ordinal,
        )  # fmt: skip
        # Places without a line are one and the same, whatever annotations they are in.
        one = known.setdefault(delay, len(known))
        lost[one] = lost.get(one, 0) + ns
    return lost
