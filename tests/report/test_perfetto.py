"""The trace with our tracks in it: its own bytes stay, every reader takes it, and Perfetto's trace processor too."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import subprocess
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec import structs

from syncscope import analyze
from syncscope.analysis.analyze import annotated
from syncscope.collect.tracefile import TraceFile
from syncscope.report import perfetto
from syncscope.rules import find
from syncscope.schema.counting import RecordedRun
from syncscope.schema.recording import Recording
from syncscope.timeline import Timeline
from tests.builders import TraceBuilder
from tests.cli import traces
from tests.report.hostile import HOSTILE, unseen

CASES = Path(__file__).parents[2] / "fixtures" / "traces"
RECORDED = [
    CASES / "item_logging" / "trace.json.gz",
    CASES / "fixes" / "full.json.gz",
    CASES / "clean_loop" / "trace.json.gz",
]
ASSETS = os.environ.get("SYNCSCOPE_TRACE_PROCESSOR")
WITHOUT = "no Perfetto trace processor: SYNCSCOPE_TRACE_PROCESSOR names no folder of one, as CONTRIBUTING says"

Ask = Callable[[Path, dict[str, str]], dict[str, list[dict[str, Any]]]]


@cache
def whole(path: Path) -> bytes:
    return b"".join(annotated(path, analyze(path).findings))


def of(builder: TraceBuilder, tmp_path: Path) -> Path:
    return builder.write(tmp_path / "trace.json")


def events(data: bytes) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Ours and the trace's own."""
    every = json.loads(data)["traceEvents"]
    ours = [event for event in every if event.get("pid") == perfetto.PID or event.get("cat") == perfetto.PROCESS]
    return ours, [event for event in every if event not in ours]


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.parent.name)
def test_the_traces_own_bytes_stay(path: Path) -> None:
    before, after = gzip.decompress(path.read_bytes()), whole(path)
    start = next(i for i, (a, b) in enumerate(zip(before, after, strict=False)) if a != b)
    assert after.endswith(before[start:])
    assert events(after)[1] == json.loads(before)["traceEvents"]


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.parent.name)
def test_the_same_is_found_in_it(path: Path, tmp_path: Path) -> None:
    again = tmp_path / "again.json"
    again.write_bytes(whole(path))
    assert analyze(again).findings == analyze(path).findings


def test_events_follow_the_trace_event_format(tmp_path: Path) -> None:
    ours, _ = events(whole(of(traces.waiting(), tmp_path)))
    slices = [event for event in ours if event["ph"] == "X"]
    assert {event["ph"] for event in ours} == {"M", "X", "s", "f"}
    assert all(event["ts"] >= 0 and event["dur"] >= 0 and event["pid"] == perfetto.PID for event in slices)
    names = {event["tid"]: event["args"]["name"] for event in ours if event["name"] == "thread_name"}
    assert {event["tid"] for event in slices} == set(names)
    starts, ends = ([event for event in ours if event["ph"] == phase] for phase in "sf")
    assert [one["id"] for one in starts] == [one["id"] for one in ends]
    assert all(start["ts"] <= end["ts"] and end["bp"] == "e" for start, end in zip(starts, ends, strict=True))


def test_times_keep_every_nanosecond(tmp_path: Path) -> None:
    trace = TraceBuilder().recording(0, 100).launch("gemm", call=(5, 2), runs=(12.345, 60.001))
    trace.device_sync(20.007, 60.993).entry("torch.cuda.synchronize", 19, 82, ("train.py", 9, "work", "wait()"))
    assert b'"ts":20.007,"dur":60.993' in whole(of(trace, tmp_path))


@pytest.mark.parametrize("name", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_name_is_text(name: str) -> None:
    builder = traces.waiting(frame=(f"{name}.py", 21, name, name))
    timeline = Timeline(builder.trace())
    found, _ = find(timeline)
    ours, _ = events(b"".join(perfetto.annotated(builder.json(), timeline, [hit.finding for hit in found], found)))
    assert len([event for event in ours if event["ph"] == "X"]) > 3
    assert not unseen(json.dumps(ours, ensure_ascii=False))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('{"a": {"traceEvents": [1]}, "b": "\\"traceEvents\\": [", "traceEvents" : [', '{"x": 1}], "z": [[]]}'),
        ('{"traceEvents":[ ', "]}"),
        ("[", '{"x": 1}]'),
        ('\ufeff {"c": [{"traceEvents": []}], "traceEvents"\n:\n[', "\n]}"),
    ],
)
def test_events_go_into_the_traces_list_and_no_other(before: str, after: str) -> None:
    timeline = Timeline(traces.waiting().trace())
    made = b"".join(perfetto.annotated((before + after).encode(), timeline, (), ())).decode()
    assert made.startswith(before.rstrip(" ")) or made.startswith(before)
    document = json.loads(made.lstrip("\ufeff"))
    listed = document["traceEvents"] if isinstance(document, dict) else document
    assert listed[0]["args"] == {"name": "syncscope"}
    assert listed[-1] == {"x": 1} or '"x"' not in after


