"""Give memory back to the system that this process no longer uses."""

from __future__ import annotations

LARGE = 100_000
"""Events of a trace from which on its reading leaves enough freed memory to give back."""


def give_back_freed() -> None:
    """Have glibc return the pages that it keeps between blocks still in use: what reading a trace left there is too cut
    up for the large arrays that come after it. Does nothing with another C library."""
    import ctypes  # takes as long as the rest of a small trace's start

    try:
        trim = ctypes.CDLL(None).malloc_trim
    except (OSError, AttributeError, TypeError):  # no glibc; Windows has no library of the process
        return
    trim(0)
