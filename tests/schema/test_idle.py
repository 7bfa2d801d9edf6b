from __future__ import annotations

import pytest

from syncscope.schema.findings import IdleCause
from syncscope.schema.idle import main_of


@pytest.mark.parametrize(
    ("second", "ms", "main"),
    [
        ("data loading", 6.0, "data loading"),
        ("data loading", 4.0, "launching"),
        ("host work", 6.0, "launching"),
    ],
)
def test_what_a_profiler_makes_longer_comes_after_loading_half_as_long(second: str, ms: float, main: str) -> None:
    found = main_of([IdleCause(cause="launching", ms_per_step=10.0), IdleCause(cause=second, ms_per_step=ms)], 16.0)
    assert found is not None
    assert found.cause == main


def test_launches_that_a_finding_is_about_come_first_no_more() -> None:
    launching = IdleCause(cause="launching", ms_per_step=10.0, covered_by=("1234",))
    found = main_of([launching, IdleCause(cause="host work", ms_per_step=4.0)], 14.0)
    assert found is not None
    assert found.cause == "host work"
