"""Bubbles: when the device had nothing to run, and why.

A bubble ends when the device begins its next activity, so the question is why that was launched so late. If a wait had
emptied the queue, the host could only start again when the wait returned. Without the wait, the host would have been
ahead by the time it was blocked, so at most that much of the bubble is due to the wait. The rest is due to what the
host did instead of launching: something that has a name, one launch right after the other, or work of its own.
"""

from __future__ import annotations

import msgspec
import numpy as np

from syncscope.patterns import compile_later
from syncscope.timeline.calls import COMMANDS, last_before
from syncscope.timeline.intervals import Bools, Ints, Union, are_among
from syncscope.timeline.launching import LAUNCHES
from syncscope.timeline.loads import find_marks
from syncscope.timeline.tables import CAUSES, Activities, Bubbles, Calls, Copies, Loads, Marks, Ops, Waits, WarmUps
from syncscope.timeline.waits import is_wait
from syncscope.trace.names import MEMORY_ROLES, SYNC_ROLES
from syncscope.trace.quantiles import median

COLLECTIVE = r"^(?:nccl:|ucc:|xccl:|ProcessGroup\.)"
"""Names of annotations and recorded calls that start a collective of the devices."""

HOST_COLLECTIVE = r"^(?:gloo|mpi):"
"""Names of annotations of collectives of the hosts, in which they wait for each other."""

CLOCK_SLACK = 5_000
"""Nanoseconds by which host and device times may disagree."""

LATENCY = 20_000
"""A launch at most this many nanoseconds before a gap counts as just made. It explains no more than this of the gap."""

OWN_OP = compile_later("aten::")
"""How the names of PyTorch's own ops begin: what they do before they launch is part of launching."""

HOST_HOLDS = compile_later(r"LaunchHostFunc|StreamAddCallback|StreamWaitValue")
"""In the names of calls that let a stream wait for the host."""

PACE = 200_000
"""Nanoseconds between two launches of a host that does nothing but launch, at most. An op of PyTorch takes 5 to 20 µs,
a module or a node of backward in Python several times that, and a profiler adds half. A trace whose launches are closer
does not lower it: their median is that of launches inside of one module, and the same host needs several times as long
from one module to the next. In 308 runs of others, ``PACE_TIMES`` the median without this made eight verdicts wrong
that are right, twelve times the median fourteen, and 100 µs in its place seven; none became right."""

SLOW_PACE = 1_000_000
"""The same on the slowest host."""

PACE_TIMES = 5
"""A host whose launches are this many times closer in the median needs up to that long for one: a slow host, or a
profiler that records stacks."""

LEAST_COMMANDS = 50
"""Commands that show the pace of a host."""

LONGEST_HOLD = 500_000
"""Nanoseconds that a device holds work back while it does nothing else, at most: kernels follow each other within 10
µs, a large graph begins within some hundred. What takes longer is not in the trace."""


class Unseen(msgspec.Struct, frozen=True):
    """What is known of what the rows of the device do not show."""

    lost: Ints = msgspec.field(default_factory=lambda: np.empty(0, dtype=np.int64))
    """When something was launched that has no row on any device, ns in order."""
    repeated: bool = False
    """Whether the trace holds steps that follow each other, so that what ends one is followed by the next."""
    others: Union | None = None
    """When other devices of the trace are busy, which this one may wait for; ``None`` where it waits for none."""
    shared: bool = False
    """Whether other processes use the device, whose work it may wait for."""
    by_host: bool = False
    """Whether streams wait for the host."""

    @property
    def held(self) -> bool:
        """Whether any gap may be one that the rows do not show: of another process, or of the host."""
        return self.shared or self.by_host

    def waits_for_others(self, begin: Ints, end: Ints) -> Bools:
        """Which gaps (n,) of the device may wait for another device of the trace or the host."""
        if self.by_host or self.others is None:
            return np.full(len(begin), self.by_host)
        waited: Bools = self.others.within(begin, end) > 0
        return waited

    def may_hold(self, begin: Ints, end: Ints) -> Bools:
        """Which gaps (n,) of the device may wait for another device, another process or the host."""
        return np.full(len(begin), True) if self.held else self.waits_for_others(begin, end)


NO_BUBBLES = Bubbles(
    **dict.fromkeys(("row", "ts", "end", "launch", "emptied_by"), np.empty(0, dtype=np.int64)),
    cause=np.empty(0, dtype=object), by_cause=np.empty((0, len(CAUSES)), dtype=np.int64),
    late=np.empty(0, dtype=np.int64),
)  # fmt: skip
"""The bubbles of a trace without device activity."""


