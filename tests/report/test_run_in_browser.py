"""The whole run on the page, in Chromium."""

from __future__ import annotations

import msgspec
import pytest

from syncscope.report.html import render
from syncscope.schema.findings import Site
from syncscope.schema.run import PhaseLine
from tests.report import sample
from tests.report.pages import Show, cards, nth
from tests.report.sample import HOSTILE, lanes
from tests.report.sample_run import info, only_counted, phases, ranks, rate, report, run
from tests.report.test_access_in_browser import serious


def page_of(made=None) -> str:
    made = made or report()
    return render(made, [lanes(one.path, one.rank) for one in made.traces])


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1440, 390])
def test_it_is_drawn_without_an_error_or_a_sideways_scroll(show: Show, width: int, scheme: str) -> None:
    made = show(page_of(), width=width, scheme=scheme)
    made.page.wait_for_timeout(200)
    assert made.errors == []
    assert made.page.evaluate("document.documentElement.scrollWidth") <= width
    assert made.page.locator("#run .trace.bars").count() == 6
    box = made.page.locator("#run .main-svg").first.bounding_box()
    assert box["width"] <= width
    if scheme == "light" and width == 1440:
        assert serious(made.page) == []


@pytest.mark.parametrize(("width", "scheme"), [(390, "dark"), (1440, "dark")])
def test_axe_finds_nothing_serious_where_there_is_a_run(show: Show, width: int, scheme: str) -> None:
    assert serious(show(page_of(ranks(2)), width=width, scheme=scheme).page) == []


def test_the_section_tells_what_was_counted_and_each_phase(show: Show) -> None:
    page = show(page_of()).page
    section = page.locator("#run-section")
    assert section.locator(".lead").inner_text().replace("\xa0", " ") == (
        "412 steps in 61.2 s; every wait counted (cost 0.4 %)."
    )
    rows = [" ".join(row.inner_text().split()) for row in section.locator("tbody tr").all()]
    assert rows == [
        "train train.py:42 main 81 % 412 98.1 ms p95 140 ms 2.1 16–38",
        "evaluate train.py:77 estimate_loss 12 % 80 88.5 ms p95 91.2 ms 3 —",
        "epoch end train.py:61 main 4 % — — — —",
        "start 3 % — — — —",
    ]
    assert "train: 81 % of the time, 2.1 waits a step" in page.locator("#run").get_attribute("aria-label")
    assert page.locator("#run-notes").is_hidden()


def test_phases_have_the_colours_of_the_scheme(show: Show) -> None:
    drawn = {}
    for scheme in ("light", "dark"):
        page = show(page_of(), scheme=scheme).page
        drawn[scheme] = page.evaluate("document.getElementById('run').data.map((trace) => trace.marker.color)")
        named = page.evaluate("[1, 2, 3, 'rest'].map((name) => colour(`phase-${name}`))")
        assert set(drawn[scheme]) - {page.evaluate("colour('text')")} == set(named)
    assert drawn["light"] != drawn["dark"]


def test_it_follows_the_scheme_and_the_width(show: Show) -> None:
    page = show(page_of()).page
    page.emulate_media(color_scheme="dark")
    page.set_viewport_size({"width": 700, "height": 900})
    page.wait_for_timeout(200)
    colour = page.evaluate("[document.getElementById('run').data[0].marker.color, colour('phase-rest')]")
    assert colour[0] == colour[1]
    assert page.locator("#run .main-svg").first.bounding_box()["width"] < 700


def test_the_pointer_tells_of_a_stretch(show: Show) -> None:
    page = show(page_of()).page
    page.locator("#run").scroll_into_view_if_needed()
    box = page.locator("#run").bounding_box()
    page.mouse.move(box["x"] + box["width"] * 0.4, box["y"] + box["height"] * 0.45)
    page.wait_for_selector("#run .hoverlayer .hovertext")
    text = page.locator("#run .hoverlayer").text_content()
    assert "train" in text and "10 steps" in text and "waits a step" in text


