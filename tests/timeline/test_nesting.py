from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from syncscope.timeline.nesting import TOLERANCE, Nesting

US = 1000


def nested(*rows: tuple[float, float] | tuple[float, float, int]) -> Nesting:
    """Rows of (begin, end, thread = 1) in µs, in the reader's order."""
    ordered = sorted(rows, key=lambda row: (row[0], -row[1]))
    ts, end = (np.array([int(row[i] * US) for row in ordered], dtype=np.int64) for i in range(2))
    return Nesting(ts, end, np.array([row[2] if len(row) > 2 else 1 for row in ordered], dtype=np.int64))


def test_each_row_hangs_under_the_innermost_row_around_it():
    nesting = nested((0, 100), (10, 50), (20, 30), (35, 40), (60, 90))
    assert nesting.parent.tolist() == [-1, 0, 1, 1, 0]
    assert list(nesting.chain(2)) == [2, 1, 0]


def test_threads_do_not_nest_in_each_other():
    nesting = nested((0, 100, 1), (10, 50, 2), (20, 30, 1))
    assert nesting.parent.tolist() == [-1, -1, 0]
    assert nesting.roots(1).tolist() == [0]
    assert nesting.roots(2).tolist() == [1]


def test_rows_that_touch_are_neighbours_not_parent_and_child():
    assert nested((0, 10), (10, 20)).parent.tolist() == [-1, -1]


def test_an_empty_row_inside_another_is_its_child():
    assert nested((0, 10), (5, 5), (7, 8)).parent.tolist() == [-1, 0, 0]


def test_innermost_skips_rows_that_are_over():
    nesting = nested((0, 100), (10, 20), (12, 15))
    ts = np.array([30, 13, 200]) * US
    assert nesting.innermost(np.array([1, 1, 1]), ts, ts + US).tolist() == [0, 2, -1]


def test_innermost_forgives_a_microsecond_of_rounding_at_the_end():
    nesting = nested((0, 10))
    ts = np.array([9 * US, 9 * US])
    end = np.array([10 * US + TOLERANCE, 10 * US + TOLERANCE + 1])
    assert nesting.innermost(np.array([1, 1]), ts, end).tolist() == [0, -1]


def test_an_empty_table_encloses_nothing():
    nesting = nested()
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
    ordered = sorted(spans, key=lambda span: (span[0], -span[1]))
    for row, parent in enumerate(nested(*spans).parent.tolist()):
        ts, end = ordered[row]
        around = [i for i in range(row) if ordered[i][0] <= ts and end <= ordered[i][1]]
        assert parent == (around[-1] if around else -1)


def test_a_row_that_lost_its_end_ends_with_the_one_around_it():
    nesting = nested((0, 100), (10, 30), (15, 500), (40, 60), (45, 50))
    assert nesting.parent.tolist() == [-1, 0, 1, 0, 3]
    assert nesting.innermost(np.array([1]), np.array([70 * US]), np.array([71 * US])).tolist() == [0]


@st.composite
def forests(draw: st.DrawFn) -> list[tuple[int, int, int]]:
    """Rows (begin, end, thread) that lie in each other or apart."""
    rows: list[tuple[int, int, int]] = []

    def fill(begin: int, end: int, thread: int, depth: int) -> None:
        cuts = sorted(draw(st.lists(st.integers(begin, end), max_size=6)))
        for first, last in zip(cuts[::2], cuts[1::2], strict=False):
            if last > first:
                rows.append((first, last, thread))
                if depth:
                    fill(first, last, thread, depth - 1)

    for thread in (1, 2):
        fill(0, 400, thread, 3)
    return rows


@given(forests(), st.lists(st.tuples(st.integers(0, 400), st.integers(1, 200), st.integers(1, 3)), max_size=6))
def test_the_busiest_row_is_the_innermost_that_takes_half_of_an_interval(rows, spans):
    nesting = nested(*rows)
    ordered = sorted(rows, key=lambda row: (row[0], -row[1]))
    begin, length, tid = (np.array([span[i] for span in spans], dtype=np.int64) for i in range(3))
    found = nesting.busiest(tid, begin * US, (begin + length) * US)
    around = nesting.innermost(tid, begin * US, (begin + length) * US)

    def inside(row: int, i: int) -> int:
        return min(ordered[row][1], begin[i] + length[i]) - max(ordered[row][0], begin[i])

    for i, row in enumerate(around.tolist()):
        below = [one for one in range(len(rows)) if nesting.parent[one] == row and ordered[one][2] == tid[i]]
        while half := [one for one in below if 2 * inside(one, i) >= length[i]]:
            row = half[0]
            below = [one for one in range(len(rows)) if nesting.parent[one] == row]
        assert found[i] == row
