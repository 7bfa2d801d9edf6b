"""Count every wait of the run by place and phase, in all steps or in steps drawn at random.

PyTorch's sync debug mode says where the program waits, and wrappers see what it does not warn of. In a step that is not
counted the mode is off, and the wrappers pass calls on, or are taken out where even that would cost too much. Waits on
other threads count as well. There is no lock: two threads that count at the same instant may lose a wait to each other.
"""

from __future__ import annotations

import math
import os
import sys
import time
import weakref
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any

from syncscope.collect.count.account import Account, Prices
from syncscope.collect.count.bins import Bins
from syncscope.collect.count.books import Books
from syncscope.collect.count.choice import Choice
from syncscope.collect.count.first_turn import move_first_turn
from syncscope.collect.count.lasting import Lasting
from syncscope.collect.count.operators import in_operator
from syncscope.collect.count.phase import Nowhere, Phase, Tracker
from syncscope.collect.count.phase_tally import PhaseTally
from syncscope.collect.count.prices import measure, passing_call
from syncscope.collect.count.sampling import Draw
from syncscope.collect.count.switch import Switch
from syncscope.collect.count.tally import Tally
from syncscope.collect.count.visitors import EVALUATED, GOES_ON, INSIDE, SELDOM_INSIDE
from syncscope.collect.count.window_events import WindowEvents
from syncscope.collect.sites.stacks import Stacks
from syncscope.collect.sites.threads import Threads
from syncscope.schema.recording import SiteEvent


