"""The host's work measured between moments that were stamped without a profiler."""

from __future__ import annotations

import numpy as np
import pytest

from syncscope import rules
from syncscope.estimate import estimate_savings, prepare
from syncscope.estimate.fit import USUAL, steady_steps
from syncscope.estimate.prepare import Prepared
from syncscope.estimate.profiler_cost import Costs
from syncscope.estimate.program import Program, compile_program
from syncscope.estimate.stamps import Stamped, find_stamped, scale_stretches
from syncscope.schema.recording import Bare, BareStamp
from syncscope.timeline import Timeline
from tests.builders import TID, TraceBuilder
from tests.rules.scenes import line

FREE = Costs(*[0.0] * 6)
STEPS = 4


def recorded(first: float, second: float, stamped: bool = True) -> Timeline:
    """Steps of two stretches of host work, 400 and 600 µs as recorded, with the return of a wait between them; in bare
    steps they took ``first`` and ``second`` times as long."""
    builder, at = TraceBuilder(), 0.0
    marks = [at]
    for _ in range(STEPS):
        builder.launch("gemm", call=(at + 390, 5), runs=(at + 397, 10))
        builder.stream_sync(at + 395, 15).warning(at + 411, line(3, "loss.item()"))
        builder.launch("gemm", call=(at + 990, 5), runs=(at + 997, 10))
        at += 1010
        marks.append(at)
    moment = round(1000 * (395 * first + 15))
    length = round(1000 * (395 * first + 15 + 600 * second))
    stamps = (BareStamp(event="wait", stack=0, ends_ns=(moment,) * 9),) if stamped else ()
    bare = Bare(steps_ns=(length,) * 9, drain_ns=1000, stamps=stamps)
    return Timeline(builder.recording(*marks, drained=at + 5, bare=bare).trace())


def compiled(timeline: Timeline) -> Program:
    program = compile_program(timeline, FREE)
    assert program is not None
    return program


def stretches(timeline: Timeline) -> tuple[float, float]:
    """The scales of the two stretches that the stamps show."""
    program, recording = compiled(timeline), timeline.trace.recording
    assert recording is not None
    stamped = find_stamped(timeline, program, recording.bare)
    assert stamped is not None
    scaled, _ = scale_stretches(program, stamped, *steady_steps(program))
    after = np.arange(len(program.items)) > stamped.items[0][program.items.step]
    shares = scaled.items.pre / np.maximum(program.items.pre, 1.0) * USUAL
    busy = program.items.pre > 100_000
    return float(shares[busy & ~after].mean()), float(shares[busy & after].mean())


@pytest.mark.parametrize(("first", "second"), [(0.6, 1.0), (1.0, 0.7), (0.8, 0.8)])
def test_each_stretch_has_the_scale_that_the_bare_steps_show(first: float, second: float) -> None:
    found = stretches(recorded(first, second))
    assert found == (pytest.approx(first, abs=0.03), pytest.approx(second, abs=0.03))


def test_a_recording_without_stamps_has_none() -> None:
    timeline = recorded(1.0, 1.0, stamped=False)
    recording = timeline.trace.recording
    assert recording is not None
    assert find_stamped(timeline, compiled(timeline), recording.bare) is None


def test_stamps_that_the_recorded_steps_lack_are_passed_over() -> None:
    timeline = recorded(1.0, 1.0)
    recording = timeline.trace.recording
    assert recording is not None and recording.bare is not None
    elsewhere = BareStamp(event="wait", stack=9, ends_ns=(1,) * 9)
    other = Bare(steps_ns=recording.bare.steps_ns, stamps=(elsewhere,))
    assert find_stamped(timeline, compiled(timeline), other) is None


def test_a_call_that_waits_is_found_by_its_name() -> None:
    builder, at, marks = TraceBuilder(), 0.0, [0.0]
    for _ in range(STEPS):
        builder.launch("gemm", call=(at + 390, 5), runs=(at + 397, 10))
        builder.entry("torch.cuda.synchronize", at + 394, at + 412, line(3, "torch.cuda.synchronize()"))
        builder.stream_sync(at + 395, 15)
        at += 1010
        marks.append(at)
    stamp = BareStamp(event="wait", name="torch.cuda.synchronize", stack=0, ends_ns=(300_000,) * 5)
    optimizer = BareStamp(event="optimizer", name="AdamW", stack=0, ends_ns=(900_000,) * 5)
    bare = Bare(steps_ns=(800_000,) * 5, drain_ns=1000, stamps=(stamp, optimizer))
    timeline = Timeline(builder.recording(*marks, drained=at + 5, bare=bare).trace())
    found = find_stamped(timeline, compiled(timeline), bare)
    assert found is not None and found.ns.tolist() == [300_000.0]


def test_the_start_of_a_loader_is_not_taken_for_its_fetch() -> None:
    builder, marks, loop = TraceBuilder(), [0.0], line(3, "for x in loader")
    for step in range(STEPS):
        at = 1000.0 * step
        if step == 1:  # an epoch begins
            builder.entry("DataLoader.__iter__", at + 10, at + 100, loop)
        builder.launch("gemm", call=(at + 290, 5), runs=(at + 297, 10))
        builder.entry("DataLoader", at + 300, at + 400, loop).launch("gemm", call=(at + 690, 5), runs=(at + 697, 10))
        marks.append(at + 1000)
    stamps = (BareStamp(event="loader", name="DataLoader", stack=0, ends_ns=(400_000,) * 9),)
    bare = Bare(steps_ns=(1_000_000,) * 9, drain_ns=1000, stamps=stamps)
    timeline = Timeline(builder.recording(*marks, drained=marks[-1] + 5, bare=bare).trace())
    stamped, program = find_stamped(timeline, compiled(timeline), bare), compiled(timeline)
    assert stamped is not None
    assert len(set((program.items.end[stamped.items[0]] % 1_000_000).tolist())) == 1


