"""Give memory back to the system that this process no longer uses, or keep it for what comes next."""

from __future__ import annotations

from typing import Any

LARGE = 100_000
"""Events of a trace from which on its reading leaves enough freed memory to give back."""

_MMAP_THRESHOLD, _TRIM_THRESHOLD, _ARENA_MAX = -3, -1, -8  # of glibc's malloc.h
_MOST = 1 << 30


def give_back_freed() -> None:
    """Have glibc return the pages that it keeps between blocks still in use: what reading a trace left there is too cut
    up for the large arrays that come after it. Does nothing with another C library."""
    trim = _find("malloc_trim")
    if trim is not None:
        trim(0)


def keep_freed() -> None:
    """Have glibc keep the memory of large arrays when they are freed, one pool of it for all threads, where it usually
    returns it to the system and gets it again for the next array: that took a tenth of the time of reading 1 GB, and
    of what follows. For commands that run no program but ours. Does nothing with another C library."""
    option = _find("mallopt")
    if option is not None:
        for name, value in ((_MMAP_THRESHOLD, _MOST), (_TRIM_THRESHOLD, _MOST), (_ARENA_MAX, 1)):
            option(name, value)


def _find(name: str) -> Any:
    """A function of glibc, ``None`` without it."""
    import ctypes  # takes as long as the rest of a small trace's start

    try:
        return getattr(ctypes.CDLL(None), name)
    except (OSError, AttributeError, TypeError):  # no glibc; Windows has no library of the process
        return None