class Counter(Books):
    """Counts from ``open`` to ``close``. CUDA must be initialised. ``clock`` counts nanoseconds. The program ran for
    ``before_ns`` before.

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
        before_ns: int = 0,
    ) -> None:
        account = Account(prices or Prices(), before_ns)
        tally = Tally(stacks, tracker, account, draw or Draw(), self._over)
        switch = Switch(torch, tally, account)
        super().__init__(tally, account, clock, tracker, Choice(tally, account, switch))
        self._torch = torch
        self._stacks = stacks
        self._threads = threads
        self._prices = prices
        self._switch = switch
        self._paused = False
        self._window_events = WindowEvents(self.tally, threads)
        self._watched: PhaseTally | None = None
        self._ending = False
        """The phase of which the end of the loop was last to be heard, and whether that is being told."""
        self._lasting = Lasting(clock)

    @property
    def missing(self) -> tuple[str, ...]:
        """The entry points that this version of PyTorch lacks, so that their calls are not counted."""
        return self._switch.missing

    def open(self) -> None:
        try:
            self._switch.open()
            self._opened = True
            if self._prices is None:
                scratch = self._scratch()
                self._prices = measure(scratch, self._switch.set_mode)
                self._account.set_prices(self._prices)
                self.tally.passing_call = passing_call(scratch)
        except BaseException:
            self._opened = False
            self._switch.close()
            raise
        self._mark = self._clock()
        self._bins = Bins(self._mark)
        for state in self.tally.phases.values():
            state.begin()
        self._state = self.tally.of(self._tracker.current)
        _open.add(self)
        self._apply(self._state)

    def close(self) -> None:
        """Stop counting, and put everything back. Does nothing unless open."""
        if not self._opened:
            return
        self._settle()
        self._end_blocks()
        if self._state.stepless:
            self._state.end_visit()
        self._opened = False
        self._tracker.stop_watching()
        _open.discard(self)
        self._switch.close()

    # What the collector calls.

    def stepped(self, phase: Phase) -> int:
        """A step of ``phase`` ended, maybe with others before it in the same block. Returns how many more may end
        before this must be called again."""
        if not self._opened:
            return sys.maxsize
        state = self.tally.phases.get(phase.number) or self.tally.of(phase)
        left = state.sampling.left - (phase.steps - state.since)
        until_last = state.stays.until_last(phase.steps)
        until_left_once = state.until_left_once
        begins = phase.times != state.times
        if until_last == 0:
            alone = state.stays.span(phase.steps)
        else:
            alone = begins and self._choice.counts_first(state, self._clock(), self._paused)
        if (left <= 0 or alone) and not self._suspended:
            self._next_block(state, alone)
            left = state.sampling.left
        elif begins or until_left_once == 0:
            self._watch_end()
        state.times = phase.times
        return max(min(left, until_last or left, until_left_once if until_left_once > 0 else left) - 1, 0)

    def changed(self, before: Phase, after: Phase) -> None:
        """The program left ``before`` and is in ``after`` now."""
        if not self._opened:
            return
        self._settle()
        left = self.tally.phases.get(before.number)
        if left is not None and left.stepless:
            if before.kind == "start":
                move_first_turn(left, self.tally.of(after), self._stacks, self._tracker)
            left.end_visit()
        elif left is not None:
            inside = after.kind in INSIDE
            follower = EVALUATED if left.phase.kind == "evaluate" and after.kind in GOES_ON else after.number
            if (inside or left.told_at_begin) and not self._suspended:
                left.begin_visit(follower)
            self._choice.leave(left, follower, self._mark, self._paused, self._ending, by_visits=inside)
        self._tail = self._ending
        self._state = self.tally.of(after)
        self._state.enter()
        if self._suspended:
            self._window_events.enter(after.number)
        rest = False
        if self._state.stepless:
            self._state.begin_block()  # each time that the program enters it is one
        elif before.kind in INSIDE and not self._suspended:
            self._state.visitors.heard_end = self._account.on
            rest = before.kind in SELDOM_INSIDE and self._count_rest(self._state)
        if not self._suspended:
            self._apply(self._state, begins=rest)

    def folded(self, phase: Phase, into: Phase) -> None:
        """``phase`` turned out to be part of ``into``. Its waits are those of the step that ``into`` is in."""
        if phase.number not in self.tally.phases:
            return
        if self._opened:
            self._settle()
        folded, kept = self.tally.phases.pop(phase.number), self.tally.of(into)
        self.tally.fold(folded, kept)
        self._bins.fold(phase.number, into.number)
        if self._opened and self._state is folded:
            self._state = kept
            if not self._suspended:
                self._apply(kept)

    def begin_again(self, phase: Phase) -> None:
        """From now on something else counts as a step of ``phase``."""
        if self._opened:
            self._settle()
        if phase.number in self.tally.phases:
            self.tally.phases[phase.number].begin_again()
        if self._opened and not self._suspended:
            self._apply(self._state)

    def compiles(self, begins: bool) -> None:
        """A compilation begins on some thread, or is over."""
        if self._opened:
            self._switch.compiles(begins)

    def suspend(self) -> None:
        """Count nothing until ``resume``: a window records, or wants nothing of ours in the way."""
        if self._suspended or not self._opened:
            return
        self._settle()
        self._end_blocks()
        self._suspended = self.tally.suspended = True
        self._tail = False
        self._window_events.begin(self._state.phase.number)
        if self._account.on:
            self._switch.turn(False)
        self._switch.take_out(for_window=True)

    def resume(self) -> None:
        if not self._suspended:
            return
        self._settle()
        self._suspended = self.tally.suspended = False
        for state in list(self.tally.phases.values()):
            steps = state.phase.steps - state.since
            if state.told_at_begin and not self._window_events.was_in(state.phase.number):
                continue  # its last step was over before, though nobody has told that yet
            if steps > 0:
                self._bins.add(self._mark, state.phase.number, steps=steps, windows=True)
                state.skipped += steps
            state.since = state.phase.steps
            state.begin_block()
            state.sampling.end_last(0.0)
            state.choose_weight()
        self._state = self.tally.of(self._tracker.current)
        recorded = self._window_events.recorded
        if recorded is not None and recorded is not self._state:
            recorded.end_window()
        self._apply(self._state)
        if recorded is self._state:
            self._watch_end()

    def tick(self) -> None:
        """Go on where counting had to stop because it cost too much, also in a step without an end, and count the rest
        of a step that lasts from one call to the next: it is a rare one. From any thread."""
        if not self._opened or self._suspended or (not self._account.on and in_operator()):
            return
        state = self._state
        step = state.phase.steps + self._tracker.unheard
        since_ns = self._lasting.since_ns(state, step)
        if since_ns is not None and not (state.stepless or (state.sampling.on and not self._paused)):
            self._settle()
            if state.lasting_step != step:
                self._bins.add(self._mark, state.phase.number, steps=step - state.since)
                state.begin_lasting(step, self._mark - since_ns)
                self._tracker.tell_next()
        elif not self._paused:
            return
        self._settle()
        self._apply(state, begins=since_ns is not None)

    def add_window(self, phase: Phase, events: Sequence[SiteEvent], boundaries_ns: Sequence[int]) -> None:
        """Add the events of a window that has just recorded steps of ``phase``, which was suspended meanwhile."""
        state, steps = self.tally.of(phase), len(boundaries_ns) - 1
        state.counted_steps += steps
        state.skipped -= steps  # ``resume`` adds them again, with those of steps that no window counted
        self._window_events.add(state, events, boundaries_ns)

    # Steps and phases.

    def _next_block(self, state: PhaseTally, last: int = 0) -> None:
        """Close a block of steps, and choose whether the next one is counted. ``last``: so many steps begin, one of
        them the last of a stay or its first. They are counted whatever was chosen."""
        begin = self._clock()
        self._settle()
        self._tail &= state is not self._state
        account, sampling = self._account, state.sampling
        steps, lasting = state.phase.steps - state.since, state.lasting_step is not None
        state.judge_block(steps)
        self._end_block(state)
        if sampling.counts_last:
            sampling.end_last(0.0 if self._paused else state.block_cost_ns)
        elif not last or steps >= sampling.left:
            self._choice.choose_block(state, 0 if lasting else steps, self._paused)
        else:
            sampling.left -= steps
        state.begin_block()
        if last:
            sampling.count_last(sampling.left, last)
            state.stand_for_itself()
        else:
            state.choose_weight()
            self._choice.postpone(state)
        self._apply(self._state, begins=state is self._state)
        if self._paused and sampling.on and state is self._state and not (state.stepless or sampling.counts_last):
            self._choice.stay_paused(state)
        if state is self._state:
            self._watch_end()
        account.book_block(self._clock() - begin)
        in_the_way = self._paused or (sampling.out and not sampling.on)
        if in_the_way and self._choice.passing_ns + sampling.left * sampling.averages.gate > 2 * account.prices.out:
            self._switch.take_out(for_window=self._suspended)

    def _count_rest(self, state: PhaseTally) -> bool:
        """The program is back in the midst of a step. Count the rest of it by itself, where that is chosen. Returns
        whether it is."""
        if not self._choice.counts_rest(state, self._mark, self._paused):
            return False
        sampling = state.sampling
        if sampling.counts_last:
            return True
        left = sampling.left - (state.phase.steps - state.since)
        self._end_block(state)
        state.begin_block()
        sampling.count_last(left)
        state.stand_for_itself()
        state.rests.begin(state.phase.steps, self._mark)
        return True

    def _watch_end(self) -> None:
        """Hear of the end of the loop that the program is in, where steps of it are left out: what follows it comes
        once a stay, and nothing else tells that it begins."""
        state, account = self._state, self._account
        most_ns = account.tail_left_ns
        if account.on or self._suspended or not state.is_left_once or most_ns <= 0:
            return
        if not state.told_at_begin:  # a part is left for evaluations, which end more often
            most_ns /= 2
        self._watched = state
        account.book_tail(self._tracker.watch_end(self._loop_over, most_ns))

    def _loop_over(self, frame: FrameType) -> None:
        """The loop is over. The program is in another phase from now on, or makes what is left of its last step."""
        try:
            state, begin = self._state, self._clock()
            if not self._opened or self._suspended or state is not self._watched:
                return
            self._ending = True
            self._tracker.at(frame)
            if not state.told_at_begin:
                self._tracker.leave_training()
            elif self._state.told_at_begin:
                self._count_tail(self._state)
            self._account.book_end(self._clock() - begin)
        except Exception as error:
            self.tally.failed(error)
        finally:
            self._ending = False

    def _count_tail(self, state: PhaseTally) -> None:
        """Count what follows the loop of ``state``, where it is not counted like all else, or by itself."""
        sampling = state.sampling
        if sampling.counts_last or state.lasting_step is not None:
            return
        self._settle()
        left = sampling.left - (state.phase.steps - state.since) - 1
        self._end_block(state)
        state.begin_block()
        state.begin_tail(self._account.on)
        sampling.count_last(max(left, 1))
        self._tail = True
        self._apply(state, begins=True)
        self._tracker.tell_next()

    def _apply(self, state: PhaseTally, begins: bool = False) -> None:
        """Switch counting on or off, as the phase has it. Where it had to stop, it goes on when a step ``begins``, and
        never inside of one, which would be counted in part."""
        paused = self._choice.pauses(state, self._paused, begins, self._tail)
        if paused != self._paused:
            self._pause_blocks(state, paused)
        self._paused = paused
        on = state.sampling.on and not self._paused
        # Another thread may have closed or suspended this meanwhile.
        if on != self._account.on and self._opened and not (on and self._suspended):
            self._switch.turn(on)

    def _over(self) -> None:
        """More was spent than is allowed, as far as was known at the last step. Stop for a while if that is so."""
        self._settle()
        self._apply(self._state)
        self._state.cut |= self._paused
        self._watch_end()

    def _scratch(self) -> Counter:
        """A counter that counts nowhere, to be timed."""
        phase = Nowhere()
        scratch = Counter(self._torch, self._stacks.empty(), self._threads, phase, prices=Prices())
        scratch._state = scratch.tally.of(phase)
        scratch._account.on = True
        scratch._account.limit = math.inf
        return scratch

    def _forget_in_child(self) -> None:
        """Count nothing in a forked child. Its copy of the program goes on as if we had never been there."""
        self._opened = False
        self._tracker.stop_watching()
        self._switch.forget()


_open: weakref.WeakSet[Counter] = weakref.WeakSet()


def _after_fork() -> None:
    for counter in list(_open):
        counter._forget_in_child()
    _open.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
