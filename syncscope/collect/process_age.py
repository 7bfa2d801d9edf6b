"""How long this process has been running."""

from __future__ import annotations

import os
import time
from pathlib import Path

START_TIME = 19
"""Of the fields of ``/proc/self/stat`` after the program's name: ``starttime``, in clock ticks since boot (proc(5))."""


def process_age_ns() -> int:
    """Since this process began. Where the system does not tell, the processor time that it took."""
    try:
        fields = Path("/proc/self/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        began = int(fields[START_TIME]) / os.sysconf("SC_CLK_TCK")
        return max(int((time.clock_gettime(time.CLOCK_BOOTTIME) - began) * 1e9), 0)
    except (OSError, ValueError, IndexError, AttributeError):
        return time.process_time_ns()
