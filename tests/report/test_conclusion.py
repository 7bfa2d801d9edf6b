"""The lines that open every output."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from syncscope.report import github, junit
from syncscope.report.conclusion import conclude
from syncscope.report.first_change import shorten_fix
from syncscope.report.html_cards import view_cards
from syncscope.report.markdown import render as to_markdown
from syncscope.report.text import to_text
from syncscope.schema.findings import Finding, IdleCause, Site, WorkEnd
from syncscope.schema.order import ordered
from syncscope.schema.report import Asked, Kernel, NotChecked, Overlap, Report, Steps
from syncscope.schema.run import StepTime
from syncscope.schema.verdict import Verdict
from tests.report import sample, sample_run

READ = sample.findings()[0]
RANGE = {"saving_ms_per_step": None, "saving_low_ms_per_step": 0.0, "saving_high_ms_per_step": 1.53}

WITHOUT_STEPS = Steps(count=0, profiled_ms=None, bare_ms=None, source="none")


def lines(*found: Finding, verdict: Verdict | None = None, **of_trace: Any) -> dict[str, str]:
    info = msgspec.structs.replace(sample.trace_info(), **of_trace)
    return dict(conclude(sample.report([info], found), verdict).lines)


def changed(**fields: Any) -> Finding:
    return msgspec.structs.replace(READ, **fields)


def test_it_says_what_the_step_becomes_what_first_what_was_recorded_and_how_idle() -> None:
    said = lines(*sample.findings())
    assert said["idle"] == "27 % of the recorded step (1.6 of 6 ms): wait 15 %, host work 12 %; 6.7 % copies " \
        "and 1.7 % collectives with no compute beside them"  # fmt: skip
    first = "train.py:42  loss.item() (−3.7 %): Keep the value on the device and read it once an epoch"
    assert said["first"] == first
    assert said["step"] == "5.1 → 4.7 ms, −7.8 %, with all 3 changes"
    assert said["recorded"] == "3 steps; their share of the program is not known"
    assert list(said) == ["step", "first", "recorded", "idle"]


def test_a_likely_saving_has_its_doubt_and_the_step_its_base() -> None:
    info = sample.trace_info()
    unprofiled = msgspec.structs.replace(info.steps, bare_ms=None)
    said = lines(changed(**{**RANGE, "likely_saving_ms_per_step": 0.51}), steps=unprofiled)
    assert said["step"] == "about 5.1 → 4.59 ms (replayed without the profiler), −10 % (0 to 30 %), with one change"


def test_a_bound_is_not_told_as_what_the_step_becomes() -> None:
    assert lines(changed(**RANGE))["step"] == "5.1 ms; what the first change saves is not known: at most 30 % of it"
    between = {**RANGE, "saving_low_ms_per_step": 0.51}
    assert lines(changed(**between))["step"].endswith("what the first change saves is not known: 10 to 30 % of it")
    little = {**RANGE, "saving_low_ms_per_step": 0.01}
    assert lines(changed(**little))["step"].endswith("what the first change saves is not known: at most 30 % of it")
    found = [changed(fingerprint=str(line), **RANGE) for line in (50, 51)]
    report = sample.report([sample.trace_info()], found)
    bounds = {"saving_all_low_ms_per_step": 0.0, "saving_all_high_ms_per_step": 2.04}
    said = dict(conclude(msgspec.structs.replace(report, saving_all_ms_per_step=None, **bounds)).lines)
    assert said["step"] == "5.1 ms; what both changes save is not known: at most 40 % of it"
    assert said["first"].startswith("train.py:42  loss.item() (saving not known, at most 30 %): ")


def test_a_first_change_whose_saving_is_known_is_told_before_the_bound_of_all() -> None:
    found = [READ, changed(fingerprint="bound", **RANGE)]
    report = sample.report([sample.trace_info()], found)
    bounds = {"saving_all_low_ms_per_step": 0.0, "saving_all_high_ms_per_step": 2.04}
    said = dict(conclude(msgspec.structs.replace(report, saving_all_ms_per_step=None, **bounds)).lines)
    assert said["step"] == "5.1 → 4.91 ms, −3.7 % (3 to 4.5 %), with the first change; at most 40 % with both"


def test_a_replay_that_takes_longer_than_what_it_replays_is_no_step() -> None:
    info = sample.trace_info()
    assert info.replay is not None
    unprofiled = msgspec.structs.replace(info.steps, bare_ms=None, profiled_ms=4.0)
    off = msgspec.structs.replace(info.replay, misfit=0.275, step_ms=5.1)
    said = lines(changed(**{**RANGE, "likely_saving_ms_per_step": 0.4}), steps=unprofiled, replay=off)
    assert said["step"].startswith("about 4 → 3.6 ms (under the profiler), −10 %")
    near = msgspec.structs.replace(off, misfit=0.02)
    longer = "5.1 ms (replayed, to the end of the device's work); what the first change saves is not known"
    assert lines(changed(**RANGE), steps=unprofiled, replay=near)["step"].startswith(longer)


def test_the_first_change_is_one_whose_saving_can_be_told() -> None:
    hidden = changed(saving_ms_per_step=0.001, saving_high_ms_per_step=0.01, saving_below_drift=True, fingerprint="1")
    unknown = "no change is known to save 1 % of the step, though the device is idle for 27 % of it"
    assert lines(hidden)["first"] == f"{unknown}; 1 rule could not be checked"
    assert lines(hidden)["step"] == "5.1 ms"
    assert lines(hidden, READ)["first"].startswith("train.py:42")


def test_where_no_change_saves_enough_alone_all_together_may() -> None:
    assert READ.site is not None
    low = {"saving_ms_per_step": 0.04, "saving_low_ms_per_step": 0.0, "saving_high_ms_per_step": 0.1}
    sites = [msgspec.structs.replace(READ.site, line=line) for line in (50, 51)]
    found = [changed(site=site, fingerprint=str(site.line), **low) for site in sites]

    def said(together: float) -> dict[str, str]:
        report = sample.report([sample.trace_info()], found)
        bounds = {"saving_all_low_ms_per_step": 0.01, "saving_all_high_ms_per_step": 0.2}
        return dict(conclude(msgspec.structs.replace(report, saving_all_ms_per_step=together, **bounds)).lines)

    assert said(0.08)["step"] == "5.1 → 5.02 ms, −1.6 % (0 to 3.9 %), with both changes"
    first = "no single change is known to save 1 % of the step, only all of them together: begin with train.py:50"
    assert said(0.08)["first"] == f"{first}  loss.item()"
    assert said(0.04)["step"] == "5.1 ms"
    assert said(0.04)["first"].startswith("no change is known to save 1 % of the step, though")


def test_a_known_saving_has_its_range_where_that_can_be_told() -> None:
    ranged = changed(saving_ms_per_step=0.5, saving_low_ms_per_step=0.4, saving_high_ms_per_step=0.6)
    assert lines(ranged)["step"] == "5.1 → 4.6 ms, −9.8 % (7.8 to 12 %), with one change"
    narrow = msgspec.structs.replace(ranged, saving_low_ms_per_step=0.5, saving_high_ms_per_step=0.5)
    assert lines(narrow)["step"] == "5.1 → 4.6 ms, −9.8 %, with one change"


def test_where_most_is_warm_up_other_steps_come_first() -> None:
    known = sample.trace_info().overlap
    assert known is not None

    def first(warm_up_ms: float, *found: Finding, known: Overlap = known) -> str:
        overlap = msgspec.structs.replace(known, idle_ms=4.5, idle_by_cause={"warm-up": warm_up_ms})
        return lines(*found, overlap=overlap)["first"]

    assert first(4.5) == "record later steps: 75 % of this time is warm-up, which they do not repeat"
    assert first(1.0).startswith("nothing was found")
    unseen = msgspec.structs.replace(known, idle_ms=4.5, idle_by_cause={"unknown": 4.5})
    said = lines(overlap=unseen)["first"]
    assert said.startswith("record again, with a warm-up before the window and nobody else on the device: the trace")
    assert said.endswith("is idle for 75 % of this time")
    assert first(4.5, READ).startswith("train.py:42  loss.item()")


def test_what_saves_little_of_a_first_pass_does_not_come_before_another_recording() -> None:
    known = sample.trace_info().overlap
    assert known is not None

    def first(warm_up_ms: float, saving_ms: float) -> str:
        overlap = msgspec.structs.replace(known, idle_ms=4.5, idle_by_cause={"warm-up": warm_up_ms})
        found = changed(saving_ms_per_step=saving_ms, saving_low_ms_per_step=None, saving_high_ms_per_step=None)
        return lines(found, overlap=overlap, steps=WITHOUT_STEPS)["first"]

    assert first(4.5, 0.2) == "record later steps: 51 % of this time is warm-up, which they do not repeat"
    assert first(4.5, 2.0).startswith("train.py:42")
    assert first(1.0, 0.2).startswith("train.py:42")


def test_findings_that_may_stay_are_not_nothing() -> None:
    said = lines(changed(status="baseline"))["first"]
    assert said.startswith("nothing unexpected was found, though the device is idle for 27 % of the step;")


def test_a_device_that_computes_all_the_time_leads_to_its_kernels() -> None:
    overlap, steps, hidden = sample.trace_info().overlap, sample.trace_info().steps, changed(saving_below_drift=True)
    assert overlap is not None
    busy = msgspec.structs.replace(overlap, device_busy_ms=5.9, compute_ms=5.94, idle_ms=0.1)
    assert lines(overlap=busy)["first"] == (
        "look at the kernels: the device computes for 100 % of the step; nothing was found that saves 1 % of it"
    )
    longest = msgspec.structs.replace(busy, longest_kernel=Kernel(name=f"void {'k' * 60}", ms=2.4))
    assert f"computes for 100 % of the step (40 % in {'k' * 49}…); nothing" in lines(overlap=longest)["first"]
    profiled = msgspec.structs.replace(steps, bare_ms=None)
    assert "computes for 99 % of the step; nothing was found" in lines(hidden, overlap=busy, steps=profiled)["first"]
    assert "nothing unexpected was found" in lines(changed(status="baseline"), overlap=busy)["first"]
    assert lines(READ, overlap=busy)["first"].startswith("train.py:42")


def test_a_small_bound_does_not_come_before_the_kernels_of_a_device_that_computes_all_the_time() -> None:
    overlap = sample.trace_info().overlap
    assert overlap is not None
    busy = msgspec.structs.replace(overlap, device_busy_ms=5.9, compute_ms=5.94, idle_ms=0.1)
    small = changed(**{**RANGE, "saving_high_ms_per_step": 0.2})
    kernels = "look at the kernels: the device computes for 100 % of the step; nothing is known to save 1 % of it"
    assert lines(small, overlap=busy)["first"] == kernels
    assert lines(small)["first"].startswith("train.py:42")
    assert lines(changed(**RANGE), overlap=busy)["first"].startswith("train.py:42"), "it may save 30 %"
    found = [small, msgspec.structs.replace(small, fingerprint="2")]
    report = sample.report([msgspec.structs.replace(sample.trace_info(), overlap=busy)], found)
    bounds = {"saving_all_low_ms_per_step": 0.0, "saving_all_high_ms_per_step": 0.4}
    both = conclude(msgspec.structs.replace(report, saving_all_ms_per_step=None, **bounds))
    assert (both.change, both.finding) == (kernels, None)
    assert both.step == "5.1 ms; what both changes save is not known: at most 7.8 % of it"


def test_what_is_of_unknown_saving_does_not_come_before_the_kernels_of_a_device_that_leaves_it_little() -> None:
    overlap = sample.trace_info().overlap
    assert overlap is not None
    unknown = changed(saving_ms_per_step=None, saving_low_ms_per_step=None, saving_high_ms_per_step=None)
    busy = msgspec.structs.replace(overlap, device_busy_ms=5.9, compute_ms=5.94, idle_ms=0.1)
    kernels = "look at the kernels: the device computes for 100 % of the step; nothing is known to save 1 % of it"
    assert lines(unknown, overlap=busy)["first"] == kernels
    less = msgspec.structs.replace(busy, compute_ms=4.5)
    assert lines(unknown, overlap=less)["first"].startswith("train.py:42")


def test_what_most_idle_time_asks_for_is_said_also_where_its_saving_is_not_known() -> None:
    overlap = sample.trace_info().overlap
    assert overlap is not None
    idle = msgspec.structs.replace(overlap, idle_ms=4.0, device_busy_ms=2.0, idle_by_cause={"host work": 4.0})
    starved = changed(
        saving_below_drift=True, causes=(IdleCause(cause="host work", ms_per_step=4.0),), idle_ms_per_step=4.0,
        fix="Record Python stacks. The rest is for later.",
    )  # fmt: skip
    said = "though the device is idle for 67 % of it: Record Python stacks; 1 rule could not be checked"
    assert lines(starved, overlap=idle)["first"].endswith(said)
    assert "Record" not in lines(msgspec.structs.replace(starved, idle_ms_per_step=2.0), overlap=idle)["first"]


def test_a_guess_does_not_come_before_idle_time_that_the_trace_does_not_show_the_cause_of() -> None:
    overlap = sample.trace_info().overlap
    assert overlap is not None
    unseen = msgspec.structs.replace(overlap, idle_ms=4.5, idle_by_cause={"unknown": 4.0})
    guess = changed(**RANGE)
    assert lines(guess, overlap=unseen)["first"].startswith("record again, with a warm-up before the window")
    assert lines(guess, overlap=unseen)["step"] == "5.1 ms"
    assert lines(guess)["first"].startswith("train.py:42")
    assert lines(READ, overlap=unseen)["first"].startswith("train.py:42")
    failing = Verdict(gate=("SYN102",), unexpected=(guess,))
    assert lines(guess, overlap=unseen, verdict=failing)["first"].startswith("train.py:42")


def test_launches_whose_cost_another_process_hides_come_before_another_recording() -> None:
    overlap = sample.trace_info().overlap
    assert overlap is not None
    unseen = msgspec.structs.replace(overlap, idle_ms=4.5, idle_by_cause={"unknown": 4.0})
    launches = {"rule": "LCH501", "site": None, "op": None, "name": "launch-bound", "fix": "Launch fewer. Or not."}
    bound = changed(**RANGE, **launches)
    hidden = msgspec.structs.replace(bound, idle_ms_per_step=4.0)
    said = lines(hidden, overlap=unseen)
    alone = "to see what that saves, record on a device that nobody else uses"
    assert said["first"] == f"launch-bound: Launch fewer; {alone}"
    of_shared = "at most 30 % of it while others use the device"
    assert said["step"] == f"5.1 ms; what the first change saves is not known: {of_shared}"
    line = changed(saving_ms_per_step=0.5, saving_low_ms_per_step=0.2, saving_high_ms_per_step=0.6)
    for shown in (bound, msgspec.structs.replace(bound, idle_ms_per_step=1.6)):
        assert lines(shown, overlap=unseen)["first"].startswith("record again")
        assert lines(line, shown, overlap=unseen)["first"].startswith("train.py:42")


def test_unseen_waits_leave_the_kernels_first_only_where_the_device_computes_nearly_all_the_time() -> None:
    overlap = sample.trace_info().overlap
    assert overlap is not None

    def first(computes_ms: float) -> str:
        busy = msgspec.structs.replace(overlap, device_busy_ms=computes_ms, compute_ms=computes_ms, idle_ms=0.0)
        made = sample.report([msgspec.structs.replace(sample.trace_info(), overlap=busy)], ())
        unseen = (*made.not_checked, NotChecked(rule="SYN102", why="its call is not in the trace"))
        return conclude(msgspec.structs.replace(made, not_checked=unseen)).change

    assert first(4.5) == "nothing was found; 2 rules could not be checked"
    kernels = "look at the kernels: the device computes for 100 % of the step; nothing was found that saves 1 % of it"
    assert first(6.0) == f"{kernels}; 2 rules could not be checked", "no wait can gain anything there"


def test_a_race_comes_first_and_is_no_matter_of_time() -> None:
    said = lines(changed(rule="HAZ401", **RANGE), READ)
    assert said["step"] == "5.1 ms; results may be wrong until the first change is made"


def test_what_has_no_line_is_named_by_its_cause_or_its_op() -> None:
    assert lines(changed(site=None))["first"].startswith("aten::item (line unknown): ")
    idle = changed(site=None, op=None, causes=(IdleCause(cause="data loading", ms_per_step=1.0),))
    assert lines(idle)["first"].startswith("data loading: ")
    told = IdleCause(cause="launching", ms_per_step=2.0, covered_by=("another finding",))
    both = msgspec.structs.replace(idle, causes=(told, *idle.causes), idle_ms_per_step=3.0)
    assert lines(both)["first"].startswith("data loading: ")


def test_a_file_of_collectives_alone_is_told_apart_from_one_without_a_device() -> None:
    for has, end in ((("cpu_op",), " but collectives"), (("cpu_op", "runtime"), "")):
        said = lines(overlap=None, run=None, has=has)["idle"]
        assert said == f"not known: the trace holds no device activity{end}"


def test_without_steps_or_calls_the_time_is_that_of_the_devices_work() -> None:
    said = lines(replay=None, steps=WITHOUT_STEPS)
    assert said["trace"] == "6 ms (from the device's first work to its last)"
    assert lines(replay=None, steps=WITHOUT_STEPS, overlap=None)["trace"] == "length not known"


def test_warm_up_is_left_out_only_of_what_is_too_short_to_hold_it() -> None:
    overlap, replay = sample.trace_info().overlap, sample.trace_info().replay
    assert overlap is not None and replay is not None
    warm = msgspec.structs.replace(overlap, idle_ms=4.4, idle_by_cause={"warm-up": 4.0})
    for step_ms, said in ((1.9, "1.9 ms (replayed without the profiler or warm-up)"), (5.8, "5.8 ms (replayed")):
        known = msgspec.structs.replace(replay, step_ms=step_ms)
        step = lines(overlap=warm, replay=known, steps=WITHOUT_STEPS)["trace"]
        assert step.startswith(said) and ("warm-up" in step) == (step_ms < 5)


def test_unknown_figures_are_said_to_be_unknown() -> None:
    unknown = dict.fromkeys(("saving_ms_per_step", "saving_low_ms_per_step", "saving_high_ms_per_step"))
    said = lines(changed(**unknown), overlap=None)
    assert said["idle"] == "not known: the trace holds no device activity"
    assert said["step"] == "5.1 ms; what the first change saves is not known"
    assert lines()["first"].startswith("nothing was found")


def test_without_steps_nothing_is_a_share_of_a_step() -> None:
    info = sample.trace_info()
    stepless = msgspec.structs.replace(info.steps, count=0, bare_ms=None, profiled_ms=None)
    said = lines(READ, steps=stepless)
    assert said["idle"].startswith("27 % of the device's time (1.6 of 6 ms)")
    assert "(replayed without the profiler)" in said["trace"]


def test_of_a_run_that_was_only_counted_the_step_of_the_run_is_told() -> None:
    said = dict(conclude(sample_run.report([sample_run.only_counted()])).lines)
    assert said["idle"] == "not known: no window was recorded, waits were counted only"
    assert said["step"] == "98.1 ms (of the run); what the first change saves is not known"


def test_of_a_run_without_steps_it_says_how_often_it_waits() -> None:
    start = msgspec.structs.replace(sample_run.phases()[sample_run.START], waits_per_step=4248.0)
    info = msgspec.structs.replace(sample_run.only_counted(), run=sample_run.run(phases=(start,)))
    drawn = msgspec.structs.replace(sample_run.counted_only(), phase="start", occurrences=3000)
    said = dict(conclude(sample_run.report([info], [drawn])).lines)
    assert said["step"] == "none could be told; 4,248 waits in 61.2 s, 3,000 of them at the first change"


@pytest.mark.parametrize(
    ("phase", "per_step", "first"),
    [("train", 3 / 412, False), ("epoch end", 2.0, False), ("train", 0.5, True), ("evaluate", 3.0, True)],
)
def test_what_was_counted_in_few_steps_or_between_them_is_no_beginning(
    phase: str, per_step: float, first: bool
) -> None:
    counted = sample_run.rate(sample_run.counted_only(), per_step, 3, phase=phase)
    report = sample_run.report([sample_run.info()], [counted])
    assert conclude(report).change.startswith("train.py:80") is first
    assert conclude(report).change.startswith("no change is known to save 1 % of the step") is not first
    failing = conclude(report, Verdict(gate=("SYN100",), unexpected=(counted,)))
    assert failing.change.startswith("train.py:80")
    passing = conclude(report, Verdict(gate=("SYN100",)))
    assert passing.change == conclude(report).change
    alone = conclude(sample_run.report([sample_run.only_counted()], [counted]))
    assert alone.change.startswith("train.py:80")


def test_the_findings_that_fail_a_gate_come_before_all_others() -> None:
    copy = sample.findings()[1]
    said = lines(*sample.findings(), verdict=Verdict(gate=("CPY201",), unexpected=(copy,)))
    assert said["first"].startswith("train.py:31")


def test_of_several_ranks_the_one_to_begin_with_is_named() -> None:
    infos = [sample.trace_info(f"{rank}.json", rank) for rank in (0, 1)]
    report: Report = sample.report(infos, [changed(trace=1, rank=1)])
    assert conclude(report).idle.startswith("rank 1: 27 % of the recorded step")
    assert conclude(report).idle.endswith("; the same in both traces")
    assert conclude(report).step.startswith("rank 1: 5.1 → ")


@pytest.mark.parametrize(
    ("fix", "short"),
    [
        ("Leave it out. Or not.", "Leave it out"),
        ("Pin it (one way; or another), or wait.", "Pin it (one way; or another)"),
        ("Load ahead: more workers.", "Load ahead: more workers"),
    ],
)
def test_a_fix_in_short_is_the_first_thing_it_says(fix: str, short: str) -> None:
    assert shorten_fix(fix) == short


def test_without_the_device_it_is_to_be_recorded_first() -> None:
    said = lines(overlap=None, steps=WITHOUT_STEPS, has=("runtime", "cpu_op"), run=None)["first"]
    asked = "record again: the trace holds calls to the device's runtime, but no device activity: nothing was launched"
    assert said.startswith(asked) and "ProfilerActivity.CUDA" not in said


HOST_WORK = IdleCause(cause="host work", ms_per_step=4.0)
UNNAMED = changed(
    **RANGE, rule="OVL303", site=None, op=None, causes=(HOST_WORK,), idle_ms_per_step=4.0, asks_for_more=True,
    fix="Nothing names the work: mark the parts. The rest is for later.", fingerprint="unnamed",
)  # fmt: skip


def test_a_fix_that_only_asks_for_another_recording_does_not_come_before_what_can_be_changed() -> None:
    said = lines(UNNAMED, READ)
    assert said["first"].startswith("train.py:42  loss.item(): Keep the value on the device")
    assert said["step"] == "5.1 → 4.91 ms, −3.7 % (3 to 4.5 %), with one change"
    failing = Verdict(gate=("OVL303",), unexpected=(UNNAMED,))
    assert lines(UNNAMED, READ, verdict=failing)["first"].startswith("host work: Nothing names")


def test_a_recording_with_lines_comes_before_changes_without_them_that_save_far_less() -> None:
    little = changed(**RANGE, site=None, likely_saving_ms_per_step=0.1, fingerprint="little")
    most = msgspec.structs.replace(UNNAMED, saving_low_ms_per_step=0.0, saving_high_ms_per_step=2.0)
    assert lines(most, little)["first"].startswith("host work: Nothing names")
    named = msgspec.structs.replace(little, site=READ.site)
    assert lines(most, named)["first"].startswith("train.py:42")


@pytest.mark.parametrize(
    ("share", "blocked_ms", "first"),
    [(0.02, None, "host work"), (0.12, 1.0, "host work"), (0.12, None, "train.py:80"), (0.12, 80.0, "train.py:80")],
)
def test_a_trifle_in_a_phase_that_no_window_recorded_does_not_come_before_what_takes_much_of_the_step(
    share: float, blocked_ms: float | None, first: str
) -> None:
    """Of the steps of training, 81 % of the run, the host's work takes 30 % at most."""
    counted = sample_run.rate(sample_run.counted_only(), 3.0, 240, phase="evaluate")
    counted = msgspec.structs.replace(counted, run_stall_ms_per_step=blocked_ms)
    unnamed = msgspec.structs.replace(UNNAMED, phase="train")
    phases = tuple(
        msgspec.structs.replace(one, share=share) if one.name == "evaluate" else one for one in sample_run.phases()
    )
    info = msgspec.structs.replace(sample_run.info(), run=sample_run.run(phases=phases))
    assert conclude(sample_run.report([info], [counted, unnamed])).change.startswith(first)


