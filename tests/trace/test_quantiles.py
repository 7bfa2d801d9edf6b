"""Medians and quantiles are numpy's."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from syncscope.trace.quantiles import median, quantiles


@pytest.mark.parametrize("size", [1, 2, 3, 10, 101])
@pytest.mark.parametrize("kind", [np.int64, np.float64])
def test_they_are_those_of_numpy(size: int, kind: type) -> None:
    values: np.ndarray[Any, Any] = (np.random.default_rng(size).normal(size=size) * 1e6).astype(kind)
    assert median(values) == np.median(values)
    assert quantiles(values, (0.25, 0.5, 0.75)) == pytest.approx(np.quantile(values, (0.25, 0.5, 0.75)), rel=1e-12)


def test_nothing_has_no_median() -> None:
    assert math.isnan(median(np.zeros(0)))
