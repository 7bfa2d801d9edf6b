"""What is found in others' traces, by ``foreign_findings.csv``: a row for each finding that was judged by hand.

``place`` is part of the user's line, the line that waits, or the annotation; ``message`` is a pattern, ``fix`` the
first words. ``severity`` is *none* where there must be no such finding. An empty field is not compared.
"""

from __future__ import annotations

import csv
import re
from functools import cache
from pathlib import Path

import pytest

from syncscope.analysis.analyze import analyze
from syncscope.schema.findings import Finding, Frame
from tests.foreign import EXTRA

pytestmark = pytest.mark.skipif(EXTRA is None, reason="SYNCSCOPE_EXTRA_TRACES is not set")

with (Path(__file__).parent / "foreign_findings.csv").open(newline="") as table:
    ROWS = list(csv.DictReader(table))


@cache
def findings(trace: str) -> tuple[Finding, ...]:
    path = Path(EXTRA or "") / trace
    if not path.exists():
        pytest.skip(f"the folder does not hold {trace}")
    return analyze(path).findings


def place(finding: Finding) -> str:
    def spelled(frame: Frame | None) -> str:
        return "" if frame is None else f"{frame.file}:{frame.line} {frame.function}"

    return f"{spelled(finding.site)} | {spelled(finding.at)} | {finding.annotation or ''}"


@pytest.mark.parametrize("row", ROWS, ids=[f"{row['trace'][:40]}-{row['rule']}-{n}" for n, row in enumerate(ROWS)])
def test_a_finding_that_was_judged_by_hand_is_what_it_was_judged_to_be(row: dict[str, str]) -> None:
    of_rule = [one for one in findings(row["trace"]) if one.rule == row["rule"]]
    found = [one for one in of_rule if row["place"] in place(one) and re.search(row["message"], one.message)]
    if row["severity"] == "none":
        assert found == []
        return
    assert found, f"not among {[(place(one), one.message) for one in of_rule]}"
    assert any(one.severity == row["severity"] or not row["severity"] for one in found), [one.severity for one in found]
    assert any(one.fix.startswith(row["fix"]) for one in found), [one.fix for one in found]