@pytest.mark.parametrize(
    ("share", "known_ms", "first"),
    [(0.12, None, "train.py:42"), (0.12, 1.5, "train.py:42"), (0.12, 4.5, "train.py:77"), (0.3, None, "train.py:77")],
)
def test_a_phase_of_small_share_does_not_come_before_the_longest_one_unless_it_is_known_to_save_far_more(
    share: float, known_ms: float | None, first: str
) -> None:
    """80 steps of evaluate, 412 of training, in each of which 0.19 ms are saved."""
    at = Site(file="train.py", line=77, function="estimate_loss", expression="model(x)")
    saved = {"saving_ms_per_step": known_ms} if known_ms else {**RANGE, "saving_high_ms_per_step": 4.9}
    aside = changed(site=at, fingerprint="aside", phase="evaluate", **saved)
    evaluate, train = (sample_run.phases()[number] for number in (sample_run.EVALUATE, sample_run.TRAIN))
    phases = (train, msgspec.structs.replace(evaluate, share=share, recorded=True))
    infos = [sample_run.info(phase=one.name, run=sample_run.run(phases=phases)) for one in phases]
    found = [msgspec.structs.replace(aside, trace=1), changed(phase="train")]
    assert conclude(sample_run.report(infos, found)).change.startswith(first)
    assert conclude(sample_run.report(infos, found[:1])).change.startswith("train.py:77")
    failing = Verdict(gate=("SYN102",), unexpected=tuple(found))
    assert conclude(sample_run.report(infos, found), failing).change.startswith("train.py:77")


