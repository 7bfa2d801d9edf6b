"""What was measured is put where the page says."""

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
