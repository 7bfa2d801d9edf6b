"""The different values of arrays. numpy's own functions import its masked arrays, which takes longer than to analyse a
small trace's events, and take many times longer for millions of values that mostly repeat."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

Array = TypeVar("Array", bound=NDArray[Any])


def different(values: Array) -> Array:
    """The different values in order. Quick where most rows have the same as the row before, as with threads, and
    otherwise as quick as to sort."""
    if len(values) < 2:
        return values
    ordered = np.sort(values[_begin_runs(values)])
    return ordered[_begin_runs(ordered)]  # type: ignore[return-value]


def either_of(one: Array, other: Array) -> Array:
    """The different values of two arrays together, in order."""
    return different(np.concatenate([one, other]))  # type: ignore[return-value]


def _begin_runs(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Which values (n,) differ from the one before."""
    new = np.ones(len(values), dtype=bool)
    new[1:] = values[1:] != values[:-1]
    return new
