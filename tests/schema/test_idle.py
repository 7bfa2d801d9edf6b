from __future__ import annotations

import msgspec
import pytest

from syncscope.schema.findings import IdleCause
from syncscope.schema.idle import cap_causes, main_of
from tests.report import sample


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


def test_no_cause_saves_more_than_the_finding() -> None:
    work = IdleCause(
        cause="host work", ms_per_step=9.0, saving_low_ms_per_step=1.0, likely_saving_ms_per_step=6.0,
        saving_high_ms_per_step=9.0,
    )  # fmt: skip
    causes = (work, IdleCause(cause="launching", ms_per_step=4.0))
    found = msgspec.structs.replace(sample.finding("OVL303", "x", 1, "x"), saving_high_ms_per_step=4.0, causes=causes)
    work, launching = cap_causes(found).causes
    known = (work.saving_low_ms_per_step, work.likely_saving_ms_per_step, work.saving_high_ms_per_step)
    assert known == (1.0, 4.0, 4.0) and work.ms_per_step == 9.0
    assert launching == causes[1]
    unknown = msgspec.structs.replace(found, saving_high_ms_per_step=None)
    assert cap_causes(unknown) is unknown
