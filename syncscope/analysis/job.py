"""What to do with each rank. Whoever only says so loads neither numpy nor the rules."""

from __future__ import annotations

import msgspec

from syncscope import __version__
from syncscope.trace.source import Reading


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """What to do with each rank."""

    codes: frozenset[str] = frozenset()
    """Rules whose savings are estimated."""
    bare_ms: float | None = None
    hta: bool = False
    """Whether to add HTA's tables."""
    only_hta: bool = False
    """Whether there is nothing but HTA's tables to make."""
    last_step: bool = False
    """Whether those include the last profiler step."""
    report: bool = True
    """Whether to make a report; without one there is only a picture."""
    max_bars: int = 0
    """Bars of its picture at most, 0 for no picture."""
    reading: Reading = Reading()
    several: bool = False
    """Whether there are other traces. If so, what comparing ranks needs is kept, and an internal error counts as a
    trace that cannot be read. Otherwise the error is raised."""
    version: str = __version__
