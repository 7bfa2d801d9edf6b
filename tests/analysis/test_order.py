"""A file's events may come in any order: the report is the same."""

from __future__ import annotations

import gzip
import json
import random
from pathlib import Path
from typing import Any

import pytest

from fixtures.labels import TRACES
from syncscope import TraceError, analyze, load
from tests.foreign import EXTRA

SMALL = ("backward_wait", "copies_both_ways", "ddp_unused", "several_streams", "background_thread")
RECORDED = sorted(TRACES.rglob("*.json.gz"))
FOREIGN = sorted(Path(EXTRA).glob("*.json*")) if EXTRA else []


def assert_order_does_not_matter(path: Path, folder: Path) -> None:
    data = path.read_bytes()
    document = json.loads(gzip.decompress(data) if data.startswith(b"\x1f\x8b") else data, strict=False)
    root = document if isinstance(document, dict) else {"traceEvents": document}
    try:
        report = _report(root, folder)
    except TraceError as error:
        pytest.skip(str(error))
    events = root["traceEvents"]
    shuffled = random.Random(path.name).sample(events, len(events))
    for other in (events[::-1], shuffled):
        assert _report({**root, "traceEvents": other}, folder) == report


def _report(document: dict[str, Any], folder: Path) -> Any:
    path = folder / "trace.json"
    path.write_text(json.dumps(document))
    return json.loads(analyze(path).to_json())


@pytest.mark.parametrize("path", [TRACES / case / "full.json.gz" for case in SMALL], ids=SMALL)
def test_shuffled_and_reversed_events_give_the_same_report(path: Path, tmp_path: Path) -> None:
    assert_order_does_not_matter(path, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("path", [*RECORDED, *FOREIGN], ids=lambda path: f"{path.parent.name}/{path.name}")
def test_shuffled_and_reversed_events_of_every_trace_give_the_same_report(path: Path, tmp_path: Path) -> None:
    assert_order_does_not_matter(path, tmp_path)


def test_begin_and_end_events_are_paired_whatever_their_order(tmp_path: Path) -> None:
    def half(ph: str, name: str, ts: int) -> dict[str, Any]:
        return {"ph": ph, "cat": "cpu_op", "name": name, "pid": 1, "tid": 1, "ts": ts}

    spans = [("outer", 0, 20), ("first", 1, 5), ("second", 5, 9), ("instant", 9, 9), ("last", 20, 22)]
    halves = [half(ph, name, ts) for name, start, end in spans for ph, ts in (("B", start), ("E", end))]
    call = {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": 1, "dur": 1}
    for seed in range(20):
        random.Random(seed).shuffle(halves)
        (tmp_path / "t.json").write_text(json.dumps([*halves, call]))
        ops = load(tmp_path / "t.json").ops
        found = zip(ops["name"], ops["ts"] // 1000, ops["end"] // 1000, strict=True)
        assert sorted(found, key=lambda one: one[1:]) == sorted(spans, key=lambda one: one[1:])
