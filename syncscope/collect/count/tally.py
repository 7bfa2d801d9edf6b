"""What was counted. Its methods run at every wait: the hot path."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Container
from types import FrameType
from typing import Any

from syncscope.collect.annotations import expectation
from syncscope.collect.count.account import CLOSE_NS, PROBED, Account
from syncscope.collect.count.phase import Phase, Tracker
from syncscope.collect.count.phase_tally import PhaseTally
from syncscope.collect.count.places import COPIES, MAX_PLACES, Place
from syncscope.collect.count.sampling import Draw
from syncscope.collect.sites.stacks import Stacks
from syncscope.collect.sites.threads import live_threads
from syncscope.collect.sites.wrappers import LINALG_WITHOUT_WARNING, WarningCount
from syncscope.schema.counting import MAY_WAIT_NS
from syncscope.schema.preparation import compiles
from syncscope.schema.recording import SiteEvent

WAITING_CALLS = COPIES | {
    "torch.cuda.synchronize", "torch.accelerator.synchronize", "Event.synchronize", "torch.cuda.empty_cache",
    "torch.unique", "torch.unique_consecutive", "Tensor.coalesce", "torch.ops",
    *(f"torch.linalg.{name}" for name in LINALG_WITHOUT_WARNING),
}  # fmt: skip
"""Calls in a window's events that count. Those left out (``pin_memory``, the next batch, collectives) do not wait for
the device."""


class Warned(WarningCount):
    """PyTorch's warnings on this thread so far, and the place of the last one."""

    place: Place | None = None


