import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from syncscope.trace.decoding.numbers import integer, integers, nanoseconds
from syncscope.trace.rows import Texts
from syncscope.trace.tables.frames import interned


def test_half_a_microsecond_keeps_its_five_hundred_nanoseconds():
    assert nanoseconds([0.5]).tolist() == [500]


@given(st.integers(min_value=-(2**43) * 1000, max_value=2**43 * 1000))
def test_relative_times_are_exact_to_the_nanosecond(ns):
    whole, fraction = divmod(abs(ns), 1000)
    text = f"{'-' if ns < 0 else ''}{whole}.{fraction:03}"
    assert nanoseconds([float(text)]).tolist() == [ns]


@given(st.integers(min_value=0, max_value=4 * 10**15))
def test_whole_microseconds_since_the_epoch_are_exact(us):
    assert nanoseconds([float(us)]).tolist() == [us * 1000]


@pytest.mark.parametrize(
    ("value", "number"),
    [(7, 7), ("7", 7), ("0x0", 0), ("0x10", 16), ("007", 7), (7.9, 7), (True, 1), (None, -1), ("stream", -1), ("", -1),
     ([7], -1), ({}, -1), (float("nan"), -1), (float("inf"), -1), (2**64 - 1, -1), (2**63, -(2**63))],
)  # fmt: skip
def test_odd_values_become_integers(value, number):
    assert integer(value) == number
    assert integers([value]).tolist() == [number]
    assert integers([value, 5, None]).tolist() == [number, 5, -1]


def test_an_empty_column_is_int64():
    assert integers([]).dtype == np.int64
    assert integers([]).shape == nanoseconds([]).shape == (0,)


def test_names_are_interned_once():
    column = interned(np.array([4, 2, 4]), ["", "", "a", "", "b"])
    assert column.objects().tolist() == ["b", "a", "b"]
    assert column.names == ["b", "a"]


def test_names_with_the_same_text_are_merged():
    column = Texts.of(np.array([0, 1, 2, 0]), ["x", "y", "x"])
    assert column.objects().tolist() == ["x", "y", "x", "x"]
    assert column.names == ["x", "y"]
