"""Count every wait of the run by place and phase, in all steps or in steps drawn at random.

PyTorch's sync debug mode says where the program waits, and wrappers see what it does not warn of. In a step that is not
counted the mode is off, and the wrappers pass calls on, or are taken out where even that would cost too much. Waits on
other threads count as well. There is no lock: two threads that count at the same instant may lose a wait to each other.
"""

from __future__ import annotations

import bisect
import math
import os
import sys
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any, Protocol

from syncscope.collect.annotations import expectation
from syncscope.collect.count.account import CAP, Account, Prices
from syncscope.collect.count.bins import Bins
from syncscope.collect.count.places import MAX_PLACES, Key, Place
from syncscope.collect.count.prices import measure
from syncscope.collect.count.sampling import Draw, Sampling
from syncscope.collect.count.wrappers import CountingWrappers
from syncscope.collect.sites.stacks import Stacks
from syncscope.collect.sites.sync_debug import sync_debug_mode
from syncscope.collect.sites.threads import Threads
from syncscope.collect.sites.wrappers import LINALG_WITHOUT_WARNING, WarningCount
from syncscope.schema.counting import CountedWait, PhaseKind, RunBin
from syncscope.schema.recording import SiteEvent

MAY_WAIT_NS = 100_000
"""A call of an operator that takes less launches work. One that takes longer may have waited. The first of a place does
not count: it loads kernels."""

PAUSE_NS = 2_000_000
"""Once counting has stopped because it cost too much, it goes on when so much may be spent again."""

MOST_OUTS = 450 if sys.version_info >= (3, 13) else sys.maxsize
"""Once wrappers were taken out so often, they stay in, except for windows. See ``sampling.FREE_OUTS``."""

ALWAYS: frozenset[PhaseKind] = frozenset({"start", "epoch end", "checkpoint"})
"""Phases that are rare. All their steps are counted."""

COPIES = frozenset({"Tensor.to", "Tensor.cuda", "Tensor.cpu", "Tensor.copy_"})

WAITING_CALLS = COPIES | {
    "torch.cuda.synchronize", "torch.accelerator.synchronize", "Event.synchronize", "torch.cuda.empty_cache",
    "torch.unique", "torch.unique_consecutive", "Tensor.coalesce", "torch.ops",
    *(f"torch.linalg.{name}" for name in LINALG_WITHOUT_WARNING),
}  # fmt: skip
"""Calls in a window's events that count. Those left out (``pin_memory``, the next batch, collectives) do not wait for
the device."""


class Phase(Protocol):
    """What counting asks of a phase."""

    @property
    def number(self) -> int: ...
    @property
    def kind(self) -> PhaseKind: ...
    @property
    def steps(self) -> int:
        """Boundaries so far."""


class Tracker(Protocol):
    """What counting asks of the phase tracker."""

    @property
    def current(self) -> Phase: ...
    def at(self, frame: FrameType) -> Phase:
        """The phase of something that happens now in ``frame``."""


class _Warned(WarningCount):
    """PyTorch's warnings on this thread so far, and the place of the last one."""

    place: Place | None = None


class _Nowhere:
    """A phase, and the tracker that always finds it."""

    number = 0
    kind: PhaseKind = "other"
    steps = 0

    @property
    def current(self) -> Phase:
        return self

    def at(self, frame: FrameType) -> Phase:
        return self


class _State:
    """What is counted in one phase."""

    def __init__(self, phase: Phase, draw: Draw) -> None:
        self.phase = phase
        self.sampling = Sampling(draw, phase.kind in ALWAYS)
        self.warned: dict[int, Place] = {}
        self.called: dict[Key, Place] = {}
        self.begin()
        self.counted_steps = 0
        self.time_ns = 0
        self.counted_ns = 0
        self.cut = False
        """Counting stopped in the middle of a step, because it came to cost too much."""

    def begin(self) -> None:
        """Counting begins with the step that the phase is in."""
        self.first = self.since = self.phase.steps
        self.begin_block()

    def begin_block(self) -> None:
        self.block_ns = self.block_counted_ns = 0
        self.block_cost_ns = self.block_gate_ns = 0.0

    @property
    def places(self) -> list[Place]:
        return [*self.warned.values(), *self.called.values()]


