"""Record the waits of a block of code, each with its line: for tests, without profiling."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from types import TracebackType
from typing import NamedTuple, overload

from syncscope.collect.features import SYNC_DEBUG_MODE, lacking
from syncscope.collect.live.waits import PIN, LiveWait, fix_for
from syncscope.collect.live.watching import Threads, check_threads, open_blocks
from syncscope.collect.paths import Paths
from syncscope.collect.sites.stacks import Stacks
from syncscope.collect.sites.threads import live_threads
from syncscope.schema.expressions import called_name
from syncscope.schema.recording import RecordedFrame


class Wait(NamedTuple):
    """One wait for the device."""

    file: str
    """As in reports: relative to the project, else ``<site-packages>/…`` or ``<python>/…``."""
    line: int | None
    function: str
    expression: str | None
    at: str
    """``file:line`` of the innermost frame: the place itself, or inside a library that it calls."""
    fix: str
    thread: str = ""
    """The name of the thread that waited, where it is not the one that opened the block."""


def unavailable() -> str | None:
    """Why no wait can be recorded here, ``None`` where it can."""
    try:
        import torch
    except ImportError:
        return "needs PyTorch, which is not installed"
    if not torch.cuda.is_available():
        return "needs a GPU: there is none here"
    missing = lacking(torch, SYNC_DEBUG_MODE)
    return f"needs {', '.join(missing)}, which this PyTorch lacks" if missing else None


class record(Sequence[Wait]):
    """The waits of this thread in the block: ``with record(paths) as waits: …; len(waits)``. With ``threads="all"``,
    those of all threads; with ``tasks="all"``, those of whatever asyncio task this thread runs meanwhile, also in a
    loop that was there before.

    A sequence that grows while the block runs. It has what a ``guard`` sees, and says what that says not to see.
    It lacks everything inside ``syncscope.expected``. Blocks nest. Entering one needs a GPU: see ``unavailable``.
    """

    decides = False
    hears_expected = False

    def __init__(self, paths: Paths, threads: Threads = "own", tasks: Threads = "own") -> None:
        check_threads(threads)
        self.threads, self.tasks = threads, tasks
        self._stacks = Stacks(paths)
        self._seen: list[tuple[int, str, str]] = []
        """The number of each wait's stack, why it waits, and its thread."""
        self._waits: list[Wait] = []
        self._thread = threading.get_ident()

    def __enter__(self) -> record:
        self._thread = threading.get_ident()
        if self.tasks == "all" and self.threads == "own":
            open_blocks.enter_thread(self, self._thread)
        else:
            open_blocks.enter(self, everywhere=self.threads == "all")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        open_blocks.leave(self)

    @overload
    def __getitem__(self, index: int) -> Wait: ...
    @overload
    def __getitem__(self, index: slice) -> list[Wait]: ...
    def __getitem__(self, index: int | slice) -> Wait | list[Wait]:
        return self._resolved()[index]

    def __len__(self) -> int:
        return len(self._seen)

    def on_wait(self, wait: LiveWait) -> None:
        """Add a wait."""
        ident = threading.get_ident()
        thread = live_threads.get(ident) if ident != self._thread else None
        name = "" if ident == self._thread else thread.name if thread is not None else "a thread of PyTorch"
        self._seen.append((self._stacks.take(wait.frame), wait.why, name))

    def _resolved(self) -> list[Wait]:
        missing = self._seen[len(self._waits) :]
        if missing:
            frames, stacks = self._stacks.resolve()
            self._waits += [_wait([frames[i] for i in stacks[number]], why, name) for number, why, name in missing]
        return self._waits


def _wait(stack: Sequence[RecordedFrame], why: str, thread: str) -> Wait:
    """A wait at its user's line: the innermost frame of the user's, else the outermost frame."""
    at = stack[-1]
    site = next((frame for frame in reversed(stack) if frame.user), stack[0])
    # The call at the innermost frame says more than the one that led there.
    fix = PIN if why else fix_for(*(called_name(frame.expression) for frame in (at, site)))
    return Wait(site.file, site.line, site.function, site.expression, f"{at.file}:{at.line}", fix, thread)
