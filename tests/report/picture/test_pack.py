"""Columns of numbers come back as they were."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from syncscope.report.picture.pack import packed, unpacked

LIMIT = 2**63 - 1


@given(st.lists(st.integers(-LIMIT, LIMIT), max_size=50), st.booleans())
def test_what_is_packed_is_unpacked(numbers: list[int], steps: bool) -> None:
    values = np.array(numbers, dtype=np.int64)
    assert unpacked(packed(values, steps)).tolist() == numbers


def test_only_bytes_in_use_are_kept() -> None:
    assert packed(np.zeros(1000, np.int64)).planes == 0
    assert packed(np.array([-128, 127])).planes == 1
    assert packed(np.array([128])).planes == 2
    assert packed(np.arange(10**15, 10**15 + 1000), steps=True).planes == 7
    assert len(packed(np.arange(10**6), steps=True).data) < 10_000
