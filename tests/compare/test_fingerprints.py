"""One figure a fingerprint: together in a trace, the most of several."""

from typing import Any

import msgspec
import pytest

from syncscope.compare.fingerprints import (
    NEVER,
    count_by_fingerprint,
    expression_key_of,
    format_count,
    most_frequent,
)
from syncscope.schema.findings import Finding
from tests.report import sample


def finding(**changes: Any) -> Finding:
    return msgspec.structs.replace(sample.findings()[0], **changes)


def test_findings_of_one_fingerprint_count_together_and_of_several_traces_the_most() -> None:
    findings = [finding(per_step=1.0), finding(per_step=0.5), finding(trace=1, per_step=1.25)]
    (occurrences,) = count_by_fingerprint(findings).values()
    assert (occurrences.per_step, occurrences.findings, occurrences.first) == (1.5, tuple(findings), findings[0])


def test_of_several_phases_the_one_with_the_most_counts() -> None:
    findings = [finding(per_step=1.0, phase="train"), finding(per_step=2.0, phase="evaluate")]
    found = most_frequent(findings)
    assert found is not None and found.per_step == 2.0


def test_without_steps_there_is_no_count_a_step() -> None:
    assert most_frequent([finding(per_step=1.0), finding(per_step=None)]) is None
    assert most_frequent([]) == NEVER


def test_equal_expressions_of_a_function_share_a_key_and_findings_without_a_line_share_none() -> None:
    one, other = finding(fingerprint="a"), finding(fingerprint="b")
    assert expression_key_of(one) == expression_key_of(other)
    assert expression_key_of(finding(rule="SYN101")) != expression_key_of(one)
    assert expression_key_of(finding(fingerprint="a", site=None)) != expression_key_of(
        finding(fingerprint="b", site=None)
    )


@pytest.mark.parametrize(
    ("count", "text"), [(0.0, "0"), (1.0, "1"), (0.4, "0.4"), (1 / 3, "0.3333"), (20.0, "20"), (12001.0, "12,001")]
)
def test_counts_are_written_in_full(count: float, text: str) -> None:
    assert format_count(count) == text