def find_bubbles(
    activities: Activities, calls: Calls, ops: Ops, span: tuple[int, int], waits: Waits, host: dict[str, Union],
    unseen: Unseen,
) -> Bubbles:  # fmt: skip
    """The gaps between the activities of one device inside ``span``.

    ``waits`` are those that had work to wait for; ``host`` is when the host warmed up, loaded data, allocated, was in
    the call of a pageable copy or of a collective, by cause.
    """
    begin, end = Union(activities.ts, activities.end).gaps(*span)
    following = np.searchsorted(activities.ts, end, side="left")
    # After the last gap there may be no activity: then the end of the span ends the gap, and no launch does.
    launch = np.append(activities.launch, -1)[following]
    known, latest = len(calls) > 0, end.max(initial=0)
    returned = np.append(_launch_returns(activities, calls, latest), latest)[following]
    launched = np.clip(returned, begin, end) if known else begin
    held = end - launched if known else np.zeros_like(end)
    just_launched = (np.append(calls.ts, 0)[launch] >= begin - LATENCY) & (launch >= 0)
    latency = np.where(just_launched, np.minimum(held, LATENCY), 0)
    wait, by_wait = _emptied_by(begin, launched, (following < len(activities)) | unseen.repeated, waits)
    held_long = _is_held_too_long(calls, launch, begin, end)
    # The device holds a kernel back until it is loaded, which may be after the launch has returned.
    loads = held_long & _is_within(host["warm-up"], calls, launch)
    handed_over = _is_beside_collective(activities, begin, following) & ~held_long
    parts = {
        "wait": by_wait,
        "single pause": np.zeros_like(end),  # which only the steps together tell (``pauses``)
        "launch latency": latency,
        "queued on device": np.where(handed_over | loads, 0, held - latency),
        "unknown": np.zeros_like(end) if known else end - begin,
    }
    # What is left between the wait's share and the launch is the host's; the named activities come first.
    left = launched - begin - parts["wait"]
    from_ = launched - left
    for cause, union in host.items():
        parts[cause] = np.minimum(union.within(from_, launched), left)
        left = left - parts[cause]
    parts["collective"] = parts["collective"] + np.where(handed_over, held - latency, 0)
    parts["warm-up"] = parts["warm-up"] + np.where(loads, held - latency, 0)
    in_a_row = are_launched_in_a_row(launch, calls, ops)
    parts["launching"], parts["host work"] = np.where(in_a_row, left, 0), np.where(in_a_row, 0, left)
    too_long = held_long & ~unseen.may_hold(begin, end)
    parts["unknown"] = parts["unknown"] + np.where(too_long, parts["queued on device"], 0)
    parts["queued on device"] = np.where(too_long, 0, parts["queued on device"])
    doubted = _is_doubted(activities, calls, begin, end, following, unseen)
    by_cause = np.stack([parts[cause] for cause in CAUSES], axis=1)
    by_cause[doubted] = 0
    by_cause[doubted, CAUSES.index("unknown")] = (end - begin)[doubted]
    return Bubbles(
        row=np.arange(len(begin), dtype=np.int64), ts=begin, end=end, launch=launch,
        emptied_by=np.where((by_wait > 0) & ~doubted, wait, -1), by_cause=by_cause,
        cause=np.array(CAUSES, dtype=object)[np.argmax(by_cause, axis=1)],
        late=np.where(held_long & ~handed_over & ~loads & ~doubted & ~unseen.waits_for_others(begin, end), held, 0),
    )  # fmt: skip


def when_busy(
    calls: Calls, waits: Waits, copies: Copies, loads: Loads, warm_ups: WarmUps, idle: Union, *marks: Marks
) -> dict[str, Union]:
    """When the host does what explains idle time, by cause; ``idle`` is when it does nothing (``host_idle``), ``marks``
    are the annotations and the recorded calls. Who loads or warms up counts in a thread that launches kernels, in a
    trace without kernels in one that copies."""
    memory = waits.take(~is_wait(waits.kind))
    staged = copies.take((copies.memory == "pageable") & (copies.launch >= 0))
    launching = calls.tid[calls.do(LAUNCHES)]
    launching = launching if len(launching) else calls.tid[calls.do(COMMANDS)]
    loads = loads.take(are_among(loads.tid, launching))
    warm_ups = warm_ups.take(are_among(warm_ups.tid, launching))
    of_hosts, collectives = find_marks(HOST_COLLECTIVE, *marks), find_marks(COLLECTIVE, *marks)
    busy = {
        "warm-up": Union(warm_ups.ts, warm_ups.end),
        "data loading": Union(loads.ts, loads.end),
        "allocation": Union(memory.ts, memory.end),
        "pageable copy": Union(staged.launch_ts, staged.launch_end),
        "host collective": Union(of_hosts.ts, of_hosts.end),
        "collective": Union(collectives.ts, collectives.end),
    }
    named = Union(*(np.concatenate([getattr(one, edge) for one in busy.values()]) for edge in ("ts", "end")))
    return busy | {"host idle": Union(*idle.without(named))}


