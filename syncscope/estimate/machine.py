"""Runs a program again, as it was or changed in many ways at once.

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
import pandas as pd

from syncscope.estimate.edits import Changes, Question
from syncscope.estimate.program import QUEUE, Program
from syncscope.estimate.runs import Run, find_runs
from syncscope.estimate.targets import NOW, Target
from syncscope.timeline.intervals import Bools, Floats

LEAST_LEFT = 0.25
"""Share of an item's host work that stays, however much the profiler is said to cost."""

HOLDS_ENGINE = 20_000
"""Nanoseconds from which on a copy keeps copies of other streams waiting."""


class Stretch(NamedTuple):
    """Something that took time in the last step; times in ns since the first step began, (columns,)."""

    stream: int
    """−1 for the host, blocked."""
    begin: Floats
    end: Floats
    busy: Floats
    """Of it really taken: between activities there are gaps."""


class Scenario(NamedTuple):
    """What is taken for true where the trace cannot tell."""

    host: float = 1.0
    """By what the host's work, the profiler's share taken off, is multiplied."""
    pageable: float = 1.0
    """By what the time of copies from and to pageable memory is multiplied."""


@dataclass(frozen=True)
class Replayed:
    """Times in ns since the first step began, (steps, questions, scenarios)."""

    host: Floats
    """When the host ended each step."""
    device: Floats
    """When the device was done with all that had been launched by then."""
    last: tuple[Stretch, ...]
    """What took time in the last step; columns are questions, and within each the scenarios."""

    @property
    def ends(self) -> Floats:
        """When each step was over."""
        found: Floats = np.maximum(self.host, self.device)
        return found


def replay(
    program: Program,
    questions: Sequence[Question],
    scenarios: Sequence[Scenario],
    steps: Sequence[int] | None = None,
    *,
    taxed: bool = True,
) -> Replayed:
    """Run ``steps`` (the recorded ones once), from an idle device.

    The profiler's share is taken off the host's work first where ``taxed``.
    """
    order = range(program.steps) if steps is None else steps
    machine = _Machine(program, questions, np.array(scenarios, dtype=np.float64), taxed)
    for number, step in enumerate(order):
        machine.watching = number == len(order) - 1
        machine.step(number, step)
    shape = (len(order), len(questions), len(scenarios))
    ends = (np.array(times).reshape(shape) for times in (machine.hosts, machine.devices))
    return Replayed(*ends, tuple(machine.seen))


