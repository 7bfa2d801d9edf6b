"""Two traces are the same: every frame, its types, categories and order, and all else that was read."""

from __future__ import annotations

import pandas as pd

from syncscope.trace.model import TABLES, Trace


def assert_same(trace: Trace, other: Trace) -> None:
    for attribute in (name for name in Trace.__struct_fields__ if name != "rows"):
        assert getattr(trace, attribute) == getattr(other, attribute), attribute
    assert set(trace.rows) == set(other.rows) == set(TABLES)
    for attribute in TABLES:
        mine, theirs = getattr(trace, attribute), getattr(other, attribute)
        pd.testing.assert_frame_equal(mine, theirs, check_exact=True, check_categorical=True, obj=attribute)
        for column in mine.select_dtypes("category"):
            assert list(mine[column].cat.categories) == list(theirs[column].cat.categories), (attribute, column)
