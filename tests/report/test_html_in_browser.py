"""The page as a reader meets it, in Chromium."""

from __future__ import annotations

import re
from typing import Any

import msgspec
import pytest

from syncscope.report.html import render
from syncscope.schema.findings import Sketch, SketchLane
from syncscope.schema.report import Replay
from tests.report.pages import Show, cards, copied_text, drawn, nth, pixels, point, sample, under
from tests.report.sample import HOSTILE, finding, findings, lanes, report, trace_info


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1440, 390])
def test_it_opens_without_an_error_a_request_or_a_sideways_scroll(show: Show, width: int, scheme: str) -> None:
    made = show(sample(), width=width, scheme=scheme)
    made.page.wait_for_timeout(200)
    assert made.errors == []
    assert [url for url in made.requests if not url.startswith(("file:", "data:"))] == []
    assert made.page.evaluate("document.documentElement.scrollWidth") <= width
    assert len(pixels(made.page, 3, 90, wide=200, high=120)) > 10
    assert made.page.locator("#split .trace.bars").count() == 9
    assert made.page.locator("#savings .trace.bars").count() == 2
    assert made.page.locator("#savings .main-svg").first.bounding_box()["width"] <= width


def test_what_a_change_gives_comes_before_where_a_step_goes(show: Show) -> None:
    page = show(sample()).page
    order = page.locator("main > section:visible").evaluate_all("nodes => nodes.map((node) => node.id)")
    assert order[:4] == ["", "savings-section", "findings", "split-section"]


def test_a_long_path_in_a_message_does_not_widen_a_phones_page(show: Show) -> None:
    path = "/".join(["<site-packages>", "server", *["a_package_with_a_name"] * 5, "model.py:221"])
    one = finding("LCH501", "launch-bound", 221, None, message=f"most of it in forward ({path})")
    page = show(render(report(found=(one,)), [lanes()]), width=390).page
    page.locator("details.finding").first.evaluate("card => { card.open = true }")
    page.wait_for_timeout(100)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_a_long_name_of_a_phase_does_not_widen_a_phones_page(show: Show) -> None:
    made = [finding("SYN102", "scalar-read", line, "loss.item()") for line in (7, 8)]
    name = f"evaluate in {'_call_a_hook' * 5} of call.py"
    found = [msgspec.structs.replace(one, phase=f"{name} {number}") for number, one in enumerate(made)]
    page = show(render(report(found=tuple(found)), [lanes()]), width=390).page
    assert page.locator("#phase").is_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_what_each_change_saves_is_also_said_and_absent_where_nothing_does(show: Show) -> None:
    page = show(sample()).page
    said = page.locator("#savings").get_attribute("aria-label")
    assert said == "The step takes 5.1 ms; train.py:42  loss.item(): 4.91 ms, −3.7 %"
    assert "train.py:42  loss.item()" in page.locator("#savings").text_content()
    assert show(render(report(found=()), [lanes()])).page.locator("#savings-section").is_hidden()


@pytest.mark.parametrize(("width", "is_whole"), [(390, False), (1440, True)])
def test_the_name_of_a_change_ends_before_what_it_saves(show: Show, width: int, is_whole: bool) -> None:
    long = "values[<a & b>].to(device) + other_values.to(device).item()"
    read = findings()[0]
    assert read.site is not None
    read = msgspec.structs.replace(read, site=msgspec.structs.replace(read.site, expression=long))
    page = show(render(report(found=[read]), [lanes()]), width=width).page
    notes = page.locator("#savings .annotation-text")
    name, said = notes.nth(2), notes.nth(3)
    ends, begins = name.bounding_box(), said.bounding_box()
    assert ends["x"] + ends["width"] < begins["x"]
    text = name.text_content().replace("\xa0", " ")
    assert (text == f"train.py:42  {long}") if is_whole else (text[:13] == "train.py:42  " and text[-1] == "…")


