"""The timeline in Chromium: moving, finding, and what is drawn."""

from __future__ import annotations

from pathlib import Path

import pytest

from syncscope.analysis.analyze import analyze_timelines
from syncscope.report.cards import make_cards
from syncscope.report.html import render
from syncscope.report.picture.draw import draw_lanes
from syncscope.rules import find
from syncscope.timeline import Timeline
from syncscope.trace import load
from tests.builders import TraceBuilder
from tests.report.pages import Show, nth, pixels, point, sample, under, x_range
from tests.report.sample import finding, findings, lanes, report

FIXTURE = Path(__file__).parents[2] / "fixtures" / "traces" / "fixes" / "full.json.gz"


def test_a_click_on_a_finding_zooms_to_its_first_wait(show: Show) -> None:
    page = show(sample()).page
    before = x_range(page)
    nth(page, 1).get_by_role("button", name="Show in timeline").click()
    low, high = x_range(page)
    # The wait lies 3.25 to 4.91 ms into the first step.
    assert low < 3.25
    assert high > 4.91
    assert high - low < 0.9 * (before[1] - before[0])
    assert page.locator("#selected .title").inner_text() == "cudaStreamSynchronize"
    assert page.evaluate("document.activeElement.id") == "timeline-frame"


def test_from_a_wait_one_gets_to_its_copy_and_back_to_the_finding(show: Show) -> None:
    page = show(sample()).page
    nth(page, 1).get_by_role("button", name="Show in timeline").click()
    page.get_by_role("button", name="Go to what it waited for").click()
    assert page.locator("#selected .title").inner_text() == "Memcpy DtoH (Device -> Pinned)"
    assert "pinned" in page.locator("#selected").inner_text()
    page.get_by_role("button", name="Go to who waited for it").click()
    page.get_by_role("link", name="Go to the finding").click()
    assert f"#finding-{findings()[0].fingerprint}" in page.url


def test_a_finding_whose_place_is_not_drawn_says_so(show: Show) -> None:
    found = [finding("SYN103", "dynamic-shape", 7, "x.nonzero()", first_ns=10**15)]
    page = show(render(report(found=found), [lanes()])).page
    page.get_by_role("button", name="Show in timeline").click()
    assert "outside what is drawn" in page.locator("#selected").inner_text()


def test_keys_zoom_move_and_find_waits(show: Show) -> None:
    page = show(sample()).page
    page.locator("#timeline-frame").focus()
    whole = x_range(page)
    page.keyboard.press("w")
    near = x_range(page)
    assert near[1] - near[0] == pytest.approx(0.65 * (whole[1] - whole[0]), rel=1e-4)
    page.keyboard.press("d")
    assert x_range(page)[0] > near[0]
    page.keyboard.press("0")
    page.keyboard.press("n")
    assert page.locator("#selected .title").inner_text() == "cudaMemcpyAsync"
    page.keyboard.press("n")
    assert page.locator("#selected .title").inner_text() == "cudaStreamSynchronize"
    page.keyboard.press("p")
    assert page.locator("#selected .title").inner_text() == "cudaMemcpyAsync"
    page.keyboard.press("0")
    assert x_range(page) == pytest.approx(whole)
    page.keyboard.press("f")
    low, high = x_range(page)
    assert low <= 0 and high >= 18
    page.keyboard.press("Escape")
    assert "Click a bar" in page.locator("#selected").inner_text()


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
    x, y = point(page, 2.0, 60)
    page.mouse.click(x, y)
    page.mouse.wheel(0, -200)
    page.wait_for_timeout(100)
    low, high = x_range(page)
    assert high - low < 0.95 * (whole[1] - whole[0])
    # What is under the pointer stays there.
    assert point(page, 2.0, 60)[0] == pytest.approx(x, abs=1)


