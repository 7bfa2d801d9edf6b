"""Cards that are one change stand together: in a line of a terminal, and folded behind the first on the page."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from syncscope.report.html import render
from syncscope.report.text import to_text
from syncscope.schema.findings import Finding
from syncscope.schema.report import Report
from tests.report.pages import Show, cards
from tests.report.sample import finding, findings, lanes, report, trace_info

LINES = (42, 50, 51, 57)


def reads(*lines: int, fix: str = "Keep it on the device.", saving: float = 0.01, stall: float = 0.02) -> list[Finding]:
    """A read at each line of a file, each of which saves under 1 % of the step."""
    made = [
        finding("SYN102", "scalar-read", line, f"x{line}.item()", stall=stall, saving=saving) for line in lines
    ]  # fmt: skip
    return [msgspec.structs.replace(one, fix=fix, at=None, saving_below_drift=saving < 0.05) for one in made]


def page_of(found: Sequence[Finding]) -> str:
    return render(whole([*findings()[:1], *found]), [lanes()])


def whole(found: Sequence[Finding]) -> Report:
    """A report whose findings save together what they save alone."""
    made = report([trace_info()], found)
    return msgspec.structs.replace(made, saving_all_ms_per_step=sum(one.saving_ms_per_step or 0.0 for one in found))


def brief(found: Sequence[Finding]) -> list[str]:
    """The lines under the heading of what saves little, each in one."""
    text = to_text(whole(found))
    lines = text.partition("each saves under 1 %")[2].partition(":\n")[2].partition("\n\n")[0].splitlines()
    return [" ".join(line.split()) for line in "\n".join(lines).replace("\n    ", " ").splitlines()]


def test_a_terminal_names_the_lines_of_one_change_in_one_line() -> None:
    (line,) = brief(reads(*LINES))
    assert line.startswith("SYN102 scalar-read train.py:42 x42.item()") and "same fix at lines 50, 51 and 57" in line
    assert [one.split()[2] for one in brief([*reads(42), *reads(50, fix="Another.")])] == ["train.py:42", "train.py:50"]
    (many,) = brief(reads(*range(42, 60)))
    assert "same fix at lines 43, 44, 45, 46, 47, 48 and 11 more" in many


def test_two_waits_inside_of_one_call_have_one_line_though_their_fixes_differ() -> None:
    (line,) = brief([*reads(42), *reads(42, fix="Another.")])
    assert "1 more such wait inside of it" in line
    (line,) = brief([*reads(42), *reads(42, fix="Another."), *reads(50)])
    assert "1 more such wait inside of it · same fix at line 50" in line


def test_what_blocks_for_long_keeps_a_line_of_its_own() -> None:
    assert len(brief([*reads(42, stall=2.0), *reads(50, 51)])) == 2


def test_the_page_folds_one_change_behind_its_first_line(show: Show) -> None:
    page = show(page_of(reads(*LINES))).page
    assert cards(page) == 2
    fold = page.locator(".alike")
    assert fold.locator("summary").first.inner_text() == "The same fix at 3 more places: lines 50, 51 and 57"
    assert page.locator("h3.kind").all_inner_texts() == ["Each saves under 1 %"]
    fold.locator("summary").first.click()
    assert cards(page) == 5
    page.locator("#search").fill("x51.item")
    assert cards(page) == 1 and "x51" in page.locator(".finding:visible").inner_text()
    page.locator("#search").fill("nothing of it")
    assert cards(page) == 0 and page.locator("h3.kind").is_hidden() and fold.is_hidden()


def test_a_fold_opens_for_a_filter_and_for_an_address_that_lead_into_it(show: Show) -> None:
    found = reads(*LINES)
    page = show(page_of(found)).page
    page.locator("#search").fill("x57.item")
    assert cards(page) == 1
    named = show(page_of(found), at=f"#finding-{found[2].fingerprint}").page
    assert named.locator(".finding.named").is_visible()


def test_two_lines_and_what_saves_much_are_not_folded(show: Show) -> None:
    page = show(page_of(reads(42, 50))).page
    assert (cards(page), page.locator(".alike").count()) == (3, 0)
    page = show(page_of(reads(*LINES, saving=0.5))).page
    assert (cards(page), page.locator(".alike").count()) == (5, 0)
