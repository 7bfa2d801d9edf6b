"""What the callbacks of all trainers do: count from the first step to the last, and record windows at one step."""

from __future__ import annotations

import os
from typing import Any

from syncscope.collect.annotations import recording
from syncscope.collect.annotations import step as step_of_program
from syncscope.session import profile
from syncscope.watching import watch


class Training:
    """Watches one training, from ``begin`` to ``end``.

    ``options`` are those of ``syncscope.watch``. With ``profile_at``, windows are recorded from that step of the
    trainer on, into the folder ``profile`` inside ``folder``. Inside ``syncscope watch`` and ``syncscope profile`` it
    only tells them of the trainer's steps.
    """

    def __init__(
        self, folder: str | os.PathLike[str], profile_at: int | None, options: dict[str, Any] | None = None
    ) -> None:
        self.folder = os.fspath(folder)
        self.watching: watch | None = None
        self.profiling: profile | None = None
        self._profile_at = profile_at
        self._options = options or {}
        self._step: int | None = None

    def begin(self, step: int) -> None:
        """The training begins, after ``step`` steps of an earlier one."""
        self._step = step
        if not recording():
            self.watching = watch(self.folder, **self._options).start()
            self._profile_from(step)

    def stepped(self, step: int) -> None:
        """The trainer has made ``step`` steps. A step is told once, however often it is reported."""
        if self._step is None or step == self._step:
            return
        self._step = step
        step_of_program()
        self._profile_from(step)

    def end(self) -> None:
        """The training is over, or failed. Does nothing the second time."""
        self._step = None
        if self.profiling is not None:
            self.profiling.__exit__(None, None, None)
        if self.watching is not None:
            self.watching.stop()
        self.watching = None

    def _profile_from(self, step: int) -> None:
        if self.watching is None or self.profiling is not None or self._profile_at is None:
            return
        if step >= self._profile_at:
            self.profiling = profile(os.path.join(self.folder, "profile"), warmup=0).__enter__()