class _Machine:
    """The state of one replay: for each chain, stream and engine the time until which it is taken."""

    def __init__(self, program: Program, questions: Sequence[Question], scenarios: Floats, taxed: bool) -> None:
        """``scenarios`` (scenarios, 2): host, pageable."""
        items = program.items
        self._scale = np.tile(scenarios[:, 0], len(questions))
        self._pageable = np.tile(scenarios[:, 1], len(questions))
        self._which = np.tile(np.arange(len(scenarios)), len(questions))
        self._changes = Changes(questions, self._scale)
        pre, own = _host_work(program, taxed)
        self._remembered = program.targets.remembered()
        apart = self._apart(program)
        self._steps = find_runs(items, pre + own, apart, scenarios[:, 0])
        self._targets = program.targets
        self._shared = items.loc[items["alone"], "stream"].nunique() > 1
        self._contended = [_one_by_one(items[items["engine"] == side]) for side in (0, 1)] + [False]
        names = ("chain", "mark", "follows", "wait", "blocks", "stream", "lat", "gap", "dur", "engine", "alone", "hop", "pageable", "back")
        self._item = list(zip(*(items[name].tolist() for name in names), pre.tolist(), own.tolist(), strict=True))
        zero, self._never = np.zeros(len(self._scale)), np.full(len(self._scale), -np.inf)
        self.watching = False
        self.seen: list[Stretch] = []
        self.hosts: list[Floats] = []
        self.devices: list[Floats] = []
        self._begins = [zero]
        self._host = [zero] * program.chains
        self._stream = [zero] * len(program.streams)
        self._engine = [zero, zero, zero]
        self._compute = zero
        self._ends: dict[Target, Floats] = {}
        self._queue: list[deque[tuple[int, Floats]]] = [deque() for _ in program.streams]
        self._launched = [0] * len(program.streams)

    def _apart(self, program: Program) -> Bools:
        items = program.items
        special = items["mark"] | items["wait"] | items["blocks"] | items["follows"] | (items["chain"] < 0)
        special |= (items["engine"] >= 0) & (items["dur"] >= HOLDS_ENGINE)
        found: Bools = special.to_numpy(bool, copy=True)
        found[sorted({*self._changes.items, *program.targets.holds, *self._remembered})] = True
        return found

    def step(self, number: int, step: int) -> None:
        """Run a recorded step as the ``number``-th."""
        for part in self._steps[step]:
            if isinstance(part, Run):
                self._run(part)
            else:
                self._one(part, number)

    def _run(self, run: Run) -> None:
        host = self._host[run.chain]
        if run.stream >= 0:
            ready = self._stream[run.stream]
            if self._shared and run.alone:
                ready = np.maximum(ready, self._compute)
            end = np.maximum(ready + run.busy, host + run.behind[self._which])
            self._stream[run.stream] = end
            self._see(run.stream, np.maximum(ready, host), end, run.busy)
            if self._shared and run.alone:
                self._compute = end
            host = self._queued(run.stream, run.launches, end, host + run.work * self._scale)
        else:
            host = host + run.work * self._scale
        self._host[run.chain] = host

    def _queued(self, stream: int, launches: int, end: Floats, host: Floats) -> Floats:
        """The host after launches, held while the stream's queue is full."""
        queue = self._queue[stream]
        self._launched[stream] += launches
        full = self._launched[stream] - QUEUE
        queue.append((self._launched[stream], end))
        while len(queue) > 1 and queue[1][0] <= full:
            queue.popleft()
        return np.maximum(host, queue[0][1]) if queue[0][0] <= full else host

    def _one(self, item: int, step: int) -> None:
        chain, mark, follows, wait, blocks, stream, lat, _, _, _, _, _, _, back, pre, own = self._item[item]
        change = self._changes.of(item)
        host = self._host[chain]
        if follows:
            host = np.maximum(host, self._host[0])
        host = host + pre * change.pre
        after = host + own * change.own
        if wait:
            done = self._done(self._targets.waits[item])
            after = np.where(change.free, host, np.maximum(after, done + back))
            self._see(-1, host, after)
            if change.joins is not None:
                self._stream = [np.where(change.joins, np.maximum(end, done), end) for end in self._stream]
        elif stream >= 0:
            launched = (host if blocks else after) + lat
            end = self._activity(item, step, launched if chain >= 0 else self._stream[stream])
            if blocks:
                after = np.where(change.free | change.gone, after, np.maximum(after, end + back))
                self._see(-1, host, np.where(change.free | change.gone, host, after))
            after = self._queued(stream, 1, self._stream[stream], after)
        for target in self._remembered.get(item, ()):
            self._ends[target] = self._stream[target.stream]
        if chain >= 0:
            self._host[chain] = after
        if mark:
            if change.joins is not None:
                done = np.maximum.reduce([*self._stream, *self._engine])
                self._stream = [np.where(change.joins, done, end) for end in self._stream]
            self.hosts.append(after)
            self.devices.append(np.maximum.reduce([*self._stream, *self._engine]))
            self._begins.append(after)

    def _activity(self, item: int, step: int, launched: Floats) -> Floats:
        """Put an item's activity on its stream; when it ends."""
        _, _, _, _, _, stream, lat, gap, length, engine, alone, hop, pageable, *_ = self._item[item]
        change = self._changes.of(item)
        before = self._stream[stream]
        start = np.maximum(before + np.minimum(gap, change.gap), launched)
        if item in self._targets.holds:
            start = np.maximum(start, self._done(self._targets.holds[item]) + hop)
        if engine >= 0 and self._contended[engine]:
            start = np.maximum(start, self._engine[engine])
        if alone and self._shared:
            start = np.maximum(start, self._compute)
        dur = np.minimum(length * self._pageable if pageable else length, change.dur)
        end = start + dur
        taken = np.where(change.gone, before, end)
        if engine >= 0:
            if change.early is not None:
                sooner = self._begins[max(step - 1, 0)] + lat if engine == 0 else np.maximum(before, launched)
                own_end = np.maximum(self._engine[engine], sooner) + dur
                end = np.where(change.early, own_end, end)
                taken = np.where(change.early, np.maximum(before, own_end) if engine == 0 else before, taken)
            if length >= HOLDS_ENGINE:
                self._engine[engine] = np.where(change.gone, self._engine[engine], np.maximum(self._engine[engine], end))
        if alone and self._shared:
            self._compute = np.maximum(self._compute, taken)
        self._stream[stream] = taken
        self._see(stream, end - dur, np.where(change.gone, end - dur, end))
        return end

    def _see(self, stream: int, begin: Floats, end: Floats, busy: float | None = None) -> None:
        if self.watching:
            self.seen.append(Stretch(stream, begin, end, end - begin if busy is None else np.minimum(busy, end - begin)))

    def _done(self, targets: tuple[Target, ...]) -> Floats:
        """When everything that is waited for is done."""
        times = [self._stream[t.stream] if t.item == NOW else self._ends.get(t, self._never) for t in targets]
        return times[0] if len(times) == 1 else np.maximum.reduce(times)


def _one_by_one(copies: pd.DataFrame) -> bool:
    """Whether copies of several streams share one engine: there are some, and no two were ever made at once."""
    order = copies.sort_values("starts")
    beside = order["starts"].to_numpy()[1:] < np.maximum.accumulate(order["ends"].to_numpy())[:-1]
    return copies["stream"].nunique() > 1 and not bool(beside.any())


def _host_work(program: Program, taxed: bool) -> tuple[Floats, Floats]:
    """Host work before and inside each item, ns at scale 1: the profiler's share comes off the greater first."""
    pre, own, tax = (program.items[name].to_numpy() for name in ("pre", "own", "tax"))
    if not taxed:
        return pre, own
    less = np.minimum(tax, (1 - LEAST_LEFT) * pre)
    return pre - less, np.maximum(own - (tax - less), LEAST_LEFT * own)
