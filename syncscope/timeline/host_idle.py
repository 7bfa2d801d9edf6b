"""When a thread sleeps, or waits for another thread or process, as its ``python_function`` rows tell."""

from __future__ import annotations

from typing import Final

import numpy as np

from syncscope.timeline.intervals import Ints
from syncscope.timeline.python_stacks import PythonStacks

BUILTINS: Final = ("sleep", "acquire", "select", "poll", "epoll_wait", "recv", "recv_into", "waitpid", "sched_yield")
"""Functions in C that return when something else has happened, or time has passed."""

WAITERS: Final = {
    "/multiprocessing/connection.py": ("recv", "recv_bytes", "poll", "wait"),
    "/multiprocessing/queues.py": ("get",),
    "/queue.py": ("get", "join"),
    "/threading.py": ("wait", "wait_for", "join"),
    "/concurrent/futures/_base.py": ("result", "wait"),
    "/selectors.py": ("select",),
    "/zmq/sugar/socket.py": ("recv", "recv_multipart", "poll"),
    "vllm/distributed/device_communicators/shm_broadcast.py": ("acquire_read", "acquire_write"),
}
"""Functions that do, by the end of their file. vLLM's look at shared memory again and again until another process has
written to it or read from it."""


def find_idle_frames(stacks: PythonStacks) -> Ints:
    """The rows of ``stacks`` in which their thread does nothing but wait."""
    found = stacks.are(BUILTINS) & stacks.built_in
    for file, functions in WAITERS.items():
        found |= stacks.are_in(file, functions)
    return np.flatnonzero(found)
