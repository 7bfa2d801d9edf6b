"""Others' traces that lost rows, as profilers lose them, never pass for clean."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from syncscope.analysis.analyze import analyze
from syncscope.policy import Policy, check_gate
from tests.foreign import EXTRA, OLD, RUNTIME

pytestmark = pytest.mark.skipif(EXTRA is None, reason="SYNCSCOPE_EXTRA_TRACES is not set")

CONTROL = "HolisticTraceAnalysis__control__control.json.gz"
GRAPHS = "HolisticTraceAnalysis__negative_queue_length_values_check__rank0.json.gz"
QWEN = "TraceLens__h100__Qwen_Qwen1.5-0.5B-Chat__1016005.json.gz"
DLRM = "param__dlrm_kineto__worker0_step_12.1694128201545.pt.trace.json"
BERT = "TraceLens__h100__gaunernst_bert-small-uncased__1016001.json.gz"
ROCM = "TraceLens__mi300__gaunernst_bert-small-uncased__1016001.json.gz"
FUSED = "profile-data__train.json"
NCCL = "HolisticTraceAnalysis__nccl_parser_config__nccl_data.json.gz"
RESNET = "kineto__resnet50_num_workers_0__worker0.1623143089861.pt.trace.json.gz"

DEVICE = ("kernel", "gpu_memcpy", "gpu_memset")

Lost = Callable[[list[dict[str, Any]]], Iterable[dict[str, Any]]]
"""Which of the rows with a time are lost."""


def category(event: dict[str, Any]) -> str:
    name = str(event.get("cat")).lower()
    return "runtime" if name in RUNTIME else OLD.get(name, name)


def syncs(events: list[dict[str, Any]]) -> Iterable[dict[str, Any]]:
    """The waits: the recorded activities left them out."""
    return (e for e in events if category(e) == "cuda_sync" or e["name"].endswith(("Synchronize", "MemcpyWithStream")))


def calls_of_the_end(events: list[dict[str, Any]]) -> Iterable[dict[str, Any]]:
    """The last two fifths of the calls and device rows: a buffer was full."""
    times = [event["ts"] for event in events]
    cut = min(times) + 0.6 * (max(times) - min(times))
    kinds = ("runtime", *DEVICE)
    return (event for event in events if event["ts"] > cut and category(event) in kinds)


def rows_of_the_begin(events: list[dict[str, Any]]) -> Iterable[dict[str, Any]]:
    """The first three tenths of the calls, and all device rows up to then: the ops are still there."""
    times = sorted(event["ts"] for event in events if category(event) == "runtime")
    cut = times[len(times) * 3 // 10]
    return (event for event in events if event["ts"] < cut and category(event) in ("runtime", *DEVICE))


def calls_of_a_step(events: list[dict[str, Any]]) -> Iterable[dict[str, Any]]:
    """All calls and device rows of the second step."""
    step = [event for event in events if event["name"].startswith("ProfilerStep#")][1]
    kinds = ("runtime", *DEVICE)
    inside = (e for e in events if step["ts"] <= e["ts"] < step["ts"] + step["dur"])
    return (event for event in inside if category(event) in kinds)


def first_kernels(events: list[dict[str, Any]]) -> Iterable[dict[str, Any]]:
    """The first hundred device rows, which later sessions of a profiler lose (pytorch/pytorch#192021)."""
    rows = (event for event in events if category(event) in DEVICE)
    return sorted(rows, key=lambda event: event["ts"])[:100]


def device_rows_of_the_end(events: list[dict[str, Any]]) -> Iterable[dict[str, Any]]:
    """The last third of the device rows, though the host waited for the device behind them."""
    rows = sorted((event for event in events if category(event) in DEVICE), key=lambda event: event["ts"])
    return rows[len(rows) * 2 // 3 :]


def last_step(events: list[dict[str, Any]]) -> Iterable[dict[str, Any]]:
    """All ops, calls and device rows of the last step."""
    steps = [event for event in events if event["name"].startswith("ProfilerStep#")]
    begin = max(event["ts"] for event in steps)
    rows = (event for event in events if category(event) in (*DEVICE, "runtime", "cpu_op"))
    return (event for event in rows if event["ts"] >= begin and event not in steps)


def calls_of_the_busiest_thread(events: list[dict[str, Any]]) -> Iterable[dict[str, Any]]:
    """All calls of the thread that made the most."""
    rows = [event for event in events if category(event) == "runtime"]
    (thread, _), _ = Counter(event["tid"] for event in rows).most_common(2)
    return (event for event in rows if event["tid"] == thread)


def calls(events: list[dict[str, Any]]) -> Iterable[dict[str, Any]]:
    """All calls: ProfilerActivity.CUDA was off, or its runtime records were."""
    return (event for event in events if category(event) == "runtime")


def spoil(name: str, lost: Lost, folder: Path) -> Path:
    data = (Path(EXTRA or "") / name).read_bytes()
    document = json.loads(gzip.decompress(data) if name.endswith(".gz") else data, strict=False)
    events = document if isinstance(document, list) else document["traceEvents"]
    gone = {id(event) for event in lost([event for event in events if event.get("ph") == "X"])}
    assert gone
    events[:] = [event for event in events if id(event) not in gone]
    path = folder / "spoilt.json"
    path.write_text(json.dumps(document))
    return path


@pytest.mark.parametrize(
    ("name", "lost", "why"),
    [
        (CONTROL, syncs, "ops read a value from the device"),
        (GRAPHS, syncs, "copies to pageable memory of the host, and not one wait"),
        (QWEN, syncs, "an op reads a value from the device"),
        (DLRM, syncs, "copies to pageable memory of the host, and not one wait"),
        (FUSED, syncs, "the trace holds not one wait, not even the profiler's own"),
        (NCCL, syncs, "the trace holds not one wait, not even the profiler's own"),
        (BERT, rows_of_the_begin, "matrix products in a row launch nothing"),
        (ROCM, rows_of_the_begin, "matrix products in a row launch nothing"),
        (FUSED, rows_of_the_begin, "ops in a row launch nothing"),
        (QWEN, rows_of_the_begin, "ops in a row launch nothing"),
        (CONTROL, calls_of_the_end, "ops in a row launch nothing"),
        (RESNET, calls_of_the_end, "ops in a row launch nothing"),
        (CONTROL, calls_of_a_step, "ops in a row launch nothing"),
        (GRAPHS, calls_of_a_step, "whose launches are not in the trace"),
        (CONTROL, first_kernels, "have no device row"),
        (RESNET, first_kernels, "have no device row"),
        (CONTROL, calls, "the trace holds no runtime calls"),
        (CONTROL, device_rows_of_the_end, "have no device row"),
        (QWEN, device_rows_of_the_end, "have no device row"),
        (CONTROL, last_step, "a step has no runtime call"),
        (CONTROL, calls_of_the_busiest_thread, "whose launches are not in the trace"),
        (DLRM, calls_of_the_busiest_thread, "whose launches are not in the trace"),
    ],
)
def test_a_trace_that_lost_rows_does_not_pass(name: str, lost: Lost, why: str, tmp_path: Path) -> None:
    report = analyze(spoil(name, lost, tmp_path))
    verdict = check_gate(report, Policy())
    assert verdict.not_checked
    reasons = {entry.why for entry in verdict.not_checked}
    assert any(why in reason for reason in reasons), reasons
    assert verdict.exit_code != 0
