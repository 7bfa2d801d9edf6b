from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from syncscope.timeline.intervals import Union, are_among
from syncscope.trace.sets import different

SPANS = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 12)), max_size=12)


def union(spans: list[tuple[int, int]]) -> Union:
    ts = np.array([start for start, _ in spans], dtype=np.int64)
    return Union(ts, ts + np.array([length for _, length in spans], dtype=np.int64))


def points(spans: list[tuple[int, int]]) -> set[int]:
    return {point for start, length in spans for point in range(start, start + length)}


@given(SPANS)
def test_length_counts_every_covered_nanosecond_once(spans):
    assert union(spans).length == len(points(spans))


@given(SPANS, st.integers(0, 70), st.integers(0, 70))
def test_within_counts_the_covered_part_of_an_interval(spans, start, end):
    found = union(spans).within(np.array([start]), np.array([end]))
    assert found[0] == len(points(spans) & set(range(start, end)))


@given(SPANS, st.integers(0, 30), st.integers(30, 70))
def test_gaps_are_exactly_what_is_uncovered(spans, start, end):
    begins, ends = union(spans).gaps(start, end)
    uncovered = points([(b, e - b) for b, e in zip(begins.tolist(), ends.tolist(), strict=True)])
    assert uncovered == set(range(start, end)) - points(spans)
    assert (ends > begins).all()
    assert (begins[1:] > ends[:-1]).all()


@given(SPANS, SPANS)
def test_minus_is_the_part_the_other_leaves_uncovered(spans, others):
    assert union(spans).minus(union(others)) == len(points(spans) - points(others))


@given(st.lists(st.integers(-3, 3)))
def test_different_values_come_once_and_in_order(values):
    assert different(np.array(values, dtype=np.int64)).tolist() == sorted(set(values))


@given(st.lists(st.integers(-9, 9)), st.lists(st.integers(-9, 9)))
def test_values_are_among_others_or_not(values, known):
    found = are_among(np.array(values, dtype=np.int64), np.array(known, dtype=np.int64))
    assert found.tolist() == [value in known for value in values]
