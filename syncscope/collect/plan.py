"""How many steps each window takes, and which phases are recorded."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

Mode = Literal["windows", "full"]


@dataclass(frozen=True)
class Plan:
    """The windows of a phase, in steps."""

    warmup: int = 5
    bare: int = 10
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

    def early(self) -> Plan:
        """A short window that nearly every program reaches. The windows of the plan itself replace it."""
        return replace(
            self,
            warmup=min(1, self.warmup), bare=min(2, self.bare), steps=min(2, self.steps), attribution=0, hazards=0,
        )  # fmt: skip
