"""A device that other processes used too: the recording of a launch-bound loop, alone and between time slices of
another process."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from fixtures.labels import TRACES
from syncscope import analyze
from syncscope.report.escape import markdown
from syncscope.report.html_page import make_views
from syncscope.report.markdown import render as render_markdown
from syncscope.report.text import to_text
from syncscope.schema.findings import Finding
from syncscope.schema.report import Report
from syncscope.schema.run import Run

DEVICE = ("kernel", "gpu_memcpy", "gpu_memset")
ON_US, OFF_US = 500.0, 1500.0
"""How long the device runs the recorded program's work, and how long the other's, in turn."""


def recorded(case: str = "launch_bound") -> dict[str, Any]:
    return dict(json.loads(gzip.decompress((TRACES / case / "trace.json.gz").read_bytes())))


def in_slices(document: dict[str, Any], on_us: float = ON_US, off_us: float = OFF_US) -> dict[str, Any]:
    """The recording as it is where another process has the device for most of the time: what would begin in one of its
    slices begins after it, and streams keep their order."""
    free: dict[int, float] = {}
    rows = (event for event in document["traceEvents"] if event.get("cat") in DEVICE)
    for event in sorted(rows, key=lambda event: float(event["ts"])):
        begin = max(event["ts"], free.get(event["tid"], 0.0))
        if (within := begin % (on_us + off_us)) > on_us:
            begin += on_us + off_us - within
        event["ts"] = begin
        free[event["tid"]] = begin + event["dur"]
    return document


def report(folder: Path, document: dict[str, Any], others: int | None) -> Report:
    """The report of a recording that says how many other processes used the device."""
    run = {"id": "r", "started_ns": 0, "time_ns": 1, "complete": True, "processes_on_device": others}
    document["syncscope"]["run"] = run
    (folder / "trace.json").write_text(json.dumps(document))
    return analyze(folder / "trace.json")


def rules(made: Report) -> set[str]:
    return {finding.rule for finding in made.findings}


def why_unchecked(made: Report, code: str) -> list[str]:
    return [entry.why for entry in made.not_checked if entry.rule == code and not entry.partial]


def starved(made: Report) -> tuple[str, str]:
    (finding,) = (finding for finding in made.findings if finding.rule == "OVL303")
    return finding.message, finding.fix


SHARED = "3 other processes used the device too: times are not this program's alone"


def test_the_report_says_that_the_device_was_shared(tmp_path: Path) -> None:
    made = report(tmp_path, in_slices(recorded()), 3)
    assert made.traces[0].warnings == (SHARED,)
    assert SHARED in " ".join(to_text(made).split())
    assert f"warning: {markdown(SHARED)}" in render_markdown(made)


def test_one_other_process_is_one(tmp_path: Path) -> None:
    made = report(tmp_path, recorded(), 1)
    assert made.traces[0].warnings == ("another process used the device too: times are not this program's alone",)


@pytest.mark.parametrize("others", [0, None])
def test_nothing_changes_where_nobody_else_used_it_or_nobody_can_tell(tmp_path: Path, others: int | None) -> None:
    document = in_slices(recorded())
    made = report(tmp_path, document, others)
    del document["syncscope"]["run"]
    (tmp_path / "trace.json").write_text(json.dumps(document))
    without = analyze(tmp_path / "trace.json")
    assert (made.findings, made.not_checked) == (without.findings, without.not_checked)
    assert made.traces[0].warnings == ()


def test_idle_time_in_the_queue_is_behind_the_other_process(tmp_path: Path) -> None:
    alone, shared = (starved(report(tmp_path, in_slices(recorded()), others)) for others in (None, 2))
    assert "unknown" in alone[0] and "nobody else on the device" in alone[1]
    assert "behind that of another process" in shared[1] and "queued behind another process" in shared[0]
    assert shared[0].endswith("; other processes used the device too")


def test_a_device_that_begins_late_again_and_again_is_told_as_one_that_another_has(
    tmp_path: Path,
) -> None:
    message, fix = starved(report(tmp_path, in_slices(recorded(), 200, 600), None))
    assert " it is late to begin what was launched in time, as when another process uses it" in message
    assert fix.startswith("Record again on a device that nobody else uses")
    known, _ = starved(report(tmp_path, in_slices(recorded(), 200, 600), 2))
    assert "late to begin" not in known and "other processes used the device too" in known


def test_what_may_wait_for_another_stream_is_not_told_as_that(tmp_path: Path) -> None:
    document = in_slices(recorded(), 200, 600)
    last = max((event for event in document["traceEvents"] if event.get("cat") == "kernel"), key=lambda one: one["ts"])
    last["tid"] = last["args"]["stream"] = 99
    made = report(tmp_path, document, None)
    message, fix = starved(made)
    assert "late to begin" not in message and fix.startswith("Do not trust this part")
    assert "LCH501" not in rules(made)


def test_turns_that_are_as_long_as_each_other_are_told_as_that_whatever_streams_there_are(tmp_path: Path) -> None:
    document = in_slices(recorded(), 30, 1010)
    last = max((event for event in document["traceEvents"] if event.get("cat") == "kernel"), key=lambda one: one["ts"])
    last["tid"] = last["args"]["stream"] = 99
    message, fix = starved(report(tmp_path, document, None))
    assert " it is late to begin what was launched in time, as when another process uses it" in message
    assert fix.startswith("Record again on a device that nobody else uses")


def test_other_causes_of_idle_time_keep_their_fix(tmp_path: Path) -> None:
    alone, shared = (starved(report(tmp_path, recorded(), others)) for others in (None, 2))
    assert alone[1] == shared[1]


def launch_bound(made: Report) -> Finding:
    (finding,) = (finding for finding in made.findings if finding.rule == "LCH501")
    return finding


@pytest.mark.parametrize("others", [2, None], ids=["known", "nobody can tell"])
def test_a_launch_bound_loop_is_found_though_the_device_begins_late(tmp_path: Path, others: int | None) -> None:
    alone, hidden = (
        launch_bound(report(tmp_path, recorded(), others)),
        report(tmp_path, in_slices(recorded(), 200, 600), others),
    )
    found = launch_bound(hidden)
    assert "so the device waits" in alone.message and "late to begin" not in alone.message
    assert ", and a step takes no less; " in found.message and "late to begin what was launched" in found.message
    assert "a device of its own would wait" in found.message and "Here it is late to begin" in found.message
    assert (found.count, found.fix) == (alone.count, alone.fix)
    assert why_unchecked(hidden, "LCH501") == []


def test_launches_that_others_may_hide_are_not_clean(tmp_path: Path) -> None:
    hidden = report(tmp_path, in_slices(recorded("several_streams")), 2)
    assert "LCH501" not in rules(hidden)
    (why,) = why_unchecked(hidden, "LCH501")
    assert "other processes used the device too" in why


def said(made: Report, shared: bool | None) -> Report:
    """The report, saying itself whether the device was shared."""
    run = Run(id="r", seconds=1.0, complete=True, stopped=False, steps=9, counted=None, shared_device=shared)
    return msgspec.structs.replace(made, traces=(msgspec.structs.replace(made.traces[0], run=run),))


def page(made: Report) -> tuple[tuple[str, ...], list[str]]:
    """The sentences under the verdict and the pieces of the bar."""
    view = make_views(made, ())[0]
    return view.details, [part.label for part in view.parts]


def test_the_page_and_the_text_say_behind_whom(tmp_path: Path) -> None:
    made = said(report(tmp_path, in_slices(recorded()), 2), True)
    details, parts = page(made)
    assert details[0] == "Other processes used the device too: times are not this program's alone."
    assert "most likely behind the work of another process" in details[1]
    assert "Idle: queued behind another process" in parts
    assert "queued behind another process 74 %" in " ".join(to_text(made).split())


@pytest.mark.parametrize("shared", [False, None])
def test_the_page_of_a_program_that_was_alone_does_not(tmp_path: Path, shared: bool | None) -> None:
    details, parts = page(said(report(tmp_path, in_slices(recorded()), None), shared))
    assert not any("process" in text for text in (*details, *parts))
    assert "Idle: queued but held back" in parts
