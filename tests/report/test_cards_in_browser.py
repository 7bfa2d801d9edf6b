"""Cards in Chromium: one place is one card, nothing is hidden, and what a reader sees first is what can be gained."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from syncscope.report.html import render
from syncscope.schema.findings import Finding, IdleCause, WorkEnd
from syncscope.schema.report import Steps
from tests.report import sample_run
from tests.report.pages import Show, cards, copied_text, nth, sample
from tests.report.sample import HOSTILE, finding, findings, lanes, report, trace_info

CALL = "batch.to(device)"


def at_one_place() -> Sequence[Finding]:
    """Three rules about the same copy, and a finding elsewhere."""
    rules = (("SYN101", "blocking-copy", 0.9), ("CPY201", "pageable-copy", 0.5), ("OVL301", "copy-not-overlapped", 0.1))
    found = [finding(rule, name, 31, CALL, stall=1.0, saving=saving) for rule, name, saving in rules]
    prints = tuple(one.fingerprint for one in found)
    joined = [msgspec.structs.replace(one, related=prints) for one in found]
    return [*joined, finding("SYN102", "scalar-read", 42, "loss.item()", stall=0.5, saving=0.02)]


def of_place(**changes: Any) -> str:
    return render(report([trace_info()], at_one_place(), **changes), [lanes()])


def test_three_rules_at_one_place_are_one_card_with_one_fix_and_one_saving(show: Show) -> None:
    page = show(of_place()).page
    assert cards(page) == 2
    assert page.locator("#count").inner_text() == "2 cards for 4 findings"
    assert nth(page, 1).locator(".tag").all_inner_texts() == ["SYN101", "CPY201", "OVL301"]
    assert nth(page, 1).locator(".impact b").all_inner_texts() == ["saves 18 %"]
    assert nth(page, 1).locator(".fix").count() == 1
    assert "CPY201 Pageable copy" in nth(page, 1).locator(".others").inner_text()


def test_host_work_that_ends_at_a_line_is_before_it(show: Show) -> None:
    work = finding("OVL303", "device-starved", 31, CALL, saving=0.9)
    assert work.site is not None
    ended = msgspec.structs.replace(work, work_ends_at=(WorkEnd(site=work.site, share=0.9),))
    page = show(render(report([trace_info()], [ended]), [lanes()])).page
    assert nth(page, 1).locator(".line").inner_text().startswith("before train.py:31")


def test_each_rule_of_a_card_finds_it_by_filter_and_by_link(show: Show) -> None:
    last = at_one_place()[2]
    page = show(of_place(), at=f"#finding-{last.fingerprint}").page
    assert "named" in nth(page, 1).get_attribute("class")
    for rule in ("SYN101", "CPY201", "OVL301"):
        page.locator("#rule").select_option(rule)
        assert cards(page) == 1
        assert nth(page, 1).is_visible()
    assert page.locator("#count").inner_text() == "1 of 2 cards"


def test_a_rule_s_link_opens_its_documentation(show: Show) -> None:
    page = show(of_place()).page
    nth(page, 1).get_by_role("link", name="About CPY201").click()
    page.wait_for_selector("#rule-CPY201[open]")


def test_on_one_rank_every_finding_is_on_a_card_that_is_shown(show: Show) -> None:
    twice = [finding("SYN102", "scalar-read", 42, "loss.item()", saving=0.1)] * 2  # of one fingerprint
    page = show(render(report(found=twice), [lanes()])).page
    assert cards(page) == 2
    assert "other ranks" not in page.locator("#count").inner_text()
    assert len(set(page.locator(".finding").evaluate_all("nodes => nodes.map((node) => node.id)"))) == 2


def test_the_page_begins_with_what_to_know_and_the_first_change_leads_to_its_card(show: Show) -> None:
    page = show(of_place()).page
    text = " ".join(page.locator(".headline").inner_text().split())
    assert text.startswith(f"Step 5.1 → 4.2 ms, −18 % (14 to 21 %), with the first change First train.py:31 {CALL}")
    assert "Idle 27 % of the recorded step (1.6 of 6 ms): wait 15 %, host work 12 %" in text
    page.get_by_role("link", name="See its card").click()
    page.wait_for_selector(".finding.named")
    assert "named" in nth(page, 1).get_attribute("class")


def test_a_device_that_computes_leads_to_the_totals_by_kernel(show: Show) -> None:
    info = trace_info()
    assert info.overlap is not None
    busy = msgspec.structs.replace(info.overlap, device_busy_ms=6.0, compute_ms=6.0, idle_ms=0.0)
    made = report([msgspec.structs.replace(info, overlap=busy)], ())
    assert show(render(made, [])).page.get_by_role("link", name="See their totals").count() == 0
    page = show(render(made, [lanes()])).page
    assert page.locator("#totals[open]").count() == 0
    page.locator("#lines").get_by_role("link", name="See their totals").click()
    page.locator("#totals[open] #totals-table tbody tr").first.wait_for()  # a moment later: opening is an event
    assert show(of_place()).page.get_by_role("link", name="See their totals").count() == 0


def test_what_changes_save_of_a_trace_without_steps_is_of_no_step(show: Show) -> None:
    whole = msgspec.structs.replace(
        trace_info(), steps=Steps(count=0, profiled_ms=None, bare_ms=None, source="none"), each_step=None
    )
    page = show(render(report([whole], at_one_place()), [lanes()])).page
    assert page.locator("#savings-lead").inner_text().startswith("The trace without the profiler: as it is")
    assert "the trace as it is" in page.locator("#savings").inner_text()


def test_a_hostile_name_in_the_verdict_stays_text(show: Show) -> None:
    one = finding("SYN102", "scalar-read", 42, HOSTILE[:40], saving=1.0)
    made = show(render(report(found=[one]), [lanes()]))
    assert "</script><b>bold</b>" in made.page.locator("#lines").inner_text()
    assert made.page.locator("#lines b, #lines img").count() == 0
    assert made.errors == []


def test_impact_is_shown_and_no_alarm(show: Show) -> None:
    small = finding("SYN102", "scalar-read", 42, "loss.item()", severity="error", saving=0.2)
    race = finding("HAZ401", "read-before-arrival", 50, "y.numpy()", severity="error")
    page = show(render(report(found=[race, small]), [lanes()])).page
    assert page.locator(".finding .impact b").all_inner_texts() == ["results may be wrong", "saves 3.9 %"]
    assert [node.get_attribute("class") for node in page.locator(".finding .icon").all()] == [
        "icon wrong", "icon medium"
    ]  # fmt: skip
    assert "error" not in page.locator("#cards").inner_text()


def test_without_a_gate_there_is_no_status_to_choose(show: Show) -> None:
    assert show(of_place()).page.locator("#statuses").is_hidden()
    assert show(sample()).page.locator("#statuses").is_visible()


def test_what_only_sums_others_up_comes_last_and_says_so(show: Show) -> None:
    own = finding("SYN102", "scalar-read", 42, "loss.item()", saving=0.02)
    cause = IdleCause(cause="wait", ms_per_step=0.9, covered_by=(own.fingerprint,))
    idle = msgspec.structs.replace(
        finding("OVL303", "device-starved", None, None, saving=0.9), causes=(cause,), sums_up=True, idle_ms_per_step=1.6
    )
    page = show(render(report(found=[idle, own]), [lanes()])).page
    assert page.locator(".finding .rule").all_inner_texts() == ["Scalar read", "Device starved"]
    assert "sums up the others" in nth(page, 2).inner_text()
    assert "sums up the others" not in nth(page, 1).inner_text()


def test_how_to_get_lines_is_said_once(show: Show) -> None:
    found = [finding("SYN109", "library-sync", None, None, op=f"aten::op{n}") for n in range(3)]
    info = msgspec.structs.replace(trace_info(), has=("runtime", "cpu_op", "steps"))
    page = show(render(report([info], found), [lanes()])).page
    assert page.get_by_text("with_stack=True").count() == 1
    assert "no line in the trace" not in page.locator("main").inner_text()
    known = show(render(report(found=findings()[:1]), [lanes()])).page
    assert known.locator("#lines-lead").is_hidden()


def test_a_card_is_copied_as_markdown_and_as_a_prompt(show: Show) -> None:
    page = show(sample()).page
    nth(page, 1).get_by_role("button", name="Copy as Markdown").click()
    note = copied_text(page, 1)
    assert "`train.py:42`" in note and "running += loss.item()" in note and findings()[0].fix[:8] in note
    nth(page, 1).get_by_role("button", name="Copy as prompt").click()
    page.wait_for_timeout(100)
    assert "What to change: Keep the value" in copied_text(page, 1)


def test_where_the_clipboard_is_closed_the_text_is_shown_to_be_copied_by_hand(show: Show) -> None:
    page = show(sample()).page
    page.evaluate("() => { navigator.clipboard.writeText = () => Promise.reject(new Error('closed')); }")
    nth(page, 1).get_by_role("button", name="Copy as prompt").click()
    assert "What to change" in nth(page, 1).locator("textarea.by-hand").input_value()


def test_a_picture_of_the_step_that_contradicts_the_saving_is_not_shown(show: Show) -> None:
    assert nth(show(sample()).page, 1).locator(".sketches").count() == 1
    other = msgspec.structs.replace(findings()[0], saving_ms_per_step=1.9, saving_low_ms_per_step=1.8)
    other = msgspec.structs.replace(other, saving_high_ms_per_step=2.0)
    assert nth(show(render(report(found=[other]), [lanes()])).page, 1).locator(".sketches").count() == 0


def test_an_example_is_called_one_unless_it_is_the_reader_s_own_call(show: Show) -> None:
    fix = "Pass num_classes=."
    found = [finding("SYN109", "library-sync", 7, "one_hot(labels)", saving=1.0, fix=fix), findings()[0]]
    page = show(render(report(found=found), [lanes()])).page
    assert nth(page, 1).locator(".change figcaption").inner_text() == "Your call, changed"
    assert "one_hot(labels, num_classes=n)" in nth(page, 1).locator(".change").inner_text()
    nth(page, 2).locator("> summary").click()
    assert nth(page, 2).locator(".change figcaption").inner_text() == "An example, not your code"


def test_a_saving_of_nothing_is_no_range_and_not_unknown(show: Show) -> None:
    none = dict.fromkeys(("saving_low_ms_per_step", "saving_high_ms_per_step", "likely_saving_ms_per_step"), 0.0)
    one = msgspec.structs.replace(findings()[0], saving_ms_per_step=None, saving_null_why="no bare step", **none)
    page = show(render(report(found=[one]), [lanes()])).page
    assert page.locator(".finding .impact").inner_text() == "saves nothing"
    facts = nth(page, 1).locator(".facts").first.inner_text()
    assert "0 to 0" not in facts and "no bare step" not in facts


def test_the_idle_time_of_launches_is_of_the_step_without_the_profiler(show: Show) -> None:
    one = msgspec.structs.replace(finding("LCH501", "launch-bound", None, None, saving=0.5), idle_ms_per_step=1.53)
    page = show(render(report(found=[one]), [lanes()])).page
    assert "idle a step, 30 % of it without the profiler" in _spaced(page.locator(".finding .cost").inner_text())
    info = trace_info()
    guessed = msgspec.structs.replace(info, steps=msgspec.structs.replace(info.steps, bare_ms=None))
    page = show(render(report([guessed], [one]), [lanes()])).page
    assert "without the profiler, at a guess" in _spaced(page.locator(".finding .cost").inner_text())
    assert page.locator(".finding .meter").count() == 0


def _spaced(text: str) -> str:
    return text.replace("\xa0", " ")


def test_time_blocked_outside_of_steps_is_not_told_as_that_of_a_step(show: Show) -> None:
    def costs(phase: str, stall: float) -> list[str]:
        counted = msgspec.structs.replace(sample_run.counted_only(), phase=phase, run_stall_ms_per_step=stall)
        page = show(render(sample_run.report([sample_run.info()], [counted]), [lanes()])).page
        return [" ".join(one.split()) for one in page.locator(".cost > span").all_inner_texts()[:1]]

    assert costs("start", 29.7) == ["29.7 ms blocked in all, at most"]
    assert costs("epoch end", 2.0) == ["2 ms blocked each time, at most"]
    assert costs("evaluate", 44.25) == ["44.3 ms blocked a step, at most, 50 %"]
    assert costs("evaluate", 200.0) == [""]


def test_the_card_of_the_first_change_is_open_though_another_comes_before_it(show: Show) -> None:
    little = finding("SYN102", "scalar-read", 42, "loss.item()", saving=0.02)
    idle = msgspec.structs.replace(
        finding("OVL303", "device-starved", 31, CALL), asks_for_more=True, idle_ms_per_step=4.0,
        causes=(IdleCause(cause="host work", ms_per_step=4.0),), severity="warning",
    )  # fmt: skip
    page = show(render(report([trace_info()], [little, idle]), [lanes()])).page
    assert page.locator(".finding[open] .rule").all_inner_texts() == ["Device starved"]


def test_a_line_in_several_phases_is_one_card_that_shows_the_chosen_one(show: Show) -> None:
    read = finding("SYN102", "scalar-read", 42, "loss.item()", stall=0.5, saving=0.2)
    known = {"train": 2.0, "evaluate": 0.9}
    found = [sample_run.rate(read, 1.0, 80, phase=name, run_saving_ms_per_step=ms) for name, ms in known.items()]
    other = sample_run.rate(finding("SYN102", "scalar-read", 50, "x.item()", saving=0.1), 1.0, 412)
    page = show(render(sample_run.report(findings=[*found, other]), [lanes()])).page
    assert cards(page) == 2
    assert "also in evaluate: every step, saves 1 %" in nth(page, 1).locator("summary").first.inner_text()
    page.locator("#phase").select_option(label="evaluate (1)")
    assert page.locator("#count").inner_text() == "1 of 2 cards"
    text = nth(page, 1).locator("summary").first.inner_text()
    assert "in evaluate: every step" in text
    assert "also in train: every step, saves 2 %" in text
    assert "0.9\u00a0ms a step of evaluate" in text


def test_what_saves_little_comes_behind_what_is_not_known_to(show: Show) -> None:
    little = finding("SYN102", "scalar-read", 42, "loss.item()", saving=0.01)
    unknown = finding("SYN102", "scalar-read", 50, "x.item()", stall=2.0)
    told = finding("SYN102", "scalar-read", 58, "y.item()", saving=0.2)
    page = show(render(report([trace_info()], [told, little, unknown]), [lanes()])).page
    assert page.locator(".finding .line code").all_inner_texts() == ["train.py:58", "train.py:50", "train.py:42"]