def test_every_finding_of_the_report_is_a_card_in_its_order(show: Show) -> None:
    page = show(sample()).page
    names = [text.lower().replace(" ", "-") for text in page.locator(".finding .rule").all_inner_texts()]
    assert names == [one.name for one in report().findings]
    assert page.locator("#count").inner_text() == f"{len(report().findings)} findings"


def test_missing_figures_are_dashes_and_true_zeros_are_zeros(show: Show) -> None:
    page = show(sample()).page
    by_name = dict(zip([f.name for f in findings()], page.locator(".finding .cost").all_inner_texts(), strict=True))
    assert by_name["copy-not-overlapped"].split("\n") == ["saving not known"]
    assert by_name["explicit-sync"].split("\n") == [
        "20 µs",
        "blocked a step, under\u00a01\u00a0%\u00a0of\u00a0it",
        "saves nothing",
    ]
    blocked, saved = ["1.63 ms", "blocked a step, 27\u00a0%\u00a0of\u00a0it"], ["saves 3.7 %", "0.19\u00a0ms a step"]
    assert by_name["scalar-read"].split("\n") == [*blocked, *saved]


def test_a_card_tells_line_fix_source_and_chain(show: Show) -> None:
    page = show(sample()).page
    card = nth(page, 1)
    assert card.get_attribute("open") is not None
    text = card.inner_text()
    said = ("train.py:42 in train_step", "loss.item()", findings()[0].fix, "running += loss.item()", "aten::item")
    for part in (*said, "total += loss.detach()"):
        assert part in text
    assert not card.locator(".chain li").first.is_visible()
    card.locator(".chain summary").click()
    assert card.locator(".chain li").all_inner_texts()[-1] == "<site-packages>/lib/metrics.py:88 in Meter.update"


def test_expected_findings_say_why(show: Show) -> None:
    page = show(sample()).page
    card = nth(page, 4)
    card.locator("summary").first.click()
    card.get_by_text("Expected: timing of the epoch").wait_for()


def test_what_goes_beyond_the_baseline_says_so_and_what_it_covers_too(show: Show) -> None:
    beyond = msgspec.structs.replace(findings()[0], exceeds="baseline 1, now 2 a step" + HOSTILE)
    page = show(render(report(found=[beyond, findings()[4]]), [lanes()])).page
    assert "baseline 1, now 2 a step</script><b>bold</b>" in nth(page, 1).inner_text()
    nth(page, 2).locator("summary").first.click()
    nth(page, 2).get_by_text("In the baseline").wait_for()


def test_one_finding_alone_has_no_filters(show: Show) -> None:
    assert show(render(report(found=findings()[:1]), [lanes()])).page.locator("#filters").is_hidden()
    assert show(render(report(found=findings()[:2]), [lanes()])).page.locator("#filters").is_visible()


def test_where_there_are_no_steps_no_amount_is_of_one(show: Show) -> None:
    info = trace_info()
    whole = msgspec.structs.replace(info, steps=msgspec.structs.replace(info.steps, count=0, bare_ms=None))
    page = show(render(report([whole], findings()[:1]), [lanes()])).page
    said = page.locator(".finding").inner_text()
    assert "blocked in all" in said and "ms in all" in said
    assert "blocked a step" not in said and "of the step" not in said


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


def test_names_stay_text_wherever_they_are_shown(show: Show) -> None:
    found = [finding("SYN102", "scalar-read", 42, "loss.item()", op=HOSTILE, message=HOSTILE, fix=HOSTILE)]
    found += [finding("SYN109", HOSTILE, None, None, status="expected", reason=HOSTILE)]
    made = show(render(report([trace_info(HOSTILE)], found), [lanes(HOSTILE, kernel=HOSTILE)]))
    page = made.page
    assert made.errors == []
    assert page.locator("img").count() == 0
    assert page.locator("b", has_text=re.compile("^bold$")).count() == 0
    for place in (".finding >> nth=0", "#where", "#limits"):
        assert "script><b>bold</b><img src=x onerror=alert(1)>&amp;" in page.locator(place).inner_text()
    assert any(name.startswith("</script><b>bold</b><img") for name in under(page, 2.5))
    page.mouse.click(*point(page, 2.5, next(y for name, (y, _) in under(page, 2.5).items() if "script" in name)))
    assert "<b>bold</b>" in page.locator("#selected .title").inner_text()
    assert made.errors == []