def test_cards_say_how_often_and_what_only_the_count_knows(show: Show) -> None:
    page = show(page_of()).page
    assert page.locator(".finding .often").all_inner_texts() == [
        "every step", "in evaluate: 3 a step", "every 10 steps (41 in 412)", "once an epoch", "once, in step 0"
    ]  # fmt: skip
    little = nth(page, 4)  # it saves little
    counted = nth(page, 3)
    assert little.locator(".cost").inner_text().split("\n") == [
        "0.163 ms",
        "blocked a step, under\u00a01\u00a0%",
        "saves under 1 %",
        "19\u00a0µs a step of the run",
    ]
    little.locator("> summary").click()  # the card that is open is that of the first change
    facts = " ".join(little.locator(".aside").inner_text().split())
    assert "Phase train In the run 41, in steps 0 to 410" in facts
    assert "Recorded 3 in 3 steps, 1 a step" in facts
    counted.locator("> summary").click()
    counted.locator(".chain summary").click()
    assert "no window recorded it" in counted.inner_text()


def test_amounts_of_recorded_steps_are_called_that_beside_the_run(show: Show) -> None:
    one = rate(sample.findings()[0], 1.0, 412)
    page = show(page_of(report(findings=[one]))).page
    said = [
        "1.63 ms",
        "blocked a recorded step, 27\u00a0%\u00a0of\u00a0it",
        "saves 3.7 %",
        "0.19\u00a0ms a recorded step",
    ]
    assert page.locator(".finding .cost").inner_text().split("\n") == said


def test_what_is_compiled_is_a_share_of_the_step_that_it_lengthens(show: Show) -> None:
    compiled = sample.finding("CMP701", "recompile", 5, "def forward(self, words):", op="")
    changes = {"site_source": "compile", "run_stall_ms_per_step": 98.1, "run_saving_ms_per_step": 98.1}
    unknown = dict.fromkeys(("saving_ms_per_step", "saving_low_ms_per_step", "saving_high_ms_per_step"))
    in_windows = msgspec.structs.replace(compiled, stall_ms_per_step=0.0, saving_null_why="no steady step", **unknown)
    one = rate(in_windows, 0.2, 82, **changes)
    page = show(page_of(report(findings=[one]))).page
    cost = page.locator(".finding .cost").inner_text().split("\n")
    assert cost[:3] == ["98.1 ms", "compiling a step, 50\u00a0%", "saves 50 %"]
    facts = page.locator(".finding .aside").inner_text()
    assert "Blocked" not in facts and "Saving unknown" not in facts


def test_where_the_time_of_a_phase_without_a_window_goes_is_a_note(show: Show) -> None:
    line = PhaseLine(site=Site(file="<b>.py", line=79, function="fit"), share=0.83)
    phases = [msgspec.structs.replace(phase, share=0.4, looks=9) for phase in run().phases]
    phases[-1] = msgspec.structs.replace(phases[-1], lines=(line,))
    page = show(page_of(report([info(run=run(phases=tuple(phases)))]))).page
    said = "epoch end, 40\u00a0% of the run: 83\u00a0% in fit (<b>.py:79)."
    assert page.locator("#run-notes li").all_inner_texts() == [said]


def test_a_phase_can_be_chosen(show: Show) -> None:
    page = show(page_of()).page
    page.locator("#phase").select_option(label="evaluate (1)")
    assert cards(page) == 1
    assert page.locator(".finding:visible .rule").inner_text() == "Unexplained wait"
    page.locator("#phase").select_option("")
    page.get_by_label("Search").fill("epoch end")
    assert cards(page) == 1


def test_each_rank_has_its_run_and_the_odd_one_is_named(show: Show) -> None:
    page = show(page_of(ranks(3))).page
    assert page.locator("#run-notes li").all_inner_texts() == [
        "rank 2 differs: train: 380 steps, not 412; train: 3.1 waits a step, not 2.1."
    ]
    page.get_by_label("Trace").first.select_option(label="rank 2 evaluate")
    assert "380" in page.locator("#run-phases tbody tr").first.inner_text()