def test_a_guess_about_the_longest_phase_does_not_hide_what_is_known_of_another() -> None:
    """The device computes for nearly all of a step of training, of which little can be saved, at most."""
    at = Site(file="train.py", line=77, function="estimate_loss", expression="model(x)")
    known = changed(site=at, fingerprint="aside", phase="evaluate", trace=1)
    guess = changed(phase="train", **{**RANGE, "saving_high_ms_per_step": 0.1})
    overlap = sample.trace_info().overlap
    assert overlap is not None
    busy = msgspec.structs.replace(overlap, device_busy_ms=5.8, compute_ms=5.8, idle_ms=0.2)
    evaluate, train = (sample_run.phases()[number] for number in (sample_run.EVALUATE, sample_run.TRAIN))
    phases = (train, msgspec.structs.replace(evaluate, recorded=True))
    infos = [sample_run.info(phase="train", run=sample_run.run(phases=phases), overlap=busy)]
    infos.append(sample_run.info(phase="evaluate", run=sample_run.run(phases=phases)))
    assert conclude(sample_run.report(infos, [known, guess])).change.startswith("train.py:77")
    assert conclude(sample_run.report(infos, [guess])).first is None


@pytest.mark.parametrize(("held_ms", "first"), [(24.0, "train.py:42"), (2.0, "train.py:77"), (None, "train.py:77")])
def test_a_wait_that_holds_the_longest_phase_for_long_comes_before_a_bound_of_a_small_one(
    held_ms: float | None, first: str
) -> None:
    """What it saves is not known, as where recorded steps are not like the others. Of a step of training it
    takes a quarter; evaluate takes 5 % of the run, and what all of it would save is not much more than that."""
    at = Site(file="train.py", line=77, function="estimate_loss", expression="model(x)")
    bound = changed(
        site=at, fingerprint="aside", phase="evaluate", trace=1, **{**RANGE, "saving_high_ms_per_step": 2.0}
    )
    unknown = {**RANGE, "saving_high_ms_per_step": None, "saving_low_ms_per_step": None}
    read = sample_run.rate(changed(**unknown), 1.0, 412, run_stall_ms_per_step=held_ms)
    evaluate, train = (sample_run.phases()[number] for number in (sample_run.EVALUATE, sample_run.TRAIN))
    phases = (train, msgspec.structs.replace(evaluate, share=0.05, recorded=True))
    infos = [sample_run.info(phase=one.name, run=sample_run.run(phases=phases)) for one in phases]
    assert conclude(sample_run.report(infos, [bound, read])).change.startswith(first)


