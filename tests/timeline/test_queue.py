from __future__ import annotations

from syncscope.timeline import Timeline
from tests.builders import TraceBuilder


def test_a_call_counts_those_before_it_whose_work_is_not_done():
    builder = (
        TraceBuilder()
        .launch("a", call=(0, 2), runs=(10, 20))
        .launch("b", call=(5, 2), runs=(30, 20))
        .copy("HtoD", call=(35, 2), runs=(60, 5), stream=9)
        .launch("c", call=(100, 2), runs=(110, 5))
    )
    assert Timeline(builder.trace()).queued.tolist() == [0, 1, 1, 0]


def test_calls_that_give_the_device_nothing_do_not_count():
    builder = TraceBuilder().call("cudaEventRecord", 0, 1).launch("a", call=(5, 2), runs=(10, 20)).stream_sync(12, 20)
    assert Timeline(builder.trace()).queued.tolist() == [0, 0, 1]


def test_a_graph_is_done_when_its_last_kernel_is():
    builder = TraceBuilder().call("cudaGraphLaunch", 0, 2, correlation=50)
    builder.kernel("a", 10, 5, correlation=50).kernel("b", 20, 30, correlation=50)
    builder.call("cudaEventRecord", 30, 1).call("cudaEventRecord", 60, 1)
    assert Timeline(builder.trace()).queued.tolist() == [0, 1, 0]


def test_without_calls_there_is_nothing():
    assert Timeline(TraceBuilder().kernel("k", 0, 5).trace()).queued.tolist() == []


def said(*returns: float) -> Timeline:
    """Kernels of 20 µs whose launches take as long as given, recorded with the variable set."""
    builder = TraceBuilder().recording(0, 1000, launch_blocking=True)
    for number, length in enumerate(returns):
        builder.launch("k", call=(100 * number, length), runs=(100 * number + 5, 20))
    return Timeline(builder.stream_sync(990, 2).trace())


def test_every_launch_waits_when_nine_in_ten_return_after_their_kernel():
    assert said(*[25] * 9, 5).launch_blocking
    assert not said(*[25] * 8, 5, 5).launch_blocking


def test_without_launches_none_waits():
    assert not said().launch_blocking
