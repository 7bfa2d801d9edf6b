"""When a thread sleeps, or waits for another thread or process, as its ``python_function`` rows tell."""

from __future__ import annotations

from typing import Final

import numpy as np

from syncscope.timeline.calls import COMMANDS
from syncscope.timeline.intervals import Ints, Union
from syncscope.timeline.python_stacks import PythonStacks
from syncscope.timeline.tables import Calls

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


def find_host_idle(calls: Calls, stacks: PythonStacks) -> Union:
    """When the thread that launches most sleeps, or waits for a thread or another process."""
    threads, many = np.unique(calls.tid[calls.do(COMMANDS)], return_counts=True)
    rows = find_idle_frames(stacks) if len(threads) else np.empty(0, dtype=np.int64)
    rows = rows[stacks.tid[rows] == threads[many.argmax()]] if len(threads) else rows
    return Union(stacks.ts[rows], stacks.end[rows])
