"""What the collectives of one finding wait for other ranks, of a few with made-up times in ms."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pytest

from syncscope.ranks.lateness import compare_ranks
from syncscope.schema.ranks import FindingBetween
from syncscope.schema.report import Collective, Meetings
from tests.report import sample


def met(
    each: Sequence[float], found_in: Sequence[int], *, exposed: Sequence[float] = (), end: float = 100, step: int = 0
) -> Collective:
    """All-reduces in a row, which last ``each``."""
    return Collective(
        step=step, name="allreduce", end_ms=end, ms=sum(each), exposed_ms=sum(exposed or each),
        each_ms=tuple(each) if len(each) > 1 else (), each_exposed_ms=tuple(exposed or each), found_in=tuple(found_in),
    )  # fmt: skip


def own(*ranks: Sequence[Collective], begins: Sequence[float] = (0.0, 0.0)) -> list[tuple[FindingBetween, ...]]:
    """What the findings of each rank wait."""
    infos = {
        number: msgspec.structs.replace(
            sample.trace_info(f"rank{number}.json", number),
            world_size=len(ranks),
            meetings=Meetings(collectives=tuple(row), delays=(), begin_ms=begin),
        )
        for number, (row, begin) in enumerate(zip(ranks, begins, strict=True))
    }
    between = compare_ranks(infos).between
    assert between is not None
    return [row.in_findings or () for row in between.ranks]


def test_each_finding_is_told_what_its_own_collectives_wait() -> None:
    early, late = own([met((6, 3, 2), (0, 1, 0))], [met((1, 3, 1.5), (5, 5, 5))])
    assert [(one.meets, one.collectives, one.exposed_ms, one.waits_ms) for one in early] == [
        (0, 2, 8, 5.5), (1, 1, 3, 0)
    ]  # fmt: skip
    assert [one.longest_for for one in early] == [1, None]
    assert [(one.meets, one.waits_ms) for one in late] == [(5, 0)]


def test_ranks_that_come_late_in_turn_both_wait() -> None:
    found = own([met((6, 1), (0,))], [met((1, 6), (0,))])
    assert [[(one.waits_ms, one.longest_for) for one in row] for row in found] == [[(5, 1)], [(5, 0)]]


def test_it_says_how_long_the_longest_waited_for_is_waited_for() -> None:
    found = own(*([met(row, (0,))] for row in ((6, 6, 6), (1, 6, 6), (6, 2, 6), (6, 6, 3))), begins=(0.0,) * 4)
    assert [[(one.waits_ms, one.longest_for, one.longest_ms) for one in row] for row in found] == [
        [(12, 1, 5)], [(7, 2, 4)], [(8, 1, 5)], [(9, 1, 5)]
    ]  # fmt: skip
    (none,) = own([met((6,), (0,))], [met((6,), (0,))])[0]
    assert (none.longest_for, none.longest_ms) == (None, 0)


def test_what_compute_hides_is_not_waited_for() -> None:
    early, _ = own([met((6,), (0,), exposed=(2,))], [met((1.5,), (0,))])
    assert [(one.exposed_ms, one.waits_ms) for one in early] == [(2, 0.5)]


def test_what_could_not_be_compared_counts_as_exposed_and_is_counted() -> None:
    lonely = Collective(step=0, name="allgather", end_ms=200, ms=4, exposed_ms=4, each_exposed_ms=(4,), found_in=(0,))
    early, _ = own([met((6,), (0,)), lonely], [met((1,), (0,))])
    assert [(one.collectives, one.not_compared, one.exposed_ms, one.waits_ms) for one in early] == [(2, 1, 10, 5)]


def test_what_one_rank_did_not_keep_one_by_one_is_shared_out() -> None:
    sums = Collective(step=0, name="allreduce", end_ms=100, ms=4, exposed_ms=4)
    early, late = own([met((6, 2), (0, 1))], [sums])
    assert [one.waits_ms for one in early] == [3, 1]
    assert late == ()


def test_that_another_began_to_record_later_is_told_apart() -> None:
    # By the clock of rank 0, rank 1 begins at 93: 3 of the 5 ms are before that.
    early, _ = own([met((10,), (0,))], [met((5,), (0,), end=7)], begins=(0, 0))
    assert [(one.waits_ms, one.before_ms) for one in early] == [(5, 5)]
    early, _ = own([met((10,), (0,))], [met((5,), (0,), end=7)], begins=(90, 0))
    assert [(one.waits_ms, one.before_ms) for one in early] == [(5, 3)]


def test_of_three_steps_the_first_counts_as_far_as_the_finding_counts_it() -> None:
    rows = [[met((long,), (0,), end=100 * step, step=step) for step in range(3)] for long in (6, 1)]
    (early,), _ = own(*rows)
    assert (early.exposed_ms, early.waits_ms) == (18, pytest.approx(15))


def test_where_compute_hides_the_end_all_that_is_exposed_is_waiting() -> None:
    # 8 ms, of which the last 2 are the transfer: compute hides them, or else what comes before.
    def exposed_at(points: Sequence[float]) -> float:
        part = msgspec.structs.replace(met((8,), (0,), exposed=(points[-1],)), each_last_ms=(tuple(points),))
        early, _ = own([part], [met((2,), (0,))])
        return early[0].waits_ms

    assert exposed_at((0, 0, 1, 2, 3, 3, 3, 3)) == 3
    assert exposed_at((1, 2, 3, 3, 3, 3, 3, 3)) == 1
    assert exposed_at((0.5, 1.5, 3, 3, 3, 3, 3, 3)) == 1.5