def test_where_there_is_nothing_else_it_promises_no_shorter_step() -> None:
    said = lines(UNNAMED)
    assert said["first"] == "host work: Nothing names the work: mark the parts"
    assert said["step"] == "5.1 ms; host work takes at most 30 % of it"


def test_what_it_may_save_at_most_is_no_saving_of_all_changes_together() -> None:
    found = [UNNAMED, *(changed(fingerprint=str(line), saving_ms_per_step=0.3) for line in (50, 51))]
    report = sample.report([sample.trace_info()], found)
    known = msgspec.structs.replace(
        report, saving_all_ms_per_step=0.6, saving_all_low_ms_per_step=0.4, saving_all_high_ms_per_step=5.0,
        likely_saving_all_ms_per_step=0.6, likely_saving_all_high_ms_per_step=0.7,
    )  # fmt: skip
    said = dict(conclude(known).lines)
    assert said["step"] == "5.1 → 4.5 ms, −12 % (7.8 to 14 %), with both changes"


def test_what_all_changes_save_of_the_recorded_step_is_told_beside_what_the_first_saves_of_the_run() -> None:
    found = [sample_run.rate(changed(fingerprint=str(line)), 1.0, 412, run_saving_ms_per_step=3.0) for line in (50, 51)]
    known = msgspec.structs.replace(
        sample_run.report([sample_run.info()], found), saving_all_ms_per_step=0.6, saving_all_low_ms_per_step=0.4,
        saving_all_high_ms_per_step=0.7,
    )  # fmt: skip
    said = dict(conclude(known).lines)["step"]
    assert said.endswith("−3.1 % (2.4 to 3.7 %), with the first change; −12 % of the recorded step with both")
    little = msgspec.structs.replace(known, saving_all_ms_per_step=0.1)
    assert dict(conclude(little).lines)["step"].endswith("−3.1 % (2.4 to 3.7 %), with the first change")


