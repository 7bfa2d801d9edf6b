import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from syncscope.trace import Device, TraceError, load, model
from syncscope.trace.reader import read_bytes
from syncscope.trace.tables.frames import _order
from tests.builders import BASE_NS, PID, TID, TraceBuilder


def item_in_a_step():
    return (
        TraceBuilder(rank=1, world_size=4)
        .step(0, 100)
        .frame("train.py", 3, "step", 5, 90)
        .op("aten::item", 10, 60)
        .copy("DtoH", call=(12, 3), runs=(20, 5.5), memory="pinned", bytes=4)
        .stream_sync(16, 50, record=True)
        .launch("gemm", call=(70, 5), runs=(80, 0.5))
    )


def refuse(data):
    with pytest.raises(TraceError) as caught:
        read_bytes(data if isinstance(data, bytes) else json.dumps(data).encode(), "t.json")
    return caught.value.reason


# --------------------------------------------------------------------------------------------------- tables


@pytest.mark.parametrize("builder", [item_in_a_step(), TraceBuilder().stream_sync(0, 1)], ids=["full", "nearly empty"])
def test_every_table_has_the_columns_and_types_that_are_documented(builder):
    trace = builder.trace()
    for name, documented in model.TABLES.items():
        table = getattr(trace, name)
        assert {column: str(dtype) for column, dtype in table.dtypes.items()} == documented.types, name
        assert list(table.index) == list(range(len(table)))


def test_times_are_nanoseconds_and_half_a_microsecond_survives():
    trace = item_in_a_step().trace()
    kernel = trace.device[trace.device["kind"] == "kernel"].iloc[0]
    assert (kernel["ts"], kernel["dur"], kernel["end"]) == (80_000, 500, 80_500)
    assert trace.base_ns == BASE_NS


def test_calls_and_device_rows_are_joined_by_correlation():
    trace = item_in_a_step().trace()
    joined = trace.device.merge(trace.runtime, on="correlation", suffixes=("", "_call"))
    assert dict(zip(joined["name"], joined["name_call"], strict=True)) == {
        "Memcpy DtoH (Device -> Pinned)": "cudaMemcpyAsync",
        "gemm": "cudaLaunchKernel",
    }


def test_a_copy_has_direction_memory_and_bytes_and_a_kernel_has_none():
    trace = item_in_a_step().trace()
    columns = ["kind", "direction", "memory", "bytes", "device", "stream"]
    assert trace.device[columns].to_numpy().tolist() == [
        ["memcpy", "DtoH", "pinned", 4, 0, 7],
        ["kernel", "", "", -1, 0, 7],
    ]


def test_sync_records_say_what_was_waited_for():
    trace = item_in_a_step().event_sync(200, 5, stream=20, record=True).trace()
    stream, event = trace.sync.to_dict("records")
    assert (stream["name"], stream["stream"], stream["wait_on_stream"]) == ("Stream Sync", 7, -1)
    assert (event["name"], event["stream"], event["wait_on_stream"]) == ("Event Sync", -1, 20)
    assert stream["correlation"] in set(trace.runtime["correlation"])


def test_rows_are_sorted_by_start_with_the_longest_first():
    trace = TraceBuilder().op("late", 5, 1).op("inner", 0, 2).op("outer", 0, 9).stream_sync(0, 1).trace()
    assert list(trace.ops["name"]) == ["outer", "inner", "late"]


def test_frames_know_file_line_function_and_parent():
    trace = item_in_a_step().builtin("item", 11, 58).trace()
    step, item = trace.frames.to_dict("records")
    assert (step["file"], step["line"], step["function"], step["parent"]) == ("train.py", 3, "step", -1)
    assert (item["file"], item["line"], item["function"], item["parent"]) == ("<built-in>", -1, "item", step["id"])


def test_backward_ops_know_the_thread_of_their_forward():
    builder = TraceBuilder().op("forward", 0, 1, sequence=7).op("backward", 2, 1, sequence=7, forward_tid=1)
    trace = builder.op("plain", 4, 1).stream_sync(5, 1).trace()
    assert trace.ops["sequence"].tolist() == [7, 7, -1]
    assert trace.ops["forward_tid"].tolist() == [-1, 1, -1]


def test_collective_kernels_are_marked():
    name = "ncclDevKernel_Generic_1"
    trace = TraceBuilder().kernel("gemm", 0, 1).kernel(name, 1, 1, args={"Collective name": "_allgather_base"}).trace()
    assert list(trace.device["collective"]) == ["", "allgather"]


