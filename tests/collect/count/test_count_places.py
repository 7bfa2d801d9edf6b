"""What a place tells of all steps, from those that were counted."""

from __future__ import annotations

import pytest

from syncscope.collect.count.places import Place
from syncscope.collect.count.sampled import Sampled


def counted(each: int, steps: int, weight: float) -> Place:
    """A place that waited ``each`` times in so many steps, each of which stands for ``weight``."""
    place = Place("", 0, None, 0)
    for step in range(steps):
        place.begin_step(4 * step, weight)
        place.now = each
    return place


@pytest.mark.parametrize(("each", "estimate"), [(1, 81.0), (2, 240.0)])
def test_what_is_once_in_each_step_is_not_in_more_steps_than_there_were(each: int, estimate: float) -> None:
    found = counted(each, 20, 6.0).waits(1, 21, Sampled(all_steps=80))
    assert found is not None and found.estimate == estimate


def test_without_steps_nothing_limits_what_is_told() -> None:
    found = counted(1, 20, 6.0).waits(1, 21, Sampled(all_steps=0))
    assert found is not None and found.estimate == 120.0