def test_another_cause_of_the_same_idle_time_comes_first_where_what_it_saves_is_known() -> None:
    assert READ.site is not None
    loader = msgspec.structs.replace(READ.site, line=8, expression="for batch in loader:")
    loading = IdleCause(
        cause="data loading", ms_per_step=0.4, site=loader, saving_ms_per_step=1.0, saving_low_ms_per_step=0.5,
        saving_high_ms_per_step=1.5, likely_saving_ms_per_step=1.0,
    )  # fmt: skip
    both = msgspec.structs.replace(UNNAMED, causes=(HOST_WORK, loading))
    said = lines(both, READ)
    assert said["first"].startswith("train.py:8  for batch in loader: Load ahead: more DataLoader workers")
    assert said["step"] == "5.1 → 4.1 ms, −20 % (9.8 to 29 %), with one change"
    little = msgspec.structs.replace(loading, saving_ms_per_step=0.1, likely_saving_ms_per_step=0.1)
    assert lines(msgspec.structs.replace(both, causes=(HOST_WORK, little)), READ)["first"].startswith("train.py:42")


@pytest.mark.parametrize(("least", "first"), [(0.5, "train.py:8  for batch in loader"), (0.0, "train.py:42")])
def test_a_cause_beside_that_of_a_fix_comes_first_where_it_saves_more_for_certain(least: float, first: str) -> None:
    assert READ.site is not None
    loader = msgspec.structs.replace(READ.site, line=8, expression="for batch in loader:")
    loading = IdleCause(
        cause="data loading", ms_per_step=0.4, site=loader, saving_ms_per_step=1.0, saving_low_ms_per_step=least,
        saving_high_ms_per_step=1.5, likely_saving_ms_per_step=1.0,
    )  # fmt: skip
    host = msgspec.structs.replace(HOST_WORK, saving_low_ms_per_step=0.0, saving_high_ms_per_step=0.4)
    known = msgspec.structs.replace(
        UNNAMED, causes=(host, loading), asks_for_more=False, saving_low_ms_per_step=0.0, saving_high_ms_per_step=0.4
    )
    assert lines(READ, known)["first"].startswith(first)