def test_dragging_moves_and_draws_what_comes_into_view(show: Show) -> None:
    page = show(sample()).page
    before = x_range(page)
    x, y = point(page, 5.0, 100)
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x - 400, y, steps=5)
    page.mouse.up()
    assert x_range(page)[0] > before[0] + 1
    assert point(page, 5.0, 100)[0] == pytest.approx(x - 400, abs=4)
    assert page.locator("#selected .title").count() == 0  # a drag is no click
    assert "Memcpy HtoD (Pageable -> Device)" in under(page, 6.7)


def test_two_fingers_zoom(show: Show) -> None:
    page = show(sample()).page
    before = x_range(page)
    x, y = point(page, 3.0, 80)
    page.evaluate(
        """([x, y]) => {
        const box = document.getElementById('timeline').getBoundingClientRect();
        const send = (type, id, dx) => document.getElementById('timeline').dispatchEvent(new PointerEvent(type,
          { pointerId: id, clientX: x + dx, clientY: y, bubbles: true, pointerType: 'touch', buttons: 1 }));
        HTMLElement.prototype.setPointerCapture = () => {};
        send('pointerdown', 1, -50); send('pointerdown', 2, 50); send('pointermove', 2, 150); send('pointerup', 2, 150);
        send('pointerup', 1, -50); }""",
        [x, y],
    )
    low, high = x_range(page)
    assert high - low == pytest.approx((before[1] - before[0]) / 2, rel=0.02)


def test_the_strip_of_the_whole_trace_moves_the_view(show: Show) -> None:
    page = show(sample()).page
    page.locator("#timeline-frame").scroll_into_view_if_needed()
    box = page.locator("#minimap").bounding_box()
    page.mouse.click(box["x"] + box["width"] - 100, box["y"] + 12)
    low, high = x_range(page)
    assert 12 < (low + high) / 2 < 18


def test_a_bar_under_the_pointer_tells_what_it_is(show: Show) -> None:
    page = show(sample()).page
    found = under(page, 0.72)
    assert list(found) == [
        "Optimizer.step#SGD.step 0", "aten::to", "cudaMemcpyAsync", "enumerate(DataLoader)",
        "Memcpy HtoD (Pageable -> Device)",
    ]  # fmt: skip
    tip = found["Memcpy HtoD (Pageable -> Device)"][1]
    for part in ("copy host to device", "GPU 0, stream 7", "4 MiB", "10.5 GB/s", "pageable", "train.py:31"):
        assert part in tip
    assert "40 in this bar" in found["enumerate(DataLoader)"][1]
    assert "Pageable copy" in found["cudaMemcpyAsync"][1]


def test_idle_time_names_its_cause_and_leads_to_the_wait_behind_it(show: Show) -> None:
    page = show(sample()).page
    found = under(page, 5.5)
    assert "1.1 ms" in found["Idle: wait"][1]
    page.mouse.click(*point(page, 5.5, found["Idle: wait"][0]))
    page.get_by_role("button", name="Go to the wait behind it").click()
    assert page.locator("#selected .title").inner_text() == "cudaStreamSynchronize"


def test_what_is_exposed_is_hatched_and_what_waited_is_linked(show: Show) -> None:
    page = show(sample()).page
    copy = under(page, 0.72)["Memcpy HtoD (Pageable -> Device)"][0] + 8
    kernel = under(page, 1.35)["elementwise_kernel<4, Add>"][0]
    assert pixels(page, 1.35, kernel + 3, 20, 3) == {"#0279b8"}
    assert "#e7a014" in pixels(page, 0.72, copy, 10, 10) and len(pixels(page, 0.72, copy, 10, 10)) > 4
    page.keyboard.press("Escape")
    found = under(page, 4.0)
    between = (found["cudaStreamSynchronize"][0] + kernel) // 2
    # The wait ends at 4.91 ms and its copy at 4.903: between their rows runs a line in the colour of waits.
    red = [c for c in pixels(page, 4.906, between, 12, 60) if int(c[1:3], 16) > 150 and int(c[3:5], 16) < 120]
    assert red


