"""Waiting for the next batch of worker processes is no work of the host."""

from __future__ import annotations

import pytest

from syncscope.estimate.costs import MEASURED
from syncscope.estimate.edits import Edit
from syncscope.estimate.machine import Scenario, replay
from syncscope.estimate.program import Program, compile_program
from syncscope.timeline import Timeline
from tests.builders import TraceBuilder

STEPS = 5


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


def step_us(compiled: Program, *, waits: bool, paced: float) -> float:
    """Length of a step in steady state, with or without its wait."""
    items = compiled.items
    question = {} if waits else {int(item): Edit(free=True) for item in items.index[items["wait"]]}
    ends = replay(compiled, [question], [Scenario(paced=paced)], [0, 1, 2, 3, 4] * 3, taxed=False).ends[:, 0, 0]
    return float(ends[-1] - ends[4]) / 10_000


def test_workers_that_are_late_set_the_pace() -> None:
    compiled = program("_MultiProcessingDataLoaderIter")
    assert compiled.workers is True
    assert step_us(compiled, waits=True, paced=1.0) == pytest.approx(1000, rel=0.01)
    assert step_us(compiled, waits=False, paced=1.0) == pytest.approx(1000, rel=0.01)


def test_without_workers_loading_is_work_like_any_other() -> None:
    compiled = program("_SingleProcessDataLoaderIter")
    assert compiled.workers is False
    assert step_us(compiled, waits=True, paced=0.0) == pytest.approx(1000, rel=0.01)
    assert step_us(compiled, waits=False, paced=0.0) < 750


def test_the_collector_does_not_say_which_it_was() -> None:
    compiled = program()
    assert compiled.workers is None
    assert (compiled.items["loading"] > 0).sum() == STEPS


def test_a_batch_that_is_there_at_once_sets_no_pace() -> None:
    assert not (program("_MultiProcessingDataLoaderIter", wait=15).items["loading"] > 0).any()
