"""What is said of the whole run, and of how often a finding occurs in it."""

from __future__ import annotations

import msgspec
import pytest

from syncscope.report.finding_phrases import describe_cost, describe_much, describe_often, group_alike
from syncscope.report.run_phrases import (
    describe_caveats,
    describe_counting,
    describe_difference,
    describe_frequency,
    describe_missed_phase,
    describe_run,
    describe_share,
    describe_waits,
    spell_waits,
)
from syncscope.schema.findings import Finding
from syncscope.schema.run import Counted
from tests.report import sample, sample_run
from tests.report.sample_run import EPOCH_END, EVALUATE, TRAIN, counted_only, info, phases, rate, run

READ = sample.findings()[0]


def often(finding: Finding, *, one_in: float = 1.0, epochs: int = 4) -> str | None:
    phases = list(run(one_in=one_in).phases)
    phases[EPOCH_END] = msgspec.structs.replace(phases[EPOCH_END], times=epochs)
    return describe_frequency(finding, [info(run=run(one_in=one_in, phases=tuple(phases)))])


@pytest.mark.parametrize(
    ("per_step", "number", "steps", "says"),
    [
        (1.0, 412, (0, 411), "every step"),
        (2.0, 824, (0, 411), "2 a step"),
        (2.25, 927, (0, 411), "2.25 a step"),
        (0.0995, 41, (0, 410), "every 10 steps (41 in 412)"),
        (0.5, 206, (1, 411), "every 2 steps (206 in 412)"),
        (0.6, 247, (0, 411), "247 times in 412 steps"),
        (0.0073, 3, (10, 400), "3 times in 412 steps"),
        (0.0097, 4, (102, 411), "once an epoch (4 in 412 steps)"),
        (0.0024, 1, (0, 0), "once, in step 0"),
        (0.0121, 5, (0, 4), "5 times, in steps 0–4"),
        (0.0121, 5, (7, 7), "5 times, in step 7"),
        (0.0121, 5, None, "every 83 steps (5 in 412)"),
    ],
)
def test_how_often_where_every_step_was_counted(
    per_step: float, number: int, steps: tuple[int, int] | None, says: str
) -> None:
    assert often(rate(READ, per_step, number, run_steps=steps)) == says


@pytest.mark.parametrize(
    ("per_step", "low", "high", "says"),
    [
        (0.125, 0.11, 0.14, "about every 8 steps (7.1–9.1; counted in one of 8 steps)"),
        (0.55, 0.084, 1.1, "about 0.55 a step (0.084–1.1; counted in one of 8 steps)"),
        (2.04, 1.9, 2.2, "about 2 a step (1.9–2.2; counted in one of 8 steps)"),
        (0.97, 0.96, 0.98, "about 0.97 a step (0.96–0.98; counted in one of 8 steps)"),
        (1.0, 0.96, 1.04, "about 1 a step (0.96–1; counted in one of 8 steps)"),
        (1.0, 1.0, 1.0, "every step (counted in one of 8 steps)"),
        (0.0001, 0.00001, 0.0004, "about every 10000 steps (2500–100000; counted in one of 8 steps)"),
    ],
)
def test_where_only_some_steps_were_counted_there_is_an_interval(
    per_step: float, low: float, high: float, says: str
) -> None:
    sampled = rate(READ, per_step, 52, run_per_step_low=low, run_per_step_high=high)
    assert often(sampled, one_in=8.0) == says


@pytest.mark.parametrize(
    ("phase", "per_step", "number", "says"),
    [
        ("evaluate", 3.0, 240, "in evaluate: 3 a step"),
        ("epoch end", None, 4, "once an epoch"),
        ("epoch end", None, 8, "2 an epoch"),
        ("epoch end", None, 3, "in epoch end: 3 times in 4 epochs"),
        ("epoch end", None, 74, "in epoch end: 74 times in 4 epochs"),
        ("epoch end", None, 2_222, "in epoch end: 2,222 times in 4 epochs"),
        ("start", None, 12, "in start: 12 times"),
        ("start", None, 1, "in start: once"),
        ("a phase that is not listed", 3.0, 240, "in a phase that is not listed: 3 a step"),
    ],
)
def test_other_phases_than_training_are_named(phase: str, per_step: float | None, number: int, says: str) -> None:
    assert often(rate(READ, per_step, number, phase=phase, run_steps=None)) == says


