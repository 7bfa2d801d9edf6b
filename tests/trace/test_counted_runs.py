"""Recordings that counted their run: with windows, without, and damaged."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from syncscope.timeline import Timeline
from syncscope.trace import TraceError, load
from syncscope.trace.model import Trace
from syncscope.trace.reader import read_bytes
from tests.builders import TraceBuilder
from tests.rules.scenes import line


def counted() -> TraceBuilder:
    """A run of ten training steps, with a wait in each, of which no window was recorded."""
    return TraceBuilder().phase("train", steps=10).counted(0, 10, line(5, "f(x)")).run()


def spoiled(builder: TraceBuilder, part: str | None = None, **fields: Any) -> Trace:
    """The trace, after the run (or the first of a list in it) got other values."""
    document = builder.document()
    run = json.loads(json.dumps(document["syncscope"]["run"]))
    (run if part is None else run[part][0]).update(fields)
    document["syncscope"]["run"] = run
    return read_bytes(msgspec.json.encode(document), "t.json")


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("name", ["trace.json", "trace.json.gz"])
def test_a_run_without_a_window_is_a_recording(tmp_path: Path, name: str, workers: int) -> None:
    trace = load(counted().write(tmp_path / name), workers=workers)
    assert trace.recording is not None and trace.recording.run is not None
    assert trace.recording.run.waits[0].count == 10
    assert (len(trace.runtime), trace.lost) == (0, ())
    info = Timeline(trace).info()
    assert info.only_counted
    assert info.warnings[-1] == "no window was recorded: waits were counted, and what they cost is not known"


@pytest.mark.parametrize("complete", [True, False])
def test_a_run_whose_steps_could_not_be_told_says_what_to_do(complete: bool) -> None:
    trace = spoiled(TraceBuilder().phase("start").counted(0, 10, line(5, "f(x)")).run(), complete=complete)
    said = " ".join(Timeline(trace).info().warnings)
    assert ("syncscope.step()" in said and "--seconds 1" in said) is complete


def test_without_a_count_no_events_are_no_trace() -> None:
    document = counted().document()
    document["syncscope"]["run"] = None
    with pytest.raises(TraceError, match="holds no events"):
        read_bytes(msgspec.json.encode(document), "t.json")


@pytest.mark.parametrize(
    ("part", "fields"),
    [
        ("waits", {"phase": 1}),
        ("waits", {"phase": -1}),
        ("waits", {"stack": 1}),
        ("waits", {"stack": -1}),
        ("waits", {"count": -1}),
        ("waits", {"count": "many"}),
        ("waits", {"count": 1 << 63}),
        ("waits", {"steps": -5}),
        ("phases", {"steps": 9}),
        ("phases", {"one_in": 0.0}),
        ("phases", {"kind": "sleep"}),
        ("phases", {"time_ns": -1}),
        (None, {"id": None}),
        (None, {"bins": [{"start_ns": 0, "length_ns": 1, "phase": 7, "steps": 0, "counted_steps": 0, "waits": 0}]}),
        (None, {"phases": []}),
    ],
)
def test_a_malformed_run_is_lost_and_the_windows_are_kept(part: str | None, fields: dict[str, Any]) -> None:
    windowed = counted().recording(0, 100).launch("k", call=(10, 5), runs=(20, 5))
    trace = spoiled(windowed, part, **fields)
    assert trace.recording is not None and trace.recording.run is None
    assert len(trace.steps) == 1
    assert len(trace.lost) == 1 and trace.lost[0].startswith("what was counted over the run is malformed")
    with pytest.raises(TraceError):
        spoiled(counted(), part, **fields)


def test_two_phases_of_one_name_and_a_recorded_phase_that_is_not_there_are_refused() -> None:
    windowed = TraceBuilder().recording(0, 100, phase="train").launch("k", call=(10, 5), runs=(20, 5))
    assert windowed.phase("evaluate").run().trace().lost
    twice = TraceBuilder().recording(0, 100).launch("k", call=(10, 5), runs=(20, 5)).phase("train").phase("train")
    assert twice.run().trace().lost