def test_a_note_is_no_beginning_though_it_may_save_much() -> None:
    by_design = changed(severity="note", saving_ms_per_step=2.0, fingerprint="by design")
    assert lines(by_design)["first"].startswith("no change is known to save 1 % of the step")
    assert lines(by_design, READ)["first"].startswith("train.py:42")
    by_design = msgspec.structs.replace(by_design, severity="error", by_design=True)
    assert lines(by_design)["first"].startswith("no change is known to save 1 % of the step")


def test_workers_of_the_loader_come_first_where_they_save_more_than_all_that_is_found() -> None:
    info, replay = sample.trace_info(), sample.REPLAY

    def asked(saving: float, low: float) -> str:
        asked = Asked(
            question="two more workers", saving_ms_per_step=saving, saving_low_ms_per_step=low,
            saving_high_ms_per_step=2 * saving,
        )  # fmt: skip
        known = msgspec.structs.replace(info, replay=msgspec.structs.replace(replay, asked=(asked,)))
        return conclude(sample.report([known], [UNNAMED, READ])).change

    assert asked(1.5, 0.5).startswith("data loading: Load ahead: more DataLoader workers")
    assert asked(0.2, 0.1).startswith("train.py:42"), "hardly more than the finding saves"
    assert asked(1.5, 0.0).startswith("train.py:42"), "it may save nothing"