@pytest.mark.parametrize(
    ("number", "says"),
    [(4, "once an epoch"), (8, "2 an epoch"), (3, "in epoch end: 3 times"), (41, "in epoch end: 41 times")],
)
def test_an_epochs_end_that_is_in_several_parts_is_no_number_of_epochs(number: int, says: str) -> None:
    """As between two tests of each epoch: the program comes to it 11 times in 4 epochs."""
    start, train, evaluate, end = run().phases
    train, end = msgspec.structs.replace(train, times=4), msgspec.structs.replace(end, times=11)
    told = rate(READ, None, number, phase="epoch end", run_steps=None)
    assert describe_frequency(told, [info(run=run(phases=(start, train, evaluate, end)))]) == says


@pytest.mark.parametrize(
    ("one_in", "says"),
    [(1.0, "every wait counted"), (1.03, "nearly every step"), (1.4, "71 % of the steps"), (2.6, "one of 2.6 steps")],
)
def test_where_most_steps_were_counted_their_share_is_told(one_in: float, says: str) -> None:
    assert says in describe_counting(run(one_in=one_in))


def test_several_waits_in_each_of_some_steps_are_told_by_these_steps() -> None:
    """Four values that are printed in eight of 60 steps are nothing that happens every second step."""
    start, train, *others = run().phases
    train = msgspec.structs.replace(train, steps=60, counted_steps=60)
    told = rate(READ, 32 / 60, 32, run_steps=(0, 56), run_steps_with=8)
    assert describe_frequency(told, [info(run=run(phases=(start, train, *others)))]) == "32 times, in 8 of 60 steps"


def test_waits_of_a_phase_that_are_not_there_each_time_are_told_in_all() -> None:
    end = msgspec.structs.replace(run().phases[EPOCH_END], times=41, waits_per_step=0.878)
    assert describe_waits(end) == "36 in all" and spell_waits(end) == "36 waits in all"
    assert describe_waits(msgspec.structs.replace(end, waits_per_step=3.0)) == "3 each time"


def test_where_counting_paused_and_there_are_no_steps_the_number_is_the_least() -> None:
    start, *others = run().phases
    phases = (msgspec.structs.replace(start, one_in=3.1), *others)
    finding = rate(READ, None, 511, phase="start", run_steps=None)
    assert describe_frequency(finding, [info(run=run(phases=phases))]) == "in start: at least 511 times"
    told = msgspec.structs.replace(finding, run_per_step=511.0, run_per_step_low=178.0, run_per_step_high=844.0)
    assert describe_frequency(told, [info(run=run(phases=phases))]) == "in start: about 511 times"


def test_a_phase_that_counting_missed_is_not_passed_over() -> None:
    phases = list(run().phases)
    phases[EVALUATE] = msgspec.structs.replace(phases[EVALUATE], counted_steps=0)
    assert describe_counting(run(phases=tuple(phases))).endswith("but of evaluate in none of 80 steps")


def test_one_epoch_alone_is_no_frequency() -> None:
    assert often(rate(READ, None, 1, phase="epoch end", run_steps=None), epochs=1) == "in epoch end: once"


def test_without_training_the_longest_phase_is_taken_for_granted() -> None:
    only = run(phases=run().phases[EVALUATE:])
    assert describe_frequency(rate(READ, 3.0, 240, phase="evaluate"), [info(run=only)]) == "3 a step"


def test_a_finding_of_a_run_that_was_not_counted_has_the_frequency_of_its_recorded_steps() -> None:
    assert describe_frequency(READ, [sample.trace_info()]) is None
    assert describe_cost(READ, [sample.trace_info()]) == (
        "once a step · blocked 1.63 ms (27 % of the recorded step) · saves 0.19 ms (3.7 %) a recorded step"
    )