def test_a_script_that_is_not_ours_does_not_run(show: Show) -> None:
    made = show(sample().replace("</body>", "<script>document.title = 'taken'</script></body>"))
    assert made.page.title() != "taken"
    assert any("Content Security Policy" in error for error in made.errors)


def test_a_link_opens_its_finding_even_if_a_filter_hides_it(show: Show) -> None:
    first, second = findings()[1].fingerprint, findings()[2].fingerprint
    page = show(sample(), at=f"#finding-{first}").page
    assert nth(page, 2).get_attribute("open") is not None
    page.get_by_label("Search").fill("torch.cuda.synchronize")
    page.evaluate("(id) => { location.hash = id; }", f"#finding-{second}")
    page.wait_for_selector(f"#finding-{second}[open]")
    assert nth(page, 3).is_visible()


def test_a_report_without_lanes_or_device_still_reads(show: Show) -> None:
    bare = msgspec.structs.replace(trace_info(), overlap=None)
    made = show(render(report([bare]), []))
    assert made.errors == []
    assert made.page.locator("#timeline-section").is_hidden()
    assert made.page.locator("#split").is_hidden()
    assert "Host blocked" in made.page.locator("#split-section").inner_text()
    assert made.page.get_by_role("button", name="Show in timeline").count() == 0
    assert cards(made.page) == 5


@pytest.mark.slow
def test_it_prints_in_light_colours_with_every_card_open(show: Show, browser: Any) -> None:
    page = show(sample(), scheme="dark").page
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")  # comes while the screen's style still holds
    page.emulate_media(media="print", color_scheme="dark")
    page.wait_for_timeout(200)
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.locator(".finding:not([open])").count() == 0
    assert page.locator("#timeline").evaluate("node => node.getBoundingClientRect().width") < 720
    assert "#0279b8" in drawn(page)
    fills = page.evaluate("document.getElementById('split').data.map((trace) => trace.marker.color)")
    assert fills[0] == "#0279b8"
    page.emulate_media(media="screen", color_scheme="dark")
    page.evaluate("window.dispatchEvent(new Event('afterprint'))")
    page.wait_for_timeout(200)
    assert page.locator(".finding[open]").count() == 1


def test_the_step_is_drawn_before_and_after_its_fix(show: Show) -> None:
    page = show(sample()).page
    drawn = nth(page, 1).locator(".sketches")
    assert drawn.locator("dt").all_text_contents() == ["Step without the profiler5.1 ms", "With this fixed4.91 ms"]
    said = drawn.locator("figcaption").inner_text().split("\n")
    assert said[:3] == ["host blocked", "busy: stream 7", "saved"]
    assert [svg.locator(".saved").count() for svg in drawn.locator("svg").all()] == [0, 1]
    # Two bins of ten are blocked before, none after; the stream is busy in both.
    paths = drawn.locator("path:not(.saved)").evaluate_all("paths => paths.map(path => path.getAttribute('d'))")
    assert [path.count("M") for path in paths] == [2, 8, 0, 9]
    widths = drawn.locator("rect").evaluate_all("rects => rects.map(rect => rect.getAttribute('width'))")
    assert widths == ["300", "300", "270", "270"]


def test_a_finding_that_was_not_drawn_has_no_picture_of_the_step(show: Show) -> None:
    page = show(sample()).page
    nth(page, 2).locator("> summary").click()
    assert nth(page, 2).locator(".sketches").count() == 0


