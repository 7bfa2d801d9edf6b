"""What was measured is put where the page says."""

import re

import pytest

from benchmarks import evidence

PAGE = "before\n<!-- begin of the peers -->\nold\n<!-- end of the peers -->\nafter"


def test_only_what_is_between_the_marks_is_replaced():
    made = evidence.written(PAGE, "peers", "new")
    assert made == "before\n<!-- begin of the peers -->\n\nnew\n\n<!-- end of the peers -->\nafter"


def test_a_page_without_the_marks_is_refused():
    with pytest.raises(ValueError, match="no marks for the growth"):
        evidence.written(PAGE, "growth", "new")


@pytest.mark.parametrize("what", ["peers", "growth"])
def test_the_page_has_the_marks(what):
    assert "\n\nnew\n\n" in evidence.written(evidence.EVIDENCE.read_text(encoding="utf-8"), what, "new")


def test_what_the_page_says_of_public_programs_is_what_their_rows_say():
    page = evidence.EVIDENCE.read_text(encoding="utf-8")
    rows = re.findall(r"^\| [^|(]+ \([^|/)]+/[^|)]+\) \|[^|]+\|[^|]+\| (\d+) \| (\d+) \| (\d+) \|", page, re.MULTILINE)
    lines, found, exact = (sum(map(int, column)) for column in zip(*rows, strict=True))
    totals = re.findall(r"^\| (?:every step was counted|steps were drawn[^|]*) ((?:\| \d+ ){4})\|$", page, re.MULTILINE)
    whole, drawn = ([int(number) for number in re.findall(r"\d+", row)] for row in totals)
    assert [one + other for one, other in zip(whole, drawn, strict=True)] == [len(rows), lines, found, exact]
    assert f"{len(rows)} programs of " in page and f" repositories, and {lines} lines of which" in page
    for told in (
        f"{whole[2]} of {whole[1]:,} lines of which PyTorch warned, where every step was counted; "
        f"{drawn[2]:,} of {drawn[1]:,} where steps were drawn",
        f"{whole[3]} of those {whole[1]:,} lines; {drawn[3]:,} of {drawn[1]:,} where steps were drawn",
        f"**Lines that were not found**: {lines - found} of {lines:,}.",
    ):
        assert told in page