class Counter:
    """Counts from ``open`` to ``close``. CUDA must be initialised. ``clock`` counts nanoseconds.

    The methods called at steps and changes of phase cost about a microsecond. In a forked child nothing is counted.
    Opening raises ``features.Unsupported`` where PyTorch has no sync debug mode.
    """

    def __init__(
        self,
        torch: Any,
        stacks: Stacks,
        threads: Threads,
        tracker: Tracker,
        *,
        clock: Callable[[], int] = time.perf_counter_ns,
        prices: Prices | None = None,
        draw: Draw | None = None,
    ) -> None:
        self._torch = torch
        self._stacks = stacks
        self._threads = threads
        self._tracker = tracker
        self._clock = clock
        self._prices = prices
        self._draw = draw or Draw()
        self._account = Account(prices or Prices())
        self._states: dict[int, _State] = {}
        self._warned = _Warned()
        self._kept = 0
        self._switches = self._outs = 0
        self._in = False
        """The wrappers are in."""
        self._opened = self._suspended = self._paused = False
        self._mark = 0
        self._bins = Bins(0)
        self.dropped = 0
        """Waits at further places, once there were too many to keep."""
        self._wrappers = CountingWrappers(torch, self, self._account, sync_debug_mode)
        self._wrappers.warnings = self._warned
        self._seen = self._make_seen()

    @property
    def missing(self) -> tuple[str, ...]:
        """The entry points that this version of PyTorch lacks, so that their calls are not counted."""
        return tuple(self._wrappers.missing)

    def open(self) -> None:
        sync_debug_mode.listen(self._torch, self._seen)
        try:
            self._wrappers.open()
        except BaseException:
            self._wrappers.close()
            sync_debug_mode.unlisten(self._seen)
            raise
        self._opened = self._account.on = self._in = True
        if self._prices is None:
            self._account.prices = self._prices = measure(self._scratch(), self._switch_mode)
        self._mark = self._clock()
        self._bins = Bins(self._mark)
        for state in self._states.values():
            state.begin()
        self._state = self._state_of(self._tracker.current)
        _open.add(self)
        self._apply(self._state)

    def close(self) -> None:
        """Stop counting, and put everything back. Does nothing unless open."""
        if not self._opened:
            return
        self._settle()
        for state in list(self._states.values()):
            self._end_block(state)
        self._opened = self._account.on = self._in = False
        _open.discard(self)
        self._wrappers.close()
        sync_debug_mode.unlisten(self._seen)

    # What the collector calls.

    def stepped(self, phase: Phase) -> None:
        """A step of ``phase`` ended."""
        if not self._opened:
            return
        state = self._states.get(phase.number) or self._state_of(phase)
        if state.sampling.left > 1:
            state.sampling.left -= 1
        elif not self._suspended:
            self._next_block(state)

    def changed(self, before: Phase, after: Phase) -> None:
        """The program left ``before`` and is in ``after`` now."""
        if not self._opened:
            return
        self._settle()
        self._state = self._state_of(after)
        if not self._suspended:
            self._apply(self._state)

    def folded(self, phase: Phase, into: Phase) -> None:
        """``phase`` turned out to be part of ``into``. Its waits are those of the step that ``into`` is in."""
        folded = self._states.pop(phase.number, None)
        if folded is None:
            return
        self._settle()
        kept = self._state_of(into)
        if self._state is folded:
            self._state = kept
        kept.time_ns += folded.time_ns
        kept.counted_ns += folded.counted_ns
        kept.block_ns += folded.block_ns
        kept.block_cost_ns += folded.block_cost_ns
        for number, place in folded.warned.items():
            kept.warned.setdefault(number, Place("", number, None, into.steps)).add(place)
        for key, place in folded.called.items():
            kept.called.setdefault(key, Place(*key, into.steps)).add(place)
        self._bins.fold(phase.number, into.number)
        if self._opened and not self._suspended:
            self._apply(self._state)

    def begin_again(self, phase: Phase) -> None:
        """Forget what was counted in ``phase``: from now on something else counts as its step."""
        state = self._states.pop(phase.number, None)
        if state is None:
            return
        self._kept -= len(state.places)
        if self._state is state:
            self._settle()
            self._state = self._state_of(phase)

    def suspend(self) -> None:
        """Count nothing until ``resume``: a window records, or wants nothing of ours in the way."""
        if self._suspended or not self._opened:
            return
        self._settle()
        for state in list(self._states.values()):
            self._end_block(state)
        self._suspended = True
        self._switch(False)
        self._take_out()

    def resume(self) -> None:
        if not self._suspended:
            return
        self._settle()
        self._suspended = False
        for state in list(self._states.values()):
            state.since = state.phase.steps
            state.begin_block()
        self._state = self._state_of(self._tracker.current)
        self._apply(self._state)

    def tick(self) -> None:
        """Go on where counting had to stop because it cost too much, also in a step without an end. From any thread."""
        if self._paused and self._opened and not self._suspended:
            self._settle()
            self._apply(self._state)

    def add_window(self, phase: Phase, events: Sequence[SiteEvent], boundaries_ns: Sequence[int]) -> None:
        """Add the events of a window that has just recorded steps of ``phase``, which was suspended meanwhile."""
        steps = len(boundaries_ns) - 1
        if steps < 1:
            return
        state = self._state_of(phase)
        state.counted_steps += steps
        names = self._threads.names()
        first = max(phase.steps - steps, 0)
        for event in events:
            step = bisect.bisect_left(boundaries_ns, event.end_ns) - 1
            if 0 <= step < steps and (event.kind == "warning" or event.name in WAITING_CALLS):
                self._add_event(state, event, first + step, names.get(str(event.tid)))

    # What was counted.

    def waits(self) -> tuple[CountedWait, ...]:
        """All places so far."""
        found = []
        for state in list(self._states.values()):
            most = max(self.counted_steps(state.phase) + 1, 1)
            waits = (place.waits(state.phase.number, most) for place in state.places)
            found += [wait for wait in waits if wait is not None]
        return tuple(found)

    def counted_steps(self, phase: Phase) -> int:
        """Steps of ``phase`` whose waits were counted."""
        state = self._states.get(phase.number)
        if state is None:
            return 0
        here = 0 if self._suspended or not self._opened else phase.steps - state.since
        return state.counted_steps + max(here, 0) * state.sampling.on

    def one_in(self, phase: Phase) -> float:
        """One step of ``phase`` in so many was counted. Where counting stopped inside steps: the time instead."""
        state, counted = self._states.get(phase.number), self.counted_steps(phase)
        if state is None:
            return 1.0
        by_steps = (phase.steps - state.first) / counted if counted else 1.0
        since = self._unsettled_ns() if state is self._state else 0
        counted_ns = state.counted_ns + since * self._account.on
        by_time = (state.time_ns + since) / counted_ns if state.cut and counted_ns else 1.0
        return max(by_steps, by_time, 1.0)

    @property
    def prices(self) -> Prices:
        """What counting costs here."""
        return self._account.prices

    @property
    def overhead_share(self) -> float | None:
        """What counting cost so far, as a share of the time outside windows."""
        time_ns = self._account.time_ns + self._unsettled_ns()
        return self._account.cost_ns / time_ns if time_ns else None

    @property
    def bins(self) -> tuple[RunBin, ...]:
        return self._bins.taken()

    # What the wrappers call. The hot path.

    def _make_seen(self) -> Callable[[FrameType], None]:
        """The listener to PyTorch's warnings. Local names are fast."""
        account, states, warned, tracker = self._account, self._states, self._warned, self._tracker
        take, here = self._stacks.take, expectation

        def seen(frame: FrameType) -> None:
            warned.count += 1
            warned.place = None
            account.warnings += 1
            phase = tracker.at(frame)
            if not account.on:
                return
            state = states.get(phase.number) or self._state_of(phase)
            if not state.sampling.on:
                return
            number = take(frame) if self._kept < MAX_PLACES else self._stacks.find(frame)
            place = state.warned.get(number)
            if place is None:
                place = self._new_place(state.warned, number, "", number, None, phase.steps)
                if place is None:
                    return
            if place.step == phase.steps:
                place.now += 1
            else:
                place.begin_step(phase.steps)
            if here.reason is not None:
                place.expected = here.reason
            warned.place = place
            if account.warnings > account.limit:
                self._over()

        return seen

    def passed(self) -> None:
        self._account.passed += 1

    def waited(self, name: str, start_ns: int, frame: Any) -> None:
        """A wrapped call that waits has returned."""
        if self._account.on:
            self._called(name, frame, None, time.time_ns() - start_ns)

    def may_have_waited(self, name: str, start_ns: int, frame: Any) -> None:
        """An operator has returned."""
        length = time.time_ns() - start_ns
        if not self._account.on:
            return
        if length < MAY_WAIT_NS:
            self._account.passed += 2  # its wrapper switches the mode twice
            return
        place = self._called(name, frame, None, length)
        if place is not None and not place.may_wait:
            place.may_wait = True
            place.now, place.blocked_ns = 0, 0

    def copied(self, name: str, start_ns: int, frame: Any, source: Any, target: Any, warned: bool) -> None:
        """A copy between host and device has returned, and PyTorch ``warned`` that it waited, or did not."""
        length = time.time_ns() - start_ns
        size = _size(target)
        to_device = bool(target.is_cuda)
        place: Place | None
        if warned:
            self._account.passed += 2
            place = self._warned.place
            if place is not None:
                place.blocked_ns += length
        else:
            place = self._called(name, frame, to_device, length) if size else None
        if place is None:
            return
        if place.to_device is None or not place.bytes:
            self._absorb(place, name)
        place.bytes += size
        if place.to_device is None or not (warned or place.pageable):
            place.pageable = not _is_pinned(source if to_device else target)
        place.to_device = to_device
        place.non_blocking = not warned

    def _called(self, name: str, frame: Any, to_device: bool | None, length_ns: int) -> Place | None:
        account = self._account
        account.calls += 1
        phase = self._tracker.at(frame)
        if not account.on:
            return None
        state = self._state_of(phase)
        if not state.sampling.on:
            return None
        stack = self._stacks.take(frame) if self._kept < MAX_PLACES else self._stacks.find(frame)
        key = name, stack, to_device
        place = state.called.get(key)
        if place is None:
            place = self._new_place(state.called, key, *key, phase.steps)
            if place is None:
                return None
        if place.step == phase.steps:
            place.now += 1
        else:
            place.begin_step(phase.steps)
        place.blocked_ns += length_ns
        if expectation.reason is not None:
            place.expected = expectation.reason
        if account.calls > account.limit:
            self._over()
        return place

    def _absorb(self, place: Place, name: str) -> None:
        """Add what a window saw of the same copy: it knows neither its direction nor whether it waited."""
        for state in list(self._states.values()):
            key = name, place.stack, None
            if place in state.places and key in state.called:
                place.add(state.called.pop(key))
                self._kept -= 1

    def _new_place(
        self, places: dict[Any, Place], key: Any, name: str, stack: int, to_device: bool | None, step: int
    ) -> Place | None:
        if self._kept >= MAX_PLACES:
            self.dropped += 1
            return None
        self._kept += 1
        place = places[key] = Place(name, stack, to_device, step)
        place.thread = threading.current_thread().name
        return place

    # Steps, phases and costs.

    def _state_of(self, phase: Phase) -> _State:
        state = self._states.get(phase.number)
        if state is None:
            state = self._states[phase.number] = _State(phase, self._draw)
        return state

    def _settle(self) -> None:
        """Book the time and the cost since the last call to the current phase."""
        now, account, state = self._clock(), self._account, self._state
        elapsed, self._mark = now - self._mark, now
        if self._suspended:
            self._bins.add(now, state.phase.number, windows=True)
            return
        self._bins.add(now, state.phase.number, waits=account.warnings + account.calls)
        state.block_gate_ns += (account.calls + account.passed) * account.prices.gate
        cost = account.settle(elapsed)
        account.cost_ns += account.prices.step
        state.block_ns += elapsed
        state.block_cost_ns += cost
        state.time_ns += elapsed
        if account.on:
            state.counted_ns += elapsed
            state.block_counted_ns += elapsed

    def _unsettled_ns(self) -> int:
        return self._clock() - self._mark if self._opened and not self._suspended else 0

    def _end_block(self, state: _State) -> None:
        steps = state.phase.steps - state.since
        if steps <= 0:
            return
        counted = steps if state.sampling.on and state.block_counted_ns else 0
        state.counted_steps += counted
        state.since += steps
        self._bins.add(self._mark, state.phase.number, steps=steps, counted=counted)

    def _next_block(self, state: _State) -> None:
        """Close a block of steps, and choose whether the next one is counted."""
        self._settle()
        account, sampling = self._account, state.sampling
        steps = state.phase.steps - state.since
        self._end_block(state)
        length, cost = state.block_ns, state.block_cost_ns
        if self._paused and state.block_counted_ns:  # the rest would have cost as much
            cost *= length / state.block_counted_ns
        if not sampling.on and self._in:
            account.cost_ns += steps * sampling.averages.gate
        sampling.next_block(steps, length, cost, state.block_gate_ns, prices=account.prices, outs=self._outs)
        state.begin_block()
        averages = sampling.averages
        if sampling.one_in > 1 and sampling.on:
            needed = sampling.left * averages.cost
            lacking = needed - account.allow(needed)
            if lacking > 0:
                sampling.postpone(math.ceil(lacking / (CAP * averages.length)))
        self._apply(self._state)
        if not sampling.on and sampling.out and sampling.left * averages.gate > 2 * account.prices.out:
            self._take_out()

    def _apply(self, state: _State) -> None:
        """Switch counting on or off, as the phase has it."""
        sampling = state.sampling
        expected = sampling.left * sampling.averages.cost
        allowed = self._account.allow(expected, state.block_ns, state.block_cost_ns)
        self._paused = allowed < PAUSE_NS if self._paused else allowed <= 0
        self._switch(sampling.on and not self._paused)

    def _over(self) -> None:
        """More was spent than is allowed, as far as was known at the last step. Stop for a while if that is so."""
        self._settle()
        self._apply(self._state)
        self._state.cut |= self._paused

    def _switch(self, on: bool) -> None:
        account = self._account
        if account.on == on or not self._opened:
            return
        account.on = on
        account.cost_ns += account.prices.switch / 2
        self._switches += 1
        self._switch_mode(on)
        if on and not self._in:
            self._in = True
            self._wrappers.put_in()

    def _switch_mode(self, on: bool) -> None:
        (sync_debug_mode.unmute if on else sync_debug_mode.mute)(self._seen)

    def _take_out(self) -> None:
        """Leave nothing of ours in the way, where passing through it would cost more than this."""
        if self._in and not self._account.on and (self._suspended or self._outs < MOST_OUTS):
            self._in = False
            self._outs += 1
            self._account.cost_ns += self._account.prices.out * (not self._suspended)
            self._wrappers.take_out()

    def _scratch(self) -> Counter:
        """A counter that counts nowhere, to be timed."""
        phase = _Nowhere()
        scratch = Counter(self._torch, self._stacks.empty(), self._threads, phase, prices=Prices())
        scratch._state = scratch._state_of(phase)
        scratch._account.on = True
        scratch._account.limit = math.inf
        return scratch

    def _add_event(self, state: _State, event: SiteEvent, step: int, thread: str | None) -> None:
        places: dict[Any, Place] = state.warned if event.kind == "warning" else state.called
        key: Any = event.stack if event.kind == "warning" else (event.name, event.stack, None)
        place = places.get(key)
        if place is None and event.name in COPIES:
            place = _copy_at(state, event)
        if place is None:
            place = self._new_place(places, key, event.name, event.stack, None, step)
            if place is None:
                return
            place.thread = thread
        if place.step == step:
            place.now += 1
        else:
            place.begin_step(step)
        place.blocked_ns += event.end_ns - event.start_ns
        place.may_wait |= event.name == "torch.ops"
        if event.expected is not None:
            place.expected = event.expected

    def _forget_in_child(self) -> None:
        """Count nothing in a forked child. Its copy of the program goes on as if we had never been there."""
        self._opened = self._account.on = self._in = False
        self._wrappers.close()
        sync_debug_mode.mute(self._seen)


def _copy_at(state: _State, event: SiteEvent) -> Place | None:
    """The copy that was counted at the place of ``event``."""
    directions = (state.called.get((event.name, event.stack, to_device)) for to_device in (True, False))
    places = [place for place in (state.warned.get(event.stack), *directions) if place is not None]
    return max(places, key=lambda place: place.count + place.now, default=None)


def _size(tensor: Any) -> int:
    try:
        return int(tensor.nbytes)
    except Exception:  # a sparse tensor, or a subclass with ideas of its own
        return 0


def _is_pinned(tensor: Any) -> bool:
    try:
        return bool(tensor.is_pinned())
    except Exception:
        return False


_open: weakref.WeakSet[Counter] = weakref.WeakSet()


def _after_fork() -> None:
    for counter in list(_open):
        counter._forget_in_child()
    _open.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
