"""Let the ranks of a run on one machine begin a window at the same step.

Each is ready at a time of its own: its profiler has detached, its other windows are over. It says so by a hidden, empty
file in the folder of the run, whose name holds its process and its step, and goes on when all have.
"""

from __future__ import annotations

import contextlib
import os
import re
import time
from pathlib import Path
from typing import Any

from syncscope.collect.relatives import lives, several_ranks

PATIENCE_S = 1.0
"""Seconds that a rank waits for the others: they may have other phases, or be on other machines."""

IN_TRAINING_S = 4.0
"""All ranks train. One of them may evaluate meanwhile, with windows of its own, which slows all of them down."""

AHEAD = 8
"""Steps from the last that was ready until all go on: the host of one rank may be some steps ahead of another's."""

_NAME = re.compile(r"\.syncscope-\w+-(?P<pid>\d+)\.[\w.]+@(?P<step>\d+)")


class ReadyRanks:
    """What this rank and the others of the run are ready for. ``folder`` and ``run`` are the same for all of them."""

    def __init__(self, torch: Any, folder: Path, run: str) -> None:
        self._torch = torch
        self._folder = folder
        self._run = run
        self._mine: Path | None = None
        self._until = 0.0

    def come(self, what: str, step: int, patience_s: float = PATIENCE_S) -> None:
        """This rank is ready for ``what`` at a step, and for nothing else any more."""
        self.leave()
        self._until = time.monotonic() + patience_s
        with contextlib.suppress(OSError):
            self._folder.mkdir(parents=True, exist_ok=True)
            mine = self._folder / f".syncscope-{self._run}-{os.getpid()}.{what}@{step}"
            mine.touch()
            self._mine = mine

    def first_step(self, what: str) -> int | None:
        """The step at which all ranks go on, or ``None`` as long as some are awaited. -1 where they do not come."""
        here = ranks_here(self._torch)
        if self._mine is None or here is None or time.monotonic() > self._until:
            return -1
        names = (_NAME.fullmatch(path.name) for path in self._folder.glob(f".syncscope-{self._run}-*.{what}@*"))
        ready = {int(found["pid"]): int(found["step"]) for found in names if found is not None}
        steps = {pid: step for pid, step in ready.items() if lives(pid)}  # a launcher may use its id again
        return max(steps.values()) + AHEAD if len(steps) >= here else None

    def leave(self) -> None:
        """This rank is not ready any more, or is over."""
        if self._mine is not None:
            with contextlib.suppress(OSError):
                self._mine.unlink(missing_ok=True)
            self._mine = None


def ranks_here(torch: Any) -> int | None:
    """How many of several ranks are on this machine: what the launcher says, or all of them where each can have a GPU.
    ``None`` where it cannot be told."""
    if not several_ranks(torch):
        return None
    world = int(torch.distributed.get_world_size())
    local = os.environ.get("LOCAL_WORLD_SIZE", "")
    if local.isdecimal():
        return min(int(local), world)
    return world if world <= torch.cuda.device_count() else None
