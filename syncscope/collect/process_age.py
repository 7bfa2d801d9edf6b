"""How long this process and the one that launched it have been running."""

from __future__ import annotations

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


def _age_ns(pid: str) -> int | None:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        began = int(fields[START_TIME]) / os.sysconf("SC_CLK_TCK")
        return max(int((time.clock_gettime(time.CLOCK_BOOTTIME) - began) * 1e9), 0)
    except (OSError, ValueError, IndexError, AttributeError):
        return None
