"""Values of events → columns of numbers."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Int = NDArray[np.int64]

_INT64 = 1 << 63
_NUMPY = {"q": np.int64, "d": np.float64}


def integer(value: object, missing: int = -1) -> int:
    """``value``, a number or the text of one (``"7"``, ``"0x0"``), as an int64; ``missing`` for anything else."""
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
        return packed("q", values)
    except struct.error:  # not all are whole numbers of 64 bits
        pass
    try:
        return np.fromiter(values, np.int64, len(values))  # raises for anything but numbers
    except (TypeError, ValueError, OverflowError):
        pass
    plain = [v if type(v) is int and -_INT64 <= v < _INT64 else integer(v, missing) for v in values]
    return packed("q", plain)


def packed(kind: str, values: Sequence[object]) -> NDArray[Any]:
    """An array, to read alone, of numbers that all are of the ``kind`` of C: in half of the time of numpy's own
    ways."""
    return np.frombuffer(struct.pack(f"{len(values)}{kind}", *values), dtype=_NUMPY[kind])


def nanoseconds(microseconds: NDArray[np.float64] | Sequence[float]) -> Int:
    """µs as int64 ns, exact to the nanosecond below 2^43 µs (101 days) and for whole numbers.

    Converts whole part and fraction separately, since the product with 1000 would need more than a float's 53 bits.
    """
    us = np.asarray(microseconds, dtype=np.float64)
    whole = np.floor(us)
    return whole.astype(np.int64) * 1000 + np.rint((us - whole) * 1000).astype(np.int64)
