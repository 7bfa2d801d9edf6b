"""One figure a fingerprint: together in a trace, the most of several."""

from typing import Any

import msgspec
import pytest

from syncscope.compare.tally import family_of, most_per_step, say_count, tallied
from syncscope.schema.findings import Finding
from tests.report import sample


def finding(**changes: Any) -> Finding:
    return msgspec.structs.replace(sample.findings()[0], **changes)


def test_findings_of_one_fingerprint_count_together_and_of_several_traces_the_most() -> None:
    found = [finding(per_step=1.0), finding(per_step=0.5), finding(trace=1, per_step=1.25)]
    (tally,) = tallied(found).values()
    assert (tally.per_step, tally.findings, tally.first) == (1.5, tuple(found), found[0])


def test_without_steps_there_is_no_count_a_step() -> None:
    assert most_per_step([finding(per_step=1.0), finding(per_step=None)]) is None
    assert most_per_step([]) == 0


def test_equal_expressions_of_a_function_are_one_family_and_those_without_a_line_alone() -> None:
    one, other = finding(fingerprint="a"), finding(fingerprint="b")
    assert family_of(one) == family_of(other)
    assert family_of(finding(rule="SYN101")) != family_of(one)
    assert family_of(finding(fingerprint="a", site=None)) != family_of(finding(fingerprint="b", site=None))


@pytest.mark.parametrize(
    ("count", "said"), [(0.0, "0"), (1.0, "1"), (0.4, "0.4"), (1 / 3, "0.3333"), (20.0, "20"), (12001.0, "12,001")]
)
def test_counts_are_said_in_full(count: float, said: str) -> None:
    assert say_count(count) == said
