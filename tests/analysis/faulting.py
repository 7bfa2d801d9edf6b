"""A task for a process of the pool, which imports it by name."""

from __future__ import annotations

LARGE = 40 << 20
"""Bytes of an array that glibc usually returns to the system when it is freed."""


def count_faults() -> tuple[bytes, bytes]:
    """How many new pages it takes to make an array as large as one that was freed, in the place of a rank's result."""
    import resource  # Windows has none

    counts = []
    for _ in range(2):
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        b"x" * LARGE
        counts.append(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
    return b"%d" % counts[1], b""