def test_without_steps_a_saving_is_of_no_step() -> None:
    whole = sample.trace_info()
    whole = msgspec.structs.replace(whole, steps=msgspec.structs.replace(whole.steps, count=0))
    assert describe_cost(READ, [whole]).endswith("saves 0.19 ms (3.7 %)")


def test_an_estimate_of_more_time_than_the_step_has_is_not_told() -> None:
    assert describe_cost(rate(READ, 1.0, 412, run_stall_ms_per_step=198.0), [info()]) == (
        "every step · saves 0.19 ms (3.7 %) a recorded step"
    )
    most = rate(READ, 1.0, 412, run_stall_ms_per_step=99.0)
    assert describe_much(most, [info()]) == []
    assert describe_much(msgspec.structs.replace(most, run_stall_ms_per_step=50.0), [info()]) == [
        "blocked 50 ms (51 %)"
    ]


def test_what_was_seen_in_steps_that_nobody_counted_is_no_number() -> None:
    seen = msgspec.structs.replace(counted_only(), run_per_step=None, occurrences=None)
    assert describe_often(seen, [info()]) == ["seen in evaluate, not counted"]


@pytest.mark.parametrize(
    ("per_step", "said"),
    [(1 / 29, "once in 29 steps"), (1 / 5000, "once in 5000 steps"), (0.1, "0.1 times a step"), (1.0, "once a step")],
)
def test_what_is_rare_in_the_recorded_steps_is_told_once_in_how_many(per_step: float, said: str) -> None:
    found = msgspec.structs.replace(sample.finding("SYN106", "name", 1, "key"), per_step=per_step, phase=None)
    assert describe_often(found, [sample_run.info()]) == [said]


def test_what_parts_of_steps_tell_is_a_number_in_all_with_its_interval() -> None:
    whole = info()
    assert whole.run is not None
    phases = tuple(msgspec.structs.replace(one, steps=3, counted_steps=0, one_in=5.8) for one in whole.run.phases)
    whole = msgspec.structs.replace(whole, run=msgspec.structs.replace(whole.run, phases=phases))
    seen = msgspec.structs.replace(
        counted_only(), run_per_step=3000.0, run_per_step_low=2000.0, run_per_step_high=4000.0, occurrences=9000
    )
    assert describe_often(seen, [whole]) == ["in evaluate: about 9,000 times (6,000–12,000 in all)"]
    assert describe_often(seen, [whole], brief=True) == ["in evaluate: about 9,000 times"]
    least = msgspec.structs.replace(seen, run_per_step_low=None, run_per_step_high=None)
    assert describe_often(least, [whole]) == ["in evaluate: at least 9,000 times"]


def test_amounts_of_the_run_and_of_the_recorded_steps_are_told_apart() -> None:
    known = rate(READ, 0.0995, 41, run_stall_ms_per_step=0.163, run_saving_ms_per_step=0.019)
    assert (
        describe_cost(known, [info()])
        == "every 10 steps (41 in 412) · blocked 0.163 ms (under 1 %) · saves 19 µs (under 1 %) a step of the run"
    )
    half = rate(READ, 1.0, 412, run_stall_ms_per_step=1.5)
    assert describe_cost(half, [info()]) == (
        "every step · blocked 1.5 ms (1.5 %) a step of the run · saves 0.19 ms (3.7 %) a recorded step"
    )
    none = rate(READ, 1.0, 412)
    assert describe_cost(none, [info()]) == (
        "every step · blocked 1.63 ms (27 %) · saves 0.19 ms (3.7 %) a recorded step"
    )