def test_another_step_can_be_chosen(show: Show) -> None:
    page = show(sample()).page
    page.get_by_label("Step", exact=True).fill("102")
    page.get_by_label("Step", exact=True).press("Enter")
    low, high = x_range(page)
    assert low < 0 < 6 < high < 7  # times count from the chosen step
    assert "Optimizer.step#SGD.step 2" in under(page, 3.0)


def test_a_real_recording_shows_what_its_json_says(show: Show) -> None:
    timeline = Timeline(load(FIXTURE))
    found = analyze_timelines([timeline])
    made = show(render(found, [draw_lanes(timeline, find(timeline)[0])]))
    page = made.page
    assert made.errors == []
    cards = make_cards(found.findings)
    assert page.locator(".finding").count() == len(cards) > 3
    for one in (card.lead for card in cards):
        if one.stall_ms_per_step is None or one.first_ns is None:
            continue
        page.evaluate("(id) => { location.hash = id; }", f"#finding-{one.fingerprint}")
        page.locator(f"#finding-{one.fingerprint}").get_by_role("button", name="Show in timeline").click()
        # The bar that begins then is chosen, and in view.
        low, high = x_range(page)
        start = page.locator("#selected dt", has_text="Start").locator("xpath=../dd").inner_text()
        begins = timeline.steps.ts
        exact = (one.first_ns - int(begins[begins <= one.first_ns][-1])) / 1e6
        value, unit = start.split()
        assert float(value.replace(",", "")) / (1000 if unit == "µs" else 1) == pytest.approx(exact, rel=0.01)
        assert low <= exact <= high


def test_a_hundred_thousand_bars_open_and_move(show: Show) -> None:
    builder = TraceBuilder().step(0, 500_000)
    events = builder.launch("warm", call=(0, 2), runs=(4, 3)).events
    call, kernel = events[-2:]
    for i in range(1, 50_000):
        for event, shift in ((call, 10 * i), (kernel, 10 * i)):
            args = {**event["args"], "correlation": i + 1}
            builder.events.append({**event, "ts": event["ts"] + shift, "args": args})
    timeline = Timeline(builder.trace())
    picture = draw_lanes(timeline, find(timeline)[0])
    assert picture.bars["ts"].count > 100_000
    made = show(render(analyze_timelines([timeline]), [picture]))
    page = made.page
    assert made.errors == []
    page.locator("#timeline-frame").focus()
    page.keyboard.press("f")
    assert "bars within two pixels" in under(page, 250)["warm"][1]
    for _ in range(26):
        page.keyboard.press("w")
    low, high = x_range(page)
    assert high - low < 0.02
    at = next(ms for ms in (low + (high - low) * part / 20 for part in range(20)) if "warm" in under(page, ms))
    assert "3 µs" in under(page, at)["warm"][1]


def test_a_name_never_runs_into_the_next_bar(show: Show) -> None:
    wide = "W" * 60 + " kernel with a wide name"
    page = show(render(report(), [lanes(kernel=wide)])).page
    page.evaluate(
        """() => {
        const pen = CanvasRenderingContext2D.prototype, { fillText, fillRect } = pen;
        window.said = []; window.bars = [];
        pen.fillRect = function (...box) {
          if (this.canvas.id === "timeline") window.bars.push(box);
          return fillRect.apply(this, box);
        };
        pen.fillText = function (text, x, y) {
          if (this.textAlign === "left") window.said.push([text, x, y, x + this.measureText(text).width]);
          return fillText.apply(this, [text, x, y]);
        }; }"""
    )
    page.locator("#timeline-frame").focus()
    for key in "www":
        page.keyboard.press(key)
    x_range(page)
    names = page.evaluate(
        """() => window.said.filter(([text]) => text.startsWith("WW")).map(([text, x, y, end]) => [text, end,
        window.bars.filter(([a, b, w, h]) => a <= x && x <= a + w && b <= y && y <= b + h && w < 600)
          .map(([a, , w]) => a + w)])"""
    )
    assert names
    for text, end, ends in names:
        assert ends and end <= max(ends), text