def test_what_has_no_list_is_refused() -> None:
    timeline = Timeline(traces.waiting().trace())
    with pytest.raises(ValueError, match="no list of traceEvents"):
        list(perfetto.annotated(b'{"a": {"traceEvents": []}}', timeline, (), ()))


def test_arrows_end_on_threads_named_after_streams_where_the_trace_has_those(tmp_path: Path) -> None:
    builder = traces.waiting()
    for event in builder.events:
        if event.get("cat") in ("kernel", "gpu_memcpy"):
            event["tid"] = f"stream {event['tid']}"
    ours, _ = events(whole(of(builder, tmp_path)))
    assert {event["tid"] for event in ours if event["ph"] == "f"} == {"stream 7"}


# ------------------------------------------------------------------------------------------- the real reader


@pytest.fixture
def ask() -> Ask:
    if ASSETS is None or not Path(ASSETS, "trace_processor.wasm").is_file() or shutil.which("node") is None:
        pytest.skip(WITHOUT)
    script = Path(__file__).with_name("trace_processor.mjs")

    # Without the compiler that optimises: that takes five times as long as what it makes faster.
    def asked(trace: Path, queries: dict[str, str]) -> dict[str, list[dict[str, Any]]]:
        done = subprocess.run(
            ["node", "--liftoff-only", str(script), str(Path(ASSETS).resolve()), str(trace)],
            input=json.dumps(queries), capture_output=True, text=True, check=True, timeout=120,
        )  # fmt: skip
        answers: dict[str, list[dict[str, Any]]] = json.loads(done.stdout)
        return answers

    return asked


LOST = "select name, value from stats where value > 0 and severity in ('error', 'data_loss')"
OURS = """select thread.name as track, slice.ts, slice.dur, slice.depth,
    extract_arg(slice.arg_set_id, 'args.line') as line
    from slice join thread_track on slice.track_id = thread_track.id join thread using (utid) join process using (upid)
    where process.name = 'syncscope' order by slice.ts, track"""
ARROWS = """select source.name as source, target.name as target from flow
    join slice source on flow.slice_out = source.id join slice target on flow.slice_in = target.id
    join thread_track on source.track_id = thread_track.id join thread using (utid) join process using (upid)
    where process.name = 'syncscope'"""


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.parent.name)
def test_perfetto_reads_every_slice_to_the_nanosecond_and_loses_nothing(ask: Ask, path: Path, tmp_path: Path) -> None:
    made = tmp_path / "made.json.gz"
    made.write_bytes(gzip.compress(whole(path)))
    answers = ask(made, {"lost": LOST, "ours": OURS, "arrows": ARROWS})
    assert answers["lost"] == ask(path, {"lost": LOST})["lost"]
    slices = [event for event in events(whole(path))[0] if event["ph"] == "X"]
    assert sorted((row["ts"], row["dur"]) for row in answers["ours"]) == sorted(
        (round(event["ts"] * 1000), round(event["dur"] * 1000)) for event in slices
    )
    assert all(row["depth"] == 0 for row in answers["ours"])
    sources = sum(event["ph"] == "s" for event in events(whole(path))[0])
    assert len(answers["arrows"]) == sources


def test_perfetto_shows_the_line_and_what_the_wait_waited_for(ask: Ask, tmp_path: Path) -> None:
    made = tmp_path / "made.json"
    made.write_bytes(whole(RECORDED[0]))
    answers = ask(made, {"ours": OURS, "arrows": ARROWS})
    lines = {row["line"] for row in answers["ours"] if row["track"].startswith("SYN102")}
    assert lines == {"fixtures/traces/item_logging/workload.py:21"}
    assert answers["arrows"] == [{"source": "loss.item()", "target": "Memcpy DtoH (Device -> Pinned)"}] * 3


def test_perfetto_opens_a_file_as_the_collector_writes_and_updates_it(ask: Ask, tmp_path: Path) -> None:
    path = RECORDED[0]
    document = json.loads(gzip.decompress(path.read_bytes()))
    run = RecordedRun(id="run", started_ns=1, time_ns=2, complete=True)
    recording = structs.replace(msgspec.convert(document.pop("syncscope"), Recording), run=run)
    file = TraceFile(tmp_path / "trace.json.gz")
    file.write(json.dumps(document).encode(), recording)
    file.update(recording)
    slices = {"slices": "select count(*) as number from slice"}
    assert ask(file.path, {"lost": LOST, **slices}) == ask(path, {"lost": LOST, **slices})