class Tally:
    """Counts what the mode and the wrappers see. ``over`` is called when more was spent than the account allows.

    They call from the middle of the program's operators, so no error of ours leaves: ``failure`` says what the first
    one was.
    """

    def __init__(
        self, stacks: Stacks, tracker: Tracker, account: Account, draw: Draw, over: Callable[[], None]
    ) -> None:
        self.phases: dict[int, PhaseTally] = {}
        """By the phase's number."""
        self.dropped = 0
        """Waits at further places, once there were too many to keep."""
        self.failure = ""
        self.suspended = False
        """Nothing is counted, and nothing heard here: a window records, or a look. A wait that tells that its phase
        begins, and with it a look, was heard before that and not by it."""
        self.compiling: Callable[[], bool] = lambda: False
        """Whether Dynamo compiles on this thread: operators then run on tensors without memory, and do not wait."""
        self.warned = Warned()
        self.passing_call: Callable[[], object] | None = None
        """A call of our own that passes, to be timed; ``None`` where prices are known."""
        self._passed_ns = 0
        """When the call passed behind which the next one is looked at; 0 where none is."""
        self._stacks = stacks
        self._tracker = tracker
        self._account = account
        self._draw = draw
        self._over = over
        self._kept = 0
        self.seen = self._make_seen()
        """The listener to PyTorch's warnings."""

    def of(self, phase: Phase) -> PhaseTally:
        """What is counted in ``phase``."""
        tally = self.phases.get(phase.number)
        if tally is None:
            tally = self.phases[phase.number] = PhaseTally(phase, self._draw)
        return tally

    @property
    def start_ns(self) -> int:
        """The time before the first phase."""
        state = self.phases.get(0)
        return state.time_ns if state is not None and state.phase.kind == "start" else 0

    def _make_seen(self) -> Callable[[FrameType], None]:
        """The listener to PyTorch's warnings. Local names are fast."""
        account, states, warned, tracker = self._account, self.phases, self.warned, self._tracker
        known, here, clock = self._stacks.direct, expectation.get, time.perf_counter_ns

        def seen(frame: FrameType) -> None:
            start, most = clock(), account.most_seen_ns
            try:
                warned.count += 1
                warned.place = None
                account.warnings += 1
                phase = tracker.at(frame)
                if not account.on and not self.suspended:
                    return
                state = states.get(phase.number) or self.of(phase)
                if not state.sampling.on:
                    return
                # Each call of a function would be a microsecond and more, out of cold caches.
                number = known.get((id(frame.f_code), frame.f_lasti))
                if number is None:
                    number, most = self._walk(frame, start, state.warned), 0
                place = state.warned.get(number)
                if place is None:
                    place = self._new_place(state.warned, number, "", number, None, phase.steps, state.weight)
                    if place is None:
                        return
                    most = account.book_once(clock() - start)
                if place.step == phase.steps:
                    place.now += 1
                elif place.now == 1 and place.weight:  # ``begin_step`` after a step with one wait
                    weight, place.weight = place.weight, state.weight
                    place.count, place.steps, place.step = place.count + 1, place.steps + 1, phase.steps
                    place.weighted += weight
                else:
                    place.begin_step(phase.steps, state.weight)
                reason = here()
                if reason is not None:
                    place.expected = reason
                warned.place = place
            except Exception as error:
                self.failed(error)
            finally:
                account.seen_ns += min(clock() - start, most)
            if account.warnings > account.limit:
                self._close_books()

        return seen

    def _walk(self, frame: FrameType, start_ns: int, places: Container[int]) -> int:
        """The stack of a wait that its innermost frame does not tell. That takes as long as it is far to the user's
        line, which tells nothing of other waits. Where it is none of ``places``, its place is booked."""
        number = self._stacks.take(frame) if self._kept < MAX_PLACES else self._stacks.find(frame)
        if number in places:
            self._account.book_once(time.perf_counter_ns() - start_ns)
        return number

    def _close_books(self) -> None:
        try:
            self._over()
        except Exception as error:
            self.failed(error)

    def passed(self) -> None:
        account = self._account
        account.passed += 1
        if account.passed >= account.probe_at:
            self._judge_passing()

    def _judge_passing(self) -> None:
        """Look at what calls that pass cost: whether two come close together, and else at one of our own. Stop counting
        where those that passed cost more than is allowed."""
        account, before = self._account, self._passed_ns
        try:
            begin = time.perf_counter_ns()
            if self.passing_call is not None and not before:
                self._passed_ns, account.probe_at = begin, account.passed + 1
                return
            self._passed_ns, account.probe_at = 0, account.passed + self._draw.about(PROBED)
            if self.passing_call is not None:
                if begin - before < CLOSE_NS:
                    account.book_close(begin - before)
                else:
                    self.passing_call()
                    account.book_probe(time.perf_counter_ns() - begin)
            if account.on and account.is_over:
                self._over()
        except Exception as error:
            self.failed(error)

    def waited(self, name: str, start_ns: int, frame: Any) -> None:
        """A wrapped call that waits has returned."""
        try:
            if self._account.on:
                self.called(name, frame, None, time.time_ns() - start_ns)
        except Exception as error:
            self.failed(error)

    def may_have_waited(self, name: str, start_ns: int, frame: Any) -> None:
        """An operator has returned."""
        try:
            length = time.time_ns() - start_ns
            if not self._account.on:
                return
            if length < MAY_WAIT_NS or self.compiling():
                self._account.passed += 2  # its wrapper switches the mode twice
                return
            place = self.called(name, frame, None, length)
        except Exception as error:
            self.failed(error)
            return
        if place is not None and not place.may_wait:
            place.may_wait = True
            place.now, place.blocked_ns = 0, 0

    def copied(self, name: str, start_ns: int, frame: Any, source: Any, target: Any, warned: bool) -> None:
        """A copy between host and device has returned, and PyTorch ``warned`` that it waited, or did not."""
        try:
            self._copied(name, time.time_ns() - start_ns, frame, source, target, warned)
        except Exception as error:
            self.failed(error)

    def _copied(self, name: str, length: int, frame: Any, source: Any, target: Any, warned: bool) -> None:
        size = _size(target)
        to_device = bool(target.is_cuda)
        place: Place | None
        if warned:
            self._account.copied += 1
            place = self.warned.place
            if place is not None:
                place.blocked_ns += length
        else:
            place = self.called(name, frame, to_device, length) if size else None
        if place is None:
            return
        first = place.to_device is None or not place.bytes
        place.bytes += size
        if place.to_device is None or not (warned or place.pageable):
            place.pageable = not _is_pinned(source if to_device else target)
        place.to_device = to_device
        place.non_blocking = not warned
        if first:
            self._absorb(place, name)

    def failed(self, error: Exception) -> None:
        """Counting goes on after an error of ours."""
        self.failure = self.failure or f"Some waits could not be counted ({type(error).__name__}: {error})."

    def called(self, name: str, frame: Any, to_device: bool | None, length_ns: int) -> Place | None:
        account = self._account
        account.calls += 1
        phase = self._tracker.at(frame)
        if not account.on and not self.suspended:
            return None
        state = self.of(phase)
        if not state.sampling.on:
            return None
        stack = self._stacks.take(frame) if self._kept < MAX_PLACES else self._stacks.find(frame)
        key = name, stack, to_device
        place = state.called.get(key)
        if place is None:
            place = self._new_place(state.called, key, *key, phase.steps, state.weight)
            if place is None:
                return None
        if place.step == phase.steps:
            place.now += 1
        else:
            place.begin_step(phase.steps, state.weight)
        place.blocked_ns += length_ns
        reason = expectation.get()
        if reason is not None:
            place.expected = reason
        if account.calls > account.limit:
            self._over()
        return place

    def _absorb(self, place: Place, name: str) -> None:
        """Tell what windows saw of the same copy, in whatever phase: they know neither its direction nor whether it
        waited."""
        for state in list(self.phases.values()):
            seen = state.called.pop((name, place.stack, None), None)
            if seen is None:
                continue
            places, key = _places_like(state, place)
            if (known := places.get(key)) is not None:
                known.first_step = min(known.first_step, seen.first_step)
                known.add(seen)
                self._kept -= 1
            else:
                seen.become_like(place)
                places[key] = seen

    def _copy_elsewhere(self, state: PhaseTally, event: SiteEvent, step: int) -> Place | None:
        """A place in the phase of ``state`` for a copy that was counted in another phase: at the end of an evaluation,
        say, which is over for all but a window."""
        for other in list(self.phases.values()):
            like = _copy_at(other, event)
            if like is not None and (like.to_device is not None or not like.name):
                places, key = _places_like(state, like)
                place = self._new_place(places, key, like.name, like.stack, like.to_device, step)
                if place is not None:
                    place.become_like(like)
                return place
        return None

    def _new_place(
        self, places: dict[Any, Place], key: Any, name: str, stack: int, to_device: bool | None, step: int,
        weight: float = 1.0,
    ) -> Place | None:  # fmt: skip
        if self._kept >= MAX_PLACES:
            self.dropped += 1
            return None
        self._kept += 1
        place = places[key] = Place(name, stack, to_device, step)
        place.weight = weight
        place.compiling = compiles(self._stacks.own_frames(stack))
        thread = live_threads.get(threading.get_ident())  # not ``current_thread``, which would list a thread of C++'s
        place.thread = thread.name if thread is not None else None
        return place

    def fold(self, folded: PhaseTally, kept: PhaseTally) -> None:
        """Add all of ``folded`` to ``kept``. It belongs to the step that ``kept`` is in."""
        step = kept.phase.steps
        kept.time_ns += folded.time_ns
        kept.counted_ns += folded.counted_ns
        kept.block_ns += folded.block_ns
        kept.block_cost_ns += folded.block_cost_ns
        for number, place in folded.warned.items():
            kept.warned.setdefault(number, Place("", number, None, step)).add(place)
        for key, place in folded.called.items():
            kept.called.setdefault(key, Place(*key, step)).add(place)

    def add_event(self, state: PhaseTally, event: SiteEvent, step: int, thread: str | None) -> None:
        places: dict[Any, Place] = state.warned if event.kind == "warning" else state.called
        key: Any = event.stack if event.kind == "warning" else (event.name, event.stack, None)
        place = places.get(key)
        if place is None and event.name in COPIES:
            place = _copy_at(state, event) or self._copy_elsewhere(state, event, step)
        if place is None:
            place = self._new_place(places, key, event.name, event.stack, None, step)
            if place is None:
                return
            place.thread = thread
            for name in COPIES if event.kind == "warning" else ():
                self._absorb(place, name)
        place.add_event(None if state.stepless else step)
        place.blocked_ns += event.end_ns - event.start_ns
        place.may_wait |= event.name == "torch.ops"
        if event.expected is not None:
            place.expected = event.expected


def _copy_at(state: PhaseTally, event: SiteEvent) -> Place | None:
    """The copy that was counted at the place of ``event``."""
    directions = (state.called.get((event.name, event.stack, to_device)) for to_device in (True, False))
    places = [place for place in (state.warned.get(event.stack), *directions) if place is not None]
    return max(places, key=lambda place: place.count + place.now, default=None)


def _places_like(state: PhaseTally, copy: Place) -> tuple[dict[Any, Place], Any]:
    """Where ``state`` keeps what is like ``copy``, and by which key."""
    if copy.name:
        return state.called, (copy.name, copy.stack, copy.to_device)
    return state.warned, copy.stack


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
