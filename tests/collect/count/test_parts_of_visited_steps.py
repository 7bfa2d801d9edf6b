"""How many times as many parts of steps there were as were counted, where another phase began in the midst of them."""

from __future__ import annotations

import pytest

from syncscope.collect.count.unusual import Unusual
from syncscope.collect.count.visitors import AFTER, BEFORE, LATE, Visitors

VISITOR = 3


def visited(part: int, counted: int, left_out: int, unusual: Unusual) -> int:
    return [unusual.visit(VISITOR, number < counted, part) for number in range(counted + left_out)][-1]


def test_those_that_were_left_out_are_like_those_that_were_counted() -> None:
    unusual = Unusual()
    before, after = visited(BEFORE, 2, 8, unusual), visited(AFTER, 5, 5, unusual)
    assert unusual.scale(before).likely == pytest.approx(5)
    assert unusual.scale(after).likely == pytest.approx(2)


def test_parts_that_were_counted_late_tell_nothing_beside_whole_ones() -> None:
    """What waits before that is in the whole ones alone, and what waits later is in both."""
    unusual = Unusual()
    after, late = visited(AFTER, 2, 6, unusual), visited(LATE, 4, 0, unusual)
    assert 2 * unusual.scale(after).likely == pytest.approx(12)
    assert unusual.scale(late).likely == 0


def test_parts_that_were_counted_late_tell_all_where_none_is_whole() -> None:
    unusual = Unusual()
    visited(AFTER, 0, 6, unusual)
    late = visited(LATE, 4, 0, unusual)
    assert 4 * unusual.scale(late).likely == pytest.approx(10)


def test_steps_in_nearly_each_of_which_a_phase_begins_are_alike() -> None:
    visitors = Visitors()
    assert [visitors.begin(step, VISITOR) for step in (10, 11, 30)] == [True, False, True]


def test_a_visited_step_is_over_once() -> None:
    visitors = Visitors()
    visitors.begin(10, VISITOR)
    assert visitors.end_step(8, 2) is None
    assert visitors.end_step(8, 3) == (10, VISITOR)
    assert visitors.end_step(8, 3) is None
