from __future__ import annotations

import numpy as np
import pandas as pd
from hypothesis import given
from hypothesis import strategies as st

from syncscope.timeline.nesting import TOLERANCE, Nesting

US = 1000


def table(*rows: tuple[float, float] | tuple[float, float, int]) -> pd.DataFrame:
    """Rows of (begin, end, thread = 1) in µs, in the reader's order."""
    frame = pd.DataFrame([(int(r[0] * US), int(r[1] * US), r[2] if len(r) > 2 else 1) for r in rows])
    frame.columns = pd.Index(["ts", "end", "tid"])
    return frame.sort_values(["ts", "end"], ascending=[True, False], kind="stable", ignore_index=True)


def test_each_row_hangs_under_the_innermost_row_around_it():
    nesting = Nesting(table((0, 100), (10, 50), (20, 30), (35, 40), (60, 90)))
    assert nesting.parent.tolist() == [-1, 0, 1, 1, 0]
    assert list(nesting.chain(2)) == [2, 1, 0]


def test_threads_do_not_nest_in_each_other():
    nesting = Nesting(table((0, 100, 1), (10, 50, 2), (20, 30, 1)))
    assert nesting.parent.tolist() == [-1, -1, 0]
    assert nesting.roots(1).tolist() == [0]
    assert nesting.roots(2).tolist() == [1]


def test_rows_that_touch_are_neighbours_not_parent_and_child():
    assert Nesting(table((0, 10), (10, 20))).parent.tolist() == [-1, -1]


def test_an_empty_row_inside_another_is_its_child():
    assert Nesting(table((0, 10), (5, 5), (7, 8))).parent.tolist() == [-1, 0, 0]


def test_innermost_skips_rows_that_are_over():
    nesting = Nesting(table((0, 100), (10, 20), (12, 15)))
    ts = np.array([30, 13, 200]) * US
    assert nesting.innermost(np.array([1, 1, 1]), ts, ts + US).tolist() == [0, 2, -1]


def test_innermost_forgives_a_microsecond_of_rounding_at_the_end():
    nesting = Nesting(table((0, 10)))
    ts = np.array([9 * US, 9 * US])
    end = np.array([10 * US + TOLERANCE, 10 * US + TOLERANCE + 1])
    assert nesting.innermost(np.array([1, 1]), ts, end).tolist() == [0, -1]


def test_an_empty_table_encloses_nothing():
    nesting = Nesting(table((0, 1)).iloc[:0])
    assert nesting.innermost(np.array([1]), np.array([5]), np.array([6])).tolist() == [-1]


@st.composite
def trees(draw: st.DrawFn) -> list[tuple[int, int]]:
    """Properly nested intervals, the outermost first."""

    def grow(start: int, end: int, depth: int) -> list[tuple[int, int]]:
        found, at = [], start
        while depth and end - at > 2 and draw(st.booleans()):
            first = draw(st.integers(at, end - 1))
            last = draw(st.integers(first + 1, end))
            found += [(first, last), *grow(first, last, depth - 1)]
            at = last
        return found

    return grow(0, 200, 4)


@given(trees())
def test_parents_agree_with_a_search_of_all_rows(spans):
    if not spans:
        return
    frame = table(*spans)
    ts, end = frame["ts"].tolist(), frame["end"].tolist()
    for row, parent in enumerate(Nesting(frame).parent.tolist()):
        around = [i for i in range(row) if ts[i] <= ts[row] and end[row] <= end[i]]
        assert parent == (around[-1] if around else -1)