def test_what_is_about_the_step_as_a_whole_is_in_the_loop_of_its_steps() -> None:
    idle = changed(
        site=None, op=None, causes=(IdleCause(cause="data loading", ms_per_step=1.0),), rule="OVL303", phase="train"
    )  # fmt: skip
    launches = changed(site=None, op=None, rule="LCH501", name="launch-bound", phase="train")
    for finding, place in (
        (idle, "data loading in the loop of train.py:42: "), (launches, "launch-bound loop of train.py:42: ")
    ):  # fmt: skip
        report = sample_run.report([sample_run.info()], [finding])
        assert conclude(report).change.startswith(place)
        assert "\n  the loop of train.py:42\n" in to_text(report)
        for render in (to_markdown, github.render, junit.render):
            assert "the loop of train.py:42" in render(report, None).replace("\\", "")
        assert "loop" not in conclude(sample.report(found=[finding])).change


def test_what_is_known_to_save_comes_before_a_bound_that_likely_saves_little_more() -> None:
    bound = changed(
        site=None, at=None, fingerprint="bound", saving_ms_per_step=None, saving_low_ms_per_step=0.0,
        saving_high_ms_per_step=1.0,
    )  # fmt: skip
    line = changed(saving_ms_per_step=0.3, saving_low_ms_per_step=0.2, saving_high_ms_per_step=0.4)
    assert lines(bound, line)["first"].startswith("train.py:42")
    little = msgspec.structs.replace(line, saving_ms_per_step=0.2)
    assert not lines(bound, little)["first"].startswith("train.py:42")
    certain = msgspec.structs.replace(bound, saving_ms_per_step=0.6)
    assert not lines(certain, line)["first"].startswith("train.py:42")
    elsewhere = msgspec.structs.replace(bound, site=Site(file="model.py", line=7, function="forward"))
    nowhere = msgspec.structs.replace(line, site=None)
    assert lines(elsewhere, nowhere)["first"].startswith("aten::item (line unknown)")