def test_one_line_in_two_phases_is_two_findings() -> None:
    both = [rate(READ, 1.0, 412), rate(READ, 1.0, 80, phase="evaluate", trace=1)]
    assert len(group_alike(both)) == 2


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({}, "412 steps in 61.2 s; every wait counted (cost 0.4 %)"),
        ({"one_in": 8.0}, "412 steps in 61.2 s; waits counted in one of 8 steps (cost 0.4 %)"),
        ({"counted": Counted(one_in=1.0, overhead_share=None)}, "412 steps in 61.2 s; every wait counted"),
        ({"counted": None}, "412 steps in 61.2 s; waits were not counted"),
        ({"steps": 0}, "61.2 s; every wait counted (cost 0.4 %)"),
        ({"steps": 1, "seconds": 725.0}, "1 step in 12 min 5 s; every wait counted (cost 0.4 %)"),
        ({"seconds": 0.0356}, "412 steps in 35.6 ms; every wait counted (cost 0.4 %)"),
        ({"seconds": 10950.0}, "412 steps in 3 h 2 min; every wait counted (cost 0.4 %)"),
    ],
)
def test_a_run_in_one_line(changes: dict[str, object], says: str) -> None:
    assert describe_run(run(**changes)) == says


def test_what_comes_together_in_few_steps_is_told_by_these() -> None:
    together = rate(READ, 0.87, 360, run_steps=(5, 400), run_steps_with=2)
    assert often(together) == "360 times, in 2 of 412 steps"
    sampled = msgspec.structs.replace(together, run_per_step_low=0.0, run_per_step_high=2.0)
    assert often(sampled, one_in=8.0) == "about 360 times, in 2 of 51 counted steps"
    spread = msgspec.structs.replace(together, run_steps_with=206)
    assert often(spread) == "360 times in 412 steps"
    drawn = rate(READ, 3.4, 1400, run_steps=(0, 0), run_steps_with=5, run_per_step_low=2.1, run_per_step_high=4.7)
    assert often(drawn, one_in=8.0) == "about 1,400 times, in 5 of 51 counted steps"
    seldom = rate(READ, 0.024, 10, run_steps=(5, 400), run_steps_with=10)
    assert often(seldom) == "every 42 steps (10 in 412)"


def test_what_was_met_in_too_few_of_the_drawn_steps_for_a_rate_is_told_by_these() -> None:
    met = rate(READ, 0.05, 21, run_steps=(0, 201), run_steps_with=3, run_per_step_low=0.0, run_per_step_high=0.15)
    assert often(met, one_in=8.0) == "in 3 of 51 counted steps"
    more = msgspec.structs.replace(met, run_steps_with=4)
    assert often(more, one_in=8.0) == "about 0.05 a step (0–0.15; counted in one of 8 steps)"
    sure = msgspec.structs.replace(met, run_per_step_low=0.02)
    assert (often(sure, one_in=8.0) or "").startswith("about every 20 steps")


def test_a_run_that_is_not_whole_says_so() -> None:
    assert describe_caveats(run()) == []
    (killed,) = describe_caveats(run(complete=False))
    assert "after 61.2 s" in killed and "written last" in killed
    (stopped,) = describe_caveats(run(stopped=True))
    assert "not its whole run" in stopped
    assert describe_caveats(run(shared_device=True)) == []  # a warning of the trace says so


def test_a_small_share_is_not_none() -> None:
    assert [describe_share(share) for share in (0.0, 0.004, 0.0096, 0.81)] == ["0 %", "<1 %", "<1 %", "81 %"]


def test_runs_that_look_alike_do_not_differ() -> None:
    near = msgspec.structs.replace(run().phases[TRAIN], steps=414, waits_per_step=2.15, share=0.79)
    assert describe_difference(run(phases=(run().phases[0], near, *run().phases[EVALUATE:])), run()) == []