def test_graph_ids_are_kept_and_zero_is_none():
    builder = TraceBuilder().kernel("a", 0, 1, args={"graph id": 3}).kernel("b", 1, 1, args={"graph id": 0})
    assert builder.trace().device["graph"].tolist() == [3, -1]


def test_a_negative_length_is_clamped_and_a_missing_one_is_zero():
    builder = TraceBuilder().kernel("a", 0, -5).kernel("b", 1, 1)
    del builder.events[-1]["dur"]
    assert builder.trace().device["dur"].tolist() == [0, 0]


# ------------------------------------------------------------------------------------------------- versions


def test_relative_and_absolute_times_and_old_categories_give_the_same_rows():
    new = item_in_a_step()
    old = item_in_a_step()
    capitalised = {"cpu_op": "Operator", "kernel": "Kernel", "gpu_memcpy": "Memcpy", "cuda_runtime": "Runtime"}
    for event in old.events:
        event["ts"] = BASE_NS // 1000 + int(event["ts"])
        event["dur"] = event["dur"]
        if event["cat"] in ("user_annotation", "cpu_op"):
            event["tid"] = str(event["tid"])
        event["cat"] = "Operator" if event["cat"] == "user_annotation" else capitalised.get(event["cat"], event["cat"])
        if event["cat"] in ("Kernel", "Memcpy"):
            event["tid"] = f"stream {event['args'].pop('stream')}"
    document = old.document()
    del document["baseTimeNanoseconds"]
    before, after = read_bytes(json.dumps(document).encode(), "t.json"), new.trace()
    assert before.base_ns == 0
    for name in ("ops", "runtime", "device", "sync", "steps"):
        table = getattr(before, name).copy()
        table[["ts", "end"]] -= BASE_NS
        assert table.astype(object).equals(getattr(after, name).astype(object)), name


def test_a_list_at_the_root_is_a_trace_too():
    events = item_in_a_step().document()["traceEvents"]
    trace = read_bytes(json.dumps(events).encode(), "t.json")
    assert len(trace.runtime) == 3
    assert trace.warnings == ("the file does not say when it begins: its times cannot be compared with another's",)


def test_absolute_times_beside_a_base_are_absolute():
    builder = TraceBuilder().stream_sync(BASE_NS / 1000 + 5, 1)
    trace = builder.trace()
    assert (trace.base_ns, trace.runtime["ts"].tolist(), trace.warnings) == (0, [BASE_NS + 5000], ())


def test_metadata_after_the_events_is_read():
    document = item_in_a_step().document()
    events = document.pop("traceEvents")
    trace = read_bytes(json.dumps({"traceEvents": events, **document}).encode(), "t.json")
    assert (trace.base_ns, trace.rank, trace.devices[0].name) == (BASE_NS, 1, "NVIDIA H200")


def test_begin_and_end_events_are_paired_by_thread():
    events = []
    for tid in (1, 2):
        for name, phase, at in (("a", "B", 0), ("b", "B", 10), ("", "E", 15), ("", "E", 30 * tid)):
            events.append({"ph": phase, "cat": "cpu_op", "name": name, "pid": 9, "tid": tid, "ts": at})
    builder = TraceBuilder().stream_sync(0, 1)
    builder.events += events
    trace = builder.trace()
    rows = trace.ops.sort_values(["tid", "ts"])[["tid", "name", "dur"]].to_numpy().tolist()
    assert rows == [[1, "a", 30_000], [1, "b", 5_000], [2, "a", 60_000], [2, "b", 5_000]]
    assert trace.warnings == ()


def test_begin_events_without_an_end_are_instants_and_counted():
    builder = TraceBuilder().stream_sync(0, 1)
    builder.events += [
        {"ph": "B", "cat": "cuda_runtime", "name": "cudaStreamSynchronize", "pid": 9, "tid": 1, "ts": 5},
        {"ph": "E", "pid": 9, "tid": 2, "ts": 5},
    ]
    trace = builder.trace()
    assert trace.runtime["dur"].tolist() == [1000, 0]
    assert trace.warnings == ("1 begin events have no end (taken as instants) and 1 end events no begin",)


def test_an_external_id_that_repeats_the_correlation_is_no_link():
    builder = TraceBuilder().call("cudaLaunchKernel", 0, 1, args={"External id": 1})
    builder.call("cudaLaunchKernel", 2, 1, args={"External id": 99})
    assert builder.trace().runtime["external_id"].tolist() == [-1, 99]


# ------------------------------------------------------------------------------------------------------ HIP


