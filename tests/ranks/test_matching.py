"""Which collectives of several ranks are one and the same, of a few with made-up times in ms."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from unittest.mock import Mock

import msgspec
import pytest

from syncscope.ranks import matching
from syncscope.ranks.matching import find_meetings
from syncscope.schema.report import Collective, Meetings, TraceInfo
from tests.report import sample


def ran(ends: Iterable[float], name: str = "allreduce", *, in_graph: bool = False, ms: float = 1) -> list[Collective]:
    return [Collective(step=0, name=name, end_ms=end, ms=ms, exposed_ms=ms, in_graph=in_graph) for end in ends]


def met(*ranks: Sequence[Collective]) -> list[tuple[tuple[int, ...], float]]:
    """The ranks of each meeting, and when the first of them says that it ended."""
    infos: dict[int, TraceInfo] = {
        number: msgspec.structs.replace(
            sample.trace_info(f"rank{number}.json", number), meetings=Meetings(collectives=tuple(row), delays=())
        )
        for number, row in enumerate(ranks)
    }
    return [(tuple(meeting), next(iter(meeting.values())).end_ms) for meeting in find_meetings(infos)]


FAST = (10, 20, 30, 40)
SLOW = (10, 23, 36, 49)


def test_groups_that_the_trace_does_not_name_are_told_apart_by_when_they_end() -> None:
    assert {ranks for ranks, _ in met(ran(FAST), ran(SLOW), ran(FAST), ran(SLOW))} == {(0, 2), (1, 3)}


def test_a_group_that_the_trace_names_is_compared_as_a_whole() -> None:
    named = [ran(ends, "allreduce of group 1") for ends in (FAST, SLOW)]
    assert met(*named) == []


def test_another_number_of_collectives_is_that_of_another_group() -> None:
    assert {ranks for ranks, _ in met(ran(FAST), ran((*FAST, 50)), ran(FAST), ran((*FAST, 50)))} == {(0, 2), (1, 3)}


def test_groups_that_work_in_step_are_told_apart_by_how_closely_they_end() -> None:
    ends = [10.0 * number for number in range(20)]
    beside = [end + (0.5 if number % 6 == 0 else 0.01 * (number % 3)) for number, end in enumerate(ends)]
    close = [end + 0.001 * (number % 2) for number, end in enumerate(ends)]
    assert {ranks for ranks, _ in met(ran(ends), ran(beside), ran(close), ran(beside))} == {(0, 2), (1, 3)}


def test_one_group_whose_ends_are_less_exact_is_left_whole() -> None:
    ends = [10.0 * number for number in range(20)]
    rough = [end + 0.01 * (number % 3) for number, end in enumerate(ends)]
    assert {ranks for ranks, _ in met(ran(ends), ran(rough), ran(ends))} == {(0, 1, 2)}


@pytest.mark.parametrize("groups", [1, 2])
def test_each_of_many_ranks_is_compared_with_one_of_each_group(groups: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matching, "_compare", compare := Mock(wraps=matching._compare))
    found = met(*(ran((FAST, SLOW)[number % groups]) for number in range(40)))
    assert {ranks for ranks, _ in found} == {tuple(range(first, 40, groups)) for first in range(groups)}
    assert compare.call_count < groups * 40


def test_how_long_the_last_to_come_ran_is_looked_up_once_for_all_ranks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matching, "_shortest", shortest := Mock(wraps=matching._shortest))
    assert len(met(*(ran(FAST) for _ in range(10)))) == shortest.call_count == len(FAST)


def test_without_a_group_those_of_graphs_are_compared_for_themselves() -> None:
    # Rank 1 has three more outside of graphs, of a group whose other ranks have no trace.
    more = [*ran(FAST, in_graph=True), *ran((12, 14, 16))]
    assert met(ran(FAST, in_graph=True), more) == [((0, 1), end) for end in FAST]


def test_what_a_rank_leaves_before_the_others_is_taken_together_with_the_next() -> None:
    early, late = ran((10, 20, 30, 38, 50, 60)), ran((10, 20, 30, 40, 50, 60))
    assert [end for _, end in met(early, late)] == [10, 20, 30, 50, 60]
    assert [end for _, end in met(ran((10, 20, 30, 38)), ran((10, 20, 30, 40)))] == [10, 20, 30]


def test_what_is_taken_together_adds_up() -> None:
    def row(*ends: float) -> list[Collective]:
        return [
            msgspec.structs.replace(
                one, idle_ms=(1.0,), delays=(number % 2,), each_exposed_ms=(1.0,), found_in=(number,)
            )
            for number, one in enumerate(ran(ends))
        ]  # fmt: skip

    infos = {
        number: msgspec.structs.replace(
            sample.trace_info(f"rank{number}.json", number), meetings=Meetings(collectives=tuple(row(*ends)), delays=())
        )
        for number, ends in enumerate(((10, 20, 28, 40), (10, 20, 30, 40)))
    }
    joined = find_meetings(infos)[-1][0]
    assert (joined.ms, joined.exposed_ms, joined.each_ms, joined.found_in) == (2, 2, (1, 1), (2, 3))
    assert dict(zip(joined.delays, joined.idle_ms, strict=True)) == {0: 1, 1: 1}