def test_a_range_stands_where_the_saving_is_not_known(show: Show) -> None:
    only_range = {"saving_ms_per_step": None, "saving_low_ms_per_step": 0.1, "saving_null_why": "no bare step"}
    one = msgspec.structs.replace(findings()[0], **only_range, saving_high_ms_per_step=0.4)
    page = show(render(report(found=[one]), [lanes()])).page
    assert page.locator(".finding .cost").inner_text().split("\n")[2:] == [
        "saves up to 7.8 %",
        "0.1 to 0.4\u00a0ms a step",
    ]
    assert "no bare step" in nth(page, 1).locator(".body .aside").inner_text()


def test_what_stands_behind_the_savings_is_told(show: Show) -> None:
    page = show(sample()).page
    text = page.locator("#limits-body").text_content()
    assert "meets the recorded step within 1 %" in text
    assert "Assumed: pinned copies are taken to run at 55 GB/s." in text


def test_why_a_trace_has_no_savings_is_told(show: Show) -> None:
    info = msgspec.structs.replace(trace_info(), replay=Replay(null_why=f"it does not fit {HOSTILE}"))
    made = show(render(report([info]), [lanes()]))
    assert "No savings: it does not fit </script>" in made.page.locator("#limits-body").text_content()
    assert made.page.locator("#limits-body b, #limits-body img").count() == 0
    assert made.errors == []


def test_hostile_names_of_lanes_in_the_picture_of_the_step_stay_text(show: Show) -> None:
    spoiled = msgspec.structs.replace(
        findings()[0],
        after=Sketch(step_ms=4.0, lanes=(SketchLane(label=HOSTILE, busy="9x<"),)),
        saving_high_ms_per_step=1.0,
    )
    before = Sketch(step_ms=5.0, lanes=(SketchLane(label=HOSTILE, busy="909"),))
    info = msgspec.structs.replace(trace_info(), replay=Replay(before=before))
    made = show(render(report([info], [spoiled]), [lanes()]))
    assert made.errors == []
    assert nth(made.page, 1).locator(".sketches img").count() == 0
    assert "</script>" in nth(made.page, 1).locator(".sketches figcaption").inner_text()


def test_a_step_that_is_unlike_the_mean_is_not_drawn(show: Show) -> None:
    after = Sketch(step_ms=0.5, lanes=(SketchLane(label="stream 7", busy="9"),))
    found = msgspec.structs.replace(findings()[0], after=after, saving_high_ms_per_step=1.0)
    before = Sketch(step_ms=1.0, lanes=(SketchLane(label="stream 7", busy="99"),))
    made = show(
        render(report([msgspec.structs.replace(trace_info(), replay=Replay(before=before))], [found]), [lanes()])
    )
    assert made.errors == []
    assert nth(made.page, 1).locator(".sketches").count() == 0


def test_the_tables_of_hta_are_shown_and_say_what_was_not_run(show: Show) -> None:
    page = show(sample()).page
    section = page.locator("#hta-section")
    assert section.locator("h2").inner_text() == "HTA"
    lead = "traceinsight 0.6.1, the last profiler step left out, times rounded inwards to whole µs"
    assert section.locator(".lead").inner_text() == lead
    assert section.locator("h3").all_inner_texts() == ["Idle time breakdown", "Critical path"]
    rows = [row.locator("td").all_inner_texts() for row in section.locator("tbody tr").all()]
    assert rows == [["7", "host_wait", "18,669", "0.98"], ["7", "other", "68", "—"]]
    assert section.locator("p").last.inner_text() == "Not run: needs CPU ops, which this trace does not hold"


def test_without_them_nothing_is_said_of_hta(show: Show) -> None:
    info = msgspec.structs.replace(trace_info(), hta=None)
    assert not show(render(report([info]), [lanes()])).page.locator("#hta-section").is_visible()


def test_a_link_to_a_finding_can_be_copied(show: Show) -> None:
    page = show(sample()).page
    nth(page, 2).locator("> summary").click()
    nth(page, 2).get_by_role("button", name="Copy link").click()
    assert copied_text(page, 2).endswith(f"#finding-{findings()[1].fingerprint}")
