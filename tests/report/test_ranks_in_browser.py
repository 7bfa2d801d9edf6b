"""A run of several ranks as one page, in Chromium."""

from __future__ import annotations

from syncscope.report.html import render
from tests.report.pages import Show, cards, compared, nth, two_ranks
from tests.report.sample import findings, lanes


def test_who_waits_for_whom_is_drawn_said_and_leads_to_the_rank(show: Show) -> None:
    page = show(render(compared(3), [lanes("out/rank1.json", 1)])).page
    assert (
        "Rank 2 comes last 10 of the 10 times that the ranks meet and holds the others for 2 ms a step"
        in page.locator("#waiting-lead").inner_text()
    )
    drawn = page.evaluate("document.getElementById('waiting').data.map((t) => [t.name, [...t.x], [...t.y]])")
    assert drawn == [["for rank 2", [2, 2, 0], ["rank 0", "rank 1", "rank 2"]]]
    assert page.locator("#waiting").get_attribute("aria-label").startswith("rank 0 waits 2 ms a step")
    page.locator("#waiting").scroll_into_view_if_needed()
    bar = page.locator("#waiting .bars .point").nth(1).bounding_box()
    page.mouse.click(bar["x"] + bar["width"] / 2, bar["y"] + bar["height"] / 2)
    assert page.locator("#view").input_value() == "1"
    assert page.locator("#ranks tr[aria-current=true]").inner_text().startswith("rank 1")


def test_the_table_of_ranks_sorts_by_any_column(show: Show) -> None:
    page = show(render(compared(12), [])).page
    rows = page.locator("#ranks tbody th")
    page.locator("#ranks").get_by_role("button", name="Holds the others").click()
    assert rows.first.inner_text() == "rank 11"
    page.locator("#ranks").get_by_role("button", name="Holds the others").click()
    assert rows.first.inner_text() == "rank 0"
    assert page.locator("#ranks th[aria-sort=ascending]").count() == 1


def test_many_ranks_stay_one_readable_page(show: Show) -> None:
    made = show(render(compared(200), [lanes("out/rank0.json", 0)]))
    assert made.errors == []
    assert "72 traces more in the JSON report" in made.page.locator("#ranks-lead").inner_text()
    assert made.page.locator("#ranks tbody tr").count() == 128
    assert cards(made.page) == 5  # one for all ranks that have it alike
    assert "also on 127 others" in nth(made.page, 1).locator("> summary").inner_text()
    assert made.page.locator("#waiting").bounding_box()["height"] < 600


def test_the_other_ranks_of_a_card_are_named_in_their_order(show: Show) -> None:
    page = show(render(compared(4), [lanes("out/rank0.json", 0)])).page
    assert "also on ranks 1, 2, 3" in nth(page, 1).locator("> summary").inner_text()


def test_what_several_ranks_have_is_found_by_each_one_s_link(show: Show) -> None:
    made = show(two_ranks(), at=f"#finding-{findings(1)[2].fingerprint}")
    assert nth(made.page, 3).is_visible()
    assert nth(made.page, 3).locator(".body").count() == 1


def test_ranks_have_a_table_and_a_choice(show: Show) -> None:
    page = show(two_ranks()).page
    assert page.locator("#ranks tbody tr").count() == 2
    assert cards(page) == 5
    assert page.locator("#count").inner_text() == "5 cards for 10 findings of 2 traces"
    assert "also on rank 1" in nth(page, 1).locator("> summary").inner_text()
    page.get_by_label("Search").fill("train.py:31")
    assert page.locator("#count").inner_text() == "2 of 5 cards"
    page.get_by_label("Search").fill("")
    page.locator("#ranks").get_by_role("button", name="rank 1").click()
    assert page.locator("#ranks tr[aria-current=true]").inner_text().startswith("rank 1")
    assert nth(page, 1).locator(".of-trace").text_content() == "rank 1"
    nth(page, 1).get_by_role("button", name="Show in timeline").click()
    page.wait_for_selector("#selected .title")
    assert page.locator("#selected .title").inner_text() == "cudaStreamSynchronize"
