"""Run a program again, as it was or changed in many ways at once.

Everything happens as early as what it needs allows: the host goes from call to call; an activity begins when it is
launched, the one before it in its stream is done, and so is what else it waits for; a wait returns when its targets
are done. Each of these times is a maximum of sums, so one run answers any number of questions: every time is a row
of numbers, one a column, and a column is one question in one scenario.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from syncscope.estimate.dependencies import NOW, Target
from syncscope.estimate.edits import Change, Changes, Question, either
from syncscope.estimate.items import COLLECTIVE, TO_DEVICE, TO_HOST, Items
from syncscope.estimate.profiler_cost import without_profiler
from syncscope.estimate.program import QUEUE, Program
from syncscope.estimate.runs import Run, find_runs
from syncscope.timeline.intervals import Bools, Floats

HOLDS_ENGINE = 20_000
"""A copy of at least this many nanoseconds keeps copies of other streams waiting."""

HOST = -1
"""In place of a stream's number: the host, while it is blocked."""

SLOWDOWN = 0.75
"""Share of a collective's time by which the compute beside it takes longer: 0.5 to 1, measured on two H200 that NVLink
joins, with compute that fills the device."""

BOTH_WAYS = 1.05
"""How much longer a copy takes with one in the other direction beside it, measured on an H200. A kernel beside a copy
is taken to lose nothing: in steps that copy as long as they compute, it cost under 0.3 % of the step."""


class Interval(NamedTuple):
    """Something that took time in the last step; times in ns since the first step began, (columns,)."""

    stream: int
    """Number of the stream, or ``HOST``."""
    begin: Floats
    end: Floats
    busy: Floats
    """How much of it was really taken: there are gaps between activities."""


class Scenario(NamedTuple):
    """What is assumed where the trace does not say."""

    host: float = 1.0
    """Factor on the host's work, after the profiler's share is taken off."""
    pageable: float = 1.0
    """Factor on the time of copies from and to pageable memory."""
    worker_paced: float = 0.0
    """1 when batches come at the pace of worker processes, 0 when loading one is the host's own work."""
    slowdown: float = SLOWDOWN
    """Share of a collective's time by which it lengthens the compute that it is moved beside."""


@dataclass(frozen=True)
class Replayed:
    """Times in ns since the first step began, (steps, questions, scenarios)."""

    host: Floats
    """When the host ended each step."""
    device: Floats
    """When the device was done with all that had been launched by then."""
    last: tuple[Interval, ...]
    """What took time in the last step; columns are questions, and within each the scenarios."""
    probed: tuple[tuple[int, int, Floats], ...] = ()
    """When the host was done with a probed item: number of the replayed step, item, (columns,)."""

    @property
    def ends(self) -> Floats:
        """When each step was over."""
        ends: Floats = np.maximum(self.host, self.device)
        return ends


def replay(
    program: Program,
    questions: Sequence[Question],
    scenarios: Sequence[Scenario],
    steps: Sequence[int] | None = None,
    *,
    profiled: bool = False,
    on_one_rank: Sequence[bool] = (),
    probes: frozenset[int] = frozenset(),
) -> Replayed:
    """Run ``steps`` (the recorded ones once), from an idle device.

    The profiler's share is taken off the host's work first, unless ``profiled``. A question that is ``on_one_rank``
    changes nothing on the other ranks; with such a question, question 0 must change nothing.
    """
    order = range(program.steps) if steps is None else steps
    machine = _Machine(
        program, questions, np.array(scenarios, dtype=np.float64), frozenset(order), profiled, on_one_rank, probes
    )
    for number, step in enumerate(order):
        machine.recording = number == len(order) - 1
        machine.step(number, step)
    shape = (len(order), len(questions), len(scenarios))
    host, device = (np.array(times).reshape(shape) for times in (machine.hosts, machine.devices))
    return Replayed(host, device, tuple(machine.recorded), tuple(machine.probed))


class _Item(NamedTuple):
    """What a replay reads of an item, as in ``Items``."""

    pre: float
    own: float
    chain: int
    mark: bool
    follows: bool
    wait: bool
    back: float
    stream: int
    lat: float
    gap: float
    dur: float
    hop: float
    engine: int
    alone: bool
    blocks: bool
    pageable: bool
    loading: float
    period: float
    later: float


