"""The run of a process, as the report has it."""

from __future__ import annotations

from typing import Any

import pytest

from syncscope.schema.counting import RunBin
from syncscope.schema.run import Run
from syncscope.timeline import Timeline
from tests.builders import PID, TraceBuilder
from tests.rules.scenes import line


def run_of(builder: TraceBuilder) -> Run:
    run = Timeline(builder.trace()).info().run
    assert run is not None
    return run


def program() -> TraceBuilder:
    """Eight seconds of training, half of whose steps were counted, and one of evaluation."""
    builder = TraceBuilder().recording(pid=PID)
    builder.phase(
        "train", steps=80, counted_steps=40, one_in=2.0, time_ns=8_000_000_000, median_ns=100_000_000,
        p95_ns=120_000_000, file="train.py", line=42, function="main", recorded=True,
    )  # fmt: skip
    builder.phase("evaluate", steps=10, times=2, time_ns=1_000_000_000)
    builder.counted(0, 60, line(5, "f(x)")).counted(0, 9, line(6, "nms(x)"), name="torch.ops", may_wait=True)
    return builder.counted(1, 5, line(5, "f(x)"))


def test_phases_have_their_share_steps_and_certain_waits() -> None:
    train, evaluate = run_of(program().run()).phases
    assert (train.where, train.share, train.waits_per_step) == ("train.py:42 main", 0.8, 1.5)
    assert train.step_ms is not None and (train.step_ms.median, train.step_ms.p95) == (100.0, 120.0)
    assert (evaluate.where, evaluate.times, evaluate.step_ms, evaluate.waits_per_step) == (None, 2, None, 0.5)


@pytest.mark.parametrize(
    ("told", "typical"), [({"mean_ns": 110_000_000}, 110.0), ({}, 100.0), ({"median_ns": 20_000_000}, 100.0)]
)
def test_a_step_of_a_run_takes_the_mean(told: dict[str, Any], typical: float) -> None:
    """A recording that does not say tells it where the host runs ahead of the device."""
    phase: dict[str, Any] = {"median_ns": 100_000_000, "p95_ns": 120_000_000, **told}
    builder = TraceBuilder().recording(pid=PID).phase("train", steps=80, time_ns=8_000_000_000, **phase)
    (train,) = run_of(builder.run()).phases
    assert train.step_ms is not None and train.step_ms.typical == typical


def test_a_run_has_the_steps_of_training() -> None:
    run = run_of(program().run(overhead_share=0.004, processes_on_device=2))
    assert (run.steps, run.seconds, run.pid, run.shared_device, run.processes) == (80, 10.0, PID, True, 1)
    assert run.counted is not None and (run.counted.one_in, run.counted.overhead_share) == (2.0, 0.004)


def test_without_training_it_has_those_of_the_longest_phase_with_steps() -> None:
    builder = TraceBuilder().phase("start", time_ns=9_000_000_000).phase("evaluate", steps=7).phase("generate", steps=9)
    assert run_of(builder.run()).steps == 7


def test_what_was_not_counted_or_not_known_is_null() -> None:
    run = run_of(program().launch("k", call=(1, 2), runs=(5, 5)).run(counted=False))
    assert (run.counted, run.shared_device) == (None, None)
    assert [phase.waits_per_step for phase in run.phases] == [None, None]
    assert run_of(program().run(processes_on_device=0)).shared_device is False


def test_a_phase_without_steps_that_was_counted_for_a_part_of_its_time_has_the_estimate_of_its_waits() -> None:
    """As its lines have: else one of them would wait more often than all of them together."""
    builder = TraceBuilder().recording(pid=PID).phase("checkpoint", times=2, one_in=1.25)
    builder.counted(0, 2830, line(5, "torch.save(x)"), estimate=3444.0, variance=100.0)
    (saved,) = run_of(builder.run()).phases
    assert saved.waits_per_step == 1722.0


def test_stretches_have_waits_by_their_counted_steps() -> None:
    bins = (
        RunBin(start_ns=0, length_ns=10**9, phase=0, steps=8, counted_steps=4, waits=6),
        RunBin(start_ns=10**9, length_ns=10**9, phase=1, steps=0, counted_steps=0, waits=3, windows=True),
    )
    first, second = run_of(program().run(bins=bins)).stretches
    assert (first.start_s, first.seconds, first.phase, first.waits_per_step) == (0.0, 1.0, 0, 1.5)
    assert (second.phase, second.waits_per_step, second.windows) == (1, None, True)


def test_a_killed_program_and_places_that_were_not_kept_are_warned_of() -> None:
    warnings = Timeline(program().run(complete=False, dropped=12).trace()).info().warnings
    assert "the program was killed or had not ended: its first 10.0 s were counted" in warnings
    assert "12 waits at further places were not kept" in warnings


def test_a_phase_has_the_lines_at_which_the_program_was_in_it() -> None:
    builder = program()
    outer, fit, other = (
        ("train.py", 42, "main", "fit()"),
        ("fit.py", 7, "fit", "model.fit(x)"),
        ("fit.py", 9, "fit", "b"),
    )
    stacks = [
        builder._stack(stack) for stack in ((outer, fit), (("train.py", 50, "main", "again()"), fit), (outer, other))
    ]
    looks = ({"stack": stack, "samples": samples} for stack, samples in zip(stacks, (4, 2, 3), strict=True))
    builder.phase("epoch end", times=2, samples=10, lines=list(looks))
    phase = run_of(builder.run()).phases[-1]
    assert phase.looks == 10
    assert [(one.site.line, one.site.expression, one.share) for one in phase.lines] == [
        (7, "model.fit(x)", 0.6),
        (9, "b", 0.3),
    ]


FOLDS = ("<site-packages>/torch/_inductor/fx_passes/joint_graph.py", 295, "fold", "bool(value)")
TUNES = ("<site-packages>/torch/_inductor/runtime/triton_heuristics.py", 60, "bench", "synchronize()")


def test_waits_of_the_compiler_are_told_by_the_programs_line_and_are_part_of_no_step() -> None:
    builder = program().counted(0, 30, line(5, "f(x)"), FOLDS, compiling=True, before=2, estimate=30.0)
    builder.counted(1, 4, line(5, "f(x)"), FOLDS, compiling=True)
    builder.counted(1, 9, line(7, "g(x)"), TUNES, name="torch.cuda.synchronize", compiling=True)
    run = run_of(builder.run())
    assert run.counted is not None
    told = [(one.site.line, one.at.line, one.waits, one.at_least) for one in run.counted.compiling]
    assert told == [(5, 295, 36, True), (7, 60, 9, False)]  # half of the steps of training were not counted
    assert [phase.waits_per_step for phase in run.phases] == [1.5, 0.5]
    assert not [one for one in Timeline(builder.trace()).counted if one.wait.compiling]


def test_a_recording_that_does_not_tell_them_apart_has_none() -> None:
    run = run_of(program().run())
    assert run.counted is not None
    assert run.counted.compiling == ()
