"""How long processes have been running, by what Linux says of them."""

from __future__ import annotations

import math
import os
import time
from pathlib import Path

START_TIME = 19
"""Of the fields of ``/proc/PID/stat`` after the program's name: ``starttime``, in clock ticks since boot (proc(5))."""


def process_age_ns() -> int:
    """Since this process began. Where the system does not tell, the processor time that it took."""
    age = _age_ns("self")
    return time.process_time_ns() if age is None else age


def launcher_began_ns() -> int | None:
    """When the process that started this one began, Unix time; ``None`` where the system does not tell."""
    age = _age_ns(str(os.getppid()))
    return None if age is None else time.time_ns() - age


def since_boot() -> float:
    """Seconds since the system began; infinite where it does not tell."""
    try:
        return time.clock_gettime(time.CLOCK_BOOTTIME)
    except (AttributeError, OSError):
        return math.inf


def began_s(pid: int | str) -> float | None:
    """When a process began, by ``since_boot``; ``None`` where the system does not tell."""
    try:
        return int(stat_of(pid)[START_TIME]) / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError, AttributeError):
        return None


def stat_of(pid: int | str) -> list[str]:
    """The fields of ``/proc/PID/stat`` after the name, which is in parentheses, and may itself hold blanks and
    parentheses. Raises ``OSError`` where the process is gone or hidden."""
    return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()


def _age_ns(pid: str) -> int | None:
    began, now = began_s(pid), since_boot()
    return None if began is None or now == math.inf else max(int((now - began) * 1e9), 0)
