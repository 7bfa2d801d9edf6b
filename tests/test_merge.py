"""Joining reports: pure, the same in whatever grouping, every finding still at its trace."""

import itertools
from typing import Any

import msgspec
import pytest

from syncscope.findings import NotChecked, Report, Stale
from syncscope.merge import merge, ordered
from tests.report import sample


def rank(number: int) -> Report:
    stale = (Stale(rule="SYN103", where="pyproject.toml:4"), Stale(rule="SYN101", where=f"pyproject.toml:{number}"))
    return msgspec.structs.replace(
        sample.report([sample.trace_info(f"run/rank{number}.json.gz", number)], sample.findings(rank=number)),
        not_checked=(NotChecked(rule="HAZ401", why="not recorded", rank=number),),
        stale=stale,
    )


def test_findings_point_at_their_trace_in_the_joined_list() -> None:
    joined = merge([rank(0), rank(1), rank(2)])
    assert [info.rank for info in joined.traces] == [0, 1, 2]
    assert all(joined.traces[finding.trace].rank == finding.rank for finding in joined.findings)
    assert all(joined.traces[entry.trace].rank == entry.rank for entry in joined.not_checked)
    assert len(joined.findings) == 3 * len(sample.findings())


def test_grouping_does_not_matter() -> None:
    a, b, c = rank(0), rank(1), rank(2)
    assert merge([merge([a, b]), c]) == merge([a, merge([b, c])]) == merge([a, b, c])


def test_the_parts_are_left_alone() -> None:
    part = rank(1)
    before = part.to_json()
    merge([rank(0), part])
    assert part.to_json() == before


def test_savings_do_not_add_up_over_traces() -> None:
    assert merge([rank(0)]).saving_all_ms_per_step == 0.4
    assert merge([rank(0), rank(1)]).saving_all_ms_per_step is None


def test_only_what_is_stale_everywhere_is_stale() -> None:
    assert [entry.rule for entry in merge([rank(0), rank(1)]).stale] == ["SYN103"]


def test_nothing_to_join_is_an_error() -> None:
    with pytest.raises(ValueError, match="no reports"):
        merge([])


def test_order_is_status_then_saving_and_by_stall_where_that_is_unknown() -> None:
    base = sample.findings()[0]
    differences: tuple[dict[str, Any], ...] = (
        {"severity": "warning", "saving_ms_per_step": 3.0, "stall_ms_per_step": 5.0, "op": "a"},
        {"severity": "error", "saving_ms_per_step": None, "saving_high_ms_per_step": 2.0, "op": "b"},
        {"severity": "error", "saving_ms_per_step": 0.1, "stall_ms_per_step": 9.0, "op": "c"},
        {"severity": "error", "saving_ms_per_step": None, "stall_ms_per_step": 1.0, "op": "d"},
        {"severity": "warning", "saving_ms_per_step": None, "stall_ms_per_step": 5.0, "op": "e"},
        {"severity": "note", "saving_ms_per_step": 7.0, "op": "f"},
        {"severity": "error", "status": "baseline", "saving_ms_per_step": 7.0, "op": "g"},
        {"severity": "error", "status": "expected", "saving_ms_per_step": 8.0, "op": "h"},
    )
    unknown = dict.fromkeys(("saving_low_ms_per_step", "saving_high_ms_per_step"))
    wanted = [msgspec.structs.replace(base, **{**unknown, **changes}) for changes in differences]
    for shuffled in itertools.islice(itertools.permutations(wanted), 0, 40_320, 797):
        assert [finding.op for finding in ordered(shuffled)] == list("abcdefgh")
