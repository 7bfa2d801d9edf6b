from __future__ import annotations

import pytest

from syncscope.timeline import Timeline
from syncscope.timeline.launching import Launching
from tests.builders import TraceBuilder

US = 1000


def launching(builder: TraceBuilder) -> Launching:
    found = Timeline(builder.trace()).launching
    assert found is not None
    return found


def steps(many: int = 2, *, kernels: tuple[str, ...] = ("a", "b", "c")) -> TraceBuilder:
    """Steps of 100 µs, each with a launch every 10 µs of a kernel that begins 6 µs after its launch."""
    builder = TraceBuilder().steps(*(100 * i for i in range(many + 1)))
    for step in range(many):
        for i, kernel in enumerate(kernels):
            at = 100 * step + 10 * i
            builder.launch(kernel, call=(at, 4), runs=(at + 6, 2))
    return builder


def test_the_launches_of_the_steps_are_counted_and_their_delay_is_measured():
    found = launching(steps().launch("outside", call=(300, 4), runs=(390, 2)))
    assert (found.launches, found.delay_ns, found.busy_ns) == (6, 6 * US, 12 * US)


def test_the_hosts_own_time_leaves_out_its_waits_and_staged_copies():
    builder = steps().stream_sync(40, 20).copy("HtoD", call=(140, 30), runs=(150, 5), memory="pageable")
    assert launching(builder).own_ns == (200 - 20 - 30) * US


def test_a_wait_of_a_thread_that_launches_nothing_is_no_matter():
    assert launching(steps().on(9).stream_sync(40, 20)).own_ns == 200 * US


def test_what_every_step_launches_in_a_row_becomes_one_graph():
    assert launching(steps()).replayable == 2 * (3 - 1)


@pytest.mark.parametrize(
    "split",
    [
        lambda builder, at: builder.stream_sync(at, 2),
        lambda builder, at: builder.copy("HtoD", call=(at, 2), runs=(at + 3, 1)),
        lambda builder, at: builder.call("cudaMalloc", at, 2),
    ],
    ids=["wait", "host copy", "allocation"],
)
def test_a_wait_a_host_copy_and_an_allocation_split_it(split):
    assert launching(split(split(steps(), 15), 115)).replayable == 2 * (2 - 1)


def test_a_copy_on_the_device_does_not_split_it():
    builder = steps()
    for at in (15, 115):
        builder.copy("DtoD", call=(at, 2), runs=(at + 3, 1))
    assert launching(builder).replayable == 2 * (3 - 1)


def test_what_only_one_step_does_is_not_replayed():
    assert launching(steps().launch("d", call=(130, 4), runs=(136, 2))).replayable == 0


def test_one_step_does_not_tell_what_repeats():
    assert launching(steps(1)).replayable is None


def test_without_launches_there_is_nothing_to_say():
    assert Timeline(TraceBuilder().step(0, 100).copy("HtoD", call=(5, 2), runs=(9, 5)).trace()).launching is None


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


def blocking(*returns: float, behind: float = 5) -> Timeline:
    """Kernels of 20 µs that begin ``behind`` their launches, which take as long as given, with the variable set."""
    builder = TraceBuilder().recording(0, 1000, launch_blocking=True)
    for number, length in enumerate(returns):
        builder.launch("k", call=(100 * number + 50, length), runs=(100 * number + 50 + behind, 20))
    return Timeline(builder.stream_sync(990, 2).trace())


def test_every_launch_waits_when_nine_in_ten_return_after_their_kernel():
    assert blocking(*[25] * 9, 5).launch_blocking
    assert not blocking(*[25] * 8, 5, 5).launch_blocking


def test_kernels_before_their_launches_tell_of_a_clock_and_not_of_waits():
    assert not blocking(*[25] * 9, behind=-10).launch_blocking


def test_without_launches_none_waits():
    assert not blocking().launch_blocking
