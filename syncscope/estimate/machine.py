"""The state of one replay, and what each item does to it."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from functools import cached_property

import numpy as np

from syncscope.estimate.columns import Columns, Part
from syncscope.estimate.courses import Courses, sum_from
from syncscope.estimate.dependencies import NOW, Target
from syncscope.estimate.edits import (
    Change,
    Changes,
    Question,
    either,
    find_lasting,
    find_targets,
    other_changes,
    timing_change,
)
from syncscope.estimate.items import COLLECTIVE, TO_DEVICE, TO_HOST, Items, are_one_by_one, find_slack
from syncscope.estimate.pieces import run_pieces
from syncscope.estimate.profiler_cost import without_profiler
from syncscope.estimate.program import Program
from syncscope.estimate.queues import Queues
from syncscope.estimate.replay_rows import HOST, Interval, Meeting, ReplayItem
from syncscope.estimate.runs import Block, find_runs
from syncscope.timeline.intervals import Bools, Floats
from syncscope.trace.sets import different

HOLDS_ENGINE = 20_000
"""A copy of at least this many nanoseconds keeps copies of other streams waiting."""

BOTH_WAYS = 1.05
"""How much longer a copy takes with one in the other direction beside it, measured on an H200. A kernel beside a copy
is taken to lose nothing: in steps that copy as long as they compute, it cost under 0.3 % of the step."""


ENGINES = (TO_DEVICE, TO_HOST, COLLECTIVE)
"""What is taken by one copy, or one collective, at a time."""


class Machine:
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
        self._given, self._one_rank = scenarios, np.array(on_one_rank, dtype=bool)
        self._on_one_rank: Bools | None = None
        self._scenarios = len(scenarios)
        self._pieces = find_targets(questions)
        self._targets, self._remembered = program.targets, program.targets.remembered(self._pieces)
        self._probes = probes
        if self._one_rank.any():
            self._on_one_rank = np.repeat(self._one_rank, self._scenarios)
        self._find_parts(items, questions, steps)
        self._contended = [*(are_one_by_one(items, engine) for engine in (TO_DEVICE, TO_HOST)), False]
        self._chains, self._streams = program.chains, len(program.streams)
        # Hosts, streams, what holds them, engines, the compute units, the last collective, and the last batch.
        rows = self._chains + 2 * self._streams + len(ENGINES) + 3
        self._columns = Columns(rows, len(questions), self._scenarios, find_lasting(questions, len(items)))
        self._slack = find_slack(items)
        self._copier = (0, 0, 2) if program.one_engine else (0, 1, 2)
        self._ends: dict[Target, Floats] = {}
        self._uses = program.targets.uses()
        self._used: dict[Target, int] = {}
        self._queues = Queues(len(program.streams), self._columns)
        self._of_chain = [np.flatnonzero(items.chain == chain) for chain in range(program.chains)]
        self._follows = items.follows
        self._lay_out()
        if self._on_one_rank is not None:
            self._on_one_rank = self._columns.spread(self._one_rank)
        self._begins: deque[Floats] = deque([np.zeros(self._columns.width)], maxlen=2)
        self._has_batch = False
        self.hosts: list[Floats] = []
        self.devices: list[Floats] = []
        self.recorded: list[Interval] = []
        self.probed: list[tuple[int, int, Floats]] = []

    def _find_parts(self, items: Items, questions: Sequence[Question], steps: frozenset[int]) -> None:
        """The parts of the steps: stretches, and items that stand by themselves."""
        self._shared = len(different(items.stream[items.alone])) > 1
        apart = self._apart(items, questions)
        ends, changes = self._named(items) & ~apart, list(map(timing_change, questions))
        self._changes = Changes(questions, apart)
        alone = np.flatnonzero(apart & np.isin(items.step, sorted(steps)))
        columns = (getattr(items, name)[alone].tolist() for name in ReplayItem._fields)
        self._item = dict(zip(alone.tolist(), map(ReplayItem._make, zip(*columns, strict=True)), strict=True))
        self._steps, self._stretches = find_runs(items, (apart, ends), changes, self._given[:, 0], steps, self._shared)
        self._courses = Courses(self._stretches, self._remembered, items.dur, ends)

    def _apart(self, items: Items, questions: Sequence[Question]) -> Bools:
        """Items that are no part of a stretch, since something about them is special."""
        apart: Bools = items.mark | items.wait | items.blocks | items.follows | (items.chain < 0)
        apart |= items.loading > 0
        apart |= (items.engine == COLLECTIVE) & (self._on_one_rank is not None)
        apart |= (items.engine >= 0) & (items.dur >= HOLDS_ENGINE)
        apart[sorted({*self._targets.holds, *self._probes})] = True
        for question in questions:
            apart[other_changes(question)] = True
        # Of what is remembered, that which runs by more than its length and the gap before it.
        apart |= self._named(items) & ((items.engine >= 0) | items.pageable | items.alone & self._shared)
        return apart

    def _named(self, items: Items) -> Bools:
        """Items whose ends are remembered."""
        named = np.zeros(len(items), dtype=bool)
        named[[*self._remembered]] = True
        return named

    def _lay_out(self) -> None:
        """Give the columns their names, and what is the same in all questions its columns."""
        columns, rows = self._columns, self._columns.times
        lengths = (self._chains, self._streams, self._streams, len(ENGINES), 1, 1, 1)
        begins = np.cumsum((0, *lengths)).tolist()
        parts = [rows[begin : begin + length] for begin, length in zip(begins, lengths, strict=False)]
        self._host, self._stream, self._held, self._engine = parts[:4]
        self._compute, self._met, self._batch = (part[0] for part in parts[4:])
        self._scale, self._pageable = columns.tile(self._given[:, 0]), columns.tile(self._given[:, 1])
        self._worker_paced, self._slowdown = columns.tile(self._given[:, 2] > 0), columns.tile(self._given[:, 3])
        self._which = columns.tile(np.arange(self._scenarios))
        self._never, self._slowed = np.full(columns.width, -np.inf), np.zeros(columns.width)

    # ------------------------------------------------------------------------------- questions that come and go

    def _enter(self, questions: Sequence[int]) -> None:
        """Give each of some questions a slot."""
        columns = self._columns
        lacking = columns.lacking(questions)
        if not lacking:
            return
        if columns.short_of(len(lacking)):
            self._widen(len(lacking))
        self._queues.forget_old(self._host.min(axis=0))
        past = [*self._ends.values(), *self._queues.recent()]
        for number in lacking:
            columns.enter(number, past)
        if self._on_one_rank is not None:
            self._on_one_rank = columns.spread(self._one_rank)

    def _widen(self, more: int) -> None:
        columns = self._columns
        columns.grow(more)
        self._ends = {target: columns.widened(end) for target, end in self._ends.items()}
        self._queues.widen()
        self._begins = deque(map(columns.widened, self._begins), maxlen=2)
        self.recorded = [Interval(one.stream, *map(columns.widened, one[1:])) for one in self.recorded]
        self._changes.forget_columns()
        self._lay_out()

    def _look_around(self, number: int) -> None:
        """After item ``number``, take the slots of questions that are the unchanged program, only later."""
        hosts = self._host.copy()
        for chain in range(1, self._chains):
            # A thread that goes on only after chain 0 is no sooner than that.
            mine = self._of_chain[chain]
            if not len(mine) or self._follows[mine[np.searchsorted(mine, number, side="right") % len(mine)]]:
                hosts[chain] = np.maximum(hosts[chain], hosts[0])
        soonest = hosts.min(axis=0)
        self._queues.forget_old(soonest)
        # What was over so long ago that the host is behind it for certain is the same, whenever that was.
        past = [*self._ends.values(), *self._queues.recent()]
        moments = [self._stream, self._held, self._engine, self._compute[None], *(one[None] for one in past)]
        known = [hosts, *(np.maximum(moment, soonest - self._slack) for moment in moments)]
        known += [self._met[None]] if self._on_one_rank is not None else []
        known += [self._batch[None]] if self._has_batch and self._worker_paced.any() else []
        self._columns.leave(np.concatenate(known))

    def parts(self) -> tuple[tuple[Part, ...], ...]:
        """Where the questions' last steps are in ``recorded``."""
        return self._columns.parts()

    # -------------------------------------------------------------------------------------------------- a step

    def step(self, number: int, step: int, *, drawn: bool) -> None:
        """Run a step as step ``number`` of the replay. Where it is ``drawn``, what takes time in it is kept."""
        if drawn:
            self._columns.intervals = 0
        for part in self._steps[step]:
            if isinstance(part, Block):
                self._run_block(part)
            else:
                self._run_item(part, number)

    def _run_block(self, block: Block) -> None:
        if self._columns.sparse or block.exclusive:
            for number in range(block.begin, block.end):
                self._run_stretch(block, number)
        else:
            self._run_together(block)

    def _run_together(self, block: Block) -> None:
        times, host = self._columns_of(block.begin, block.end), self._host[block.chain]
        course, ends = self._courses.of(block, times), None
        after = host + course.work[-1]
        if block.stream >= 0:
            stream = self._stream[block.stream]
            held = self._queues.hold(block.stream, course.launched, host, times[0])
            hosts = None if held is None else sum_from(host, held, course.work)
            if hosts is None:
                ends = course.ends(host, stream)
            else:
                after, hosts = hosts[-1], np.concatenate([host[None], hosts[:-1]])
                ends = sum_from(stream, hosts + times[2], course.busy)
            if self._columns.intervals is not None:
                hosts = np.concatenate([host[None], host + course.work[:-1]]) if hosts is None else hosts
                self._draw(block, np.maximum(np.concatenate([stream[None], ends[:-1]]), hosts), ends, times[1])
            self._queues.add_all(block.stream, course.launched, ends)
            stream[:] = ends[-1]
        for place, target in course.kept:
            done = self._stream[target.stream].copy() if ends is None or target.stream != block.stream else ends[place]
            self._ends[target] = done
        host[:] = after

    def _draw(self, block: Block, begins: Floats, ends: Floats, busy: Floats) -> None:
        """Keep what takes time of a block, or of its first stretches, in a step that is drawn (stretches, columns)."""
        taken = np.minimum(busy, ends - begins)
        for place, number in enumerate(range(block.begin, block.begin + len(ends))):
            if number in self._courses.lengths:
                self._record(block.stream, ends[place] - self._courses.lengths[number], ends[place])
            elif self._stretches.launches[number]:
                self._keep(Interval(block.stream, begins[place], ends[place], taken[place]))

    def _run_stretch(self, block: Block, number: int) -> None:
        if self._columns.sparse:
            self._enter(self._stretches.questions(number))
        work, busy, behind = (columns[0] for columns in self._columns_of(number, number + 1))
        host = self._host[block.chain]
        after = host + work
        if self._stretches.launches[number]:
            stream = self._stream[block.stream]
            ready = np.maximum(stream, self._compute) if block.exclusive else stream
            end = ready + busy
            np.maximum(end, host + behind, out=end)
            if self._columns.intervals is not None:
                self._draw(block._replace(begin=number), np.maximum(ready, host)[None], end[None], busy)
            stream[:] = end
            if block.exclusive:
                self._compute[:] = end
            # Where questions come and go, what is kept changes, and what was recorded does not.
            kept = end.copy() if self._columns.sparse else end
            after = self._queues.add(block.stream, self._stretches.launches[number], kept, after, work)
        host[:] = after
        for target in self._courses.kept.get(number, ()):
            self._remember(target)

    def _remember(self, target: Target) -> None:
        """Keep when a target is done: as soon as its stream is."""
        self._ends[target] = self._stream[target.stream].copy()
        self._used[target] = 0

    @cached_property
    def _wide(self) -> tuple[Floats, Floats, Floats]:
        """The columns of all stretches, where questions keep theirs."""
        whole = len(self._stretches.work)
        return self._stretches.wide(0, whole, self._scale, self._which, self._columns.slot)

    def _columns_of(self, begin: int, end: int) -> tuple[Floats, Floats, Floats]:
        """``work``, ``busy`` and ``behind`` of stretches (stretches, columns), for now."""
        if self._columns.sparse:
            return self._stretches.wide(begin, end, self._scale, self._which, self._columns.slot)
        work, busy, behind = self._wide
        return work[begin:end], busy[begin:end], behind[begin:end]

    def _run_item(self, number: int, step: int) -> None:
        if self._columns.sparse:
            self._enter(self._changes.questions(number))
        item, change = self._item[number], self._changes.of(number, self._columns, self._scale)
        if item.chain < 0:
            self._activity(number, change, step, self._never)
        else:
            host = self._host[item.chain]
            host = np.maximum(host, self._host[0]) if item.follows else host
            begin = self._loaded(item, change, host) if item.loading > 0 else host + item.pre * change.pre
            self._host[item.chain] = self._call(number, change, step, begin)
            if number in self._probes:
                self.probed.append((step, number, self._host[item.chain].copy()))
        for target in self._remembered.get(number, ()):
            self._remember(target)
        if item.mark:
            self._end_step(change)
        if (item.wait or item.blocks or item.mark) and self._columns.is_time_to_look():
            self._look_around(number)

    def _loaded(self, item: ReplayItem, change: Change, host: Floats) -> Floats:
        """When the host has its next batch and has done what else lies before an item's call."""
        batch = np.inf if change.batch is None else change.batch
        loaded = host + np.minimum(item.loading * self._scale, batch)
        if self._has_batch:
            paced = np.maximum(host, self._batch + np.minimum(item.period, batch))
            loaded = np.where(self._worker_paced | np.isfinite(batch), paced, loaded)
        self._batch[:], self._has_batch = loaded, True
        return loaded + max(item.pre - item.loading, 0.0) * change.pre

    def _call(self, number: int, change: Change, step: int, begin: Floats) -> Floats:
        """Make an item's call; when it returns."""
        item = self._item[number]
        after = begin + item.own * change.own
        if item.wait:
            done = self._done(self._targets.waits[number])
            after = np.maximum(after, done + item.back)
            after = after if change.free is None else np.where(change.free, begin, after)
            self._record(HOST, begin, after)
            if change.joins is not None:
                self._stream[:] = np.where(change.joins, np.maximum(self._stream, done), self._stream)
        elif item.stream >= 0:
            end = self._activity(number, change, step, (begin if item.blocks else after) + item.lat)
            if item.blocks:
                blocked = np.maximum(after, end + item.back)
                free = either(change.free, change.gone)
                self._record(HOST, begin, blocked, gone=free)
                after = blocked if free is None else np.where(free, after, blocked)
            after = self._queues.add(item.stream, 1, self._stream[item.stream].copy(), after)
        return after

    def _activity(self, number: int, change: Change, step: int, launched: Floats) -> Floats:
        """Put an item's activity on its stream; when it ends."""
        item = self._item[number]
        exclusive, before = self._shared and item.alone, self._stream[item.stream].copy()
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
            # What follows on the stream needs what came in, nothing of what goes out, and other streams all the same.
            passed = early & (item.engine != TO_DEVICE)
            after = np.maximum(before, self._held[item.stream]) + (dur * self._slowdown if meeting else 0.0)
            taken = np.where(change.apart, np.where(passed, after, np.maximum(before, own)), taken)
        if len(change.spread_columns) and meeting is not None:
            columns, done = change.spread_columns, self._in_pieces(meeting, change)
            end, taken = end.copy(), taken.copy()
            end[columns] = done[columns]
            taken[columns] = np.maximum(self._stream[item.stream, columns], done[columns])
        if meeting is not None and not math.isnan(item.later):
            self._met[:] = end
        if item.engine >= 0 and item.dur >= HOLDS_ENGINE:
            copier = self._copier[item.engine]
            used = np.maximum(self._engine[copier], end)
            self._engine[copier] = used if change.gone is None else np.where(change.gone, self._engine[copier], used)
        if exclusive:
            self._compute[:] = np.maximum(self._compute, taken)
        self._stream[item.stream] = taken
        self._record(item.stream, end - dur, end, gone=change.gone)
        return end

    def _apart_from(self, item: ReplayItem, moved: Bools, step: int, launched: Floats) -> Floats:
        """When a copy or a collective could begin on a stream of its own: where it is ``moved``, as soon as the step
        before began or what it needs is there; beside its stream, as soon as that is held no longer."""
        ready: Floats = np.maximum(self._stream[item.stream], launched)
        early = self._begins[0] + item.lat if item.engine == TO_DEVICE else ready
        beside = np.maximum(self._held[item.stream], launched)
        ready = np.maximum(self._engine[self._copier[item.engine]], np.where(moved, early, beside))
        return ready

    def _meeting(self, item: ReplayItem, start: Floats) -> Meeting:
        """What a collective that could ``start`` waits for.

        The other ranks gain what this one does, so it waits for them as it did. A fix on one rank leaves them the time
        that they need from one collective to the next.
        """
        known = not math.isnan(item.later)
        late = max(item.later, 0.0) if known else 0.0
        if self._on_one_rank is None or not known:
            return Meeting(None, late, item.dur - late)
        pace = (start + item.later - self._met)[: self._scenarios]
        theirs = self._met + np.tile(pace, len(start) // self._scenarios)
        return Meeting(
            np.where(self._on_one_rank, theirs, -np.inf), np.where(self._on_one_rank, 0.0, late), item.dur - late
        )

    def _in_pieces(self, meeting: Meeting, change: Change) -> Floats:
        """When the last piece of a collective is done. The compute that one runs beside takes longer for it."""
        done: Floats = self._engine[COLLECTIVE]
        state = self._ends, self._stream, self._slowed, self._slowdown, done
        run_pieces(change.pieces, meeting, change.spread_columns, *state)
        return done

    def _end_step(self, change: Change) -> None:
        done = np.maximum(self._stream.max(axis=0), self._engine.max(axis=0))
        if change.joins is not None:
            self._stream[:] = np.where(change.joins, done, self._stream)
        self._slowed = np.zeros_like(self._slowed)
        self.hosts.append(self._columns.by_question(self._host[0]))
        self.devices.append(self._columns.by_question(done))
        self._begins.append(self._host[0].copy())

    def _record(self, stream: int, begin: Floats, end: Floats, gone: Bools | None = None) -> None:
        """Keep what takes time in a step that is drawn; nothing of it where it is ``gone``."""
        if self._columns.intervals is not None:
            end = end if gone is None else np.where(gone, begin, end)
            self._keep(Interval(stream, begin, end, end - begin))

    def _keep(self, interval: Interval) -> None:
        self.recorded.append(interval)
        self._columns.intervals = (self._columns.intervals or 0) + 1

    def _done(self, targets: tuple[Target, ...]) -> Floats:
        """When everything that is waited for is done."""
        times = [self._stream[t.stream] if t.item == NOW else self._end_of(t) for t in targets]
        done: Floats = times[0].copy() if len(times) == 1 else np.maximum.reduce(times)
        return done

    def _end_of(self, target: Target) -> Floats:
        """When a remembered target was done; nothing is kept of one that nothing else waits for."""
        end = self._ends.get(target, self._never)
        if self._columns.sparse and target in self._used and target not in self._pieces:
            self._used[target] += 1
            if self._used[target] >= self._uses[target]:
                del self._ends[target], self._used[target]
        return end