class _Meeting(NamedTuple):
    """What one collective waits for, (columns,) or the same for all."""

    theirs: Floats
    """When the last of the other ranks comes, where that does not depend on this rank; −inf where it does."""
    late: Floats | float
    """How much later than this rank the last one comes, ns, where that depends on this rank."""
    length: float
    """From then to the end, ns."""

    def end(self, start: Floats) -> Floats:
        end: Floats = np.maximum(start + self.late, self.theirs) + self.length
        return end


class _Machine:
    """The state of one replay: until when each chain, stream and engine is taken."""

    def __init__(
        self,
        program: Program,
        questions: Sequence[Question],
        scenarios: Floats,
        steps: frozenset[int],
        profiled: bool,
        on_one_rank: Sequence[bool],
        probes: frozenset[int],
    ) -> None:
        """``scenarios`` (scenarios, 4): host, pageable, worker_paced, slowdown. ``steps`` are those that will run."""
        items = program.items if profiled else without_profiler(program.items)
        self._scale = np.tile(scenarios[:, 0], len(questions))
        self._pageable = np.tile(scenarios[:, 1], len(questions))
        self._worker_paced = np.tile(scenarios[:, 2] > 0, len(questions))
        self._slowdown = np.tile(scenarios[:, 3], len(questions))
        self._on_one_rank = np.repeat(np.array(on_one_rank, dtype=bool), len(scenarios)) if any(on_one_rank) else None
        self._scenarios = len(scenarios)
        self._which = np.tile(np.arange(len(scenarios)), len(questions))
        self._changes = Changes(questions, self._scale)
        self._targets, self._remembered = program.targets, program.targets.remembered(self._changes.targets)
        self._probes = probes
        apart = self._apart(items)
        alone = np.flatnonzero(apart & np.isin(items.step, sorted(steps)))
        columns = (getattr(items, name)[alone].tolist() for name in _Item._fields)
        self._item = dict(zip(alone.tolist(), map(_Item._make, zip(*columns, strict=True)), strict=True))
        self._steps = find_runs(items, apart, self._changes.timing_changes, scenarios[:, 0], steps)
        self._shared = len(np.unique(items.stream[items.alone])) > 1
        self._contended = [*(_one_by_one(items, engine) for engine in (TO_DEVICE, TO_HOST)), False]
        zero, self._never = np.zeros(len(self._scale)), np.full(len(self._scale), -np.inf)
        self._host, self._stream = [zero] * program.chains, [zero] * len(program.streams)
        self._held = [zero] * len(program.streams)
        self._engine, self._compute = [zero] * 3, zero
        self._met, self._slowed = zero, zero
        self._copier = (0, 0, 2) if program.one_engine else (0, 1, 2)
        self._ends: dict[Target, Floats] = {}
        self._queue: list[deque[tuple[int, Floats]]] = [deque() for _ in program.streams]
        self._launched = [0] * len(program.streams)
        self._begins = [zero]
        self._batch: Floats | None = None
        self.hosts: list[Floats] = []
        self.devices: list[Floats] = []
        self.recording = False
        self.recorded: list[Interval] = []
        self.probed: list[tuple[int, int, Floats]] = []

    def _apart(self, items: Items) -> Bools:
        """Items that are no part of a stretch, since something about them is special."""
        apart: Bools = items.mark | items.wait | items.blocks | items.follows | (items.chain < 0)
        apart |= items.loading > 0
        apart |= (items.engine == COLLECTIVE) & (self._on_one_rank is not None)
        apart |= (items.engine >= 0) & (items.dur >= HOLDS_ENGINE)
        apart[sorted({*self._changes.items, *self._targets.holds, *self._remembered, *self._probes})] = True
        return apart

    def step(self, number: int, step: int) -> None:
        """Run a recorded step, as step ``number`` of the replay."""
        for part in self._steps[step]:
            if isinstance(part, Run):
                self._run_stretch(part)
            else:
                self._run_item(part, number)

    def _run_stretch(self, run: Run) -> None:
        host = self._host[run.chain]
        work = run.work if run.changed else run.work * self._scale
        after = host + work
        if run.stream >= 0:
            exclusive = self._shared and run.alone
            behind = run.behind if run.changed else run.behind[self._which]
            ready = self._stream[run.stream]
            ready = np.maximum(ready, self._compute) if exclusive else ready
            end = self._stream[run.stream] = np.maximum(ready + run.busy, host + behind)
            self._compute = end if exclusive else self._compute
            self._record(run.stream, np.maximum(ready, host), end, run.busy)
            after = self._queued(run.stream, run.launches, after, work)
        self._host[run.chain] = after

    def _queued(self, stream: int, launches: int, host: Floats, work: Floats | float = 0.0) -> Floats:
        """The host after launches that took it some ``work``, held while the stream's queue is full."""
        queue = self._queue[stream]
        self._launched[stream] += launches
        queue.append((self._launched[stream], self._stream[stream]))
        full = self._launched[stream] - QUEUE
        while len(queue) > 1 and queue[1][0] <= full:
            queue.popleft()
        done, end = queue[0]
        if done > full:
            return host
        # The launch that needed the place was held. The rest of the work came after it.
        behind = min(full - done, launches - 1) / launches
        return np.maximum(host, end + behind * work)

    def _run_item(self, number: int, step: int) -> None:
        item, change = self._item[number], self._changes.of(number)
        if item.chain < 0:
            self._activity(number, step, self._never)
        else:
            host = self._host[item.chain]
            host = np.maximum(host, self._host[0]) if item.follows else host
            begin = self._loaded(item, change, host) if item.loading > 0 else host + item.pre * change.pre
            self._host[item.chain] = self._call(number, step, begin)
            if number in self._probes:
                self.probed.append((step, number, self._host[item.chain]))
        for target in self._remembered.get(number, ()):
            self._ends[target] = self._stream[target.stream]
        if item.mark:
            self._end_step(change)

    def _loaded(self, item: _Item, change: Change, host: Floats) -> Floats:
        """When the host has its next batch and has done what else lies before an item's call."""
        batch = np.inf if change.batch is None else change.batch
        loaded = host + np.minimum(item.loading * self._scale, batch)
        if self._batch is not None:
            paced = np.maximum(host, self._batch + np.minimum(item.period, batch))
            loaded = np.where(self._worker_paced | np.isfinite(batch), paced, loaded)
        self._batch = loaded
        return loaded + max(item.pre - item.loading, 0.0) * change.pre

    def _call(self, number: int, step: int, begin: Floats) -> Floats:
        """Make an item's call; when it returns."""
        item, change = self._item[number], self._changes.of(number)
        after = begin + item.own * change.own
        if item.wait:
            done = self._done(self._targets.waits[number])
            after = np.maximum(after, done + item.back)
            after = after if change.free is None else np.where(change.free, begin, after)
            self._record(HOST, begin, after)
            if change.joins is not None:
                self._stream = [np.where(change.joins, np.maximum(end, done), end) for end in self._stream]
        elif item.stream >= 0:
            end = self._activity(number, step, (begin if item.blocks else after) + item.lat)
            if item.blocks:
                blocked = np.maximum(after, end + item.back)
                free = either(change.free, change.gone)
                self._record(HOST, begin, blocked, gone=free)
                after = blocked if free is None else np.where(free, after, blocked)
            after = self._queued(item.stream, 1, after)
        return after

    def _activity(self, number: int, step: int, launched: Floats) -> Floats:
        """Put an item's activity on its stream; when it ends."""
        item, change = self._item[number], self._changes.of(number)
        exclusive, before = self._shared and item.alone, self._stream[item.stream]
        gap = item.gap if change.gap is None else np.minimum(item.gap, change.gap)
        start = np.maximum(before + gap, launched)
        if number in self._targets.holds:
            self._held[item.stream] = self._done(self._targets.holds[number]) + item.hop
            start = np.maximum(start, self._held[item.stream])
        if item.engine >= 0 and self._contended[item.engine]:
            start = np.maximum(start, self._engine[self._copier[item.engine]])
        start = np.maximum(start, self._compute) if exclusive else start
        dur = item.dur * self._pageable if item.pageable else item.dur
        dur = dur if change.dur is None else np.minimum(dur, change.dur)
        meeting = self._meeting(item, start) if item.engine == COLLECTIVE else None
        end = start + dur if meeting is None else meeting.end(start)
        if meeting is not None and change.dur is not None:
            end = np.where(change.dur < item.dur, start + dur, end)
        taken = end if change.gone is None else np.where(change.gone, before, end)
        if change.apart is not None:
            early = np.zeros_like(change.apart) if change.early is None else change.early
            own = self._apart_from(item, early, step, launched) + np.where(early, dur, dur * BOTH_WAYS)
            end = np.where(change.apart, own, end)
            # What follows on the stream needs what came in, but nothing of what goes out.
            passed = early & (item.engine != TO_DEVICE)
            after = np.maximum(before, self._held[item.stream]) + dur * self._slowdown if meeting else before
            taken = np.where(change.apart, np.where(passed, after, np.maximum(before, own)), taken)
        if change.spread is not None and meeting is not None:
            end = np.where(change.spread, self._in_pieces(meeting, change, change.spread), end)
            taken = np.where(change.spread, np.maximum(self._stream[item.stream], end), taken)
        self._met = self._met if meeting is None else end
        if item.engine >= 0 and item.dur >= HOLDS_ENGINE:
            copier = self._copier[item.engine]
            used = np.maximum(self._engine[copier], end)
            self._engine[copier] = used if change.gone is None else np.where(change.gone, self._engine[copier], used)
        self._compute = np.maximum(self._compute, taken) if exclusive else self._compute
        self._stream[item.stream] = taken
        self._record(item.stream, end - dur, end, gone=change.gone)
        return end

    def _apart_from(self, item: _Item, moved: Bools, step: int, launched: Floats) -> Floats:
        """When a copy or a collective could begin on a stream of its own: where it is ``moved``, as soon as the step
        before began or what it needs is there; beside its stream, as soon as that is held no longer."""
        ready = np.maximum(self._stream[item.stream], launched)
        early = self._begins[max(step - 1, 0)] + item.lat if item.engine == TO_DEVICE else ready
        beside = np.maximum(self._held[item.stream], launched)
        return np.maximum(self._engine[self._copier[item.engine]], np.where(moved, early, beside))

    def _meeting(self, item: _Item, start: Floats) -> _Meeting:
        """What a collective that could ``start`` waits for.

        The other ranks gain what this one does, so it waits for them as it did. A fix on one rank leaves them the time
        that they need from one collective to the next.
        """
        late = 0.0 if np.isnan(item.later) else max(item.later, 0.0)
        if self._on_one_rank is None or np.isnan(item.later):
            return _Meeting(self._never, late, item.dur - late)
        pace = (start + item.later - self._met)[: self._scenarios]
        theirs = self._met + np.tile(pace, len(start) // self._scenarios)
        return _Meeting(
            np.where(self._on_one_rank, theirs, -np.inf), np.where(self._on_one_rank, 0.0, late), item.dur - late
        )

    def _in_pieces(self, meeting: _Meeting, change: Change, spread: Bools) -> Floats:
        """When the last piece of a collective is done. The compute that one runs beside takes longer for it."""
        piece, done = meeting.length / len(change.pieces), self._engine[COLLECTIVE]
        for target in change.pieces:
            ready = self._ends.get(target, self._never) + self._slowed
            begin = np.maximum(done, np.maximum(ready + meeting.late, meeting.theirs))
            done = begin + piece
            beside = np.where(spread, np.clip(self._stream[target.stream] - begin, 0.0, piece), 0.0)
            self._slowed = self._slowed + self._slowdown * beside
            self._stream[target.stream] = self._stream[target.stream] + self._slowdown * beside
        self._engine[COLLECTIVE] = np.where(spread, done, self._engine[COLLECTIVE])
        return done

    def _end_step(self, change: Change) -> None:
        done = np.maximum.reduce([*self._stream, *self._engine])
        if change.joins is not None:
            self._stream = [np.where(change.joins, done, end) for end in self._stream]
        self._slowed = np.zeros_like(self._slowed)
        self.hosts.append(self._host[0])
        self.devices.append(done)
        self._begins.append(self._host[0])

    def _record(
        self, stream: int, begin: Floats, end: Floats, busy: Floats | float = np.inf, gone: Bools | None = None
    ) -> None:
        """Keep what takes time in the last step; nothing of it where it is ``gone``."""
        if self.recording:
            end = end if gone is None else np.where(gone, begin, end)
            self.recorded.append(Interval(stream, begin, end, np.minimum(busy, end - begin)))

    def _done(self, targets: tuple[Target, ...]) -> Floats:
        """When everything that is waited for is done."""
        times = [self._stream[t.stream] if t.item == NOW else self._ends.get(t, self._never) for t in targets]
        return times[0] if len(times) == 1 else np.maximum.reduce(times)


def _one_by_one(items: Items, engine: int) -> bool:
    """Whether copies of several streams share an engine: there are some, and each began when those launched before it
    were done."""
    mine = items.engine == engine
    starts, ends = items.starts[mine], items.ends[mine]
    sooner = starts[1:] < np.maximum.accumulate(ends)[:-1]
    return len(np.unique(items.stream[mine])) > 1 and not sooner.any()
