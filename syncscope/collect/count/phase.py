"""What counting asks of phases and of who tells them apart."""

from __future__ import annotations

from collections.abc import Callable
from types import CodeType, FrameType
from typing import Protocol

from syncscope.schema.counting import CountedSource, PhaseKind


class Phase(Protocol):
    """What counting asks of a phase."""

    @property
    def number(self) -> int: ...
    @property
    def kind(self) -> PhaseKind: ...
    @property
    def steps(self) -> int:
        """Boundaries so far."""

    @property
    def times(self) -> int:
        """How often its loop began."""

    @property
    def source(self) -> CountedSource:
        """What counts as its step: a call of a module is told when it begins."""


class Tracker(Protocol):
    """What counting asks of the phase tracker."""

    @property
    def current(self) -> Phase: ...
    @property
    def followed_ns(self) -> float:
        """What following the phases took so far."""

    @property
    def unheard(self) -> int:
        """Steps of the current phase that are over, and not in its ``steps`` yet."""

    @property
    def begins_late(self) -> bool:
        """Whether the phase that begins now is known by turns of its loop, after many of them."""

    def at(self, frame: FrameType) -> Phase:
        """The phase of something that happens now in ``frame``."""

    def is_in_loop(self, number: int, code: CodeType, lasti: int) -> bool:
        """Whether an instruction is inside of a loop of the phase with this number."""

    def tell_next(self) -> None:
        """Let the next step not pass unheard. From any thread."""

    def watch_end(self, over: Callable[[FrameType], None], most_ns: float) -> float:
        """Let ``over`` be called with the innermost frame once the loop of the current phase is over, where that can be
        told. Returns what that takes, about ``most_ns`` at most."""

    def stop_watching(self) -> None:
        """Call it no more."""

    def leave_training(self) -> None:
        """The loop of the training is over, if the program is in one."""


class Nowhere:
    """A phase, and the tracker that always finds it."""

    number = 0
    kind: PhaseKind = "other"
    steps = times = 0
    source: CountedSource = "none"
    followed_ns = 0.0
    unheard = 0
    begins_late = False

    @property
    def current(self) -> Phase:
        return self

    def at(self, frame: FrameType) -> Phase:
        return self

    def is_in_loop(self, number: int, code: CodeType, lasti: int) -> bool:
        return False

    def tell_next(self) -> None:
        pass

    def watch_end(self, over: Callable[[FrameType], None], most_ns: float) -> float:
        return 0.0

    def stop_watching(self) -> None:
        pass

    def leave_training(self) -> None:
        pass