def hip_copy(kind, row="DtoD", **call):
    builder = TraceBuilder(vendor="hip")
    builder.call("hipMemcpyWithStream", 0, 50, args={"kind": kind, "size": "256", "stream": "0x0", **call})
    side = {"H": "Host", "D": "Device"}
    name = f"Memcpy {row} ({side[row[0]]} -> {side[row[-1]]})"
    place = {"pid": 2, "tid": 0, "ts": 10, "dur": 5, "args": {"device": 2, "stream": 0, "correlation": 1}}
    builder.events.append({"ph": "X", "cat": "gpu_memcpy", "name": name, **place})
    return builder.trace()


def test_the_launching_call_corrects_a_mislabelled_rocm_copy():
    trace = hip_copy("2")
    assert trace.device[["direction", "memory", "bytes"]].to_numpy().tolist() == [["DtoH", "", 256]]
    assert trace.runtime[["copy_kind", "bytes"]].to_numpy().tolist() == [[2, 256]]


def test_a_rocm_copy_of_default_kind_keeps_the_rows_direction():
    assert list(hip_copy("4", row="HtoD").device["direction"]) == ["HtoD"]


# ---------------------------------------------------------------------------------- steps, process, devices


def test_the_last_profiler_step_is_kept():
    trace = item_in_a_step().step(100, 50).op("aten::add", 110, 5).trace()
    assert trace.step_source == "profiler"
    assert trace.steps[["number", "ts", "dur", "tid"]].to_numpy().tolist() == [
        [0, 0, 100_000, TID],
        [1, 100_000, 50_000, TID],
    ]


def test_steps_of_a_second_thread_are_not_counted_twice():
    trace = item_in_a_step().step(100, 50).op("aten::add", 110, 5).on(77).step(100, 50, number=1).trace()
    assert trace.steps["number"].tolist() == [0, 1]


def test_a_trace_without_steps_says_so():
    trace = TraceBuilder().stream_sync(0, 1).trace()
    assert (len(trace.steps), trace.step_source) == (0, "none")


def test_the_process_is_the_one_with_the_most_runtime_calls():
    builder = TraceBuilder().stream_sync(0, 1).stream_sync(2, 1).op("a", 0, 1)
    for category in ("cpu_op", "cpu_op", "cuda_runtime"):
        builder.events.append({"ph": "X", "cat": category, "name": "b", "pid": 1, "tid": 1, "ts": 5, "dur": 1})
    assert builder.trace().pid == PID


def test_threads_have_the_names_of_the_process():
    builder = TraceBuilder().on(5, "thread 5 (pt_autograd_0)").on(6, "loader").stream_sync(0, 1)
    lane = {"ph": "M", "name": "thread_name", "pid": 0, "tid": 7, "ts": 0, "args": {"name": "stream 7"}}
    builder.events.append(lane)
    assert builder.trace().thread_names == {5: "pt_autograd_0", 6: "loader"}


def test_devices_and_ranks_are_read():
    builder = item_in_a_step()
    builder.top["deviceProperties"][0]["asyncEngineCount"] = 3
    trace = builder.trace()
    assert trace.devices == (Device(0, "NVIDIA H200", 3),)
    assert (trace.rank, trace.world_size) == (1, 4)
    assert item_in_a_step().trace().devices[0].copy_engines is None


@pytest.mark.parametrize("odd", [None, 5, "x", [], {}, [5], [{"id": "x"}], [{"id": [], "name": "d"}]])
def test_odd_metadata_does_not_sink_a_trace(odd):
    builder = TraceBuilder().stream_sync(0, 1)
    builder.top |= {"deviceProperties": odd, "distributedInfo": odd}
    trace = builder.trace()
    assert (trace.rank, len(trace.runtime)) == (None, 1)


# ------------------------------------------------------------------------------------------------- refusals


def test_what_is_not_json_is_refused():
    assert refuse(b"\x7fELF\x02\x01") == "is not JSON"
    assert refuse(b"   \n") == "is not JSON"
    assert refuse('"text"'.encode("utf-16")) == "is not JSON"


def test_json_that_is_no_trace_is_refused():
    assert refuse({"schema_version": 1, "findings": []}) == (
        "is JSON but not a trace: it is a saved report, so give it to `syncscope report`"
    )
    assert refuse({"traceEvents": {"a": 1}}).startswith("is JSON but not a trace")


def test_a_trace_with_no_events_is_refused():
    assert refuse({"traceEvents": []}) == "holds no events"
    assert refuse([]) == "holds no events"


def test_json_nested_too_deep_is_refused():
    assert refuse(b'{"traceEvents": [' + b"[" * 200_000) == "is cut short before its first event"


