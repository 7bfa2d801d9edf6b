"""Threads that take turns are one chain of host work; waiting for the next batch of worker processes is no work."""

import numpy as np
import pytest

from syncscope.estimate.edits import Edit
from syncscope.estimate.host import find_host_part
from syncscope.estimate.profiler_cost import MEASURED
from syncscope.estimate.program import Program, compile_program
from syncscope.estimate.replay import Scenario, replay
from syncscope.timeline import Timeline
from tests.builders import TID, TraceBuilder

OTHER = 4100
STEPS = 5


def rows(builder: TraceBuilder):
    return find_host_part(Timeline(builder.trace()))


def test_work_lies_before_and_inside_calls_and_ends_with_the_step() -> None:
    found = rows(
        TraceBuilder()
        .launch("a", call=(10, 5), runs=(20, 30))
        .launch("b", call=(40, 4), runs=(60, 9))
        .recording(0, 100)
    )
    assert found.pre.tolist() == [10_000, 25_000, 56_000]
    assert found.own.tolist() == [5_000, 4_000, 0]
    assert found.mark.tolist() == [False, False, True]


def test_backward_takes_over_from_the_main_thread_and_hands_back() -> None:
    builder = TraceBuilder().launch("forward", call=(10, 5), runs=(20, 30)).on(OTHER)
    builder.launch("grad", call=(40, 5), runs=(60, 30)).stream_sync(50, 40)
    found = rows(builder.on(TID).launch("update", call=(100, 5), runs=(110, 5)).recording(0, 200))
    assert set(found.chain) == {0}
    assert found.pre.tolist() == [10_000, 25_000, 5_000, 10_000, 95_000]


def test_a_thread_that_calls_while_the_main_thread_waits_is_a_chain_of_its_own() -> None:
    builder = TraceBuilder().launch("step", call=(10, 5), runs=(20, 70)).stream_sync(15, 80)
    found = rows(builder.on(OTHER).launch("other", call=(50, 5), runs=(100, 5)).on(TID).recording(0, 200))
    assert found.begin[found.chain == 1].tolist() == [50_000]
    assert found.chain.tolist() == [0, 0, 1, 0]


def test_a_thread_that_only_pins_batches_is_a_chain_of_its_own() -> None:
    builder = TraceBuilder().launch("step", call=(10, 5), runs=(20, 30)).on(OTHER)
    builder.call("cudaEventQuery", 50, 2).call("cudaStreamIsCapturing", 60, 1)
    found = rows(builder.on(TID).launch("step", call=(100, 5), runs=(110, 5)).recording(0, 200))
    assert found.chain.tolist() == [0, 1, 1, 0, 0]
    assert found.pre[3] == 85_000


def test_a_thread_beside_the_main_one_is_set_off_by_what_that_did_last() -> None:
    builder = TraceBuilder().launch("step", call=(10, 5), runs=(20, 70)).on(OTHER).stream_sync(30, 62)
    found = rows(builder.on(TID).launch("step", call=(60, 5), runs=(95, 5)).recording(0, 200))
    beside = found.chain == 1
    assert found.follows[beside].tolist() == [True]
    assert found.pre[beside].tolist() == [pytest.approx(15_000)]


def test_work_outside_the_steps_is_not_in_the_program() -> None:
    builder = TraceBuilder().launch("before", call=(10, 5), runs=(20, 5)).launch("inside", call=(60, 5), runs=(70, 5))
    assert rows(builder.launch("after", call=(160, 5), runs=(170, 5)).recording(50, 150)).call.tolist() == [1, -1]


def program(name: str = "", wait: float = 600) -> Program:
    """Steps of 1 ms: a batch after ``wait`` µs, then 300 µs on the device that the host waits for."""
    builder = TraceBuilder()
    for step in range(STEPS):
        at = 1000 * step
        if name:
            builder.annotation(f"enumerate(DataLoader)#{name}.__next__", at + 5, wait - 5)
        else:
            builder.entry("DataLoader", at + 5, at + wait)
        builder.launch("k", call=(at + 620, 5), runs=(at + 630, 150)).launch(
            "k", call=(at + 640, 5), runs=(at + 781, 150)
        )
        builder.stream_sync(at + 650, 285)
    found = compile_program(Timeline(builder.recording(*range(0, 5001, 1000), drained=5000).trace()), MEASURED)
    assert found is not None
    return found


def step_us(compiled: Program, *, waits: bool, worker_paced: float) -> float:
    """Length of a step in steady_steps state, with or without its wait."""
    items = compiled.items
    question = {} if waits else {int(item): Edit(free=True) for item in np.flatnonzero(items.wait)}
    ends = replay(compiled, [question], [Scenario(worker_paced=worker_paced)], [0, 1, 2, 3, 4] * 3, profiled=True).ends[
        :, 0, 0
    ]
    return float(ends[-1] - ends[4]) / 10_000


def test_workers_that_are_late_set_the_pace() -> None:
    compiled = program("_MultiProcessingDataLoaderIter")
    assert compiled.workers is True
    assert step_us(compiled, waits=True, worker_paced=1.0) == pytest.approx(1000, rel=0.01)
    assert step_us(compiled, waits=False, worker_paced=1.0) == pytest.approx(1000, rel=0.01)


def test_without_workers_loading_is_work_like_any_other() -> None:
    compiled = program("_SingleProcessDataLoaderIter")
    assert compiled.workers is False
    assert step_us(compiled, waits=True, worker_paced=0.0) == pytest.approx(1000, rel=0.01)
    assert step_us(compiled, waits=False, worker_paced=0.0) < 750


def test_the_collector_does_not_say_which_it_was() -> None:
    compiled = program()
    assert compiled.workers is None
    assert (compiled.items.loading > 0).sum() == STEPS


def test_a_batch_that_is_there_at_once_sets_no_pace() -> None:
    assert not (program("_MultiProcessingDataLoaderIter", wait=15).items.loading > 0).any()
