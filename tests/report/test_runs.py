"""The processes of a report, and what of them was recorded."""

from __future__ import annotations

import msgspec
import pytest

from syncscope.report.notable import of_phase
from syncscope.report.runs import group_processes, is_counted_only, is_seldom, main_phase
from syncscope.report.trace_phrases import join_labels, label_by_file, label_processes
from syncscope.schema.run import Stretch
from tests.report import sample
from tests.report.sample_run import EVALUATE, TRAIN, counted_only, info, only_counted, ranks, report, run


def stretch(phase: int, steps: int, *, windows: bool = False) -> Stretch:
    return Stretch(start_s=0.0, seconds=1.0, phase=phase, steps=steps, waits_per_step=None, windows=windows)


def test_the_traces_of_a_process_are_one_with_the_one_that_speaks_first() -> None:
    part = info("evaluate.json", 0, phase="evaluate", run=run(main=False))
    processes = group_processes([part, info("train.json", 0), info("other.json", 1)])
    assert [process.traces for process in processes] == [(1, 0), (2,)]
    assert processes[0].run.main


def test_processes_without_a_rank_are_told_apart_by_what_they_did() -> None:
    child = run(steps=7)
    traces = [info("a.json"), info("b.json", run=run(main=False)), info("c.json", run=child)]
    assert [process.traces for process in group_processes(traces)] == [(0, 1), (2,)]


def test_the_traces_of_a_killed_process_are_one_though_each_was_written_at_another_moment() -> None:
    runs = [run(pid=7, seconds=9.3, main=False, complete=False), run(pid=7, seconds=9.2, complete=False), run(pid=8)]
    traces = [info(f"{number}.json", run=one) for number, one in enumerate(runs)]
    assert [process.traces for process in group_processes(traces)] == [(1, 0), (2,)]


def test_traces_whose_run_was_not_looked_at_belong_to_no_process() -> None:
    assert group_processes([sample.trace_info()]) == []


def test_the_main_phase_is_training_else_the_longest_with_steps() -> None:
    train = run().phases[TRAIN]
    short = run(phases=(run().phases[0], msgspec.structs.replace(train, share=0.1), run().phases[EVALUATE]))
    assert main_phase(short) == short.phases[TRAIN]
    assert main_phase(run(phases=(run().phases[0], *run().phases[EVALUATE:]))) == run().phases[EVALUATE]
    assert main_phase(run(phases=())) is None


def test_a_trace_without_a_window_is_known_by_its_run() -> None:
    assert is_counted_only(only_counted())
    assert not is_counted_only(info())
    assert not is_counted_only(msgspec.structs.replace(only_counted(), run=None))


def test_ranks_with_several_phases_are_named_by_both() -> None:
    assert label_by_file(ranks(2).traces)[:2] == ["rank 0 train", "rank 0 evaluate"]
    one = [info("a.json"), info("b.json", phase="evaluate"), msgspec.structs.replace(only_counted(), path="c.json")]
    assert label_by_file(one) == ["train", "evaluate", "counted"]
    assert label_by_file([info("a.json", 0), info("b.json", 1)]) == ["rank 0", "rank 1"]
    assert label_by_file([info("a.json"), info("b.json")]) == ["a.json", "b.json"]


def test_processes_are_named_by_rank_else_by_their_first_trace() -> None:
    made = ranks(2)
    assert label_processes(group_processes(made.traces), made.traces) == ["rank 0", "rank 1"]
    children = [info(f"{name}.json", run=run(steps=number)) for number, name in enumerate("abc")]
    assert label_processes(group_processes(children), children) == ["#1", "#2", "#3"]


def test_labels_of_phases_in_a_sentence() -> None:
    assert join_labels(["rank 0 train", "rank 1 train", "rank 0 evaluate"]) == "ranks 0–1 train, rank 0 evaluate"
    assert join_labels(["train", "evaluate"]) == "train, evaluate"
    assert join_labels([f"phase{number}" for number in "abcdef"]) == "phasea, phaseb, phasec, phased and 2 more"


def test_the_report_of_a_phase_has_its_findings_and_traces() -> None:
    kept = of_phase(report(), "evaluate")
    assert [finding.rule for finding in kept.findings] == ["SYN100"]
    assert len(kept.traces) == 1
    of_ranks = of_phase(ranks(2), "train")
    assert {finding.phase for finding in of_ranks.findings} == {"train"}
    assert [one.phase for one in of_ranks.traces] == ["train", "train"]
    assert {finding.trace for finding in of_ranks.findings} == {0, 1}


def test_a_kind_stands_for_all_its_phases() -> None:
    second = msgspec.structs.replace(run().phases[EVALUATE], name="evaluate in sanity_check")
    both = run(phases=(*run().phases, second))
    found = [msgspec.structs.replace(one, phase=second.name) for one in report().findings[3:4]]
    made = report([info(run=both)], [*report().findings, *found])
    assert {finding.phase for finding in of_phase(made, "evaluate").findings} == {"evaluate", second.name}
    assert {finding.phase for finding in of_phase(made, second.name).findings} == {second.name}


def test_a_phase_without_findings_leaves_the_trace_that_speaks_for_it() -> None:
    kept = of_phase(ranks(2), "epoch end")
    assert [one.phase for one in kept.traces] == ["train", "train"]
    silent = of_phase(report(findings=()), "evaluate")
    assert (len(silent.traces), silent.findings) == (1, ())


def test_a_phase_that_no_trace_has_is_refused_with_those_that_are_there() -> None:
    with pytest.raises(ValueError, match="no phase rollout: the phases are start, train, evaluate, epoch end"):
        of_phase(report(), "rollout")
    with pytest.raises(ValueError, match="no phase rollout was recorded"):
        of_phase(sample.report(), "rollout")


def test_what_waits_often_but_in_few_steps_is_seldom() -> None:
    traces = [info()]
    every, few = (msgspec.structs.replace(counted_only(), run_steps_with=steps) for steps in (79, 3))
    assert [is_seldom(one, traces) for one in (counted_only(), every, few)] == [False, False, True]
