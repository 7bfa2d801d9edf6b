"""How many steps each window takes, and which phases are recorded."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

Mode = Literal["windows", "full"]

BARE_SECONDS = 3.0
"""What ``syncscope profile`` spends at most on bare steps once all is recorded."""


@dataclass(frozen=True)
class Plan:
    """The windows of a phase, in steps."""

    warmup: int = 5
    bare: int = 10
    """Steps that are timed without a profiler, at least."""
    bare_seconds: float = 0.0
    """Once all is recorded, steps are timed again until their median is known, for so long at most; 0: they are not."""
    repeats_bare: bool = False
    """Only time bare steps."""
    settle: int = 100
    """Steps that may pass at most, before a window is timed, until the program is as it was without a profiler."""
    steps: int = 5
    attribution: int = 3
    """Steps of the attribution window; only in mode ``windows``."""
    mode: Mode = "windows"
    hazards: int = 0
    """Steps of a window that looks for races; 0 for none. It comes last because it is slow."""
    stop: bool = False
    """End the program after the windows of training, or else of its main phase."""
    phase: str | None = None
    """Record only phases of this kind or name."""
    begin_at: int = 0
    """The first step of a phase at which its windows may begin."""
    count: bool = True
    """Count the waits of the whole run."""
    windows: bool = True
    """Record windows; else the waits are counted alone."""

    @property
    def least_steps(self) -> int:
        """The steps that a program has at least when the timed window is over."""
        return self.warmup + self.bare + self.steps

    def early(self, *, of_few: bool = False) -> Plan:
        """A short window that nearly every program reaches. The windows of the plan itself replace it. ``of_few``: the
        steps are so long that there may be few of them."""
        warmup, bare = (0, 1) if of_few else (1, 2)
        return replace(
            self,
            warmup=min(warmup, self.warmup), bare=min(bare, self.bare), steps=min(2, self.steps), attribution=0,
            hazards=0, bare_seconds=0.0, settle=0,
        )  # fmt: skip

    def again(self) -> Plan:
        """Nothing but bare steps, after the windows of this plan."""
        return replace(self, repeats_bare=True)