def test_a_trace_of_the_host_alone_is_refused():
    document = TraceBuilder().step(0, 10).op("aten::add", 1, 2).document()
    without = "holds no device activity and no runtime calls: recorded without ProfilerActivity.CUDA, or "
    assert refuse(document | {"deviceProperties": []}).startswith(f"{without}where there is no CUDA or ROCm device?")


def test_a_trace_of_the_host_alone_that_names_a_device_may_lack_what_cupti_gives():
    document = TraceBuilder().step(0, 10).op("aten::add", 1, 2).document()
    said = refuse(document | {"deviceProperties": [{"id": 0, "name": "NVIDIA GeForce RTX 5080"}]})
    assert "or the driver's profiler (CUPTI) could not be used?" in said
    assert "The file names the device, NVIDIA GeForce RTX 5080; in WSL" in said


def test_where_a_file_is_cut_short_before_the_device_s_rows_that_is_the_reason():
    data = json.dumps(TraceBuilder().step(0, 10).op("aten::add", 1, 2).document()).encode()
    said = refuse(data[: data.rindex(b"}") - 1])
    assert said.startswith("holds no device activity and no runtime calls: some of it is lost (the file is cut short")


def test_a_trace_of_an_unsupported_device_is_refused_by_name():
    builder = TraceBuilder().op("aten::add", 1, 2)
    builder.call("runFunction", 1, 1, category="mtia_runtime")
    assert refuse(builder.document()) == "holds activity of a device that is not supported (mtia_runtime)"


def test_another_tools_events_are_refused():
    assert refuse([{"ph": "X", "name": "frame", "cat": "toplevel", "ts": 1, "pid": 1, "tid": 1}]) == (
        "holds no events of a PyTorch profile"
    )


def test_device_rows_without_calls_and_calls_without_device_rows_are_traces(tmp_path):
    assert len(TraceBuilder().kernel("a", 0, 1).trace().device) == 1
    assert len(load(TraceBuilder().stream_sync(0, 1).write(tmp_path / "t.json.gz")).runtime) == 1


@given(st.lists(st.tuples(*[st.integers(0, 4)] * 5), max_size=30), st.randoms())
def test_rows_are_in_the_order_of_their_begins_the_longest_first_and_then_of_what_they_hold(rows, chance):
    def ordered(rows):
        names = ("ts", "dur", "tid", "correlation", "bytes")
        columns = {name: np.array([row[at] for row in rows], dtype=np.int64) for at, name in enumerate(names)}
        return [rows[at] for at in _order(columns)]

    assert ordered(rows) == sorted(rows, key=lambda row: (row[0], -row[1], *row[2:]))
    chance.shuffle(rows)
    assert ordered(rows) == sorted(rows, key=lambda row: (row[0], -row[1], *row[2:]))


def test_rows_alike_but_for_a_name_are_in_the_order_of_their_names():
    row = {"ph": "X", "cat": "user_annotation", "pid": 1, "tid": 1, "ts": 1, "dur": 2}
    call = row | {"cat": "cuda_runtime", "name": "cudaLaunchKernel"}
    trace = read_bytes(json.dumps([row | {"name": name} for name in ("b", "a", "c")] + [call]).encode(), "t.json")
    assert list(trace.annotations["name"]) == ["a", "b", "c"]


def test_of_several_names_a_thread_has_the_one_of_its_own():
    names = [(1, "python3"), (2, "pt_autograd_0"), (2, "python3")]
    rows = [
        {"ph": "M", "name": "thread_name", "pid": 1, "tid": tid, "args": {"name": f"thread {tid} ({name})"}}
        for tid, name in names
    ]
    call = {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": 1, "dur": 2}
    for order in (rows, rows[::-1]):
        trace = read_bytes(json.dumps([*order, call]).encode(), "t.json")
        assert trace.thread_names == {1: "python3", 2: "pt_autograd_0"}


@pytest.mark.parametrize(("start", "length"), [(4.1e15, 1), (-4.1e15, 1), (1, 4.1e15), (3e15, 2e15), (1e300, 0)])
def test_an_event_at_an_impossible_time_is_skipped_with_a_warning(start, length):
    call = {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": 1, "dur": 2}
    trace = read_bytes(json.dumps([call, call | {"ts": start, "dur": length}]).encode(), "t.json")
    assert len(trace.runtime) == 1
    assert "1 event skipped: no time or an impossible one" in trace.warnings


@pytest.mark.parametrize("base", [2**62, 2**63, 10**30])
def test_an_impossible_base_time_counts_as_none(base):
    call = {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": 1, "dur": 2}
    document = {"baseTimeNanoseconds": base, "traceEvents": [call]}
    assert read_bytes(json.dumps(document).encode(), "t.json").base_ns == 0