def _launch_returns(activities: Activities, calls: Calls, never: int) -> Ints:
    """For each activity (n,) when its launch returned; where the trace lost the launch, at the latest."""
    # A copy that blocks returns after it ran, so there its begin counts.
    returned = np.where(calls.do(["copy-sync"]), calls.ts, calls.end)
    _, lost = _lost_between(activities, calls, never)
    return np.where(activities.launch >= 0, np.append(returned, 0)[activities.launch], lost)


def _lost_between(activities: Activities, calls: Calls, never: int) -> tuple[Ints, Ints]:
    """For each activity (n,) when it was launched at the earliest and at the latest, where the trace lost the launch.
    Correlations tell its place, since they count up: behind the call with the one before (0 where there is none), and
    in front of the call with the next one (``never`` where there is none), or before the trace began (0)."""
    numbered = np.flatnonzero(calls.correlation >= 0)
    numbered = numbered[np.argsort(calls.correlation[numbered], kind="stable")]
    slot = np.searchsorted(calls.correlation[numbered], activities.correlation, side="right")
    earlier = np.append(calls.end[numbered], 0)[slot - 1]
    later = np.append(calls.ts[numbered], never)[slot]
    early, unnumbered = slot == 0, activities.correlation < 0
    return np.where(early | unnumbered, 0, earlier), np.where(unnumbered, never, np.where(early, 0, later))


def are_launched_in_a_row(launch: Ints, calls: Calls, ops: Ops) -> Bools:
    """Which of these launches (n,), rows of ``calls`` or −1, came right after another command: little time passed
    besides what the op that launches took for it, and no wait or allocation of its thread lies between."""
    commands = np.flatnonzero(calls.do(COMMANDS))
    in_a_row = np.zeros(len(launch), dtype=bool)
    if not len(commands):
        return in_a_row
    known = np.flatnonzero(launch >= 0)
    slot = np.searchsorted(commands, launch[known], side="left") - 1
    known, before = known[slot >= 0], commands[np.maximum(slot, 0)][slot >= 0]
    ts, tid = calls.ts[launch[known]], calls.tid[launch[known]]
    pauses = np.flatnonzero(calls.do(SYNC_ROLES | MEMORY_ROLES))
    last = last_before(ts, tid, pauses, calls.ts, calls.tid)
    undisturbed = (last < 0) | (calls.end[last] <= calls.ts[before])
    apart, pace = ts - calls.end[before], _pace(calls, commands)
    close = apart <= pace
    slow = np.flatnonzero(~close & (apart <= SLOW_PACE))
    close[slow] = apart[slow] - _time_in_op(launch[known[slow]], calls, ops) <= pace
    in_a_row[known] = close & undisturbed
    return in_a_row


def _time_in_op(launch: Ints, calls: Calls, ops: Ops) -> Ints:
    """Nanoseconds that each of some launches (n,), rows of ``calls``, comes behind the begin of the op of PyTorch that
    makes it, 0 where none does."""
    time = np.zeros(len(launch), dtype=np.int64)
    if not len(launch) or not len(ops):
        return time
    own, op = ops.named(OWN_OP.match), ops.around(calls)[launch]
    made = np.flatnonzero((op >= 0) & own[op])
    op = op[made]
    while len(inner := np.flatnonzero(((parent := ops.nesting.parent[op]) >= 0) & own[parent])):
        op[inner] = parent[inner]
    time[made] = np.maximum(calls.ts[launch[made]] - ops.ts[op], 0)
    return time


def _pace(calls: Calls, commands: Ints) -> float:
    """Nanoseconds between two launches of this host when it does nothing but launch, at most. ``commands`` are the rows
    of the calls that give the device something to do."""
    if len(commands) < LEAST_COMMANDS:
        return PACE
    threads = commands[np.argsort(calls.tid[commands], kind="stable")]
    before, after = threads[:-1], threads[1:]
    apart = (calls.ts[after] - calls.end[before])[calls.tid[after] == calls.tid[before]]
    return float(np.clip(PACE_TIMES * median(apart), PACE, SLOW_PACE)) if len(apart) else PACE


