"""Hear of the turns of loops, in programs of tensors alone: nothing else tells where their steps end.

Nothing of PyTorch's says that such a program goes round: it calls no module and no optimiser, and asks for no
gradients. So a thread of ours looks twice a second where the program is. Python (``sys.monitoring``, 3.12) then tells
the jumps with which the loops around that place begin their next turns, up to ``MOST_TURNS`` of each: enough to know
which of them turns seldom enough for its turns to be steps, and allocates memory of the device in them. From then on
only the jumps of that one are heard, for about a microsecond each.

So it is where an optimiser is silent because CUDA graphs make its steps. Then the turns are those of the training, of a
loop that replays graphs.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from types import CodeType, FrameType

from syncscope.collect.phases.choice import PATIENCE
from syncscope.collect.phases.loops import Loop, loops_of
from syncscope.collect.phases.monitoring import Tool
from syncscope.collect.phases.phase import Phase
from syncscope.collect.phases.silence import Silence
from syncscope.collect.phases.thread import FollowedThread
from syncscope.collect.phases.tracker import PhaseTracker
from syncscope.collect.phases.turn_times import LEAST_NS, Turns

USUAL_NS = 500_000
"""The innermost loop whose turns take as long or longer is that of the steps, or one with turns of ``LEAST_NS``, ..."""

MANY = 128
"""... where it makes so many of them in a row: then they are no layers of a model."""

IN_A_ROW = 8
"""Turns without one of the loop around. With fewer a loop is part of a step of that one, as for calls of modules."""

OUTERMOST = 4
"""Turns of a loop with none around it, or of one that takes the batches of a loader, that are enough."""

LOOKS = 2
"""Looks that must find the program in a loop."""

PATIENCE_NS = 1_000_000_000
LONG_PATIENCE_NS = 20_000_000_000
"""From the begin on turns are no steps for so long, and for so long where the loop is a library's, or there is a module
that may be called yet: it may be loaded, or its data be prepared, in a loop of its own."""

MOST_LOOPS = 8
"""Loops whose turns are steps."""

MOST_TRIED = 256
"""Loops that are remembered."""


class LoopTurns:
    """Tells ``tracker`` of the turns of loops on the thread that is followed, once such a program is seen.

    ``look`` is called twice a second, on a thread of ours. Nothing is heard any more once something else tells of
    steps, or ``optimizers_made`` says that it will, but in the ``silence`` of an optimizer; nor where there are
    ``several_ranks``: each would begin at another turn, and all must record the same steps. ``modules_defined()`` says
    whether the program has classes of modules of its own, ``allocations()`` how often memory of the device was
    allocated, or ``None``, ``waits()`` how often this thread waited.
    """

    def __init__(
        self,
        tracker: PhaseTracker,
        followed: FollowedThread,
        failed: Callable[[Exception], object],
        optimizers_made: Callable[[], bool],
        *,
        clock: Callable[[], int] = time.perf_counter_ns,
    ) -> None:
        self.modules_defined: Callable[[], bool] = lambda: False
        self.several_ranks: Callable[[], bool] = lambda: False
        self.allocations: Callable[[], int | None] = lambda: None
        self.waits: Callable[[], int] = lambda: 0
        self._tracker = tracker
        self._followed = followed
        self._failed = failed
        self._optimizers_made = optimizers_made
        self._clock = clock
        self.silence = Silence(tracker, clock)
        self._silent: Phase | None = None
        """The training that is silent."""
        self._tool = Tool()
        self._watching = self._of_ranks = False
        self._others_tell = self._rests = False
        """Something else tells of steps, or did, and so nothing is heard now."""
        self._taken = self._refused = False
        """A number was taken, or none was free."""
        self._opened_ns = 0
        self._tried: dict[Loop, Turns] = {}
        self._heard: set[Loop] = set()
        """Those that were tried already when the jumps of their function were heard first, or anew."""
        self._jumps: dict[tuple[int, int], Turns] = {}
        """By the id of the code, and where the jump is."""
        self._seen: dict[int, tuple[int, int]] = {}
        """Steps of phases at the last look, and when that was."""
        self.heard = self._make_heard()

    def open(self) -> None:
        self._watching = self._tool.exists
        self._opened_ns = self._clock()

    def close(self) -> None:
        """Hear of nothing any more. Does nothing the second time."""
        self._watching = False
        self._rest()
        self._tracker.stop_watching()

    def _rest(self) -> None:
        """Hear of nothing until a training is silent. Does nothing the second time."""
        if self._rests:
            return
        self._rests, self._silent = True, None
        self._tool.free()
        self._taken = False
        self.silence.close()
        self._tracker.stop_watching()
        for known in (self._tried, self._heard, self._jumps):
            known.clear()

    @property
    def note(self) -> str | None:
        """Why a program that nothing else tells of has no steps."""
        if any(phase.steps for phase in self._tracker.phases) or self._optimizers_made():
            return None
        say = "Call syncscope.step() at the end of each step, or record by time with --seconds."
        if calls := max((phase.training_calls for phase in self._tracker.phases), default=0):
            times = "once" if calls == 1 else f"{calls} times"
            return (
                f"No steps were seen: no optimizer of PyTorch's stepped, and a module in training was called {times}. "
                f"Such calls are steps where there are {PATIENCE} or more. {say}"
            )
        seen = "No steps were seen: no optimizer stepped, and no module was called in a loop"
        if not self._tool.exists:
            version = ".".join(map(str, sys.version_info[:2]))
            return f"{seen}. The turns of other loops can be heard from Python 3.12 on, not with {version}. {say}"
        if self._of_ranks:
            return f"{seen}. The turns of other loops are not heard where there are several ranks. {say}"
        if self._refused:
            return f"{seen}. The turns of other loops could not be heard: other tools use sys.monitoring. {say}"
        return f"{seen}, and no loop was found that turns again and again, uses the GPU, and takes 0.1 ms a turn. {say}"

    @property
    def note_of_silence(self) -> str | None:
        """What a reader must know of steps that an optimizer does not tell."""
        phase = self._tracker.fallen_silent()
        if phase is None or not phase.silent or phase.source != "turn":
            return None
        return (
            f"Steps of {phase.name} are turns of its loop: its optimizer was captured in a CUDA graph, which the "
            "program replays without calling it."
        )

    # On a thread of ours.

    def look(self) -> None:
        """Look where the program is, and choose a loop if that is known. Raises nothing."""
        if not self._watching:
            return
        try:
            if self._others_tell or self._tracker.has_steps_but_turns or self._optimizers_made():
                self._others_tell = True
                self._look_in_silence()
            elif self.several_ranks():
                self._of_ranks = True
                self.close()
            else:
                self._look()
        except Exception as error:
            self.close()
            self._failed(error)

    def _look_in_silence(self) -> None:
        phase = self.silence.look()
        if phase is not self._silent or phase is None:
            self._rest()
        if phase is None:
            return
        if self.several_ranks():
            self.close()
            return
        self._silent, self._rests = phase, False
        if not self.silence.lasts:
            self.silence.close()
            self._let_go_of_short_turns()
            return
        self.silence.hear_replays()
        self._look()
        if self._taken:
            for loop in tuple(phase.loops):
                self._try(loop, [])  # the program may be elsewhere at each look
                if loop not in self._heard:
                    self._hear(loop.code)

    def _look(self) -> None:
        self._let_go_of_short_turns()
        loops = self._tracker.nests.loops_around(sys._current_frames().get(self._followed.ident))
        known = [turns for turns in map(self._tried.get, loops) if turns is not None]
        if not loops or any(turns.tells_steps for turns in known):
            return
        tried = tuple(self._tried.values())
        if len(tried) >= MOST_TRIED or sum(turns.tells_steps for turns in tried) >= MOST_LOOPS:
            return
        if not self._taken:
            self._taken = self._tool.take({"JUMP": self.heard})
            self._refused = not self._taken
        if not self._taken:
            return
        for number, loop in enumerate(loops):
            around = loops[number + 1 :]
            self._try(loop, around).looks += 1
            for inner in loops_of(loop.code):
                if _is_inside(inner, loop):
                    self._try(inner, [loop, *around])  # maybe the program is seldom in it
        nest = [self._tried[loop] for loop in loops]
        best = self._choose(nest) if self._silent is None else self._choose_of(self._silent, nest)
        if best is not None and (self._silent is not None or self._is_time(best)):
            best.tells_steps = True
            self._hear(best.loop.code)
        for loop in loops:
            if loop not in self._heard:
                self._hear(loop.code)

    def _hear(self, code: CodeType) -> None:
        """Hear of the jumps of ``code``, also of those that were of no interest when they were heard first."""
        self._heard.update(loop for loop in loops_of(code) if loop in self._tried)
        self._tool.hear(code)
        self._tool.hear(code, "JUMP")

    def _try(self, loop: Loop, around: list[Loop]) -> Turns:
        turns = self._tried.setdefault(loop, Turns(loop))
        turns.around.update(around)
        return turns

    def _choose(self, around: list[Turns]) -> Turns | None:
        """The loop whose turns are steps, of those ``around`` the place, innermost first, or one inside of it that the
        program is not in now. ``None`` where that is not known yet."""
        seen = [turns for turns in around if turns.looks >= LOOKS and self._is_good(turns)]
        best = next(filter(self._takes_batches, seen), None) or next(iter(seen), None)
        if best is None or self._takes_batches(best):
            return best
        inside = [turns for turns in tuple(self._tried.values()) if best.loop in turns.around]
        if any(turns.tells_steps for turns in inside):
            return None
        good = [turns for turns in inside if self._is_good(turns)]
        return max(good, key=lambda turns: len(turns.around), default=best)

    def _choose_of(self, silent: Phase, around: list[Turns]) -> Turns | None:
        """The loop whose turns are steps of a training that is ``silent``: its own, where that turns. Else that of the
        steps of another one, which is over, was to warm up; none inside of a loop in which it may begin again."""
        own = [turns for turns in map(self._tried.get, tuple(silent.loops)) if turns is not None and turns.count]
        good = [turns for turns in own if self._is_good(turns)]
        mine = silent.loops | silent.around
        best = None
        if good:
            best = next((turns for turns in good if turns.loop is silent.loop), good[0])
        elif not own and not silent.silent and not any(turns.loop in mine for turns in around):
            best = self._choose(around)
        if best is not None:
            silent.silent = True
        return best

    def _is_good(self, turns: Turns) -> bool:
        length = turns.length_ns
        if length is None or length < LEAST_NS or not turns.uses_device:
            return False
        if self._silent is not None and not turns.replays:
            return False
        if length < USUAL_NS:
            return turns.longest >= MANY
        return turns.longest >= (IN_A_ROW if turns.around and not self._takes_batches(turns) else OUTERMOST)

    def _takes_batches(self, turns: Turns) -> bool:
        return self._tracker.takes_batches(turns.loop)

    def _is_time(self, best: Turns) -> bool:
        passed = self._clock() - self._opened_ns
        if any(turns.tells_steps for turns in self._tried.values()) or passed >= LONG_PATIENCE_NS:
            return True
        of_user = self._tracker.nests.of_code(best.loop.code).user
        return passed >= PATIENCE_NS and of_user and not (self._tracker.may_have_steps or self.modules_defined())

    def _let_go_of_short_turns(self) -> None:
        """Hear no more of loops whose turns have become so short that hearing of them takes too much."""
        tracker = self._tracker
        for phase in tracker.phases:
            if phase.source != "turn":
                continue
            steps, now = phase.steps + (tracker.unheard if phase is tracker.current else 0), self._clock()
            before, self._seen[phase.number] = self._seen.get(phase.number, (steps, now)), (steps, now)
            if (steps - before[0]) * LEAST_NS // 2 > now - before[1]:
                for turns in tuple(self._tried.values()):
                    if turns.loop in phase.loops:
                        turns.let_go()

    # In the midst of the program.

    def _make_heard(self) -> Callable[[CodeType, int, int], object]:
        """The callback, which runs at each jump. Local names are fast."""
        expected, jumps, frame_at, disable = self._tracker.expected, self._jumps, sys._getframe, self._tool.DISABLE

        def heard(code: CodeType, offset: int, target: int) -> object:
            turns = jumps.get((id(code), offset)) or self._resolve(code, offset, target)
            if turns is None:
                return disable
            if not turns.tells_steps:
                return self._time(turns)
            if (
                (left := expected.left)
                and left != expected.timed
                and expected.owner == turns.ident
                and expected.event == "turn"
                and expected.frame_id == id(frame_at(1))
            ):
                expected.left = left - 1
            else:
                self._tell(turns, frame_at(1))
            return None

        return heard

    def _resolve(self, code: CodeType, offset: int, target: int) -> Turns | None:
        """The loop whose next turn a jump to ``target`` begins: the innermost with both of its ends."""
        if target > offset:
            return None
        loops = (loop for loop in loops_of(code) if loop.holds(offset) and target in loop.heads)
        loop = next(loops, None)
        turns = self._tried.get(loop) if loop is not None else None
        if turns is not None:
            self._jumps[id(code), offset] = turns  # the loop keeps the code, and so its id from being used again
        return turns

    def _time(self, turns: Turns) -> object:
        """A loop turned whose turns are no steps so far."""
        if turns.over or not self._watching:
            return self._tool.DISABLE
        if threading.get_ident() != self._followed.ident:
            return None
        try:
            turns.turned(self._clock(), self._used, self.silence.replays)
            for inner in tuple(self._tried.values()):
                if turns.loop in inner.around:
                    inner.left()
        except Exception as error:
            self._failed(error)
        return None

    def _used(self) -> int | None:
        allocated = self.allocations()
        return None if allocated is None else allocated + self.waits()

    def _tell(self, turns: Turns, frame: FrameType) -> None:
        """Look closely at a turn that is a step, and tell of it unless it is the one that was expected."""
        tracker, expected = self._tracker, self._tracker.expected
        if not self._watching or threading.get_ident() != self._followed.ident:
            return
        timed = expected.left == expected.timed
        begin = expected.clock() if timed else 0
        is_next = expected.left and expected.event == "turn" and expected.owner == turns.ident
        if is_next and expected.frame_id == id(frame):
            expected.left -= 1
            if timed:
                expected.timed_ns += expected.clock() - begin
            return
        begin = tracker.begin_event()
        try:
            tracker.turned(frame, turns.loop)
        except Exception as error:
            self._failed(error)
        tracker.end_event(begin)


def _is_inside(inner: Loop, outer: Loop) -> bool:
    return inner is not outer and outer.holds(inner.start) and outer.holds(inner.stop)
