"""Medians and quantiles. numpy's own import its masked arrays, which takes as long as to judge a small trace."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike


def median(values: ArrayLike) -> float:
    """The median of values (n,) none of which is nan; nan where there are none."""
    array = np.asarray(values)
    if not len(array):
        return np.nan
    lower, upper = (len(array) - 1) // 2, len(array) // 2
    ordered = np.partition(array, (lower, upper))
    return (float(ordered[lower]) + float(ordered[upper])) / 2


def quantiles(values: ArrayLike, shares: tuple[float, ...]) -> list[float]:
    """The values below which ``shares`` of all (n,) lie, one at least: between two of them, by proportion."""
    ordered = np.sort(values)
    places = np.multiply(shares, len(ordered) - 1)
    return [float(one) for one in np.interp(places, np.arange(len(ordered)), ordered)]
