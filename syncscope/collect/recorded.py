"""What the windows of one phase recorded, and who takes over what they saw."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from syncscope.schema.recording import Bare, HazardEvent, HostSample, RecordedGpu, SiteEvent


@dataclass
class Window:
    """One recorded window."""

    exported: bytes
    """The chrome trace as torch wrote it."""
    boundaries_ns: tuple[int, ...]
    drained_ns: int
    """When the device had finished the last step's work."""
    first_step: int
    sites: tuple[SiteEvent, ...]
    samples: tuple[HostSample, ...] = ()


@dataclass
class Recorded:
    """What the windows of one phase recorded."""

    bare: Bare | None = None
    gpu: RecordedGpu | None = None
    timed: Window | None = None
    attribution: Window | None = None
    hazards: tuple[HazardEvent, ...] | None = None
    hazard_steps: int = 0
    tid: int = 0
    failure: str | None = None
    """Why recording stopped with an error."""
    notes: list[str] = field(default_factory=list)

    @property
    def usual_step_ns(self) -> float:
        """The median length of the bare steps, 0 where none was timed."""
        return statistics.median(self.bare.steps_ns) if self.bare is not None and self.bare.steps_ns else 0.0


class Census(Protocol):
    """Counts waits while no window does, and takes over what a window saw."""

    def suspend(self) -> None: ...
    def resume(self) -> None: ...
    def add_window(self, events: Sequence[SiteEvent], boundaries_ns: Sequence[int]) -> None: ...


class NoCensus:
    """Counts nothing."""

    def suspend(self) -> None: ...
    def resume(self) -> None: ...
    def add_window(self, events: Sequence[SiteEvent], boundaries_ns: Sequence[int]) -> None: ...
