"""The HTML file as text: self-contained, closed to what names try, and no larger than promised."""

from __future__ import annotations

import base64
import hashlib
import json
import re

import msgspec
import pytest

from syncscope.report.html import render
from syncscope.report.html_file import embed
from syncscope.report.picture.lanes import Lanes
from syncscope.schema.findings import IdleCause
from syncscope.schema.report import Asked, Report
from tests.report import sample_run
from tests.report.sample import HOSTILE, REPLAY, finding, lanes, report, trace_info


def data_block(page: str) -> str:
    found = re.findall(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    assert len(found) == 1
    return str(found[0])


def hostile_page() -> str:
    found = [finding("SYN102", HOSTILE, 4, HOSTILE, op=HOSTILE, message=HOSTILE, fix=HOSTILE, reason=HOSTILE)]
    return render(report([trace_info(HOSTILE)], found), [lanes(HOSTILE, kernel=HOSTILE)])


def test_a_name_cannot_end_the_data_block() -> None:
    block = data_block(hostile_page())
    assert not set("<>&\u2028\u2029") & set(block)
    assert msgspec.json.decode(block)["report"]["findings"][0]["op"] == HOSTILE


def test_a_path_cannot_end_the_title() -> None:
    title = re.search(r"<title>(.*?)</title>", hostile_page(), re.DOTALL)
    assert title is not None
    assert "<" not in title[1]


def test_the_page_has_only_its_own_scripts_and_their_hashes_are_its_policy() -> None:
    page = hostile_page()
    scripts = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    assert len(scripts) == 2
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)
    assert policy is not None
    for script in scripts:
        assert f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'" in policy[1]
    assert policy[1].startswith("default-src 'none';")
    assert "script-src 'unsafe-inline'" not in policy[1]


def test_nothing_is_fetched_from_elsewhere() -> None:
    page = render(report(), [lanes()])
    shell = re.sub(r"<script>.*?</script>|<style>.*?</style>", "", page, flags=re.DOTALL)
    assert not re.search(r'(?:src|href)="(?!#|data:)', shell)
    assert "@import" not in page.split("</style>")[0]
    assert not re.search(r"url\((?!data:)", page.split("</style>")[0])


def test_own_scripts_never_build_markup_from_text() -> None:
    own = re.findall(r"<script>(.*?)</script>", render(report(), [lanes()]), re.DOTALL)[1]
    assert "use strict" in own
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function", own)


def test_the_data_is_the_report_and_the_lanes() -> None:
    one, picture = report(), lanes()
    data = msgspec.json.decode(data_block(render(one, [picture])))
    assert msgspec.convert(data["report"], Report) == one.without_numbers()
    assert msgspec.convert(data["lanes"], list[Lanes]) == [picture]


def test_the_same_report_gives_the_same_page() -> None:
    assert render(report(), [lanes()]) == render(report(), [lanes()])


def test_a_slot_s_name_inside_the_data_is_left_alone() -> None:
    page = render(report(found=[finding("SYN102", "scalar-read", 1, "@@script@@ @@data@@")]), [])
    assert "@@script@@ @@data@@" in data_block(page)


@pytest.mark.parametrize("text", ["</script>", "<!--", "]]>", "&lt;", "\u2028", "\u2029"])
def test_embedded_json_reads_back_and_holds_no_markup(text: str) -> None:
    block = embed({"name": text})
    assert msgspec.json.decode(block) == {"name": text}
    assert not set("<>&\u2028\u2029") & set(block)


def test_an_ordinary_page_is_below_two_megabytes() -> None:
    assert len(render(report(), [lanes()]).encode()) < 2_000_000


def test_the_first_change_leads_to_no_card_that_says_nothing_of_it() -> None:
    work = IdleCause(cause="host work", ms_per_step=1.6)
    idle = msgspec.structs.replace(
        finding("OVL303", "device-starved", None, None), causes=(work,), idle_ms_per_step=1.6, asks_for_more=True
    )
    asked = Asked(question="two workers", saving_ms_per_step=1.5, saving_low_ms_per_step=1.0)
    info = msgspec.structs.replace(trace_info(), replay=msgspec.structs.replace(REPLAY, asked=(asked,)))
    page = msgspec.json.decode(data_block(render(report([info], [idle]))))["page"]
    assert (page["change"]["place"], page["first"]) == ("data loading", None)


def test_the_first_change_leads_to_the_card_of_its_own_phase_and_says_where_that_begins_with_another_cause() -> None:
    work = IdleCause(cause="host work", ms_per_step=1.0)
    loading = IdleCause(
        cause="data loading", ms_per_step=0.4, saving_ms_per_step=1.0, saving_low_ms_per_step=0.5,
        saving_high_ms_per_step=1.5, likely_saving_ms_per_step=1.0,
    )  # fmt: skip
    idle = msgspec.structs.replace(
        finding("OVL303", "device-starved", None, None), idle_ms_per_step=1.6, saving_ms_per_step=None,
        saving_low_ms_per_step=None, saving_high_ms_per_step=None, phase="evaluate", causes=(work,),
    )  # fmt: skip
    train = msgspec.structs.replace(idle, trace=1, phase="train", causes=(work, loading))
    page = msgspec.json.decode(data_block(render(report([trace_info(), trace_info()], [idle, train]))))["page"]
    ids = {card["groups"][0][0]: card["id"] for card in page["cards"]}
    assert page["change"]["place"] == "data loading" and page["first"] == ids[1] != ids[0]
    assert page["to_card"] == "See the card of all causes"
    read = finding("SYN102", "scalar-read", 42, "loss.item()")
    alone = msgspec.json.decode(data_block(render(report([trace_info()], [read]))))["page"]
    assert alone["to_card"] == "See its card"


def test_the_bars_say_where_only_the_most_that_a_change_saves_is_known() -> None:
    known = msgspec.structs.replace(finding("SYN102", "scalar-read", 42, "loss.item()"), saving_ms_per_step=0.5)
    bound = msgspec.structs.replace(
        known, fingerprint="bound", site=None, saving_ms_per_step=None, saving_low_ms_per_step=0.0,
        saving_high_ms_per_step=1.5,
    )  # fmt: skip
    assert "Hatched: the time that the change saves." in render(report(found=(known,)))
    assert "Hatched: the time that the change saves, or may save at most." in render(report(found=(known, bound)))
    assert "Hatched: the time that the change saves at most." in render(report(found=(bound,)))


def test_the_page_begins_with_the_trace_that_its_first_lines_are_about() -> None:
    overlap = trace_info().overlap
    assert overlap is not None
    idler = msgspec.structs.replace(overlap, idle_ms=overlap.idle_ms + 1.0)
    small = msgspec.structs.replace(sample_run.counted_only(), trace=1, phase="evaluate", severity="note")
    traces = [sample_run.info("a.json", overlap=idler), sample_run.info("b.json", phase="evaluate")]
    page = json.loads(data_block(render(sample_run.report(traces, [small]))))["page"]
    about = dict(page["conclusion"])["step"].split(":")[0]
    assert page["views"][page["begin"]]["label"] == about == "train"
