"""The step that comes next, if it is like the last one: what hooks compare an event with."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any, Literal, Protocol

from syncscope.collect.phases.loan import Loan

NOBODY = id(None)
"""The owner of the program's own steps, and of batches."""


NONE = -1
"""No step is timed."""

FIRST = -1
"""The next call in training is told, and is the first one of a step."""


class CallMoments(Protocol):
    """Hears when each outermost call began, by ``time.perf_counter_ns``. Raises nothing."""

    def called(self, module: Any, begin_ns: int, frame: FrameType) -> None: ...


class Expected:
    """What the tracker expects, and the little that each event must look at.

    In the midst of a program our code and its data are not in the processor's caches, and a step of half a millisecond
    pays some 100 ns for each line of them that it touches. So all of it is in one small object with slots.
    """

    __slots__ = (
        "around", "batch_code", "batch_lasti", "batches", "busy", "call_event", "clock", "closed", "code", "depth",
        "event", "frame_id", "in_scaler", "inside_call", "lasti", "left", "lent", "loader", "looks_closely", "mask",
        "moments", "most", "narrow", "others", "outer_lasti", "owner", "passes", "quick", "quiet", "second", "seconds",
        "skipped", "timed", "timed_ns", "trains", "usual",
    )  # fmt: skip

    def __init__(self, clock: Callable[[], int]) -> None:
        self.clock = clock
        """Counts nanoseconds."""
        self.busy = self.closed = True
        """No call of a module is to be told of: one is under way, or (``closed``) nobody watches."""
        self.quick = self.narrow = self.looks_closely = False
        """An event may pass with the least that tells it from others. Only where ``narrow``, so that only the classes
        that the program calls are watched, and not where each event is to be looked at closely."""
        self.in_scaler = self.inside_call = False
        """A scaler makes the optimiser's step, and tells of it itself; the thread that is followed is in an outermost
        call of a module."""
        self.lent: dict[Literal["left", "passes"], Loan] = {}
        """What hooks may let pass by themselves, until ``take_back``: part of ``left`` and of ``passes``."""
        self.left = self.most = 0
        """So many steps may pass unheard, each with an event like the last one, of so many in all."""
        self.timed, self.timed_ns = NONE, 0
        """What following takes is timed in the step in which so many are left, and was so long in it."""
        self.mask = 0
        """Where the program stands is only looked at in steps with none of these bits in ``left``: all of them, or few.
        Python makes an object of a frame for it."""
        self.event, self.owner = "", NOBODY
        """What ended the last step, and the id of its optimiser or module."""
        self.code: CodeType | None = None
        """Of the innermost frame that is not PyTorch's; where it stands, and how many frames of PyTorch's are inside of
        it."""
        self.lasti = self.skipped = 0
        self.frame_id = 0
        """The frame with the loop; 0 where what was decided does not hold any more."""
        self.depth = self.outer_lasti = 0
        """How many frames are inside of it, and where it stands."""
        self.around: CodeType | None = None
        """What the frame around it runs."""
        self.trains = False
        """The current phase is training whose steps end with something else than calls of modules."""
        self.quiet = self.usual = 0
        """So many calls in training need not be told meanwhile, and so many in each step: what ends one sets ``quiet``
        to ``usual``. ``FIRST``: the first call of each step is told."""
        self.passes, self.others, self.call_event = 0, 0, ""
        """So many calls of modules like the last one, ``call_event``, need not be told: the program tells its steps, or
        they end with calls of another module, after each of which it is ``others``."""
        self.second, self.seconds = NOBODY, 0
        """The id of an optimiser whose steps end none of the phase's: so many of them need not be told."""
        self.batch_code: CodeType | None = None
        self.loader, self.batch_lasti, self.batches = NOBODY, 0, 0
        """The iterator that gave the training's last batch, by its id, and where the program asked for it: so many
        further ones need not be told."""
        self.moments: CallMoments | None = None
        """Who hears when calls of modules begin and end, while somebody does."""

    @property
    def unheard(self) -> int:
        """Steps of the current phase that ended unheard, and are not in its ``steps`` yet. From any thread."""
        loan = self.lent.get("left")
        return self.most - self.left + (loan.used if loan is not None else 0)

    def is_next(self, event: str, owner: int, around: int) -> bool:
        """Whether ``event`` of ``owner`` is what is expected next, and the program stands where it stood before, so
        many frames ``around`` this method's. As ``tracker.is_like_last``, as good as. A frame is of one thread."""
        if not (self.left and self.event == event and self.owner == owner):
            return False
        frame = sys._getframe
        try:
            inner, outer = frame(around + self.skipped), frame(around + self.depth)
        except ValueError:  # there are not so many
            return False
        if inner.f_lasti != self.lasti or inner.f_code is not self.code or id(outer) != self.frame_id:
            return False
        beyond = outer.f_back
        return outer.f_lasti == self.outer_lasti and (beyond is None or beyond.f_code is self.around)

    def take_back(self) -> None:
        """Let no hook pass anything by itself, and book what passed."""
        while self.lent:
            name, loan = self.lent.popitem()
            setattr(self, name, getattr(self, name) - loan.end())

    def tell_all(self) -> None:
        """Let nothing more pass unheard."""
        self.take_back()
        self.left = self.most = self.passes = self.others = self.seconds = self.batches = 0
        self.timed, self.second, self.quick = NONE, NOBODY, False

    def slow_down(self) -> None:
        """Let nothing pass quickly until the next step that is heard. From any thread."""
        self.quick = False
        self.take_back()

    def tell_next(self) -> None:
        """Let the next event that ends a step be told. From any thread."""
        self.slow_down()
        self.event = ""

    def look_closely(self) -> None:
        """Let nothing pass quickly any more: several threads call modules."""
        self.looks_closely = True
        self.slow_down()

    def expect(self, left: int, timed: int, event: str, owner: int, like: Any) -> None:
        """Let ``left`` steps pass that end with ``event`` of ``owner``, where the decision ``like`` holds. ``timed`` is
        one of them."""
        self.left = self.most = left
        self.timed, self.timed_ns = timed, 0
        self.quick = self.narrow and not self.looks_closely and self.moments is None
        self.event, self.owner = event, owner
        if like is None:
            self.frame_id = 0
            return
        self.code, self.lasti, self.skipped = like.code, like.lasti, like.skipped
        self.frame_id, self.depth, self.outer_lasti = like.frame_id, like.depth, like.outer_lasti
        self.around = like.around