def _is_held_too_long(calls: Calls, launch: Ints, begin: Ints, end: Ints) -> Bools:
    """Which gaps (n,) end with what had been launched, rows of ``calls`` or −1, longer ago than a device holds it."""
    returned = np.append(calls.end, 0)[launch]
    held: Bools = (launch >= 0) & (end - np.maximum(returned, begin) > LONGEST_HOLD)
    return held


def _is_within(busy: Union, calls: Calls, launch: Ints) -> Bools:
    """Which launches (n,), rows of ``calls`` or −1, lie in stretches of time as a whole."""
    begin, end = (np.append(column, 0)[launch] for column in (calls.ts, calls.end))
    within: Bools = (launch >= 0) & (end > begin) & (busy.within(begin, end) == end - begin)
    return within


def _is_doubted(activities: Activities, calls: Calls, begin: Ints, end: Ints, following: Ints, unseen: Unseen) -> Bools:
    """Which gaps (n,) may not be gaps: work that was launched for them has no row, or what ends them has no launch, so
    that nobody knows what the device held, or when the host came to it."""
    if not len(calls):
        return np.zeros(len(begin), dtype=bool)
    launch_ts = np.where(activities.launch >= 0, np.append(calls.ts, 0)[activities.launch], -1)
    # What was launched up to the one before a gap has begun: a stream keeps the order.
    begun = np.maximum.accumulate(np.concatenate([[-1], launch_ts]))[following]
    next_ts = np.append(launch_ts, -1)[following]
    next_ts = np.where(next_ts >= 0, next_ts, end)
    lost = np.searchsorted(unseen.lost, next_ts) > np.searchsorted(unseen.lost, begun, side="right")
    first = calls.correlation[calls.correlation >= 0].min(initial=np.iinfo(np.int64).max)
    unlaunched = np.append((activities.launch < 0) & (activities.correlation < first), False)[following]
    none = not (activities.launch >= 0).any()
    earliest, latest = (
        np.append(time, -1)[following] for time in _lost_between(activities, calls, int(end.max(initial=0)))
    )
    of_lost = np.append(activities.launch < 0, False)[following]
    anywhere = of_lost & (np.minimum(latest, end) - np.maximum(earliest, begin) > SLOW_PACE)
    doubted: Bools = (lost | unlaunched | anywhere | none) & (end - begin > LATENCY)
    return doubted


def _is_beside_collective(activities: Activities, begin: Ints, following: Ints) -> Bools:
    """Which gaps (n,) lie between a collective and something else: right before one, or right after the last to end."""
    collective = activities.collective != ""
    order = np.argsort(activities.end, kind="stable")
    slot = np.searchsorted(activities.end[order], begin, side="right") - 1
    before = np.where(slot >= 0, np.append(collective[order], False)[slot], False)
    beside: Bools = before | np.append(collective, False)[following]
    return beside


def _emptied_by(begin: Ints, launched: Ints, goes_on: Bools, waits: Waits) -> tuple[Ints, Ints]:
    """For each gap (n,) the wait that emptied the queue (its ``row``, −1 none) and the ns of the gap that are due to
    it. Without the wait the host could have gone on sooner, where it ``goes_on``."""
    if not len(waits):
        return np.full(len(begin), -1, dtype=np.int64), np.zeros(len(begin), dtype=np.int64)
    waits = waits.take(np.argsort(waits.end, kind="stable"))
    slot = np.searchsorted(waits.end, launched, side="right") - 1
    wait = np.maximum(slot, 0)
    drained = (slot >= 0) & (waits.end[wait] >= begin - CLOCK_SLACK) & (waits.begin[wait] <= begin + CLOCK_SLACK)
    returned = np.maximum(waits.end[wait], begin)
    share = (returned - begin) + np.where(goes_on, np.minimum(launched - returned, waits.stall[wait]), 0)
    return np.where(drained, waits.row[wait], -1), np.where(drained, share, 0)


def sum_causes(bubbles: Bubbles, steps: int) -> dict[str, float]:
    """Idle milliseconds per step (``steps`` 0: in all) of each cause that has any, the greatest first."""
    sums = zip(CAUSES, bubbles.by_cause.sum(axis=0).tolist(), strict=True)
    total = {cause: round(ns * 1e-6 / max(steps, 1), 6) for cause, ns in sums}
    return {cause: total[cause] for cause in sorted(total, key=lambda c: -total[c]) if total[cause] > 0}
