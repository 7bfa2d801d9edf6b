"""Which part of the program a report is about."""

from __future__ import annotations

import msgspec

from syncscope.report.recorded_part import describe_part
from syncscope.schema.report import TraceInfo
from syncscope.schema.run import Phase
from tests.report import sample
from tests.report.sample_run import info, only_counted, phases, report, run


def stepless(path: str) -> TraceInfo:
    made = sample.trace_info(path)
    return msgspec.structs.replace(made, steps=msgspec.structs.replace(made.steps, count=0))


def test_the_recorded_steps_are_told_with_their_phase_and_its_share_of_the_run() -> None:
    assert describe_part(report(), 0) == "steps 16–38 of train (412 steps, 81 % of the run); the run took 61.2 s"


def test_a_long_phase_that_was_not_recorded_is_named() -> None:
    start, train, evaluate, end = phases()
    fewer = msgspec.structs.replace(train, share=0.26)

    def said(*changed: Phase) -> str:
        infos = [info(run=run(phases=changed))]
        return describe_part(report(infos, ()), 0).removeprefix("steps 16–38 of train (412 steps, 26 % of the run); ")

    long = msgspec.structs.replace(end, share=0.69)
    outside = "69 % of the run is after the end of an epoch, outside of the steps, which no window recorded"
    assert said(start, fewer, evaluate, long) == f"{outside}; the run took 61.2 s"
    long = msgspec.structs.replace(evaluate, share=0.69)
    assert said(start, fewer, long, end).startswith("69 % of the run is in evaluate, which no window recorded; ")
    recorded = msgspec.structs.replace(long, recorded=True)
    assert said(start, fewer, recorded, end) == "the run took 61.2 s"


def test_what_comes_between_evaluations_is_not_told_as_the_begin() -> None:
    start = msgspec.structs.replace(phases()[0], share=0.6, times=46)
    said = describe_part(report([info(run=run(phases=(start, *phases()[1:])))]), 0)
    assert "60 % of the run is before and between the loops whose steps are told, which no window recorded" in said


def test_a_phase_that_has_no_name_of_its_own_is_told_with_its_place() -> None:
    start, train, evaluate, end = phases()
    loop = msgspec.structs.replace(train, name="other", kind="other", where="fit.py:45 <module>")
    infos = [info(phase="other", run=run(phases=(start, loop, evaluate, end)))]
    said = describe_part(report(infos, ()), 0)
    assert said == "steps 16–38 of other (fit.py:45; 412 steps, 81 % of the run); the run took 61.2 s"


def test_phases_with_a_trace_of_their_own_are_told_that_of_the_trace_first() -> None:
    start, train, evaluate, end = phases()
    evaluate = msgspec.structs.replace(evaluate, recorded=True, recorded_steps=(7, 7))
    of_both = run(phases=(start, train, evaluate, end))
    infos = [info("train.json", run=of_both), info("evaluate.json", phase="evaluate", run=of_both)]
    told = "step 7 of evaluate (80 steps, 12 % of the run); steps 16–38 of train (412 steps, 81 % of the run)"
    assert describe_part(report(infos, ()), 1) == f"{told}; the run took 61.2 s"


def test_of_several_processes_the_one_is_named() -> None:
    infos = [info(f"{rank}.json", rank) for rank in range(2)]
    assert describe_part(report(infos, ()), 1).startswith("rank 1: steps 16–38 of train")


def test_a_process_that_was_only_counted_has_no_steps() -> None:
    said = describe_part(report([only_counted()], ()), 0)
    assert said == "no steps: the waits of 412 steps were counted over 61.2 s"


def test_without_a_run_the_share_is_not_known() -> None:
    assert describe_part(sample.report(), 0) == "3 steps; their share of the program is not known"
    two = [sample.trace_info("a.json"), sample.trace_info("b.json")]
    of_two = describe_part(sample.report(two), 0)
    assert of_two == "3 steps of each of 2 traces; their share of the program is not known"
    alone = sample.report([stepless("a.json")])
    assert describe_part(alone, 0) == "a trace without steps; its share of the program is not known"
    both = sample.report([stepless("a.json"), stepless("b.json")])
    assert describe_part(both, 0) == "2 traces without steps; their share of the program is not known"
