"""PyTorch's own warning at the very line of an implicit wait.

``torch.cuda.set_sync_debug_mode("warn")`` makes PyTorch warn when an operation waits. C calls
``warnings._showwarnmsg`` in the Python frame of the waiting call, so that is where we listen. The program's own
filters must not silence it: our filter is put first again after every change of the filters (all of them end in
``warnings._filters_mutated``), and what the program catches, prints or turns into errors is otherwise untouched.

Waits inside ``torch.ops`` operators and TorchScript have no Python warning: C++ would print a line on stderr
instead. There the mode is off for the length of the call (``quiet``).
"""

from __future__ import annotations

import re
import sys
import threading
import warnings
from collections.abc import Callable
from types import FrameType
from typing import Any

from syncscope.collect.paths import OURS

MESSAGE = "called a synchronizing CUDA operation"
NOTICES = ("Synchronization debug mode is a prototype feature", "Warning: Profiler clears events at the end of each")
"""What PyTorch says, once, when the mode is set or a profiler prepared: by us, so not for the user."""

DEFAULT, WARN, ERROR = 0, 1, 2

_threads: dict[int, threading.Thread] = threading._active  # type: ignore[attr-defined]
"""Every Python thread that is alive; counting them by ``threading`` takes a lock and a microsecond."""

# The very tuple is also how our filter is found again.
FILTER: Any = ("always", re.compile("|".join((MESSAGE, *NOTICES))), Warning, None, 0)


class WaitWarnings:
    """PyTorch's warnings of waits, for everybody in the process who listens.

    While anybody does, the sync debug mode is *warn* and each warning calls every listener with the waiting frame.
    The program still sees and sets its own mode: in *warn* its warnings pass, in *error* we leave it alone (its
    waits raise). ``hold`` keeps swallowing after the last listener has gone: a wait that began on another thread
    may warn later.
    """

    def __init__(self) -> None:
        self._listeners: list[Callable[[FrameType], None]] = []
        self._holds = 0
        self._filters = FirstFilter()
        self._restore: Callable[[], None] | None = None
        self._set_mode: Callable[[int], None] = lambda mode: None
        self.wanted = DEFAULT
        """The mode that the program set."""

    def listen(self, torch: Any, listener: Callable[[FrameType], None]) -> None:
        """Call ``listener(frame)`` at each warning from now on; CUDA is initialised."""
        self.hold()
        self._listeners.append(listener)
        if len(self._listeners) == 1:
            self._take_mode(torch._C)

    def unlisten(self, listener: Callable[[FrameType], None]) -> None:
        self._listeners.remove(listener)
        if not self._listeners and self._restore is not None:
            self._restore()
        self.release()

    def hold(self) -> None:
        self._holds += 1
        if self._holds == 1:
            self._filters.open(self._show)

    def release(self) -> None:
        self._holds -= 1
        if self._holds == 0:
            self._filters.close()

    def quiet(self) -> None:
        """Off for a call whose warnings would not reach Python."""
        if self.wanted == DEFAULT:
            self._set_mode(DEFAULT)

    def hush(self) -> bool:
        """Off for a call that is recorded anyway, which is cheaper than its warning; ``loud`` ends it. Not where that
        could be missed: by another listener, by another thread, or by the program that asked for warnings."""
        if self.wanted != DEFAULT or len(self._listeners) != 1 or len(_threads) != 1:
            return False
        self._set_mode(DEFAULT)
        return True

    def loud(self) -> None:
        if self.wanted != ERROR and self._listeners:
            self._set_mode(WARN)

    def _take_mode(self, native: Any) -> None:
        self._set_mode, get_mode = native._cuda_set_sync_debug_mode, native._cuda_get_sync_debug_mode
        self.wanted = get_mode()

        def set_mode(mode: int) -> None:
            self._set_mode(mode)  # which checks the range
            self.wanted = mode
            self.loud()

        def restore() -> None:
            native._cuda_set_sync_debug_mode, native._cuda_get_sync_debug_mode = self._set_mode, get_mode
            self._set_mode(self.wanted)
            self._restore = None

        native._cuda_set_sync_debug_mode, native._cuda_get_sync_debug_mode = set_mode, lambda: self.wanted
        self._restore = restore
        self.loud()

    def _show(self, show: Callable[[Any], None], message: Any) -> None:
        text = str(message.message)
        if text.startswith(MESSAGE):
            frame = program_frame(sys._getframe(2))
            for listener in tuple(self._listeners):
                listener(frame)
            if self.wanted == WARN:
                # Seen from the program, not from a wrapper of ours around the call.
                message.filename, message.lineno = frame.f_code.co_filename, frame.f_lineno
                show(message)
        elif not text.startswith(NOTICES):
            if message.filename.startswith(OURS):  # of an operator that a wrapper of ours ran
                frame = program_frame(sys._getframe(2))
                message.filename, message.lineno = frame.f_code.co_filename, frame.f_lineno
            show(message)


def program_frame(frame: FrameType) -> FrameType:
    """``frame``, or the nearest one outwards that is not syncscope's own."""
    while frame.f_code.co_filename.startswith(OURS) and frame.f_back is not None:
        frame = frame.f_back
    return frame


class FirstFilter:
    """Puts a warnings filter first, keeps it first, and takes it out again without a trace."""

    def __init__(self) -> None:
        self._lists: list[list[Any]] = []
        self._originals: tuple[Any, Any] | None = None

    def open(self, shown: Callable[[Callable[[Any], None], Any], None]) -> None:
        """Call ``shown(show, message)`` for each warning; ``show`` is what would have been called."""
        show, mutated = warnings._showwarnmsg, warnings._filters_mutated  # type: ignore[attr-defined]
        self._originals = show, mutated

        def showwarnmsg(message: Any) -> None:
            shown(show, message)

        def filters_mutated() -> None:
            self._put_first()
            mutated()

        warnings._showwarnmsg = showwarnmsg  # type: ignore[attr-defined]
        warnings._filters_mutated = filters_mutated  # type: ignore[attr-defined]
        filters_mutated()

    def close(self) -> None:
        """Put everything back, also in the lists that ``catch_warnings`` blocks still hold."""
        if self._originals is None:
            return
        (warnings._showwarnmsg, mutated), self._originals = self._originals, None  # type: ignore[attr-defined]
        warnings._filters_mutated = mutated  # type: ignore[attr-defined]
        for filters in (*self._lists, warnings.filters):
            filters[:] = [entry for entry in filters if entry is not FILTER]  # type: ignore[index]
        self._lists.clear()
        mutated()

    def _put_first(self) -> None:
        filters: Any = warnings.filters
        if filters and filters[0] is FILTER:
            return
        filters[:] = [FILTER, *(entry for entry in filters if entry is not FILTER)]
        if not any(known is filters for known in self._lists):
            self._lists.append(filters)


waits = WaitWarnings()
"""The process's own: there is one sync debug mode."""
