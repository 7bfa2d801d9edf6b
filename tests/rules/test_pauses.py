"""What is said of a device that is mostly idle in one pause of one of several steps."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.builders import TraceBuilder
from tests.rules.scenes import findings


def fix(gaps: Sequence[float]) -> str:
    """What is said to do about steps that each end with a gap of so many µs, behind 1000 of work."""
    ends = [0.0]
    for gap in gaps:
        ends.append(ends[-1] + 1000 + gap)
    builder = TraceBuilder().steps(*ends)
    for start in ends[:-1]:
        builder.launch("k", call=(start, 1), runs=(start + 1, 999))
    (found,) = findings(builder, "OVL303")
    return found.fix


@pytest.mark.parametrize(
    ("gaps", "told"),
    [
        ([500, 500, 500, 500, 500], False),
        ([9000, 500, 500, 500, 500], True),
        ([500, 500, 9000, 500, 500], True),
        ([3000, 500, 3000, 500, 500], False),
        ([9000, 500], False),
    ],
)
def test_a_pause_in_one_of_several_steps_is_no_part_of_each(gaps: list[float], told: bool) -> None:
    said = fix(gaps)
    assert ("One pause takes 9" in said) is told
    assert ("record others to see whether it comes again" in said) is told
