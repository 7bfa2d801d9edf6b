"""Where the steps of a trace come from."""

from __future__ import annotations

from itertools import cycle, islice

import pytest

from tests.builders import TraceBuilder


def optimizing(*names: str, rounds: int, ops: tuple[int, ...] = (3,)) -> TraceBuilder:
    """Optimisers that step in turn, every 100 µs, each after as many ops as ``ops`` says in turn."""
    builder = TraceBuilder().call("cudaLaunchKernel", 0, 5)
    turns = zip(cycle(names), cycle(ops), strict=False)
    for number, (name, before) in enumerate(islice(turns, rounds * max(len(names), len(ops)))):
        for op in range(before):
            builder.op("aten::add", 100 * number + op, 0.5)
        builder.annotation(f"Optimizer.step#{name}.step", 100 * number + 80, 10)
    return builder


def steps(builder: TraceBuilder) -> tuple[str, list[tuple[int, int]]]:
    """The source, and begins and ends in µs."""
    trace = builder.trace()
    begins, ends = ((trace.steps[name] // 1000).tolist() for name in ("ts", "end"))
    return trace.step_source, list(zip(begins, ends, strict=True))


def test_without_marks_of_the_profiler_a_step_ends_with_the_optimizers() -> None:
    assert steps(optimizing("AdamW", rounds=3)) == ("optimizer", [(90, 190), (190, 290)])


def test_marks_of_the_profiler_come_first() -> None:
    assert steps(optimizing("AdamW", rounds=3).steps(0, 150, 300)) == ("profiler", [(0, 150), (150, 300)])


@pytest.mark.parametrize("ops", [(3,), (3, 40)])
def test_optimizers_that_take_turns_make_one_step(ops: tuple[int, ...]) -> None:
    assert steps(optimizing("Adam", "SGD", rounds=3, ops=ops)) == ("optimizer", [(190, 390), (390, 590)])


def test_two_optimizers_of_one_class_are_told_apart_by_what_comes_before_them() -> None:
    assert steps(optimizing("Adam", rounds=3, ops=(3, 40))) == ("optimizer", [(190, 390), (390, 590)])


def test_two_marks_do_not_repeat() -> None:
    assert steps(optimizing("AdamW", rounds=2)) == ("none", [])


def test_optimizers_that_step_now_and_then_give_no_steps() -> None:
    builder = optimizing("Adam", rounds=4).annotation("Optimizer.step#SGD.step", 392, 2)
    assert steps(builder.annotation("Optimizer.step#Adam.step", 480, 10)) == ("none", [])


def test_a_recording_knows_its_steps_itself() -> None:
    assert steps(optimizing("AdamW", rounds=3).recording()) == ("none", [])
