"""Files that hold several processes, and old ones of ROCm that number calls by their external ids."""

from __future__ import annotations

import copy
import json
import tempfile
from pathlib import Path
from typing import Any

from syncscope.trace.model import Trace
from syncscope.trace.reader import load_ranks, read_bytes
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


def devices_alone(*named: str, device: int | None = None) -> tuple[Trace, ...]:
    """Collectives of processes with these names, merged as TraceLens does, and nothing else. The devices count up, or
    all are ``device``, as of ranks that see one each."""
    events: list[dict[str, Any]] = []
    for number, name in enumerate(named):
        pid, of = 100_000_000 * number + number, number if device is None else device
        events.append({"ph": "M", "name": "process_name", "pid": pid, "tid": 0, "args": {"name": name}})
        for at in range(0, 500, 100):
            args = {"device": of, "stream": 4, "correlation": at + number}
            row = {"ph": "X", "cat": "kernel", "name": "ncclDevKernel_Generic", "ts": at + 10 * number, "dur": 50}
            events.append({**row, "pid": pid, "tid": 4, "args": args})
    return build_all({"traceEvents": events})


def test_collectives_alone_of_several_ranks_are_told_apart_by_the_names_of_their_processes() -> None:
    for device in (None, 0):
        traces = devices_alone("RANK 0 - GPU", "RANK 1 - GPU", "RANK 2 - GPU", device=device)
        assert [(one.rank, len(one.rows["device"])) for one in traces] == [(0, 5), (1, 5), (2, 5)]
        assert [int(one.rows["device"]["ts"][0]) for one in traces] == [0, 10_000, 20_000]


def test_devices_whose_ranks_are_not_named_are_those_of_one_process() -> None:
    for names in (("GPU 0", "GPU 1"), ("RANK 0 - GPU", "GPU 1"), ("RANK 0 - GPU", "RANK 0 - GPU")):
        assert [(one.rank, len(one.rows["device"])) for one in devices_alone(*names)] == [(None, 10)]


def test_ranks_that_see_one_device_each_are_told_apart_by_what_the_file_calls_its_process() -> None:
    events: list[dict[str, Any]] = []
    for rank in (0, 1):
        builder = TraceBuilder().op("aten::mm", 0, 20)
        for at in range(0, 500, 100):
            builder.launch("k", call=(at + 1, 5), runs=(at + 10, 50 + rank))
        for event in copy.deepcopy(builder.document()["traceEvents"]):
            event["pid"] += 100_000_000 * rank
            if "correlation" in event.get("args", {}):
                event["args"]["correlation"] += 1000 * rank
            events.append(event)
        name = {"name": f"RANK {rank} - CPU"}
        events.append({"ph": "M", "name": "process_name", "pid": PID + 100_000_000 * rank, "tid": 0, "args": name})
    traces = build_all({"traceEvents": events})
    assert [(one.rank, int(one.rows["device"]["dur"][0])) for one in traces] == [(0, 50_000), (1, 51_000)]


def build_all(document: dict[str, Any]) -> tuple[Trace, ...]:
    """The traces of all ranks of a file."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "merged.json"
        file.write_text(json.dumps(document))
        return load_ranks(file)


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
