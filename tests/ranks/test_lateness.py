"""Who holds whom, of a few collectives with made-up times. All times are in ms, by the clock of the rank's own file."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pytest

from syncscope.ranks.lateness import Lateness, compare_ranks
from syncscope.schema.ranks import RankBetween
from syncscope.schema.report import Collective, Meetings
from tests.report import sample


def reduce(step: int, begin: float, end: float, hidden: float = 0.0) -> Collective:
    """An all-reduce, beside which the device computes for ``hidden`` ms."""
    return Collective(step=step, name="allreduce", end_ms=end, ms=end - begin, exposed_ms=end - begin - hidden)


def compared(*ranks: Sequence[Collective], begins: Sequence[float | None] = (0.0, 0.0)) -> Lateness:
    """Ranks with these collectives, whose first recorded steps begin at ``begins``."""
    return compare_ranks(
        {
            number: msgspec.structs.replace(
                sample.trace_info(f"rank{number}.json", number),
                meetings=Meetings(collectives=tuple(row), delays=(), begin_ms=begin),
            )
            for number, (row, begin) in enumerate(zip(ranks, begins, strict=True))
        }
    )


def rows(found: Lateness) -> tuple[RankBetween, ...]:
    assert found.between is not None
    return found.between.ranks


def test_a_rank_waits_from_its_own_begin_to_that_of_the_last() -> None:
    waits, holds = rows(compared([reduce(0, 2, 10)], [reduce(0, 7, 10)]))
    assert (waits.waits_ms_per_step, holds.holds_ms_per_step) == (5, 5)
    assert (waits.last, holds.last) == (0, 1)


def test_while_its_device_computes_a_rank_does_not_wait() -> None:
    (waits, _) = rows(compared([reduce(0, 2, 10, hidden=6)], [reduce(0, 7, 10)]))
    assert waits.waits_ms_per_step == 2


def test_what_a_rank_waits_because_another_began_later_is_told_apart_once() -> None:
    # By the clock of rank 0, rank 1 begins its first step at 3. In the second step it is late by 8 more.
    late = [reduce(0, 2, 7), reduce(1, 20, 27)]
    waits, _ = rows(compared([reduce(0, 2, 10), reduce(1, 12, 30)], late))
    assert (waits.waits_before_ms, waits.waits_ms_per_step) == (3, (0 + 11) / 2)


def test_a_rank_that_began_earlier_and_still_comes_last_holds_the_others_for_no_more_than_they_wait() -> None:
    waits, _ = rows(compared([reduce(0, 2, 10)], [reduce(0, 10, 13)]))
    assert (waits.waits_before_ms, waits.waits_ms_per_step) == (0, 5)


def test_without_the_begin_of_its_first_step_nothing_is_said_of_what_was_before() -> None:
    ranks = rows(compared([reduce(0, 2, 10)], [reduce(0, 7, 10)], begins=(None, 0.0)))
    assert [(row.waits_before_ms, row.holds_before_ms) for row in ranks] == [(None, None), (0, 0)]


@pytest.mark.parametrize("other", [[], [reduce(0, 7, 10), reduce(0, 11, 12)]], ids=["none", "another number"])
def test_ranks_that_ran_another_number_of_collectives_are_not_compared(other: list[Collective]) -> None:
    found = compared([reduce(0, 2, 10)], other)
    assert (found.steps, found.late, found.between) == (0, {}, None)
