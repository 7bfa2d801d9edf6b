"""Let CUPTI detach before the process ends.

Kineto detaches CUPTI on a thread of its own, in the next call of CUDA's runtime. Where none comes any more, that thread
waits for ever, and so does the process: what C runs at its end takes down what the thread waits for.
Source: ``CuptiActivityApi::teardownContext`` of Kineto, as in PyTorch 2.11.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import time
from typing import Any

LONGEST = 2.0
"""Seconds that the end of a process may take for it. Where a thread of the program's began at the same moment, it
cannot be told from Kineto's, and may stay."""

BETWEEN = 0.002
"""Seconds between two calls: the thread may not have come to where it hears of them."""

TASKS = "/proc/self/task"


def threads_of_process() -> frozenset[str]:
    """The numbers of its threads, also of those that are not Python's; none where the system does not list them."""
    try:
        return frozenset(os.listdir(TASKS))
    except OSError:
        return frozenset()


def detach_at_exit(torch: Any, threads: frozenset[str]) -> None:
    """Once the program is over, make calls of the runtime until those of ``threads`` are gone that detach CUPTI."""
    if threads:
        atexit.register(_detach, torch, threads, os.getpid())


def _detach(torch: Any, threads: frozenset[str], process: int) -> None:
    if os.getpid() != process:  # a child by fork has no such thread
        return
    last = time.monotonic() + LONGEST
    while threads & threads_of_process() and time.monotonic() < last:
        with contextlib.suppress(Exception):  # the device may have failed
            torch._C._cuda_synchronize()
        time.sleep(BETWEEN)
