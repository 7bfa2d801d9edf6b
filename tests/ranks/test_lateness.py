"""Who holds whom, of a few collectives with made-up times. All times are in ms, by the clock of the rank's own file."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pytest

from syncscope.ranks.lateness import Lateness, compare_ranks
from syncscope.schema.ranks import RankBetween
from syncscope.schema.report import Collective, Delay, Meetings
from tests.report import sample


def reduce(step: int, begin: float, end: float, hidden: float = 0.0) -> Collective:
    """An all-reduce, beside which the device computes for ``hidden`` ms."""
    return Collective(step=step, name="allreduce", end_ms=end, ms=end - begin, exposed_ms=end - begin - hidden)


def delay(cause: str) -> Delay:
    return Delay(cause=cause, site=None, at=None, chain=(), site_source="op", ordinal=0)


def compared(
    *ranks: Sequence[Collective], begins: Sequence[float | None] = (0.0, 0.0), causes: Sequence[str] = (), size: int = 2
) -> Lateness:
    """Ranks with these collectives, whose first recorded steps begin at ``begins``. Their ``delays`` count ``causes``
    of idle time, the run is of ``size`` ranks."""
    return compare_ranks(
        {
            number: msgspec.structs.replace(
                sample.trace_info(f"rank{number}.json", number),
                world_size=size,
                meetings=Meetings(collectives=tuple(row), delays=tuple(map(delay, causes)), begin_ms=begin),
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


def test_ranks_that_come_late_in_turn_wait_more_than_their_sums_show() -> None:
    pairs = [
        [Collective(step=0, name="allreduce", end_ms=10, ms=6, exposed_ms=exposed, each_ms=each)]
        for exposed, each in ((6, (5, 1)), (4, (1, 5)))
    ]
    ranks = rows(compared(*pairs))
    assert [row.waits_ms_per_step for row in ranks] == [0, 0]
    assert [[kind.waits_ms_per_step for kind in row.in_kinds or ()] for row in ranks] == [[4], [4]]


def test_what_is_no_sum_is_waited_for_as_it_is() -> None:
    waits, _ = rows(compared([reduce(0, 2, 10)], [reduce(0, 7, 10)]))
    assert waits.in_kinds is not None
    assert [(kind.name, kind.exposed_ms_per_step, kind.waits_ms_per_step) for kind in waits.in_kinds] == [
        ("allreduce", 8, 5)
    ]


def test_ranks_of_the_run_that_were_not_compared_are_counted() -> None:
    found = compared([reduce(0, 2, 10)], [reduce(0, 7, 10)], size=16)
    assert found.between is not None
    assert found.between.missing == 14
    known = compared([reduce(0, 2, 10)], [reduce(0, 7, 10)]).between
    assert known is not None
    assert known.missing == 0


def test_ranks_that_get_more_than_they_give_end_a_long_collective_later() -> None:
    # Rank 1 comes last to each, and is done 2 ms sooner than rank 0 in the second, of 8 ms.
    uneven = [reduce(0, 2, 20), reduce(0, 25, 52), reduce(0, 60, 70), reduce(0, 75, 85)]
    late = [reduce(0, 15, 20), reduce(0, 42, 50), reduce(0, 65, 70), reduce(0, 80, 85)]
    waits, holds = rows(compared(uneven, late))
    assert (waits.collectives, waits.not_compared) == (4, 0)
    assert holds.last == 4
    short = [*late[:1], reduce(0, 49.5, 50), *late[2:]]
    (apart, _) = rows(compared(uneven, short))
    assert apart.not_compared == 1


def test_a_late_rank_is_idle_for_what_the_others_are_not() -> None:
    # The late rank allocates for 8 ms before one collective and 1 before the next, the other for 2 and 9; what it does
    # else takes 3.
    causes = ("allocation", "host work")
    late, early = (
        [
            Collective(step=0, name=name, end_ms=end, ms=ms, exposed_ms=ms, idle_ms=idle, delays=(0, 1))
            for name, end, idle in (("allreduce", 10, first), ("allgather", 20, second))
        ]
        for ms, first, second in ((1, (8, 3), (1, 0)), (5, (2, 0), (9, 0)))
    )
    found = compared(late, early, causes=causes)
    delays = {delay.cause: ns for delay, ns in found.late[0].delays.items()}
    assert (delays["allocation"], delays["host work"]) == (-2e6, 3e6)
    assert found.late[0].delays.most_common(1)[0][0].cause == "host work"
    assert found.late[0].idle == pytest.approx(1)


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


def test_what_an_idle_device_explains_of_some_kinds_is_told_of_these() -> None:
    # The last rank computes before the broadcast, and is idle before the all-gather.
    rows = [
        [
            Collective(step=0, name=name, end_ms=end, ms=ms, exposed_ms=ms, idle_ms=idle, delays=(0,) if idle else ())
            for name, end, ms, idle in (("broadcast", 100, first, ()), ("allgather", 200, second, gap))
        ]
        for first, second, gap in ((40, 9, ()), (1, 1, (8.0,)))
    ]
    found = compared(*rows, causes=("launching",)).late[1]
    assert (found.held, found.idle) == (47, 8)
    part = found.explained(0.5)
    assert (part.held, part.idle, part.times, list(part.names)) == (8, 8, 1, ["allgather"])
    assert found.explained(0.1) is found
    assert part.delays.most_common(1)[0][0].cause == "launching"


def test_a_rank_that_computes_while_the_last_has_not_come_does_not_wait() -> None:
    # Rank 0 is in it for 8 ms, and computes for the first 4; the last rank comes after 6.
    points = (1.0, 2.0, 3.0, 4.0, 4.0, 4.0, 4.0, 4.0)
    early = msgspec.structs.replace(reduce(0, 2, 10, hidden=4), each_last_ms=(points,))
    waits, holds = rows(compared([early], [reduce(0, 8, 10)]))
    assert (waits.waits_ms_per_step, holds.holds_ms_per_step) == (2, 2)
    hidden = msgspec.structs.replace(reduce(0, 2, 10, hidden=8), each_last_ms=((0.0,),))
    waits, _ = rows(compared([hidden], [reduce(0, 8, 10)]))
    assert waits.waits_ms_per_step == 0