def test_what_a_rank_did_otherwise_is_named() -> None:
    train, evaluate = run().phases[TRAIN], run().phases[EVALUATE]
    less = msgspec.structs.replace(train, steps=380, waits_per_step=3.1, share=0.5)
    said = describe_difference(run(phases=(less,)), run(phases=(train,)))
    assert said == [
        "train: 380 steps, not 412", "train: 50 % of the time, not 81 %", "train: 3.1 waits a step, not 2.1"
    ]  # fmt: skip
    assert describe_difference(run(phases=(train,)), run(phases=(train, evaluate))) == ["no evaluate"]
    assert describe_difference(run(phases=(train, evaluate)), run(phases=(train,))) == ["also evaluate"]
    assert describe_difference(run(complete=False), run()) == ["killed or still running after 61.2 s"]
    assert describe_difference(run(), run(complete=False)) == ["ended by itself"]
    everything = describe_difference(run(phases=(less,), complete=False), run(phases=(train, evaluate)))
    assert everything[-1] == "2 more"


def test_waits_of_a_phase_without_steps_are_those_of_all_or_of_each_time() -> None:
    start, train, *_ = phases()
    start = msgspec.structs.replace(start, waits_per_step=62.0)
    assert (describe_waits(start), spell_waits(start)) == ("62 in all", "62 waits in all")
    often = msgspec.structs.replace(start, waits_per_step=1.0, times=4)
    assert (describe_waits(often), spell_waits(often)) == ("1 each time", "1 wait each time")
    assert (describe_waits(train), spell_waits(train)) == ("2.1", "2.1 waits a step")
    assert describe_waits(msgspec.structs.replace(start, waits_per_step=0.0)) == "0"
    uncounted = msgspec.structs.replace(train, waits_per_step=None)
    assert (describe_waits(uncounted), spell_waits(uncounted)) == ("–", None)


def test_a_finding_that_only_the_count_knows_says_so() -> None:
    from syncscope.report.finding_phrases import describe_finding

    assert " ".join(describe_finding(sample_run.counted_only())).count("no window recorded it") == 1
    assert "no window recorded it" not in " ".join(describe_finding(READ))


PARTS = "412 steps in 61.2 s; every wait counted (cost 0.4 %), but of"


@pytest.mark.parametrize(
    ("one_in", "says"),
    [
        ({"evaluate": 12.5}, f"{PARTS} evaluate in one of 12 steps"),
        ({"evaluate": 1.001}, "412 steps in 61.2 s; every wait counted (cost 0.4 %)"),
        ({"evaluate": 1.02}, f"{PARTS} evaluate in nearly every step"),
        ({"start": 1.25}, f"{PARTS} start in 80 % of the time"),
        ({"start": 1.25, "evaluate": 3.0}, f"{PARTS} evaluate in one of 3 steps, of start in 80 % of the time"),
        (
            {"train": 8.0, "evaluate": 3.0},
            "412 steps in 61.2 s; waits counted in one of 8 steps (cost 0.4 %), of evaluate in one of 3 steps",
        ),
    ],
)
def test_the_phases_of_which_only_some_steps_were_counted_are_named(one_in: dict[str, float], says: str) -> None:
    phases = tuple(msgspec.structs.replace(phase, one_in=one_in.get(phase.name, 1.0)) for phase in run().phases)
    main = Counted(one_in=one_in.get("train", 1.0), overhead_share=0.004)
    assert describe_run(msgspec.structs.replace(run(), phases=phases, counted=main)) == says


def test_of_many_phases_that_were_counted_in_part_the_longest_are_named() -> None:
    many = tuple(
        msgspec.structs.replace(run().phases[EVALUATE], name=f"evaluate {number}", share=number / 100, one_in=2.0)
        for number in range(1, 7)
    )
    said = describe_run(msgspec.structs.replace(run(), phases=many))
    assert said.endswith("of evaluate 4 in one of 2 steps and of 3 more in part")
    assert "evaluate 6" in said and "evaluate 3" not in said


def test_a_phase_that_never_came_is_told_with_those_that_did() -> None:
    said = describe_missed_phase(sample_run.report([sample_run.only_counted()]), "sampling")
    assert said == "--phase sampling: no window of it was recorded; the phases were start, train, evaluate, epoch end"
    assert describe_missed_phase(sample_run.report(), "train") is None
