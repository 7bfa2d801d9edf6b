"""The page of a comparison: what it shows of both sides, in Chromium and as data."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import pytest

from syncscope.analysis.analyze import analyze_files, choose_engine
from syncscope.compare.diff import Diff, diff
from syncscope.report import markdown_diff, text_diff
from syncscope.report.html_diff import render
from syncscope.report.picture.lanes import Lanes
from syncscope.schema.report import Report
from tests.report import sample
from tests.report.pages import Show
from tests.report.sample import HOSTILE
from tests.report.test_access_in_browser import serious

TRACES = Path(__file__).parents[2] / "fixtures" / "traces"


@cache
def side(case: str) -> tuple[Report, tuple[Lanes, ...]]:
    return analyze_files([str(TRACES / case / "trace.json.gz")], choose_engine(), pictures=True)


@cache
def compared(before: str = "item_logging", after: str = "clean_loop") -> Diff:
    return diff(side(before)[0], side(after)[0])


@cache
def page_of(before: str = "item_logging", after: str = "clean_loop") -> str:
    (old, old_lanes), (new, new_lanes) = side(before), side(after)
    return render(compared(before, after), old, new, (old_lanes, new_lanes))


def data_of(page: str) -> Any:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    return json.loads(found[1])


def test_every_output_says_whether_the_fix_brought_what_was_predicted() -> None:
    said = "predicted to save 0.123 to 0.619 ms, saved 0.276 ms: as predicted"
    assert f"\nfixed  {said}\n" in text_diff.to_text(compared())
    assert f"What went: {said}." in markdown_diff.render(compared()).replace("\\", "")
    found = json.loads(compared().to_json())["predicted"]
    assert (found["low_ms"], found["high_ms"], found["outcome"]) == (
        pytest.approx(0.123, abs=0.001), pytest.approx(0.619, abs=0.001), "as predicted",
    )  # fmt: skip
    assert data_of(page_of())["lines"][1] == ["fixed", said]


def test_both_steps_and_both_timelines_have_one_scale() -> None:
    before, after = data_of(page_of("quadrant_pageable_default", "quadrant_pinned_side"))["sides"]
    for name in ("split", "timeline"):
        assert before[name]["layout"]["xaxis"]["range"] == after[name]["layout"]["xaxis"]["range"]
    assert sum(part["ms"] for part in after["parts"]) < sum(part["ms"] for part in before["parts"]) / 3


def test_figures_of_the_step_stand_side_by_side() -> None:
    rows = {row["label"]: row for row in data_of(page_of())["amounts"]}
    bare = rows["Step without the profiler"]
    assert (bare["before"], bare["after"], bare["change"]) == ("14.5 ms", "14.2 ms", "−0.276 ms, −1.9 %")
    assert bare["better"] is True
    assert rows["Device busy"]["better"] is None


def test_a_longer_step_is_not_drawn_as_a_saving() -> None:
    figure = data_of(page_of("dataloader_slow", "dataloader_workers"))["saving"]
    left, saved = figure["data"][:2]
    assert left["x"][2] > left["x"][0] and saved["x"][1] == 0
    assert figure["layout"]["xaxis"]["range"][1] == left["x"][2]


@pytest.mark.parametrize(("width", "scheme"), [(1440, "light"), (390, "dark"), (1440, "dark"), (390, "light")])
def test_it_is_drawn_without_an_error_and_can_be_used_by_everybody(show: Show, width: int, scheme: str) -> None:
    made = show(page_of(), width=width, scheme=scheme)
    assert made.errors == []
    assert [url for url in made.requests if not url.startswith(("file:", "data:"))] == []
    assert made.page.evaluate("document.documentElement.scrollWidth") <= width
    for name in ("saving", "split-0", "split-1", "timeline-0", "timeline-1"):
        assert made.page.locator(f"#{name} .trace.bars").count() > 0
        assert made.page.locator(f"#{name} .main-svg").first.bounding_box()["width"] <= width
    assert serious(made.page) == []


def test_it_says_what_changed_and_what_could_not_be_compared(show: Show) -> None:
    page = show(page_of()).page
    (row,) = page.locator("#changes li").all()
    said = row.inner_text()
    assert said.startswith("Fixed\n") and "workload.py:21 in train_step" in said and "predicted: saves 2.6 %" in said
    assert "HAZ401, HAZ402, HAZ403" in page.locator("#limits").inner_text()


def test_without_the_traces_it_has_no_timelines_and_says_why(show: Show) -> None:
    old, new = side("item_logging")[0], side("clean_loop")[0]
    made = show(render(compared(), old, new))
    assert made.errors == []
    assert made.page.locator("#timeline-section").is_hidden()
    one = show(render(compared(), old, new, (side("item_logging")[1], ())))
    assert "The trace is not at hand" in one.page.locator("#timelines").inner_text()


def test_nothing_changed_says_so(show: Show) -> None:
    report = sample.report()
    page = show(render(diff(report, report), report, report)).page
    assert page.locator("#saving").is_hidden()
    assert "No finding came, went" in page.locator("#findings").inner_text()


def test_names_stay_text(show: Show) -> None:
    finding = sample.findings()[0]
    assert finding.site is not None
    site = msgspec.structs.replace(finding.site, file=HOSTILE, function=HOSTILE, expression=HOSTILE)
    spoilt = msgspec.structs.replace(
        finding, site=site, rule=HOSTILE, name=HOSTILE, fix=HOSTILE, reason=HOSTILE, status="expected"
    )
    info = msgspec.structs.replace(sample.trace_info(), path=HOSTILE, device=HOSTILE, torch=HOSTILE)
    old, new = sample.report([info], [spoilt]), sample.report([info], [])
    lanes = msgspec.structs.replace(sample.lanes(HOSTILE), names=(HOSTILE,) * len(sample.lanes().names))
    for before, after in ((old, new), (new, old)):
        made = show(render(diff(before, after), before, after, ([lanes], [lanes])))
        assert made.errors == []
        assert made.page.locator("main img, main b b").count() == 0
        assert made.page.locator("main b", has_text=re.compile("^bold$")).count() == 0
