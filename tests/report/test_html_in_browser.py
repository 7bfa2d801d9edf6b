"""The page as a reader meets it, in Chromium."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import pytest

from syncscope.findings import Finding, Replay, Sketch, SketchLane
from syncscope.report.html import render
from tests.report.conftest import Opened
from tests.report.sample import HOSTILE, finding, findings, lanes, report, trace_info

Show = Callable[..., Opened]


def sample() -> str:
    return render(report(), [lanes()])


def two_ranks() -> str:
    infos = [trace_info(f"out/rank{rank}.json", rank) for rank in range(2)]
    found: Sequence[Finding] = [msgspec.structs.replace(f, trace=rank) for rank in range(2) for f in findings(rank)]
    return render(report(infos, found), [lanes(info.path, info.rank) for info in infos])


def x_range(page: Any) -> tuple[float, float]:
    low, high = page.evaluate("document.getElementById('timeline').layout.xaxis.range.map(Number)")
    return low, high


def cards(page: Any) -> int:
    return int(page.locator(".finding:visible").count())


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1440, 390])
def test_it_opens_without_an_error_a_request_or_a_sideways_scroll(show: Show, width: int, scheme: str) -> None:
    made = show(sample(), width=width, scheme=scheme)
    made.page.wait_for_timeout(200)
    assert made.errors == []
    assert [url for url in made.requests if not url.startswith(("file:", "data:"))] == []
    assert made.page.evaluate("document.documentElement.scrollWidth") <= width
    assert made.page.locator("#timeline .trace.bars").count() > 3
    assert made.page.locator("#split .trace.bars").count() == 9


def test_every_finding_of_the_report_is_a_card_in_its_order(show: Show) -> None:
    page = show(sample()).page
    names = [text.lower().replace(" ", "-") for text in page.locator(".finding .rule").all_inner_texts()]
    assert names == [one.name for one in report().findings]
    assert page.locator("#count").inner_text() == f"{len(report().findings)} findings"


def test_missing_figures_are_dashes_and_true_zeros_are_zeros(show: Show) -> None:
    page = show(sample()).page
    by_name = dict(zip([f.name for f in findings()], page.locator(".finding .cost").all_inner_texts(), strict=True))
    assert by_name["copy-not-overlapped"].split("\n") == ["—", "blocked", "—", "worth"]
    assert by_name["explicit-sync"].split("\n") == ["20 µs", "blocked a step", "0 ms", "worth a step"]
    assert by_name["scalar-read"].split("\n") == ["1.63 ms", "blocked a step", "0.19 ms", "worth a step"]


def test_a_card_tells_line_fix_source_and_chain(show: Show) -> None:
    page = show(sample()).page
    card = page.locator("#finding-1")
    assert card.get_attribute("open") is not None
    text = card.inner_text()
    for part in ("train.py:42 in train_step", "loss.item()", findings()[0].fix, "running += loss.item()", "aten::item"):
        assert part in text
    assert not card.locator(".chain li").first.is_visible()
    card.locator(".chain summary").click()
    assert card.locator(".chain li").all_inner_texts()[-1] == "<site-packages>/lib/metrics.py:88 in Meter.update"


def test_expected_findings_say_why(show: Show) -> None:
    page = show(sample()).page
    card = page.locator("#finding-4")
    card.locator("summary").first.click()
    assert "Expected: timing of the epoch" in card.inner_text()


def test_what_goes_beyond_the_baseline_says_so_and_what_it_covers_too(show: Show) -> None:
    beyond = msgspec.structs.replace(findings()[0], exceeds="baseline 1, now 2 a step" + HOSTILE)
    page = show(render(report(found=[beyond, findings()[4]]), [lanes()])).page
    assert "baseline 1, now 2 a step</script><b>bold</b>" in page.locator("#finding-1").inner_text()
    page.locator("#finding-2 summary").first.click()
    assert "In the baseline" in page.locator("#finding-2").inner_text()


def test_search_and_filters_narrow_the_cards(show: Show) -> None:
    page = show(sample()).page
    page.get_by_label("Search").fill("train.py:31")
    assert cards(page) == 2
    assert page.locator("#count").inner_text() == "2 of 5 findings"
    page.locator("#rule").select_option("CPY201")
    assert cards(page) == 1
    page.get_by_label("Search").fill("no such thing")
    assert page.locator("#none").inner_text() == "Nothing matches the filter."
    page.get_by_label("Search").fill("")
    page.locator("#rule").select_option("")
    page.get_by_label("Unexpected").uncheck()
    assert cards(page) == 2


def test_a_click_on_a_finding_zooms_to_its_first_wait(show: Show) -> None:
    page = show(sample()).page
    before = x_range(page)
    page.locator("#finding-1").get_by_role("button", name="Show in timeline").click()
    low, high = x_range(page)
    # The wait lies 3.25 to 4.91 ms into the first step.
    assert low < 3.25
    assert high > 4.91
    assert high - low < 0.9 * (before[1] - before[0])
    assert page.locator("#selected .title").inner_text() == "cudaStreamSynchronize"
    assert page.evaluate("document.activeElement.id") == "timeline-frame"


def test_from_a_wait_one_gets_to_its_copy_and_back_to_the_finding(show: Show) -> None:
    page = show(sample()).page
    page.locator("#finding-1").get_by_role("button", name="Show in timeline").click()
    page.get_by_role("button", name="Go to what it waited for").click()
    assert page.locator("#selected .title").inner_text() == "Memcpy DtoH (Device -> Pinned)"
    assert "pinned" in page.locator("#selected").inner_text()
    page.get_by_role("button", name="Go to who waited for it").click()
    page.get_by_role("link", name="Go to the finding").click()
    assert page.url.endswith("#finding-1")


def test_a_finding_whose_place_is_not_drawn_says_so(show: Show) -> None:
    found = [finding("SYN103", "dynamic-shape", 7, "x.nonzero()", first_ns=10**15)]
    page = show(render(report(found=found), [lanes()])).page
    page.get_by_role("button", name="Show in timeline").click()
    assert "outside the steps drawn" in page.locator("#selected").inner_text()


def test_keys_zoom_move_and_find_waits(show: Show) -> None:
    page = show(sample()).page
    page.locator("#timeline-frame").focus()
    whole = x_range(page)
    page.keyboard.press("w")
    near = x_range(page)
    assert near[1] - near[0] == pytest.approx(0.6 * (whole[1] - whole[0]))
    page.keyboard.press("d")
    assert x_range(page)[0] > near[0]
    page.keyboard.press("0")
    page.keyboard.press("n")
    assert page.locator("#selected .title").inner_text() == "cudaMemcpyAsync"
    page.keyboard.press("0")
    assert x_range(page) == pytest.approx(whole)


def test_the_wheel_scrolls_the_page_until_the_timeline_is_clicked(show: Show) -> None:
    page = show(sample()).page
    frame = page.locator("#timeline-frame")
    frame.scroll_into_view_if_needed()
    box = frame.bounding_box()
    whole = x_range(page)
    page.mouse.move(box["x"] + 600, box["y"] + 60)
    page.mouse.wheel(0, -40)
    page.wait_for_timeout(200)
    assert x_range(page) == pytest.approx(whole)
    frame.scroll_into_view_if_needed()
    box = frame.bounding_box()
    page.mouse.click(box["x"] + 600, box["y"] + 60)
    page.mouse.wheel(0, -200)
    page.wait_for_timeout(400)
    low, high = x_range(page)
    assert high - low < 0.95 * (whole[1] - whole[0])


def test_dragging_moves_and_draws_what_comes_into_view(show: Show) -> None:
    page = show(sample()).page
    frame = page.locator("#timeline-frame")
    frame.scroll_into_view_if_needed()
    box = frame.bounding_box()
    before = x_range(page)
    page.mouse.move(box["x"] + 900, box["y"] + 100)
    page.mouse.down()
    page.mouse.move(box["x"] + 500, box["y"] + 100, steps=5)
    page.mouse.up()
    page.wait_for_timeout(200)
    assert x_range(page)[0] > before[0] + 1


def test_a_bar_under_the_pointer_tells_what_it_is(show: Show) -> None:
    made = show(sample())
    page = made.page
    page.locator("#timeline-frame").scroll_into_view_if_needed()
    point = page.evaluate(
        """() => { const gd = document.getElementById('timeline'), box = gd.getBoundingClientRect(), l = gd._fullLayout;
        return [box.x + l._size.l + l.xaxis.d2p(0.72), box.y + l._size.t + l.yaxis.d2p(gd.data.at(-1).y[0])] }"""
    )
    page.mouse.move(point[0] - 3, point[1])
    page.mouse.move(*point)
    page.wait_for_selector("#tip:not([hidden])", timeout=3000)
    assert page.locator("#tip b").inner_text()


def test_another_step_can_be_chosen(show: Show) -> None:
    page = show(sample()).page
    page.locator("#step").select_option(label="102")
    low, high = x_range(page)
    assert low < 0 < 6 < high  # times count from the chosen step
    assert page.evaluate("document.getElementById('timeline').data.some((t) => t.base && Math.min(...t.base) < -5)")


def test_names_stay_text_wherever_they_are_shown(show: Show) -> None:
    found = [finding("SYN102", "scalar-read", 42, "loss.item()", op=HOSTILE, message=HOSTILE, fix=HOSTILE)]
    found += [finding("SYN109", HOSTILE, None, None, status="expected", reason=HOSTILE)]
    made = show(render(report([trace_info(HOSTILE)], found), [lanes(HOSTILE, kernel=HOSTILE)]))
    page = made.page
    assert made.errors == []
    assert page.locator("img").count() == 0
    assert page.locator("b", has_text=re.compile("^bold$")).count() == 0
    for place in ("#finding-1", "#where", "#limits"):
        assert "script><b>bold</b><img src=x onerror=alert(1)>&amp;" in page.locator(place).inner_text()
    # Bars are wide enough for their names after a zoom; plotly must show them as they are.
    page.locator("#timeline-frame").focus()
    for _ in range(4):
        page.keyboard.press("w")
    assert "</script>" in page.locator("#timeline").evaluate("node => node.textContent")
    assert page.locator("#timeline [style*='font-weight: bold'], #timeline a").count() == 0


def test_a_script_that_is_not_ours_does_not_run(show: Show) -> None:
    made = show(sample().replace("</body>", "<script>document.title = 'taken'</script></body>"))
    assert made.page.title() != "taken"
    assert any("Content Security Policy" in error for error in made.errors)


def test_a_link_opens_its_finding_even_if_a_filter_hides_it(show: Show) -> None:
    made = show(sample(), at="#finding-2")
    assert made.page.locator("#finding-2").get_attribute("open") is not None
    made.page.get_by_label("Search").fill("torch.cuda.synchronize")
    made.page.evaluate("location.hash = '#finding-3'")
    made.page.wait_for_timeout(100)
    assert made.page.locator("#finding-3").is_visible()


def test_ranks_have_a_table_and_a_choice(show: Show) -> None:
    page = show(two_ranks()).page
    assert page.locator("#ranks tbody tr").count() == 2
    assert cards(page) == 5
    page.locator("#trace").select_option("")
    assert cards(page) == 10
    page.locator("#ranks").get_by_role("button", name="rank 1").click()
    assert page.locator("#ranks tr[aria-current=true]").inner_text().startswith("rank 1")
    assert page.locator(".finding:visible").first.get_attribute("id") == "finding-6"
    page.locator("#finding-6").get_by_role("button", name="Show in timeline").click()
    assert page.locator("#selected .title").inner_text() == "cudaStreamSynchronize"


def test_a_report_without_lanes_or_device_still_reads(show: Show) -> None:
    bare = msgspec.structs.replace(trace_info(), overlap=None)
    made = show(render(report([bare]), []))
    assert made.errors == []
    assert made.page.locator("#timeline-section").is_hidden()
    assert made.page.locator("#split-section").is_hidden()
    assert made.page.get_by_role("button", name="Show in timeline").count() == 0
    assert cards(made.page) == 5


def test_it_prints_in_light_colours_with_every_card_open(show: Show, browser: Any) -> None:
    page = show(sample(), scheme="dark").page
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")  # comes while the screen's style still holds
    page.emulate_media(media="print", color_scheme="dark")
    page.wait_for_timeout(200)
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.locator(".finding:not([open])").count() == 0
    assert page.locator("#timeline svg.main-svg").first.evaluate("node => node.getBoundingClientRect().width") < 720
    fills = page.evaluate("document.getElementById('split').data.map((trace) => trace.marker.color)")
    assert fills[0] == "#0077bb"
    page.emulate_media(media="screen", color_scheme="dark")
    page.evaluate("window.dispatchEvent(new Event('afterprint'))")
    page.wait_for_timeout(200)
    assert page.locator(".finding[open]").count() == 1


def test_it_has_landmarks_names_and_one_main_heading(show: Show) -> None:
    page = show(two_ranks()).page
    assert page.locator("h1").count() == 1
    assert page.locator("main").count() == 1
    unnamed = page.evaluate(
        """() => [...document.querySelectorAll('button, select, input, a[href]')].filter((node) =>
        !(node.textContent.trim() || node.getAttribute('aria-label') || node.labels?.length)).map((n) => n.outerHTML)"""
    )
    assert unnamed == []
    assert page.locator("html").get_attribute("lang") == "en"


def test_the_step_is_drawn_before_and_after_its_fix(show: Show) -> None:
    page = show(sample()).page
    drawn = page.locator("#finding-1 .sketches")
    assert drawn.locator("dt").all_inner_texts() == ["Step as it is\n5.1 ms", "With this fixed\n4.9 ms"]
    assert "host blocked, stream 7" in drawn.locator("figcaption").inner_text()
    # Two bins of ten are blocked before, none after; the stream is busy in both.
    paths = drawn.locator("path").evaluate_all("paths => paths.map(path => path.getAttribute('d'))")
    assert [path.count("M") for path in paths] == [2, 8, 0, 9]
    widths = drawn.locator("rect").evaluate_all("rects => rects.map(rect => rect.getAttribute('width'))")
    assert widths == ["300", "300", "270", "270"]


def test_a_finding_that_was_not_drawn_has_no_picture_of_the_step(show: Show) -> None:
    page = show(sample()).page
    page.locator("#finding-2 > summary").click()
    assert page.locator("#finding-2 .sketches").count() == 0


def test_a_range_stands_where_the_worth_is_not_known(show: Show) -> None:
    only_range = {"saving_ms_per_step": None, "saving_low_ms_per_step": 0.1, "saving_null_why": "no bare step"}
    one = msgspec.structs.replace(findings()[0], **only_range, saving_high_ms_per_step=0.4)
    page = show(render(report(found=[one]), [lanes()])).page
    assert page.locator(".finding .cost").inner_text().split("\n")[2:] == ["0.1 to 0.4 ms", "worth a step"]
    assert "no bare step" in page.locator("#finding-1 .body > .facts").inner_text()


def test_what_stands_behind_the_savings_is_told(show: Show) -> None:
    page = show(sample()).page
    text = page.locator("#limits-body").text_content()
    assert "misses the traced step by 0.1 %" in text
    assert "Assumed: pinned copies are taken to run at 55 GB/s." in text


def test_why_a_trace_has_no_savings_is_told(show: Show) -> None:
    info = msgspec.structs.replace(trace_info(), replay=Replay(null_why=f"it does not fit {HOSTILE}"))
    made = show(render(report([info]), [lanes()]))
    assert "No savings: it does not fit </script>" in made.page.locator("#limits-body").text_content()
    assert made.page.locator("#limits-body b, #limits-body img").count() == 0
    assert made.errors == []


def test_hostile_names_of_lanes_in_the_picture_of_the_step_stay_text(show: Show) -> None:
    spoiled = msgspec.structs.replace(
        findings()[0], after=Sketch(step_ms=1.0, lanes=(SketchLane(label=HOSTILE, busy="9x<"),))
    )
    before = Sketch(step_ms=2.0, lanes=(SketchLane(label=HOSTILE, busy="909"),))
    info = msgspec.structs.replace(trace_info(), replay=Replay(before=before))
    made = show(render(report([info], [spoiled]), [lanes()]))
    assert made.errors == []
    assert made.page.locator("#finding-1 .sketches img").count() == 0
    assert "</script>" in made.page.locator("#finding-1 figcaption").inner_text()
