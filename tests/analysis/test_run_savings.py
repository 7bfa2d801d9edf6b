"""What a finding of the recorded steps saves over the run."""

from __future__ import annotations

import msgspec
import pytest

from syncscope.analysis.rank import with_run_saving
from tests.report import sample


@pytest.mark.parametrize(
    ("saving", "blocks", "of_run", "told"),
    [
        (4.3, 4.1, 4.1, 4.3),
        (4.3, 4.1, 0.41, 0.43),  # the wait is a tenth as long there
        (1.0, 4.0, 2.0, 0.5),
        (4.3, 4.1, 8.2, 4.3),  # and no more than as often as it is recorded
        (4.3, 4.1, None, 4.3),
        (4.3, 1.0, 0.1, 4.3),  # which is not the wait: another thread hands the batch over
    ],
)
def test_a_wait_that_is_shorter_over_the_run_saves_as_much_less(
    saving: float, blocks: float, of_run: float | None, told: float
) -> None:
    wait = sample.finding("SYN101", "blocking-copy", 1, "x.cuda()")
    changes = {
        "per_step": 3.0, "run_per_step": 3.0, "saving_ms_per_step": saving, "stall_ms_per_step": blocks,
        "run_stall_ms_per_step": of_run,
    }  # fmt: skip
    found = with_run_saving(msgspec.structs.replace(wait, **changes), 50.0)
    assert found.run_saving_ms_per_step == pytest.approx(told)
