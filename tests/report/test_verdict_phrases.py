"""What is said of a whole report, and codes of rules in a sentence."""

from __future__ import annotations

import msgspec
import pytest

from syncscope.report.conclusion import conclude
from syncscope.report.verdict_phrases import join_codes, summarize_report
from tests.report import sample


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


def test_the_places_at_which_a_change_saves_something_are_all_the_changes_of_the_first_line() -> None:
    unknown = dict.fromkeys(("saving_ms_per_step", "saving_low_ms_per_step", "saving_high_ms_per_step"))
    read = sample.findings()[0]
    found = [msgspec.structs.replace(read, fingerprint=str(number), **(unknown if number == 2 else {}))
             for number in range(3)]  # fmt: skip
    found = [msgspec.structs.replace(one, rule="SYN102" if one.saving_ms_per_step else "SYN103") for one in found]
    report = msgspec.structs.replace(sample.report(found=found), saving_all_ms_per_step=0.5)
    assert summarize_report(report).startswith("3 findings, 2 of them known to save something")
    assert dict(conclude(report).lines)["step"].endswith("with both changes")
    assert "known to save" not in summarize_report(sample.report(found=found[:2]))
