"""Waits of the compiler are told apart: they are part of no step, whenever it compiles."""

from __future__ import annotations

import os
import sys
import sysconfig
from collections.abc import Callable
from functools import partial
from typing import Any

from syncscope.collect.count.places import Place
from syncscope.collect.count.sampled import Sampled
from syncscope.schema.counting import CountedWait
from syncscope.schema.recording import SiteEvent
from tests.collect.count.program import MS, Event, Phase, Run, running, wait

PACKAGES = sysconfig.get_path("purelib")


def library(file: str, function: str) -> Any:
    """A function of a library that calls all that it is given."""
    names: dict[str, Any] = {}
    source = f"def {function}(*inner):\n    for each in inner:\n        each()"
    exec(compile(source, os.path.join(PACKAGES, *file.split("/")), "exec"), names)
    return names[function]


fold = library("torch/_inductor/fx_passes/joint_graph.py", "fold")
convert = library("torch/_dynamo/convert_frame.py", "_compile")
tune = library("torch/_inductor/runtime/triton_heuristics.py", "autotune_to_one_config")
run_kernel = library("torch/_inductor/runtime/triton_heuristics.py", "run")
enter = library("torch/_dynamo/eval_frame.py", "compile_wrapper")
runtime = library("torch/_functorch/_aot_autograd/runtime_wrappers.py", "runtime_wrapper")

BY_COMPILER = partial(convert, partial(fold, wait))
OWN = partial(runtime, wait)


def model(*inside: Callable[[], None]) -> None:
    """A line of the program's, which calls a compiled function."""
    enter(*inside)


def told(run: Run) -> tuple[list[CountedWait], list[CountedWait]]:
    """The program's waits, and the compiler's."""
    waits = run.counter.waits()
    return [one for one in waits if not one.compiling], [one for one in waits if one.compiling]


def take(run: Run, stacks: list[int]) -> None:
    """Add the stack of the caller, as a window does."""
    stacks.append(run.stacks.take(sys._getframe(1)))


def test_a_line_that_waits_by_itself_and_while_it_compiles_is_counted_apart() -> None:
    with running() as run:
        run.enter(Phase(1))
        for step in range(20):
            model(*[BY_COMPILER] * (7 if step in (0, 12) else 0), OWN)  # it compiles again in a later step
            run.step(100 * MS)
        (own,), (compiling,) = told(run)
    assert (own.count, own.steps, own.estimate, own.first_step, own.last_step) == (20, 20, 20.0, 0, 19)
    assert (compiling.count, compiling.steps, compiling.estimate, compiling.variance) == (14, 2, 14.0, 0.0)
    assert (compiling.kind, compiling.first_step, compiling.last_step) == ("warning", 0, 12)


def test_a_function_of_the_programs_that_the_compiler_calls_waits_by_itself() -> None:
    with running() as run:
        run.enter(Phase(1))
        enter(partial(convert, partial(model, OWN)))
        run.step(100 * MS)
        assert [len(some) for some in told(run)] == [1, 0]


def test_a_kernel_that_is_tuned_when_it_first_runs_is_the_compilers_and_one_that_runs_is_not() -> None:
    with running() as run:
        event = run.torch.cuda.Event()
        run.enter(Phase(1))
        for step in range(3):
            model(partial(run_kernel, *([partial(tune, event.synchronize)] if step == 0 else []), event.synchronize))
            run.step(100 * MS)
        (own,), (compiling,) = told(run)
    assert isinstance(event, Event)
    assert (own.kind, own.count) == (compiling.kind, 3) == ("call", 3)
    assert compiling.count == 1


def test_what_was_seen_of_it_is_all_that_is_told_where_steps_are_drawn() -> None:
    place = Place("", 0, None, 0)
    place.compiling = True
    for step in range(3):
        place.begin_step(40 * step, 8.0)
        place.now = 5
    place.cut_step()
    found = place.waits(1, 30, Sampled(share=2.0, beside=1.5, mean=8.0, spread=9.0, all_steps=240))
    assert found is not None
    assert (found.count, found.estimate, found.variance, found.before) == (15, 15.0, 0.0, 0)
    place.begin_again()  # other steps
    found = place.waits(1, 30, Sampled())
    assert found is not None
    assert (found.count, found.before) == (0, 15)


def test_a_call_of_the_compilers_of_which_nobody_can_tell_is_no_wait() -> None:
    place = Place("torch.ops", 0, None, 0)
    place.compiling = place.may_wait = True
    place.begin_step(0)
    assert place.waits(1, 1) is None


def test_a_phase_that_turns_out_to_be_part_of_another_keeps_them_apart() -> None:
    with running() as run:
        outer, inner = Phase(1), Phase(2, "evaluate")
        run.enter(outer)
        run.enter(inner)
        model(BY_COMPILER, OWN)
        run.step(100 * MS)
        run.enter(outer)
        run.counter.folded(inner, outer)
        (own,), (compiling,) = told(run)
    assert (own.phase, compiling.phase, own.count, compiling.count) == (1, 1, 1, 1)


def test_those_of_a_window_are_told_apart_too() -> None:
    with running() as run:
        phase = run.enter(Phase(1))
        stacks: list[int] = []
        record = partial(take, run, stacks)
        model(partial(convert, partial(fold, record)), partial(runtime, record))
        run.counter.suspend()
        phase.steps += 1
        events = [SiteEvent(kind="warning", tid=1, start_ns=5, end_ns=6, stack=stack) for stack in stacks]
        run.counter.resume()
        run.counter.add_window(phase, events, [0, 10])
        (own,), (compiling,) = told(run)
    assert (own.count, compiling.count) == (1, 1)


def test_stacks_tell_no_frames_of_what_they_do_not_know() -> None:
    with running() as run:
        assert list(run.stacks.own_frames(-1)) == list(run.stacks.own_frames(7)) == []
