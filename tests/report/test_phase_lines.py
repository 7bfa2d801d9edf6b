"""At which lines the time of phases goes."""

from __future__ import annotations

import msgspec
import pytest

from syncscope.report.phase_lines import describe_lines, tell_steps_of_run
from syncscope.schema.findings import Site
from syncscope.schema.run import PhaseLine, StepTime
from tests.report.sample_run import EPOCH_END, TRAIN, phases, run

LINES = tuple(
    PhaseLine(site=Site(file="train.py", line=line, function=function), share=share)
    for line, function, share in ((79, "fit", 0.6), (81, "score", 0.3), (82, "report", 0.1))
)


def fitted(**changes: object) -> list[str]:
    """What is said of an epoch's end that fits something on the host."""
    made = list(phases())
    known = {"share": 0.36, "looks": 20, "lines": LINES, **changes}
    made[EPOCH_END] = msgspec.structs.replace(made[EPOCH_END], **known)
    return describe_lines(run(phases=tuple(made)))


def test_where_the_time_of_a_phase_without_a_window_goes() -> None:
    said = "epoch end, 36 % of the run: 60 % in fit (train.py:79), 30 % in score (train.py:81)"
    assert fitted() == [said]


UNEVEN = StepTime(median=11.0, p95=161.0, mean=27.4)


@pytest.mark.parametrize(
    ("changes", "lines"),
    [({}, "; 60 % in fit (train.py:79), 30 % in score (train.py:81)"), ({"looks": 4}, ""), ({"recorded": False}, "…")],
)
def test_uneven_steps_are_told_and_where_their_time_goes(changes: dict[str, object], lines: str) -> None:
    """One in ten takes fifteen times as long: the recorded ones do not show it."""
    known = {"recorded": True, "step_ms": UNEVEN, "waits_per_step": 5.4, **changes}
    says = "uneven steps of 11 ms in the median, 27.4 ms on average and 161 ms at the 95th percentile"
    said = fitted(**known)
    assert len(said) == 1
    assert said[0].startswith(f"epoch end, 36 % of the run: {says}{lines.rstrip('…')}")


@pytest.mark.parametrize(
    "changes",
    [
        {"waits_per_step": 0.1}, {"step_ms": StepTime(median=11.0, p95=30.0, mean=27.4)},
        {"step_ms": StepTime(median=11.0, p95=161.0, mean=13.0)}, {"step_ms": StepTime(median=11.0, p95=161.0)},
        {"share": 0.04},
    ],
)  # fmt: skip
def test_steps_that_are_alike_or_of_a_host_that_runs_ahead_are_not_uneven(changes: dict[str, object]) -> None:
    assert fitted(**{"recorded": True, "step_ms": UNEVEN, "waits_per_step": 5.4, **changes}) == []


def test_steps_that_are_far_longer_or_shorter_over_the_run_are_told_with_the_line_that_takes_most() -> None:
    known = {"recorded": True, "step_ms": UNEVEN, "waits_per_step": 5.4, "looks": 20, "lines": LINES}
    phase = msgspec.structs.replace(phases()[TRAIN], **known)
    assert tell_steps_of_run(phase, 11.0) == "over the run a step takes 27.4 ms, 60 % of it in fit (train.py:79)"
    assert tell_steps_of_run(msgspec.structs.replace(phase, looks=4), 11.0) == "over the run a step takes 27.4 ms"
    assert tell_steps_of_run(phase, 25.0) is None and tell_steps_of_run(None, 11.0) is None
    even = msgspec.structs.replace(phase, looks=4, step_ms=StepTime(median=27.4, p95=28.0, mean=27.4))
    assert tell_steps_of_run(even, 11.0) == "over the run a step takes 27.4 ms"
    assert tell_steps_of_run(even, 22.0) is None and tell_steps_of_run(even, 35.0) is None
    assert tell_steps_of_run(even, 40.0) == "over the run a step takes 27.4 ms"
    ahead = msgspec.structs.replace(even, waits_per_step=0.1, step_ms=StepTime(median=2.0, p95=161.0, mean=27.4))
    assert tell_steps_of_run(ahead, 11.0) is None
    (line, *_) = phase.lines
    top = msgspec.structs.replace(line, site=Site(file="train.py", line=120, function="<module>"))
    said = tell_steps_of_run(msgspec.structs.replace(phase, lines=(top,)), 11.0)
    assert said == "over the run a step takes 27.4 ms, 60 % of it at train.py:120"
    site = Site(file="train.py", line=120, function="<module>", expression="enumerate(test_loader, 0)")
    top = msgspec.structs.replace(line, site=site)
    said = tell_steps_of_run(msgspec.structs.replace(phase, lines=(top,)), 11.0)
    assert said is not None and said.endswith(
        "train.py:120 (enumerate(test_loader, 0)), where a loader begins anew: keep one iterator, or its workers "
        "(persistent_workers=True)"
    )


def at(expression: str) -> tuple[PhaseLine, ...]:
    return (PhaseLine(site=Site(file="data.py", line=8, function="feed", expression=expression), share=0.9),)


def test_a_line_is_told_with_what_it_does() -> None:
    said = "epoch end, 36 % of the run: 90 % at data.py:8 "
    assert fitted(lines=at("plot(\n    samples)")) == [f"{said}(plot( samples))"]
    (long,) = fitted(lines=at(f"plot({'x' * 40})"))
    assert long == f"{said}(plot({'x' * 34}…)"


def test_a_loop_over_a_loader_in_which_an_epoch_ends_begins_it_anew() -> None:
    anew = "where a loader begins anew: keep one iterator, or its workers (persistent_workers=True)"
    (said,) = fitted(lines=at("for data in dataloader:"))
    assert said.endswith(f"(for data in dataloader), {anew}")
    assert anew not in fitted(lines=at("for data in samples:"))[0]
    steps = {"recorded": True, "step_ms": UNEVEN, "waits_per_step": 5.4, "looks": 20}
    phase = msgspec.structs.replace(phases()[TRAIN], lines=at("for data in dataloader:"), **steps)
    assert anew not in (tell_steps_of_run(phase, 11.0) or ""), "it gives each step its batch"


def test_a_backward_pass_says_nothing_of_longer_steps() -> None:
    steps = {"recorded": True, "step_ms": UNEVEN, "waits_per_step": 5.4, "looks": 20}
    for expression in ("loss.backward()", "optimizer.step()"):
        phase = msgspec.structs.replace(phases()[TRAIN], lines=at(expression), **steps)
        assert tell_steps_of_run(phase, 11.0) == "over the run a step takes 27.4 ms"


@pytest.mark.parametrize("changes", [{"recorded": True}, {"share": 0.04}, {"looks": 4}, {"lines": ()}])
def test_nothing_is_said_where_a_window_or_too_little_tells(changes: dict[str, object]) -> None:
    assert fitted(**changes) == []


def test_the_line_of_the_first_change_is_not_named_again() -> None:
    steps = {"recorded": True, "step_ms": UNEVEN, "waits_per_step": 5.4, "looks": 20}
    phase = msgspec.structs.replace(phases()[TRAIN], lines=at("for data in dataloader:"), **steps)
    said = tell_steps_of_run(phase, 11.0, Site(file="data.py", line=8, function="feed"))
    assert said == "over the run a step takes 27.4 ms, 90 % of it at the line of the first change"
    said = tell_steps_of_run(phase, 11.0, Site(file="data.py", line=9, function="feed"))
    assert said == "over the run a step takes 27.4 ms, 90 % of it at data.py:8 (for data in dataloader)"