def test_a_page_without_a_run_does_not_mention_it(show: Show) -> None:
    page = show(render(sample.report(), [lanes()])).page
    assert page.locator("#run-section").is_hidden()
    assert page.locator("#phase-label").is_hidden()
    assert page.locator(".finding .often").count() == 0
    assert page.evaluate("document.getElementById('run').data") is None


def test_a_process_that_was_only_counted_reads(show: Show) -> None:
    made = show(render(report([only_counted()]), []))
    assert made.errors == []
    assert "no window was recorded, waits were counted only" in made.page.locator("#lines").inner_text()
    assert made.page.locator("#run-section").is_visible()
    assert made.page.locator("#split-section").is_hidden()


def test_a_killed_run_says_so(show: Show) -> None:
    page = show(page_of(report([info(run=run(complete=False, shared_device=True))]))).page
    (note,) = page.locator("#run-notes li").all_inner_texts()
    assert "written last" in note


def test_names_of_phases_stay_text(show: Show) -> None:
    phases = tuple(msgspec.structs.replace(phase, name=HOSTILE, where=HOSTILE) for phase in run().phases)
    found = [msgspec.structs.replace(one, phase=HOSTILE) for one in report().findings[:2]]
    found.append(msgspec.structs.replace(report().findings[3], phase="var(--wait)"))
    made = show(page_of(report([info(run=run(phases=phases), phase=HOSTILE)], found)))
    page = made.page
    box = page.locator("#run").bounding_box()
    page.mouse.move(box["x"] + box["width"] * 0.5, box["y"] + box["height"] * 0.72)
    page.wait_for_timeout(300)
    assert made.errors == []
    assert page.locator("img").count() == 0
    assert page.locator("#run-section b, #findings b", has_text="bold").count() == 0
    assert "</script><b>bold</b><img" in page.locator("#run-phases").inner_text()
    assert "<b>bold</b>" in page.locator("#run").text_content()
    assert [url for url in made.requests if not url.startswith(("file:", "data:"))] == []


def test_it_prints_in_light_colours(show: Show) -> None:
    page = show(page_of(), scheme="dark").page
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    page.wait_for_timeout(200)
    assert page.evaluate("document.getElementById('run').data.map((trace) => trace.marker.color)")[1] == "#0279b8"
    assert page.locator("#run .main-svg").first.bounding_box()["width"] < 720


def test_a_closed_card_on_a_phone_breaks_no_word_and_leaves_no_empty_line(show: Show) -> None:
    """What saves little stands in one row with its place and how often it occurs, as far as there is room."""
    site = Site(file="moco/main_moco.py", line=264, function="main_worker", expression="model.cuda(args.gpu)")
    moved = msgspec.structs.replace(sample.findings()[1], site=site, saving_ms_per_step=0.01, saving_below_drift=True)
    page = show(page_of(report([info()], (rate(moved, None, 250, phase="start", run_steps=None),))), width=390).page
    page.locator(".finding").evaluate("card => { card.open = false }")
    tops = page.locator(".what .often").evaluate(
        """often => [...often.firstChild.data.matchAll(/\\S+/g)].map((word) => {
            const range = document.createRange();
            range.setStart(often.firstChild, word.index);
            range.setEnd(often.firstChild, word.index + word[0].length);
            return new Set([...range.getClientRects()].map((one) => one.top)).size;
        })"""
    )
    assert tops == [1] * len(tops) and len(tops) == 4
    box = page.locator(".what .tags").bounding_box()
    below = page.locator(".what .line code").bounding_box()
    assert box is not None and below is not None and below["y"] - (box["y"] + box["height"]) < 10


def test_rows_of_phases_without_steps_keep_to_their_columns_on_a_phone(show: Show) -> None:
    start, *others = phases()
    start = msgspec.structs.replace(start, times=12, waits_per_step=347.0)
    made = run(phases=(start, *others))
    page = show(render(report([info(run=made)], ())), width=390).page
    ends = page.locator("#run-phases tr").evaluate_all(
        "rows => rows.map((row) => [...row.children].slice(1).map((cell) => cell.getBoundingClientRect().right))"
    )
    assert all(end == ends[0] for end in ends)