def test_a_stretch_that_the_device_bounds_keeps_the_scale_of_the_others() -> None:
    builder, at, marks = TraceBuilder(), 0.0, [0.0]
    for _ in range(STEPS):
        builder.launch("gemm", call=(at + 10, 5), runs=(at + 17, 500))
        builder.stream_sync(at + 15, 510).warning(at + 526, line(3, "loss.item()"))
        builder.launch("gemm", call=(at + 990, 5), runs=(at + 997, 10))
        at += 1010
        marks.append(at)
    program = compiled(Timeline(builder.recording(*marks, drained=at + 5).trace()))
    waits = np.flatnonzero(program.items.wait)
    stamped = Stamped(waits[None, :], np.array([510_000.0]), 510_000.0 + 485_000 * 0.7)
    scaled, mean = scale_stretches(program, stamped, *steady_steps(program))
    assert mean * USUAL == pytest.approx(0.7, abs=0.05)
    assert scaled.items.pre.sum() == pytest.approx(0.7 / USUAL * program.items.pre.sum(), rel=0.05)


def test_savings_rest_on_the_stamps() -> None:
    timeline = recorded(0.6, 1.0)
    found = estimate_savings(prepare(timeline, rules.find(timeline)[0]))
    assert found.replay is not None and found.replay.doubt is None
    assert found.replay.host_scale == pytest.approx((0.6 * 395 + 600) / 995, abs=0.06)


def test_stamps_travel_to_where_ranks_are_compared() -> None:
    timeline = recorded(0.6, 1.0)
    prepared = prepare(timeline, rules.find(timeline)[0])
    assert prepared.stamped is not None and prepared.stamped.items.shape == (1, STEPS)
    assert estimate_savings(Prepared.from_bytes(prepared.to_bytes())) == estimate_savings(prepared)


def test_a_recording_without_steps_has_no_moments() -> None:
    builder = TraceBuilder().launch("gemm", call=(390, 5), runs=(397, 10))
    builder.stream_sync(395, 15).warning(411, line(3, "loss.item()"))
    bare = Bare(steps_ns=(800_000,) * 9, stamps=(BareStamp(event="wait", stack=0, ends_ns=(400_000,) * 9),))
    timeline = Timeline(builder.recording(0, bare=bare).trace())
    assert not len(timeline.steps)
    assert find_stamped(timeline, compiled(timeline), bare) is None


def with_backward(share: float, spread: float = 0.0, turns: int = 1) -> Timeline:
    """Steps of 1 ms of which a backward on another thread ends at 400 µs as recorded; in bare steps it ended after a
    ``share`` of that, and once in two steps by a ``spread`` of it later or sooner."""
    builder, at = TraceBuilder(), 0.0
    marks = [at]
    for _ in range(STEPS):
        builder.launch("gemm", call=(at + 90, 5), runs=(at + 97, 10))
        for turn in range(turns):
            builder.on(TID + 1)
            builder.launch("gemm", call=(at + 390 + 200 * turn, 10), runs=(at + 402 + 200 * turn, 10))
            builder.on(TID)
            builder.launch("gemm", call=(at + 500 + 200 * turn, 5), runs=(at + 507 + 200 * turn, 10))
        builder.launch("gemm", call=(at + 990, 5), runs=(at + 997, 10))
        at += 1010
        marks.append(at)
    moment = 400_000 * share
    ends = tuple(round(moment * (1 + spread * way)) for way in (-1, 1, -1, 1, -1, 1, -1, 1))
    stamps = (BareStamp(event="backward", name="backward", ends_ns=ends),)
    bare = Bare(steps_ns=(round(moment + 610_000),) * 8, drain_ns=1000, stamps=stamps)
    return Timeline(builder.recording(*marks, drained=at + 5, bare=bare).trace())


def moments(timeline: Timeline) -> list[float]:
    recording = timeline.trace.recording
    assert recording is not None
    found = find_stamped(timeline, compiled(timeline), recording.bare)
    return [] if found is None else found.ns.tolist()


def test_the_end_of_a_backward_is_a_moment_too() -> None:
    assert moments(with_backward(0.7)) == [280_000.0]
    first, second = stretches(with_backward(0.7))
    assert (first, second) == (pytest.approx(0.7, abs=0.03), pytest.approx(1.0, abs=0.03))


def test_an_end_that_differs_from_step_to_step_tells_nothing() -> None:
    assert moments(with_backward(0.7, spread=0.1)) == [280_000.0]
    assert moments(with_backward(0.7, spread=0.5)) == []


def test_recorded_steps_with_other_backwards_are_not_compared() -> None:
    assert moments(with_backward(0.7, turns=2)) == []


def test_stamps_of_other_steps_than_the_recorded_ones_are_not_believed() -> None:
    timeline = recorded(0.2, 0.2)
    found = estimate_savings(prepare(timeline, rules.find(timeline)[0]))
    assert found.replay is not None and found.replay.bounds_why is not None
    assert "a stretch of the host's work took 0.58 ms in the recorded steps" in found.replay.bounds_why
