"""Numbers as every output writes them."""

from __future__ import annotations

import pytest

from syncscope.report.numbers import between, count, milliseconds, percent, size
from syncscope.schema.numbers import three_digits


def test_milliseconds_keep_three_digits_in_the_unit_that_suits() -> None:
    assert [milliseconds(ms) for ms in (0.0124, 1.634, 163.4, 4321.0, 12669.0)] == [
        "12.4 µs", "1.63 ms", "163 ms", "4321 ms", "12.7 s",
    ]  # fmt: skip


def test_no_number_is_written_with_an_exponent() -> None:
    assert [milliseconds(999.7), three_digits(2350.0)] == ["1000 ms", "2350"]


def test_a_range_names_its_unit_once_where_both_ends_have_it() -> None:
    assert [between(*ends) for ends in ((0.1, 0.4), (0.05, 0.4))] == ["0.1 to 0.4 ms", "50 µs to 0.4 ms"]


def test_a_share_that_is_not_nothing_is_not_zero() -> None:
    assert [percent(*pair) for pair in ((0.001, 1), (0.27, 1), (1, None), (0, 1))] == ["under 1 %", "27 %", "—", "0 %"]


def test_only_one_is_singular() -> None:
    assert [count(0, "step"), count(1, "step"), count(2, "entry", "entries")] == ["0 steps", "1 step", "2 entries"]


@pytest.mark.parametrize(
    ("number", "text"), [(0, "0 B"), (12, "12 B"), (1024, "1 KiB"), (4 << 20, "4 MiB"), (3 << 40, "3 TiB")]
)
def test_sizes_have_three_digits(number: int, text: str) -> None:
    assert size(number) == text
