"""The tracks that a trace viewer gets: their slices are the findings' waits and copies, and the report's figures."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

from syncscope import analyze
from syncscope.report.perfetto_tracks import Track, make_tracks
from syncscope.rules import Hit, find
from syncscope.schema.findings import Finding
from syncscope.timeline import Timeline
from syncscope.trace import load
from tests.builders import TraceBuilder
from tests.cli import traces

CASES = Path(__file__).parents[2] / "fixtures" / "traces"


def made(timeline: Timeline, findings: Sequence[Finding] | None = None) -> list[Track]:
    """Of the findings of a report, else of what the rules find."""
    found, _ = find(timeline)
    return make_tracks(timeline, [hit.finding for hit in found] if findings is None else findings, found)


def named(found: list[Track], start: str) -> Track:
    (track,) = [track for track in found if track.label.startswith(start)]
    return track


def test_a_wait_is_a_slice_from_its_begin_to_its_end_and_knows_what_it_waited_for() -> None:
    timeline = Timeline(traces.waiting().trace())
    track = named(made(timeline), "SYN102")
    assert track.label == "SYN102 scalar-read · train.py:21"
    assert [(one.ts, one.end, one.name) for one in track.slices] == [
        (start * 1000 + 27_000, start * 1000 + 72_000, "loss.item()") for start in (0, 100, 200)
    ]
    waited = timeline.trace.device.loc[[one.waited_for for one in track.slices]]
    assert waited["direction"].tolist() == ["DtoH"] * 3
    args = track.slices[0].args
    assert (args["line"], args["blocked ms a step"], args["bytes"]) == ("train.py:21", 0.045, 4)


def test_the_report_says_what_a_fix_is_worth() -> None:
    case = CASES / "item_logging" / "trace.json.gz"
    report = analyze(case)
    (finding,) = report.findings
    track = named(made(Timeline(load(case)), report.findings), "SYN102")
    assert track.label.endswith(" · saves 0.371 ms a recorded step")
    assert track.slices[0].args["saving ms a step"] == finding.saving_ms_per_step
    assert sum(one.end - one.ts for one in track.slices) == round((finding.stall_ms or 0) * 1e6)


@pytest.mark.parametrize("case", ["quadrant_pageable_side", "generate", "copies_both_ways"])
def test_idle_and_exposed_slices_add_up_to_the_reports_figures(case: str) -> None:
    timeline = Timeline(load(CASES / case / "trace.json.gz"))
    overlap, found = timeline.overlap, made(timeline, ())
    assert overlap is not None

    def ms(start: str) -> float:
        mine = [one for track in found if track.label.startswith(start) for one in track.slices]
        return sum(one.end - one.ts for one in mine) * 1e-6 / len(timeline.steps)

    assert ms("idle") == pytest.approx(overlap.idle_ms, abs=1e-5)
    assert ms("exposed copy") == pytest.approx(overlap.copy_exposed_ms, abs=1e-5)
    parts = [one.args for track in found if track.label.startswith("idle") for one in track.slices]
    by_cause = sum(float(part.get("wait ms", 0)) for part in parts) / len(timeline.steps)
    assert by_cause == pytest.approx(overlap.idle_by_cause.get("wait", 0), abs=1e-5)


def test_a_finding_of_the_whole_trace_is_one_slice_over_its_steps() -> None:
    case = CASES / "generate" / "trace.json.gz"
    timeline = Timeline(load(case))
    track = named(made(timeline, analyze(case).findings), "LCH501")
    assert [(one.ts, one.end) for one in track.slices] == [timeline.span]


def test_two_threads_that_wait_at_once_get_a_row_each() -> None:
    trace = TraceBuilder().recording(0, 100)
    for tid in (1, 2):
        trace.on(tid).launch("gemm", call=(5 + tid, 1), runs=(12, 60))
        trace.device_sync(20 + tid, 60).entry(
            "torch.cuda.synchronize", 19 + tid, 83 + tid, ("train.py", 9, "work", "wait()")
        )
    rows = [track for track in made(Timeline(trace.trace())) if track.label.startswith("SYN105")]
    assert [len(track.slices) for track in rows] == [1, 1]
    assert rows[0].slices[0].end > rows[1].slices[0].ts


def test_no_slice_overlaps_the_one_before_it() -> None:
    for case in ("fixes", "small_copies", "copies_two_streams"):
        path = CASES / case / "trace.json.gz"
        for track in made(Timeline(load(path)), analyze(path).findings):
            ends = [one.end for one in track.slices]
            begins = [one.ts for one in track.slices]
            assert all(end <= begin for end, begin in zip(ends, begins[1:], strict=False)), track.label


def test_findings_that_differ_in_nothing_but_their_number_keep_their_own_slices() -> None:
    timeline = Timeline(traces.waiting().trace())
    found, _ = find(timeline)
    (read,) = [hit for hit in found if hit.finding.rule == "SYN102"]
    first, *others = sorted(read.waits)
    parts = [
        Hit(msgspec.structs.replace(read.finding, number=number), waits=frozenset(rows))
        for number, rows in enumerate([others, [first]])
    ]
    tracks = make_tracks(timeline, [parts[1].finding, parts[0].finding], parts)
    mine = [[one.ts for one in track.slices] for track in tracks if track.label.startswith("SYN102")]
    assert mine == [[27_000], [127_000, 227_000]]


def test_a_compiled_kernel_has_a_slice_that_names_its_lines() -> None:
    trace = TraceBuilder().recording(0, 100).phase("train", steps=1).run()
    trace.kernel("triton_poi_fused_0", 10, 20).kernel("cutlass", 40, 5)
    trace.kernel_line("triton_poi_fused_0", ("train.py", 9, "step", "model(x)"), ("<site-packages>/a.py", 3, "f", "x"))
    trace.kernel_line("triton_poi_fused_0", ("train.py", 11, "step", "x.sin()"))
    track = named(made(Timeline(trace.trace())), "lines")
    assert track.label == "lines · device 0 stream 7"
    (one,) = track.slices
    assert (one.ts, one.end, one.name) == (10_000, 30_000, "train.py:9  model(x)  (<site-packages>/a.py:3)")
    assert one.args == {"kernel": "triton_poi_fused_0", "line 1": one.name, "line 2": "train.py:11  x.sin()"}