def test_the_card_of_the_first_change_is_shown_first() -> None:
    bound = changed(
        site=None, at=None, fingerprint="bound", saving_ms_per_step=None, saving_low_ms_per_step=0.0,
        saving_high_ms_per_step=1.0,
    )  # fmt: skip
    line = changed(saving_ms_per_step=0.3, saving_low_ms_per_step=0.2, saving_high_ms_per_step=0.4)
    in_order = ordered([bound, line])
    report = sample.report(found=in_order)
    assert (in_order[0], conclude(report).finding) == (bound, line)
    said = to_text(report)
    assert said.index("saves 5.9 %") < said.index("saves at most 20 %")
    (first, second) = view_cards(report, (), conclude(report).finding)
    assert (first.groups, second.groups) == (((1,),), ((0,),))


def test_what_saves_nothing_that_is_known_is_none_of_all_changes() -> None:
    unknown = changed(saving_ms_per_step=None, saving_low_ms_per_step=None, saving_high_ms_per_step=None, site=None)
    found = [READ, changed(fingerprint="other", saving_ms_per_step=0.3), unknown]
    known = msgspec.structs.replace(
        sample.report(found=found), saving_all_ms_per_step=0.6, saving_all_low_ms_per_step=0.4,
        saving_all_high_ms_per_step=0.7,
    )  # fmt: skip
    assert dict(conclude(known).lines)["step"].endswith("with both changes")


def test_host_work_that_ends_at_copies_is_before_their_lines() -> None:
    ends = [
        WorkEnd(site=Site(file="serve.py", line=number, function="get", expression=f"x{number}.cuda()"), share=share)
        for number, share in ((33, 0.44), (40, 0.41), (51, 0.15))
    ]
    idle: dict[str, Any] = {"causes": (IdleCause(cause="host work", ms_per_step=1.0),), "rule": "OVL303"}
    several = changed(site=None, work_ends_at=tuple(ends), **idle)
    one = changed(work_ends_at=(msgspec.structs.replace(ends[0], share=0.93),), **idle)
    assert lines(several)["first"].startswith("host work before serve.py:33 and serve.py:40: ")
    assert lines(one)["first"].startswith("host work before serve.py:33  x33.cuda(): ")


def test_a_step_of_unknown_saving_that_is_unlike_those_of_the_run_is_told_beside_them() -> None:
    unknown = dict.fromkeys(("saving_ms_per_step", "saving_low_ms_per_step", "saving_high_ms_per_step"))
    wait = changed(phase="train", **unknown)
    info = sample_run.info()
    assert info.run is not None and info.steps.bare_ms is not None

    def step(times: float) -> str:
        phases = [
            msgspec.structs.replace(
                one, step_ms=StepTime(median=1.0, p95=1.0, mean=times * (info.steps.bare_ms or 0.0))
            )
            for one in sample_run.phases()
        ]
        mine = msgspec.structs.replace(info, run=sample_run.run(phases=tuple(phases)))
        return dict(conclude(sample_run.report([mine], [wait])).lines)["step"]

    assert step(1.2) == "5.1 ms; what the first change saves is not known"
    assert step(4.0) == "5.1 ms, 20.4 ms over the run; what the first change saves is not known"


def test_what_a_step_takes_over_the_run_is_told_beside_the_saving_of_a_recorded_one_that_is_far_shorter() -> None:
    wait, info = changed(phase="train", run_saving_ms_per_step=None), sample_run.info()
    uneven = StepTime(median=5.0, p95=80.0, mean=20.4)
    phases = tuple(msgspec.structs.replace(one, step_ms=uneven, waits_per_step=2.0) for one in sample_run.phases())
    mine = msgspec.structs.replace(info, run=sample_run.run(phases=phases))
    step = dict(conclude(sample_run.report([mine], [wait])).lines)["step"]
    assert step.startswith("5.1 → 4.91 ms") and "with one change; over the run a step takes 20.4 ms" in step


def test_what_a_step_takes_over_the_run_is_not_told_beside_a_step_of_the_run() -> None:
    even = StepTime(median=20.0, p95=22.0, mean=20.4)
    phases = tuple(msgspec.structs.replace(one, step_ms=even) for one in sample_run.phases())
    mine = msgspec.structs.replace(sample_run.info(), run=sample_run.run(phases=phases))
    compiled = changed(  # of what is compiled, the step is one in which nothing is, and what the finding takes
        phase="train", site_source="compile", run_saving_ms_per_step=5.0, run_stall_ms_per_step=30.0
    )
    for wait, told in ((changed(phase="train", run_saving_ms_per_step=None), True), (compiled, False)):
        step = dict(conclude(sample_run.report([mine], [wait])).lines)["step"]
        assert ("over the run a step takes 20.4 ms" in step) is told, step


def test_where_nothing_comes_first_it_speaks_of_the_phase_that_is_idle_for_most_of_the_run() -> None:
    overlap = sample.trace_info().overlap
    assert overlap is not None
    idler = msgspec.structs.replace(overlap, idle_ms=overlap.idle_ms + 1.0)
    traces = [sample_run.info(), sample_run.info("out/trace.evaluate.json.gz", phase="evaluate", overlap=idler)]
    said = dict(conclude(sample_run.report(traces, [])).lines)
    assert said["step"].startswith("train: ") and said["idle"].startswith("train: ")