def test_a_kernel_is_found_by_a_part_of_its_name(show: Show) -> None:
    page = show(sample()).page
    page.get_by_label("Find", exact=True).fill("allreduce")
    assert page.locator("#kernel-count").inner_text() == "3 events, 1.8 ms in all"
    seen = []
    for _ in range(4):
        page.get_by_role("button", name="Next", exact=True).click()
        low, high = x_range(page)
        assert page.locator("#selected .title").inner_text() == "ncclDevKernel_AllReduce_Sum_f32_RING_LL"
        assert low <= 3.2 and high >= 3.8
        seen.append(page.locator("#step").input_value())
    assert seen == ["100", "101", "102", "100"]  # and from the beginning again
    page.get_by_label("Find", exact=True).fill("no such kernel")
    assert page.locator("#kernel-count").inner_text() == "Nothing has this name."


def test_what_was_found_is_framed(show: Show) -> None:
    page = show(sample()).page
    accent = page.evaluate("colour('accent')")
    y = under(page, 3.5)["ncclDevKernel_AllReduce_Sum_f32_RING_LL"][0]
    assert accent not in pixels(page, 3.5, y, 8, 12)
    page.get_by_label("Find", exact=True).fill("AllReduce")
    x_range(page)
    assert accent in pixels(page, 3.5, y, 8, 12)


def test_a_drag_with_shift_or_after_a_press_of_measure_measures(show: Show) -> None:
    page = show(sample()).page
    before = x_range(page)

    def drag(low: float, high: float) -> str:
        (x0, y), (x1, _) = point(page, low, 100), point(page, high, 100)
        page.mouse.move(x0, y)
        page.mouse.down()
        page.mouse.move(x1, y, steps=4)
        page.mouse.up()
        return str(page.locator("#measured").inner_text())

    page.keyboard.down("Shift")
    said = drag(5.0, 5.8)
    page.keyboard.up("Shift")
    assert x_range(page) == before
    length = float(said.split()[1])
    assert abs(length - 0.8) < 0.02
    assert "GPU 0 idle" in said and "(100 %)" in said  # the device waits from 4.9 ms on
    page.keyboard.press("Escape")
    assert page.locator("#measured").inner_text() == ""
    page.get_by_role("button", name="Measure").click()
    assert "Measured" in drag(1.3, 2.0)
    page.get_by_role("button", name="Measure").click()
    drag(1.3, 2.0)
    assert x_range(page) != before


def test_totals_by_kernel_are_those_of_what_is_in_view(show: Show) -> None:
    page = show(sample()).page
    page.locator("#totals > summary").click()
    page.locator("#timeline-frame").focus()
    page.keyboard.press("f")
    page.wait_for_timeout(400)
    rows = [row.locator("td").all_inner_texts() for row in page.locator("#totals-table tbody tr").all()]
    # 24 of 36 kernels of 0.26 ms, and so on; the trace lasts 18 ms and 10 % more are in view.
    assert rows[0] == ["ampere_sgemm_128x64_tn", "kernel", "24", "6.24 ms", "32 %"]
    assert rows[2][:4] == ["ncclDevKernel_AllReduce_Sum_f32_RING_LL", "collective", "3", "1.8 ms"]
    page.keyboard.press("0")
    page.wait_for_timeout(400)
    assert page.locator("#totals-table tbody td:nth-child(3)").first.inner_text() == "8"


