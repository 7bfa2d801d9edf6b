from __future__ import annotations

import pytest

from syncscope.timeline import Timeline
from syncscope.timeline.queue import waited_share
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


@pytest.mark.parametrize(("returns", "share"), [(5, 0.5), (25, 1.0)])
def test_launches_that_return_after_their_kernel_waited_for_it(returns: float, share: float):
    builder = TraceBuilder().launch("a", call=(0, 25), runs=(5, 20)).launch("b", call=(40, returns), runs=(46, 19))
    view = Timeline(builder.kernel("no launch", 90, 5).trace())
    assert waited_share(view.calls, view.launch, view.trace.device) == (share, 2)
