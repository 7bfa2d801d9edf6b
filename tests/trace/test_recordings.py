"""What our own recordings add to a trace."""

import json

import pytest

from syncscope.trace import TraceError
from syncscope.trace.reader import read_bytes
from tests.builders import TID, TraceBuilder, epoch_ns


def recorded():
    return (
        TraceBuilder()
        .stream_sync(10, 5)
        .recording(0, 100, 200.5, source="optimizer", first=7, bare_us=[80, 90], rank=2, thread_names={"5": "main"})
        .warning(16, ("train.py", 40, "main"), ("train.py", 42, "step", "loss.item()"), expected="logging")
    )


def test_the_recordings_boundaries_are_the_steps():
    trace = recorded().steps(0, 50).trace()
    assert trace.step_source == "optimizer"
    assert trace.steps[["number", "ts", "end"]].to_numpy().tolist() == [[7, 0, 100_000], [8, 100_000, 200_500]]


def test_a_recording_without_boundaries_leaves_the_profilers_steps():
    trace = TraceBuilder().stream_sync(0, 1).recording(source="none").step(0, 50).trace()
    assert trace.step_source == "profiler"
    assert trace.recording is not None


def test_the_recording_is_read_whole():
    trace = recorded().trace()
    assert trace.recording == recorded().recorded()
    assert trace.recording is not None
    (site,) = trace.recording.sites
    frames = [trace.recording.frames[i] for i in trace.recording.stacks[site.stack]]
    assert (frames[-1].line, frames[-1].expression, site.expected) == (42, "loss.item()", "logging")
    assert site.end_ns == epoch_ns(16)
    assert (trace.rank, trace.thread_names) == (2, {5: "main"})


def test_threads_that_the_profiler_numbers_otherwise_get_their_native_id():
    builder = TraceBuilder().stream_sync(0, 1).on(1234, "thread 1234 (python)").stream_sync(2, 1).op("a", 2, 1)
    trace = builder.recording(0, 10, thread_aliases={"1234": 77}).trace()
    assert trace.runtime["tid"].tolist() == [TID, 77]
    assert trace.ops["tid"].tolist() == [77]
    assert trace.thread_names == {77: "python"}
    assert str(trace.runtime["tid"].dtype) == "int64"


def test_a_foreign_trace_has_no_recording():
    assert TraceBuilder().stream_sync(0, 1).trace().recording is None


def test_a_recording_of_a_newer_format_asks_for_an_upgrade():
    document = recorded().document()
    document["syncscope"]["format"] = 2
    with pytest.raises(TraceError) as caught:
        read_bytes(json.dumps(document).encode(), "t.json")
    assert caught.value.reason == "was recorded by a newer syncscope (format 2): upgrade syncscope"


@pytest.mark.parametrize(
    "spoil",
    [
        lambda key: key.pop("steps"),
        lambda key: key["steps"].update(boundaries_ns=[2, 1]),
        lambda key: key["steps"].update(boundaries_ns=[0, 2**70]),
        lambda key: key["sites"][0].update(stack=9),
        lambda key: key["stacks"][0].append(-1),
        lambda key: key.update(format="x"),
        lambda key: key.update(thread_aliases={"5": 2**70}),
        lambda key: key["sites"][0].update(tid=2**64),
        lambda key: key["steps"].update(drained_ns=-(2**62)),
        lambda key: key["frames"][0].update(line=10**30),
        lambda key: key["bare"].update(steps_ns=[-1]),
        lambda key: key["bare"].update(stamps=[{"event": "wait", "stack": 9, "ends_ns": [1, 1]}]),
        lambda key: key["bare"].update(stamps=[{"event": "wait", "stack": 0, "ends_ns": [1]}]),
        lambda key: key["bare"].update(loader={"workers": -2}),
        lambda key: key.update(gpu={"power_limit_w": -700}),
        lambda key: key.update(gpu={"bare": {"throttled": {"power cap": 2.0}}}),
    ],
    ids=[
        "no steps",
        "backwards",
        "too late",
        "no such stack",
        "no such frame",
        "odd format",
        "odd thread",
        "odd thread of a site",
        "drained before the epoch",
        "odd line",
        "negative bare step",
        "no such stack of a stamp",
        "stamp of one step",
        "negative workers",
        "negative limit",
        "more than all of the time",
    ],
)
def test_a_malformed_recording_is_ignored_with_a_warning(spoil):
    document = json.loads(recorded().step(0, 50).json())
    spoil(document["syncscope"])
    trace = read_bytes(json.dumps(document).encode(), "t.json")
    assert trace.recording is None
    assert trace.step_source == "profiler"
    assert [w for w in trace.warnings if w.startswith("the syncscope key is malformed and is ignored: ")]