def test_a_lane_folds_by_a_click_on_its_name_and_by_a_button(show: Show) -> None:
    page = show(sample()).page
    page.locator("#timeline-frame").scroll_into_view_if_needed()
    whole = page.locator("#timeline").bounding_box()
    page.mouse.click(whole["x"] + 60, whole["y"] + 50)
    x_range(page)
    folded = page.locator("#timeline").bounding_box()
    assert folded["height"] == whole["height"] - (15 + 17 + 22 + 2) + 12
    assert "cudaStreamSynchronize" in under(page, 4.0)  # it is still there
    page.locator("#lanes > summary").click()
    button = page.get_by_role("button", name="MainThread")
    assert button.get_attribute("aria-pressed") == "false"
    button.click()
    x_range(page)
    assert page.locator("#timeline").bounding_box()["height"] == whole["height"]
    assert page.evaluate("document.activeElement.textContent") == "MainThread"


def test_the_view_is_in_the_address_and_comes_back(show: Show) -> None:
    page = show(sample()).page
    page.wait_for_timeout(300)
    assert "#" not in page.url
    page.get_by_label("Step", exact=True).fill("101")
    page.get_by_label("Step", exact=True).press("Enter")
    page.locator("#timeline-frame").focus()
    page.keyboard.press("w")
    kept = x_range(page)
    page.wait_for_timeout(400)
    assert "step=101" in page.url
    again = show(sample(), at=page.url[page.url.index("#") :]).page
    assert x_range(again) == pytest.approx(kept, abs=1e-5)
    assert again.locator("#step").input_value() == "101"
    # A finding in the address stays there.
    again.evaluate("(id) => { location.hash = id; }", f"finding-{findings()[0].fingerprint}")
    again.locator("#timeline-frame").focus()
    again.keyboard.press("d")
    again.wait_for_timeout(400)
    assert "#finding-" in again.url and "step=101" in again.url


@pytest.mark.parametrize(
    "at", ["#from=nan&to=1", "#step=1e9&from=-1&to=-2", "#trace=77&from=0&to=1", "#%E0%A4%A", "#&&="]
)
def test_an_address_that_makes_no_sense_is_ignored(show: Show, at: str) -> None:
    made = show(sample(), at=at)
    assert made.errors == []
    assert x_range(made.page)[1] > 0


def test_show_never_begins_before_the_trace(show: Show) -> None:
    early = finding("SYN109", "library-sync", 12, "x.inverse()", first_ns=1000 * 1_000_000 + 20_000)
    page = show(render(report(found=[early, *findings()]), [lanes()])).page
    assert x_range(page)[0] >= 0
    page.get_by_role("button", name="Show in timeline").first.click()
    assert x_range(page)[0] >= 0
    page.locator("#timeline-frame").focus()
    page.keyboard.press("n")
    assert x_range(page)[0] >= 0


def test_a_compiled_kernel_says_its_lines_and_is_found_by_them(show: Show) -> None:
    trace = TraceBuilder().recording(0, 100).phase("train", steps=1).run()
    trace.kernel("triton_poi_fused_0", 10, 20).kernel("constructor", 40, 5)
    trace.kernel_line("triton_poi_fused_0", ("train.py", 9, "step", "x.sin() * <b>"))
    trace.kernel_line("triton_poi_fused_0", ("train.py", 11, "step", "x.cos()"))
    timeline = Timeline(trace.trace("runs/trace.json.gz"))
    page = show(render(report(), [draw_lanes(timeline, [])])).page
    page.locator("#kernel").fill("train.py:11")
    assert page.locator("#kernel-count").inner_text().startswith("1 event")
    page.locator("#kernel").press("Enter")
    assert "train.py:9 x.sin() * <b>; train.py:11 x.cos()" in " ".join(page.locator("#selected").inner_text().split())
    page.locator("#totals summary").click()
    lines = page.locator("#totals-table .kernel-line")
    lines.first.wait_for()  # the table is drawn when the browser says that it was opened
    shown = [" ".join(text.split()) for text in lines.all_inner_texts()]  # before it is laid out, spaces are not joined
    assert shown == ["train.py:9 x.sin() * <b>", "train.py:11 x.cos()"]
