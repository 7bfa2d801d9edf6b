"""Gradients reduced while backward goes on."""

from __future__ import annotations

import numpy as np
import pytest

from syncscope.estimate.edits import Edits
from syncscope.estimate.gradients import BUCKET, MOST_PIECES, PIECES, spread_over_backward
from syncscope.estimate.items import COLLECTIVE
from syncscope.estimate.profiler_cost import Costs
from syncscope.estimate.program import Program, compile_program
from syncscope.estimate.replay import Scenario, replay
from syncscope.timeline import Timeline
from tests.builders import TID, TraceBuilder

ALL_REDUCE = "ncclDevKernel_AllReduce_Sum_f32_RING_LL"
STEPS = 4


def training(*reduces: float, between: float = 0, autograd: int = TID + 1) -> tuple[Timeline, Program]:
    """Steps of 300 µs forward, four kernels of 100 µs backward on the autograd thread, maybe some compute ``between``,
    all-reduces that last for ``reduces``, and 50 µs of an optimizer, back to back; the host is ahead of it all."""
    builder = TraceBuilder()
    for number in range(STEPS):
        host, device = 50.0 * number, 1000.0 * number + 10
        kernels = [("forward", TID, 300.0), *[("backward", autograd, 100.0)] * 4]
        kernels += [("between", TID, between)] * bool(between)
        kernels += [*((ALL_REDUCE, TID, length) for length in reduces), ("optimizer", TID, 50.0)]
        for name, tid, length in kernels:
            builder.on(tid).launch(name, call=(host, 1), runs=(device, length))
            host, device = host + 2, device + length
    builder.on(TID).recording(*(50.0 * number for number in range(STEPS + 1)), drained=1000.0 * STEPS)
    timeline = Timeline(builder.trace())
    program = compile_program(timeline, Costs(*[0.0] * 6))
    assert program is not None
    return timeline, program


def spread(timeline: Timeline, program: Program, size: float = -1) -> Edits:
    items = np.flatnonzero(program.items.engine == COLLECTIVE)
    return spread_over_backward(timeline, program, dict.fromkeys(items.tolist(), size))


def saved_us(program: Program, changes: Edits, slowdown: float) -> float:
    order = [number % STEPS for number in range(4 * STEPS)]
    ends = replay(program, [{}, changes], [Scenario(slowdown=slowdown)], order, profiled=True).ends[:, :, 0]
    before, after = (ends[-1] - ends[2 * STEPS - 1]) / (2 * STEPS)
    return float(before - after) / 1000


def test_all_but_the_last_share_of_one_collective_hides_behind_backward():
    timeline, program = training(200)
    # Two of eight pieces need the last quarter of backward.
    assert saved_us(program, spread(timeline, program), 0.0) == pytest.approx(150, abs=1)


def test_the_compute_beside_it_takes_longer():
    timeline, program = training(200)
    changes = spread(timeline, program)
    assert saved_us(program, changes, 0.5) == pytest.approx(150 / 2, abs=1)
    assert saved_us(program, changes, 1.0) == pytest.approx(0, abs=1)


def test_collectives_one_by_one_each_wait_for_their_share():
    timeline, program = training(50, 50, 50, 50)
    changes = spread(timeline, program)
    assert [len(edit.pieces) for edit in changes.values()] == [1] * 4 * STEPS
    assert saved_us(program, changes, 0.0) == pytest.approx(150, abs=1)


def test_what_takes_longer_than_backward_stays_exposed_for_the_rest():
    timeline, program = training(800)
    assert saved_us(program, spread(timeline, program), 0.0) == pytest.approx(300, abs=1)


def test_the_bytes_of_a_collective_say_how_many_pieces_it_has():
    timeline, program = training(200)
    for size, pieces in ((-1, PIECES), (BUCKET / 5, 1), (3 * BUCKET, 3), (100 * BUCKET, MOST_PIECES)):
        assert {len(edit.pieces) for edit in spread(timeline, program, size).values()} == {pieces}


def test_a_collective_behind_other_compute_reduces_no_gradients():
    assert spread(*training(200, between=300)) == {}
    assert spread(*training(200, between=20)) != {}


def test_without_a_thread_of_its_own_nothing_is_known_to_be_backward():
    assert spread(*training(200, autograd=TID)) == {}
