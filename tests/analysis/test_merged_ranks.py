"""A file into which the traces of several ranks were merged: they are read and compared as if each had its file."""

from __future__ import annotations

import copy
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import syncscope
from syncscope.analysis.analyze import analyze_files, draw_beside
from syncscope.analysis.local import Local
from syncscope.report import html
from syncscope.trace.reader import load_ranks
from syncscope.trace.source import Reading
from tests.builders import PID, TraceBuilder

ALL_REDUCE = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"


def steps(late: float, device: int) -> TraceBuilder:
    """Four steps of 2 ms, each with an all-reduce that ends at 1 ms, to which the rank comes ``late`` µs late."""
    builder = TraceBuilder()
    for start in range(0, 8000, 2000):
        builder.annotation(f"ProfilerStep#{start // 2000}", start, 2000)
        builder.launch("forward", call=(start + 1, 4), runs=(start + 10, 100), device=device)
        comes = start + 410 + late
        builder.launch("backward", call=(comes - 305, 3), runs=(comes - 300, 300), device=device)
        runs = (comes, start + 1000 - comes)
        builder.launch(ALL_REDUCE, call=(comes - 290, 3), runs=runs, stream=13, device=device)
    return builder


def merged(
    path: Path, names: Sequence[str] = ("RANK 0 - CPU", "RANK 1 - CPU"), lates: Sequence[float] = (0, 300)
) -> Path:
    """The traces of ranks in one file, as TraceLens merges them."""
    events: list[dict[str, Any]] = []
    for rank, (name, late) in enumerate(zip(names, lates, strict=True)):
        pid = PID + 1_000_000 * rank
        events.append({"ph": "M", "name": "process_name", "pid": pid, "tid": 0, "args": {"name": name}})
        for event in copy.deepcopy(steps(late, rank).document()["traceEvents"]):
            event["pid"] = pid if event["pid"] == PID else event["pid"]
            if "correlation" in event.get("args", {}):
                event["args"]["correlation"] += 1000 * rank
            events.append(event)
    path.write_text(json.dumps({"traceEvents": events}))
    return path


def test_ranks_of_one_file_are_compared(tmp_path: Path) -> None:
    report = syncscope.analyze(merged(tmp_path / "merged.json"))
    assert [(info.rank, info.steps.count) for info in report.traces] == [(0, 4), (1, 4)]
    (late,) = [finding for finding in report.findings if finding.rule == "DST601"]
    assert (late.rank, late.message.partition(":")[0]) == (
        1, "rank 1 comes last to allreduce and holds the others for 0.3 ms a step",
    )  # fmt: skip
    assert not any("is read" in warning for info in report.traces for warning in info.warnings)


def test_each_rank_has_its_own_picture(tmp_path: Path) -> None:
    path = merged(tmp_path / "merged.json")
    report, pictures = analyze_files([str(path)], Local(), pictures=True)
    assert [picture.rank for picture in pictures] == [0, 1]
    _, again = draw_beside(report, tmp_path)
    assert [picture.rank for picture in again] == [0, 1]
    assert html.render(report, pictures).count('"path"') >= 2


@pytest.mark.parametrize("names", [("python", "python"), ("RANK 0", "RANK 0")])
def test_of_ranks_that_the_file_does_not_tell_apart_one_is_read(tmp_path: Path, names: tuple[str, str]) -> None:
    (trace,) = load_ranks(merged(tmp_path / "merged.json", names))
    assert any("only process" in warning for warning in trace.lost)


def test_the_cache_keeps_no_file_of_several_ranks_as_if_it_were_of_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    path = merged(tmp_path / "merged.json")
    for _ in range(2):
        report, _ = analyze_files([str(path)], Local(), reading=Reading(cache=True))
        assert len(report.traces) == 2
        assert [trace.rank for trace in load_ranks(path, cache=True)] == [0, 1]
