"""Tell the processes of this run from others on the machine, by what Linux says of them."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from syncscope.collect.process_age import began_s, stat_of

RENDEZVOUS = ("MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE")
"""Environment variables that launchers of several ranks set to the same values for all ranks of a run."""

MOST_ANCESTORS = 64

PARENT, FLAGS = 1, 6
"""Of the fields of ``/proc/PID/stat`` after the program's name (proc(5))."""

FORKED = 0x40
"""``PF_FORKNOEXEC`` among the flags (linux/sched.h): the process is a copy of its parent, and runs no other program."""


def several_ranks(torch: Any) -> bool:
    """Whether this process is one of several ranks. A launcher may start one alone."""
    distributed = getattr(torch, "distributed", None)
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        return False
    return bool(distributed.get_world_size() > 1)


def is_of_this_run(pid: int, variables: Sequence[str] = ()) -> bool:
    """Whether a process began this one, was begun by it, or is another rank of its run.

    Ranks have the same ``RENDEZVOUS`` in the environment that they began with, or the same value of one of
    ``variables``. A process that nothing is known of, on other systems every one, is not of this run.
    """
    me = os.getpid()
    if pid == me or me in _ancestors(pid) or pid in _ancestors(me):
        return True
    theirs = _environment(pid)
    ours = {name: os.environ.get(name) for name in (*RENDEZVOUS, *variables)}
    known = {name for name, value in ours.items() if value and theirs.get(name) == value}
    return known.issuperset(RENDEZVOUS) or not known.isdisjoint(variables)


def lives(process: int) -> bool:
    """Whether there is a process with this id on this machine, as far as can be told."""
    if os.name == "nt":  # where os.kill sends a signal in any case
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:  # it is another user's
        return True
    try:
        state = stat_of(process)[0]
    except (OSError, IndexError):  # not Linux
        return True
    return state not in "ZX"  # it ended, and its parent has not asked how


def count_children(copies_before_s: float = math.inf) -> int:
    """How many processes this one has begun that still run, with those that they began; 0 where Linux does not say.
    Mere copies of their parents, such as a loader's workers, count only if they were made before this time, by
    ``since_boot``."""
    me = os.getpid()
    try:
        names = [name for name in os.listdir("/proc") if name.isdecimal()]
    except OSError:
        return 0
    mine = [int(name) for name in names if me in _ancestors(int(name))]
    return sum(not _is_copy_since(pid, copies_before_s) for pid in mine)


def _is_copy_since(pid: int, since_s: float) -> bool:
    """Whether a process began after ``since_s``, and runs no other program than its parent."""
    began = began_s(pid)
    try:
        return began is not None and began >= since_s and bool(int(stat_of(pid)[FLAGS]) & FORKED)
    except (OSError, ValueError, IndexError):
        return False


def _ancestors(pid: int) -> tuple[int, ...]:
    return tuple(_walk_up(pid))


def _walk_up(pid: int) -> Iterator[int]:
    for _ in range(MOST_ANCESTORS):
        parent = _parent(pid)
        if parent is None or parent <= 1:
            return
        yield parent
        pid = parent


def _parent(pid: int) -> int | None:
    """Its parent, ``None`` where it is gone or hidden."""
    try:
        return int(stat_of(pid)[PARENT])
    except (OSError, ValueError, IndexError):
        return None


def _environment(pid: int) -> dict[str, str]:
    """The environment that it began with, empty where it is gone or another user's."""
    try:
        text = Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return {}
    pairs = (os.fsdecode(entry).partition("=") for entry in text.split(b"\0"))
    return {name: value for name, _, value in pairs}
