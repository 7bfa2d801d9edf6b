"""PyTorch's own warning at the very line of an implicit wait.

``torch.cuda.set_sync_debug_mode("warn")`` makes PyTorch warn when an operation waits. Python asks the first filter
whether its pattern matches, in the Python frame of the waiting call. So we listen in the place of a pattern, and Python
makes no warning of it: that takes as long again. The program's own filters must not silence the warning, so our filters
are first. What the program catches, prints or turns into errors stays as it is.

Waits inside ``torch.ops`` operators and TorchScript have no Python warning: C++ would print a line on stderr instead.
The mode is off during such calls (``suspend``).
"""

from __future__ import annotations

import contextlib
import re
import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

from syncscope.collect import features
from syncscope.collect.patching import Patches
from syncscope.collect.paths import OURS
from syncscope.collect.sites.first_filter import FirstFilter
from syncscope.collect.sites.threads import live_threads

MESSAGE = "called a synchronizing CUDA operation"
MESSAGES = (MESSAGE, "called a synchronizing HIP operation")
"""What PyTorch says of a wait, and what it says where it is built for ROCm: that turns the one into the other."""
NOTICES = ("Synchronization debug mode is a prototype feature", "Warning: Profiler clears events at the end of each")
"""What PyTorch says once when the mode is set or a profiler prepared. We caused it, so the user does not see it."""

DEFAULT, WARN, ERROR = 0, 1, 2

HEARD = (*MESSAGES, *NOTICES)
PATTERN = "|".join(HEARD)


def _is_ours(text: Any) -> bool:
    """Whether a warning says what we listen to. A program may warn of anything that is no text, such as an error that
    it caught: ``warnings.warn(error)``."""
    return issubclass(type(text), str) and str.startswith(text, HEARD)


class Ear:
    """Listens in the place of a filter's pattern, also to what is no text. In another process it is a pattern: one that
    matches nothing, unless another is given."""

    __slots__ = ("match", "pattern")

    def __init__(self, match: Callable[[Any], bool], pattern: str = "(?!)") -> None:
        self.match = match
        self.pattern = pattern

    def __reduce__(self) -> tuple[Callable[[str], re.Pattern[str]], tuple[str]]:
        return re.compile, (self.pattern,)

    def __deepcopy__(self, memo: object) -> Ear:
        return self


