"""Categorical columns: each different text once, rows hold its number."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from syncscope.trace.columns import Int


def category(codes: NDArray[np.integer], names: Sequence[str]) -> pd.Categorical:
    """A categorical column; ``names`` may repeat (two calls that normalise to one file), the categories do not."""
    merged, unique = pd.factorize(np.array(names, dtype=object))
    taken = merged[codes] if len(names) else codes
    return pd.Categorical.from_codes(taken, categories=pd.Index(list(unique), dtype="str"))


def interned(numbers: Int, strings: Sequence[str]) -> pd.Categorical:
    """A categorical column of the ``strings`` that ``numbers`` say, in order of first appearance."""
    codes, used = pd.factorize(numbers)
    names = [strings[number] for number in used.tolist()]
    return pd.Categorical.from_codes(codes, categories=pd.Index(names, dtype="str"))
