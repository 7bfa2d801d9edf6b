"""Files that hold several processes, and old ones of ROCm that number calls by their external ids."""

from __future__ import annotations

import copy
import json
from typing import Any

from syncscope.trace.model import Trace
from syncscope.trace.reader import read_bytes
from tests.builders import PID, TraceBuilder


def ranks(*devices: int) -> Trace:
    """The traces of ranks in one file, as TraceLens merges them: each has its process, its numbers and a device."""
    events: list[dict[str, Any]] = []
    for rank, device in enumerate(devices):
        builder = TraceBuilder().op("aten::mm", 0, 20)
        for at in range(0, 500, 100):
            builder.launch("k", call=(at + 1, 5), runs=(at + 10, 50 + rank), device=device)
        for event in copy.deepcopy(builder.document()["traceEvents"]):
            event["pid"] = event["pid"] + 1_000_000 * rank if event["pid"] == PID else event["pid"]
            if "correlation" in event.get("args", {}):
                event["args"]["correlation"] += 1000 * rank
            events.append(event)
    return read_bytes(json.dumps({"traceEvents": events}).encode(), "trace.json")


def test_of_ranks_in_one_file_one_is_read_and_the_others_are_said_to_be_left_out() -> None:
    trace = ranks(0, 1)
    assert {name: len(trace.rows[name]) for name in ("ops", "runtime", "device")} == {
        "ops": 1, "runtime": 5, "device": 5,
    }  # fmt: skip
    assert len(set(trace.rows["device"]["device"].tolist())) == 1
    assert [one for one in trace.lost if "the file holds 2 processes" in one]


def test_processes_on_one_device_are_left_as_they_are() -> None:
    trace = ranks(0, 0)
    assert len(trace.rows["runtime"]) == 10
    assert not trace.lost


def by_external_ids(builder: TraceBuilder, *, alike: bool = False) -> Trace:
    """A trace whose calls and kernels have external ids in the place of correlations."""
    events = copy.deepcopy(builder.document()["traceEvents"])
    for event in events:
        if event["cat"] in ("cuda_runtime", "kernel"):
            number = event["args"].pop("correlation")
            event["args"] = {"External id": 1 if alike else number}
    return read_bytes(json.dumps({"traceEvents": events}).encode(), "trace.json")


def test_old_calls_of_rocm_are_joined_with_their_kernels_by_the_external_id() -> None:
    builder = TraceBuilder(vendor="hip").launch("a", call=(0, 5), runs=(10, 5)).launch("b", call=(20, 5), runs=(30, 5))
    trace = by_external_ids(builder)
    assert trace.rows["device"]["correlation"].tolist() == trace.rows["runtime"]["correlation"].tolist()
    assert (trace.rows["runtime"]["correlation"] >= 0).all()


def test_an_external_id_of_several_calls_is_that_of_their_op() -> None:
    builder = TraceBuilder().launch("a", call=(0, 5), runs=(10, 5)).launch("b", call=(20, 5), runs=(30, 5))
    assert (by_external_ids(builder, alike=True).rows["device"]["correlation"] == -1).all()