class SyncDebugMode:
    """PyTorch's sync debug mode, shared by all listeners in the process.

    While there is a listener, the mode is *warn* and each warning calls every listener with the waiting frame. The
    program still reads and sets a mode of its own: in *warn* its warnings pass, in *error* we leave the mode alone, and
    its waits raise. ``hold_filter`` swallows warnings also after the last listener has gone, because a wait that began
    on another thread may warn late."""

    def __init__(self) -> None:
        self._listeners: list[Callable[[FrameType], None]] = []
        self._muted: list[Callable[[FrameType], None]] = []
        self._suspended = 0
        self._heard = _Heard()
        self._holds = 0
        self.filters: tuple[Any, ...] = (
            ("ignore", Ear(self._make_match()), Warning, None, 0),
            ("always", Ear(_is_ours, PATTERN), Warning, None, 0),
        )
        """What is first among the filters while it is held: what hears, and what lets the program's own warnings pass.
        They are found again by their identity."""
        self._filter = FirstFilter(*self.filters)
        self._patches = Patches()
        self._set_mode: Callable[[int], None] = lambda mode: None
        self.program_mode = DEFAULT
        """The mode that the program set."""

    def listen(self, torch: Any, listener: Callable[[FrameType], None]) -> None:
        """Call ``listener(frame)`` at each warning from now on. CUDA must be initialised.

        Raises ``features.Unsupported`` where PyTorch has no such mode.
        """
        features.require(torch, features.SYNC_DEBUG_MODE, "see waits")
        self._listeners.append(listener)
        self.hold_filter()
        if len(self._listeners) + len(self._muted) == 1:
            self._take_mode(torch._C)
        else:
            self._set_warn()

    def unlisten(self, listener: Callable[[FrameType], None]) -> None:
        """Undo ``listen``, also one that raised midway. Does nothing for a listener that does not listen."""
        if listener not in self._listeners and listener not in self._muted:
            return
        (self._listeners if listener in self._listeners else self._muted).remove(listener)
        if not self._listeners:
            if not self._muted:
                self._patches.restore()
            self._set_mode(self.program_mode)
        self.release_filter()

    @property
    def listening(self) -> bool:
        """Whether warnings call a listener now."""
        return bool(self._listeners)

    @property
    def resting(self) -> bool:
        """Whether there are listeners, and all of them are muted."""
        return bool(self._muted) and not self._listeners

    def mute(self, listener: Callable[[FrameType], None]) -> None:
        """Stop calling ``listener`` until ``unmute``, in microseconds: the program's filters are not touched.

        Changing them would show the program's own warnings again that Python shows only once.
        """
        with contextlib.suppress(ValueError):  # it is muted, or another thread was faster
            self._listeners.remove(listener)
            self._muted.append(listener)
            if not self._listeners:
                self._set_mode(self.program_mode)

    def unmute(self, listener: Callable[[FrameType], None]) -> None:
        """Undo ``mute``."""
        with contextlib.suppress(ValueError):
            self._muted.remove(listener)
            self._listeners.append(listener)
            self._set_warn()

    def hold_filter(self) -> None:
        """Keep our filter first until ``release_filter`` was called as often."""
        self._holds += 1
        if self._holds == 1:
            self._filter.open(self._on_warning)

    def release_filter(self) -> None:
        self._holds -= 1
        if self._holds == 0:
            self._filter.close()

    def quietly(self) -> contextlib.AbstractContextManager[None]:
        """Let this thread and those that it starts change filters, as imports do, and put them back: what Python shows
        only once is not shown again. Does nothing where our filter is not held."""
        return self._filter.quietly()

    def suspend(self) -> None:
        """Switch the warnings off for a call whose warnings would not reach Python. ``resume`` ends it.

        Calls may overlap, inside one another and on several threads.
        """
        self._suspended += 1
        if self.program_mode == DEFAULT and not self._heard.calls:
            self._set_mode(DEFAULT)

    def hear(self) -> None:
        """This thread's warnings reach Python from where they otherwise would not: leave them on, also where they are
        suspended. ``hear_no_more`` ends it."""
        self._heard.calls += 1
        if self._suspended and self.program_mode != ERROR and self._listeners:
            self._set_mode(WARN)

    def hear_no_more(self) -> None:
        """Undo ``hear``."""
        self._heard.calls -= 1
        if self._suspended and self.program_mode == DEFAULT and not self._heard.calls:
            self._set_mode(DEFAULT)

    def suspend_if_unnoticed(self) -> bool:
        """Switch the warnings off for a call that is recorded anyway, which costs less than its warning.

        Does nothing and returns ``False`` where a warning would be missed: by another listener, by another thread, or
        by a program that has switched warnings on. After ``True``, ``resume`` ends it.
        """
        if self.program_mode != DEFAULT or len(self._listeners) != 1 or len(live_threads) != 1:
            return False
        self._suspended += 1
        self._set_mode(DEFAULT)
        return True

    def resume(self) -> None:
        """Switch the warnings on again."""
        self._suspended = max(self._suspended - 1, 0)
        self._set_warn()

    def _set_warn(self) -> None:
        if self.program_mode != ERROR and self._listeners and not self._suspended:
            self._set_mode(WARN)

    def _take_mode(self, native: Any) -> None:
        """Set the mode to *warn*, and let the program read and set one of its own."""
        self._set_mode = native._cuda_set_sync_debug_mode
        self.program_mode = native._cuda_get_sync_debug_mode()

        def make_setter(set_mode: Callable[[int], None]) -> Callable[[int], None]:
            def setter(mode: int) -> None:
                set_mode(mode)  # raises for an invalid mode
                self.program_mode = mode
                self._set_warn()

            return setter

        def make_getter(_: Callable[[], int]) -> Callable[[], int]:
            return lambda: self.program_mode

        self._patches.replace(native, "_cuda_set_sync_debug_mode", make_setter)
        self._patches.replace(native, "_cuda_get_sync_debug_mode", make_getter)
        self._set_warn()

    def _make_match(self) -> Callable[[Any], bool]:
        """What hears of each warning, and says whether nobody else does. Local names are fast."""
        listeners, frame_of, starts = self._listeners, sys._getframe, str.startswith

        def match(text: Any) -> bool:
            if type(text) is not str and not issubclass(type(text), str):
                return False
            if not starts(text, MESSAGES):
                return starts(text, NOTICES)
            try:
                frame = frame_of(1)
            except ValueError:  # a thread runs nothing else
                frame = frame_of(0)
            if frame.f_code.co_filename.startswith(OURS):
                frame = program_frame(frame)
            for listener in tuple(listeners):
                listener(frame)
            return self.program_mode != WARN

        return match  # the program's own mode lets it through to ``_on_warning``

    def _on_warning(self, show: Callable[[Any], None], message: Any) -> None:
        try:
            text, file = str(message.message), str(message.filename)
        except Exception:  # its class does as it likes, and the program may show it without asking
            text = file = ""
        if text.startswith(MESSAGES):
            frame = program_frame(sys._getframe(0))
            if self.program_mode == WARN:
                # The program's line, not that of our wrapper around the call.
                message.filename, message.lineno = frame.f_code.co_filename, frame.f_lineno
                show(message)
            else:  # the program put a copy of the filters back, which does not listen
                for listener in tuple(self._listeners):
                    listener(frame)
        elif not text.startswith(NOTICES):
            if file.startswith(OURS):  # of an operator that a wrapper of ours ran
                frame = program_frame(sys._getframe(0))
                message.filename, message.lineno = frame.f_code.co_filename, frame.f_lineno
            show(message)


class _Heard(threading.local):
    """Calls of this thread whose warnings reach Python."""

    calls = 0


def program_frame(frame: FrameType) -> FrameType:
    """``frame``, or the nearest frame around it that is not syncscope's own."""
    while frame.f_code.co_filename.startswith(OURS) and frame.f_back is not None:
        frame = frame.f_back
    return frame


sync_debug_mode = SyncDebugMode()
"""The process's own: PyTorch has one mode for the process."""
