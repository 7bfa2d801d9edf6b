"""Hear when a loop is over, where Python can tell it without slowing the loop down."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterable
from types import CodeType, FrameType

from syncscope.collect.phases.loops import Loop
from syncscope.collect.phases.monitoring import Tool

Over = Callable[[FrameType], None]
"""Called with the innermost frame once a loop is over: the one that ran it, and then the one to which that returns.
What it raises is lost: it is called in the midst of the program."""

ASKING_NS = 5_000.0
"""What it takes to find the frame to be watched, twice what was measured in a loop, ..."""

BASE_NS = 10_000.0
"""... and to hear of a function's return, ..."""

BYTE_NS = 7.0
"""... and for each byte of its code."""

LINE_NS, LINE_BYTE_NS = 2_000.0, 2.2
"""What each line of the loop takes beyond it, once, and for each byte of the function's code: to let Python forget a
line, 3.12 looks at all of that."""


class LoopEnd:
    """Calls somebody once a frame runs a line behind its loop, or the loop's loader has no further batch, and once the
    frame returns.

    The lines of the loop are heard once each, and then no more. Lines and returns need Python 3.12 (``sys.monitoring``)
    and a number that no other tool uses, for as long as a frame is watched. An exception that ends the loop is not
    heard.
    """

    def __init__(self) -> None:
        self._tool = Tool()
        self._code: CodeType | None = None
        self._frame_id = 0
        self._loops: tuple[Loop, ...] = ()
        self._left = False
        """The loop is over; the frame has not returned."""
        self._over: Over = _nobody
        self._lines: dict[CodeType, int] = {}
        """Lines of the loops of functions that were watched."""

    def watches(self, frame_id: int) -> bool:
        """Whether the end of a loop of the frame with this number is to be heard."""
        return self._frame_id == frame_id != 0 and not self._left

    def watch(self, frame: FrameType, loops: Iterable[Loop], over: Over, most_ns: float) -> float:
        """Call ``over`` once ``frame``, which runs one of ``loops``, is done with it. Only the last frame is watched
        that this was called with. Returns about what it takes: lines are only heard where that is at most ``most_ns``,
        and so are returns."""
        self.stop()
        code = frame.f_code
        mine = tuple(loop for loop in loops if loop.code is code)
        self._frame_id, self._loops, self._over = id(frame), mine, over
        if not (self._tool.exists and mine):
            return ASKING_NS
        size = len(code.co_code)
        needed = ASKING_NS + BASE_NS + BYTE_NS * size
        of_lines = self._count_lines(code, mine) * (LINE_NS + LINE_BYTE_NS * size)
        if needed > most_ns or not self._tool.take({"LINE": self._heard_line, "PY_RETURN": self._heard_return}):
            return ASKING_NS
        heard = ["PY_RETURN"]
        if needed + of_lines <= most_ns:
            heard, needed = [*heard, "LINE"], needed + of_lines
        self._code = code
        self._tool.hear(code, *heard)
        return needed

    def stop(self) -> None:
        """Watch nothing any more, and give the number back."""
        self._code = None
        self._frame_id, self._left, self._over = 0, False, _nobody
        self._tool.free()

    def _count_lines(self, code: CodeType, loops: tuple[Loop, ...]) -> int:
        if code not in self._lines:
            starts = [start for start, _, line in code.co_lines() if line is not None]
            self._lines[code] = sum(any(loop.holds(start) for loop in loops) for start in starts)
        return self._lines[code]

    def _heard_line(self, code: CodeType, line: int) -> object:
        frame = sys._getframe(1)
        if any(loop.holds(frame.f_lasti) for loop in self._loops):
            return self._tool.DISABLE
        if code is self._code and id(frame) == self._frame_id:
            with contextlib.suppress(Exception):  # another thread may stop this meanwhile, and the program goes on
                self.leave_loop(frame)
        return None

    def _heard_return(self, code: CodeType, offset: int, value: object) -> None:
        frame = sys._getframe(1)
        if code is self._code and id(frame) == self._frame_id:
            with contextlib.suppress(Exception):
                over = self._over
                self.stop()
                if frame.f_back is not None:
                    over(frame.f_back)

    def leave_loop(self, frame: FrameType) -> None:
        """The loop of the frame that is watched is over. Its return is heard from now on, if anything is."""
        self._left = True
        if self._code is not None:
            self._tool.hear(self._code, "PY_RETURN")
        self._over(frame)


def _nobody(frame: FrameType) -> None:
    """Hears of nothing."""
