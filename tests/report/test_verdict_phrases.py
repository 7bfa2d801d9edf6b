"""Codes of rules in a sentence."""

from __future__ import annotations

import pytest

from syncscope.report.verdict_phrases import join_codes


@pytest.mark.parametrize(
    ("codes", "said"),
    [
        (["SYN101"], "SYN101"),
        (["HAZ401", "HAZ402"], "HAZ401, HAZ402"),
        (["CMP701", "CMP702", "CMP703", "CMP704", "DST601"], "CMP701–CMP704, DST601"),
        (["SYN101", "SYN102", "SYN104"], "SYN101, SYN102, SYN104"),
        (["a", "b", "xyz\u0661", ""], "a, b, xyz\u0661, "),
        ([], ""),
    ],
)
def test_codes_that_follow_each_other_are_told_as_one(codes: list[str], said: str) -> None:
    assert join_codes(codes) == said
