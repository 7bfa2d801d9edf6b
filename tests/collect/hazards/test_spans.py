"""Which tensors share bytes, against a count of every byte."""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
from hypothesis import given

from syncscope.collect.hazards.memory import Span, span


def bytes_of(start: int, sizes: list[int], strides: list[int], itemsize: int) -> set[int]:
    offsets = {0}
    for size, stride in zip(sizes, strides, strict=True):
        offsets = {offset + i * stride * itemsize for offset in offsets for i in range(size)}
    return {start + offset + i for offset in offsets for i in range(itemsize)}


@st.composite
def layouts(draw: Any) -> tuple[int, list[int], list[int], int]:
    """Slices of a few strides of one contiguous array, as views and steps make them."""
    shape = draw(st.lists(st.integers(1, 4), min_size=1, max_size=3))
    itemsize = draw(st.sampled_from([1, 4]))
    strides: list[int] = []
    width = 1
    for size in reversed(shape):
        strides.insert(0, width)
        width *= size
    start, sizes, steps = 1000, [], []
    for size, stride in zip(shape, strides, strict=True):
        step = draw(st.integers(1, 3))
        low = draw(st.integers(0, size - 1))
        high = draw(st.integers(low + 1, size))
        start += low * stride * itemsize
        sizes.append(-(-(high - low) // step))
        steps.append(stride * step)
    order = draw(st.permutations(range(len(sizes))))
    return start, [sizes[i] for i in order], [steps[i] for i in order], itemsize


@given(layouts())
def test_a_span_begins_and_ends_where_the_tensor_does(layout: tuple[int, list[int], list[int], int]) -> None:
    found = span(*layout)
    touched = bytes_of(*layout)
    assert found is not None
    assert (found.start, found.stop) == (min(touched), max(touched) + 1)


@given(layouts(), layouts())
def test_tensors_that_share_a_byte_overlap(
    one: tuple[int, list[int], list[int], int], other: tuple[int, list[int], list[int], int]
) -> None:
    a, b = span(*one), span(*other)
    assert a is not None
    assert b is not None
    if bytes_of(*one) & bytes_of(*other):
        assert a.overlaps(b)
        assert b.overlaps(a)


@given(layouts(), layouts())
def test_a_tensor_that_covers_another_holds_all_its_bytes(
    one: tuple[int, list[int], list[int], int], other: tuple[int, list[int], list[int], int]
) -> None:
    a, b = span(*one), span(*other)
    assert a is not None
    assert b is not None
    if a.covers(b):
        assert bytes_of(*other) <= bytes_of(*one)


@given(st.integers(0, 5), st.integers(1, 6), st.integers(0, 5), st.integers(1, 6), st.integers(2, 4))
def test_columns_of_one_matrix_are_told_apart_exactly(left: int, a: int, right: int, b: int, rows: int) -> None:
    width = 6
    one = span(1000 + left, [rows, min(a, width - left)], [width, 1], 1)
    other = span(1000 + right, [rows, min(b, width - right)], [width, 1], 1)
    shared = bytes_of(1000 + left, [rows, min(a, width - left)], [width, 1], 1) & bytes_of(
        1000 + right, [rows, min(b, width - right)], [width, 1], 1
    )
    assert one is not None
    assert other is not None
    assert one.overlaps(other) == bool(shared)


def test_interleaved_rows_do_not_clash() -> None:
    even, odd = span(0, [4, 8], [16, 1], 4), span(32, [4, 8], [16, 1], 4)
    assert even is not None
    assert odd is not None
    assert not even.overlaps(odd)


def test_rows_with_gaps_between_cover_nothing_in_the_gaps() -> None:
    pairs, between = span(0, [2, 2], [8, 2], 1), span(4, [2], [2], 1)  # bytes 0, 2, 8, 10 and bytes 4, 6
    assert pairs is not None
    assert between is not None
    assert not pairs.covers(between)


def test_a_transposed_tensor_is_one_whole_range() -> None:
    assert span(0, [3, 4], [1, 3], 4) == Span(0, 48)


def test_an_expanded_dimension_takes_no_room() -> None:
    assert span(0, [5, 4], [0, 1], 4) == Span(0, 16)


def test_an_empty_tensor_has_no_bytes() -> None:
    assert span(0, [3, 0], [1, 1], 4) is None
