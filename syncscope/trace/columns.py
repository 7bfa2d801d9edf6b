"""Lists of odd values become typed columns: int64, nanoseconds. Nothing here needs pandas."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Int = NDArray[np.int64]

LONGEST_US = 4e15
"""Times and lengths beyond this (the year 2096 in µs) are no times; they would overflow int64 nanoseconds."""

_INT64 = 1 << 63


def integer(value: object, missing: int = -1) -> int:
    """``value`` as an int64: a number, or the text of one (``"7"``, ``"0x0"``); ``missing`` for anything else."""
    try:
        if isinstance(value, str):
            result = int(value, 0) if value[:2].lower() == "0x" else int(value)
        elif isinstance(value, int | float):
            result = int(value)
        else:
            return missing
    except (ValueError, OverflowError):
        return missing
    # Ids of threads may be unsigned 64 bit: wrap, so that different ones stay different.
    return result if -_INT64 <= result < _INT64 else (result + _INT64) % (2 * _INT64) - _INT64


def integers(values: Sequence[object], missing: int = -1) -> Int:
    """An int64 column; see :func:`integer`."""
    try:
        return np.fromiter(values, np.int64, len(values))  # what is no number raises
    except (TypeError, ValueError, OverflowError):
        pass
    plain = [v if type(v) is int and -_INT64 <= v < _INT64 else integer(v, missing) for v in values]
    return np.fromiter(plain, np.int64, len(plain))


def nanoseconds(microseconds: NDArray[np.float64] | Sequence[float]) -> Int:
    """µs as int64 ns, exact to the nanosecond below 2^43 µs (101 days) and for whole numbers.

    Whole and fraction apart, since their product with 1000 has more than the 53 bits of a float.
    """
    us = np.asarray(microseconds, dtype=np.float64)
    whole = np.floor(us)
    return whole.astype(np.int64) * 1000 + np.rint((us - whole) * 1000).astype(np.int64)
