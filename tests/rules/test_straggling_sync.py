from __future__ import annotations

import msgspec
import pytest

from syncscope.analysis.analyze import analyze_timelines
from syncscope.analysis.merge import merge
from syncscope.rules.base.waiting_ranks import find_free_ms, find_pace_ms, limit_by_late_ranks
from syncscope.rules.straggling_sync import StragglingSync
from syncscope.schema.findings import Finding, IdleCause
from syncscope.schema.report import EachStep, Replay, Report
from syncscope.timeline import Timeline
from tests.builders import TraceBuilder
from tests.rules.rank_scenes import ALL_REDUCE, joined, rank, stragglers


def unchecked(*builders: TraceBuilder) -> list[str]:
    return [entry.why for entry in joined(*builders).not_checked if entry.rule == "DST601"]


EARLY = rank(0, 0, 0, 0)
SILENT = TraceBuilder(rank=1, world_size=2).launch("k", call=(0, 1), runs=(2, 5)).device_sync(10, 5)


def test_the_rank_whose_wait_holds_the_others_is_found_at_the_line_of_the_wait():
    report = joined(EARLY, rank(1, 500, 500, 500))
    (found,) = [finding for finding in report.findings if finding.rule == "DST601"]
    assert found.site is not None
    assert (found.rank, found.trace, found.site.line, found.severity) == (1, 1, 22, "warning")
    assert found.exposed_ms_per_step == pytest.approx(0.5)
    assert "rank 1 comes last to allreduce of group 0 and holds the others for 0.5 ms a step" in found.message
    assert "train.py:22" in found.message
    rules = {finding.fingerprint: finding.rule for finding in report.findings}
    assert {rules[key] for key in found.related} >= {"SYN102", "OVL302"}
    assert unchecked(EARLY, rank(1, 500, 500, 500)) == []


def test_the_report_says_who_waits_for_whom():
    between = joined(EARLY, rank(1, 500, 500, 500, clock=31_415)).between_ranks
    assert between is not None
    assert (between.steps, between.collectives, between.reference) == (2, 2, 0)
    waits, holds = between.ranks
    assert [(one.rank, one.ms_per_step) for one in waits.waits_for] == [(1, pytest.approx(0.5))]
    assert (waits.last, waits.waits_ms_per_step, waits.holds_ms_per_step) == (0, pytest.approx(0.5), 0)
    assert (holds.last, holds.waits_ms_per_step, holds.holds_ms_per_step) == (2, 0, pytest.approx(0.5))
    assert holds.waits_for == ()
    assert (waits.waits_before_ms, holds.holds_before_ms) == (None, None)  # the first step is not compared
    assert (holds.clock_offset_ms, holds.clock_spread_ms) == (pytest.approx(31.415), pytest.approx(0))


def test_what_cannot_be_compared_is_not_told():
    assert joined(EARLY).between_ranks is None
    assert joined(EARLY, rank(1, 500, 500, 500, group="7")).between_ranks is None


def test_what_is_waited_for_ranks_without_a_trace_is_left_open():
    report = joined(*(rank(number, late, late, late, size=8) for number, late in enumerate((0, 500))))
    (told, *_) = [finding.message for finding in report.findings if finding.rule == "OVL302" and finding.rank == 0]
    assert "mostly for rank 1, besides what it waits for 6 ranks without a trace" in told


def test_work_of_the_host_alone_is_found_without_a_line():
    (found,) = stragglers(EARLY, rank(1, 500, 500, 500, wait=False))
    assert found.site is None
    assert "something else than launch" in found.message


def test_a_rank_whose_device_computes_for_longer_is_no_straggler():
    assert stragglers(EARLY, rank(1, 500, 500, 500, works=True)) == []


def test_of_a_device_that_began_late_what_was_launched_in_time_no_change_is_advised():
    late = TraceBuilder(rank=1, world_size=2)
    late.recording(*(4000 * step for step in range(4)))
    early = TraceBuilder(rank=0, world_size=2)
    early.recording(*(4000 * step for step in range(4)))
    for at in (0, 4000, 8000):
        for builder, begins in ((early, at + 60), (late, at + 2060)):
            builder.launch("forward", call=(at + 1, 4), runs=(at + 10, 40))
            builder.launch("forward", call=(at + 6, 4), runs=(begins, 40))
            group = {"Process Group Name": "0"}
            builder.launch(ALL_REDUCE, call=(at + 20, 3), runs=(begins + 50, at + 2500 - begins), args=group)
    (found,) = stragglers(early, late)
    assert "its device is idle for 2 ms before, and nothing shows why" in found.message
    assert found.fix.startswith("See what else uses this rank's device")


def test_a_rank_that_is_late_in_one_step_alone_is_told_so():
    (once,) = stragglers(EARLY, rank(1, 0, 0, 500))
    assert once.message.endswith("; of the 0.5 ms in 2 steps 0.5 ms are in one")
    (always,) = stragglers(EARLY, rank(1, 0, 400, 500))
    assert "are in one" not in always.message


def test_what_one_step_of_several_is_late_by_is_not_saved_in_each():
    def late(*steps: float) -> Finding:
        ends = (1000.0,) * len(steps)
        free = rank(0, *[0] * len(steps), ends=ends)
        for step in range(len(steps)):
            free.stream_sync(2000.0 * step + 450, 550)
        (found,) = stragglers(free, rank(1, *steps, ends=ends))
        return found

    once, always = late(0, 60, 60, 500), late(0, 400, 400, 500)
    assert once.exposed_ms_per_step == pytest.approx(0.62 / 3, abs=1e-6)
    assert once.message.endswith("of the 0.62 ms in 3 steps 0.5 ms are in one, which is left out of what is saved")
    assert once.saving_high_ms_per_step == pytest.approx(0.06)
    assert "are in one" not in always.message
    assert always.saving_high_ms_per_step == pytest.approx(1.3 / 3, abs=1e-6)


def test_what_all_ranks_are_idle_for_is_no_reason():
    # Both are idle for a millisecond at the end of each step; only the wait in the middle tells them apart.
    (found,) = stragglers(EARLY, rank(1, 500, 500, 500))
    assert "idle for 0.497 ms before" in found.message


def test_ranks_that_come_nearly_together_are_clean():
    assert stragglers(EARLY, rank(1, 20, 20, 20)) == []


def test_no_common_clock_is_needed():
    (found,) = stragglers(EARLY, rank(1, 500, 500, 500, clock=31_415))
    assert (found.rank, found.exposed_ms_per_step) == (1, pytest.approx(0.5))


def test_of_three_steps_the_first_is_left_out():
    assert stragglers(EARLY, rank(1, 500, 0, 0)) == []
    assert stragglers(rank(0, 0, 0), rank(1, 500, 0)) != []


def test_that_a_rank_began_later_hides_nothing_of_what_it_does_in_the_step():
    # Rank 1 begins 300 µs later by the common clock, and then waits 500 µs more.
    late = rank(1, 500, clock=300, ends=(1300 - 300,))
    early = rank(0, 0, ends=(1300,))
    report = joined(early, late)
    (found,) = [one for one in report.findings if one.rule == "DST601"]
    assert found.exposed_ms_per_step == pytest.approx(0.5)
    assert "holds the others for 0.5 ms a step" in found.message
    assert "began the first recorded step later, for which they waited 0.3 ms more" in found.message
    between = report.between_ranks
    assert between is not None
    waits, holds = between.ranks
    assert (waits.waits_ms_per_step, waits.waits_before_ms) == (pytest.approx(0.5), pytest.approx(0.3))
    assert (holds.holds_ms_per_step, holds.holds_before_ms) == (pytest.approx(0.5), pytest.approx(0.3))


def test_a_rank_that_only_began_later_is_no_straggler():
    late = rank(1, 0, clock=800, ends=(1300 - 800,))
    assert stragglers(rank(0, 0, ends=(1300,)), late) == []


def test_exposed_collectives_say_how_long_they_wait_for_late_ranks_once_several_are_given():
    alone = joined(EARLY)
    together = joined(EARLY, rank(1, 500, 500, 500))

    def exposed(report: Report) -> str:
        return next(one.message for one in report.findings if one.rule == "OVL302" and one.rank == 0)

    assert exposed(alone).endswith("one rank alone does not show whether another rank comes late")
    waits = "this rank waits 0.5 ms a step for others that come late, mostly for rank 1"
    assert exposed(together).endswith(f"{waits}: most of what is exposed, so see to the late rank first")
    assert exposed(joined(EARLY, rank(1, 120, 120, 120))).endswith(
        "0.12 ms a step for others that come late, mostly for rank 1"
    )
    assert exposed(merge([together])) == exposed(together)
    assert "do not have the same collectives" in exposed(joined(EARLY, rank(1, 500, 500, 500, group="7")))


def test_what_is_said_of_all_collectives_is_not_said_where_some_cannot_be_compared() -> None:
    def of_all(last_end: float) -> tuple[set[str], list[int]]:
        ends = (1000.0,) * 4
        report = joined(rank(0, *[0] * 5, ends=(*ends, 1000)), rank(1, *[500] * 5, ends=(*ends, last_end)))
        assert report.between_ranks is not None
        messages = [finding.message for finding in report.findings if finding.rule == "OVL302"]
        said = {text.split("; in ")[-1].split(" this rank waits")[0] for text in messages}
        return said, [one.not_compared for one in report.between_ranks.ranks]

    assert of_all(1000) == ({"them"}, [0, 0])
    assert of_all(1700) == ({"those of them that can be compared"}, [1, 1])


def test_what_waits_for_a_late_rank_is_not_to_be_gained_at_the_collective():
    def given(report: Report, high: float | None, **fields: float | None) -> Report:
        ranged = {"saving_ms_per_step": None, "saving_low_ms_per_step": 0.0, "saving_high_ms_per_step": high, **fields}
        return msgspec.structs.replace(
            report,
            findings=tuple(
                msgspec.structs.replace(one, **ranged) if one.rule == "OVL302" and one.rank == 0 else one
                for one in report.findings
            ),
        )

    def most(report: Report) -> float | None:
        found = next(one for one in report.findings if one.rule == "OVL302" and one.rank == 0)
        return found.saving_high_ms_per_step

    report = joined(EARLY, rank(1, 500, 500, 500))
    exposed = next(f.exposed_ms_per_step for f in report.findings if f.rule == "OVL302" and f.rank == 0)
    assert exposed is not None and exposed > 0.5
    assert most(merge([given(report, 9.0)])) == pytest.approx(exposed - 0.5)
    assert most(merge([given(report, 9.0, saving_ms_per_step=8.0)])) == 9.0
    assert most(merge([given(report, None)])) is None
    (least,) = [
        one.saving_low_ms_per_step
        for one in merge([given(report, 9.0, saving_low_ms_per_step=6.0)]).findings
        if one.rule == "OVL302" and one.rank == 0
    ]
    assert least == pytest.approx((exposed - 0.5) * 2 / 3)  # as far below the most as before


def test_a_finding_says_what_its_own_collectives_wait_and_gains_no_more_than_the_rest() -> None:
    def at_two_places(number: int, late: float) -> TraceBuilder:
        """Two all-reduces of 100 µs, to the first of which a rank comes ``late``, in steps of 1000 µs."""
        builder = TraceBuilder(rank=number, world_size=2)
        builder.recording(*(1000 * step for step in range(3)))
        for at in (0, 1000):
            builder.launch("forward", call=(at + 1, 4), runs=(at + 10, 90 + late))
            for mark, comes, ends in (("## first ##", at + 100 + late, at + 500), ("## second ##", at + 600, at + 700)):
                builder.annotation(mark, comes - 20, 10)
                builder.launch(
                    ALL_REDUCE,
                    call=(comes - 18, 3),
                    runs=(comes, ends - comes),
                    stream=13,
                    args={"Process Group Name": "0"},
                )
            builder.launch("backward", call=(at + 701, 4), runs=(at + 710, 200))
        return builder

    report = joined(at_two_places(0, 0), at_two_places(1, 300))
    mine = {one.annotation: one for one in report.findings if one.rule == "OVL302" and one.rank == 0}
    first, second = mine["## first ##"], mine["## second ##"]
    assert "in them this rank waits 0.3 ms a step for others that come late, mostly for rank 1" in first.message
    assert "most of what is exposed" in first.message
    assert second.message.endswith("in them this rank waits for no other")
    ranged = [
        msgspec.structs.replace(one, saving_low_ms_per_step=0.0, saving_high_ms_per_step=9.0) for one in mine.values()
    ]
    given = msgspec.structs.replace(report, findings=tuple(ranged))
    high = {one.annotation: one.saving_high_ms_per_step for one in merge([given]).findings if one.rule == "OVL302"}
    assert high == {"## first ##": pytest.approx(0.1), "## second ##": pytest.approx(0.1)}


def test_ranks_that_come_late_in_turn_are_told_so() -> None:
    def comes_late(number: int) -> TraceBuilder:
        """Three all-reduces of 100 µs a step, one after the other's compute: rank n comes 200 µs late to the n-th."""
        builder = TraceBuilder(rank=number, world_size=4)
        builder.recording(*(2000 * step for step in range(4)))
        for start in (0, 2000, 4000):
            for turn in range(1, 4):
                at, late = start + 500 * (turn - 1), 200 if turn == number else 0
                builder.launch("forward", call=(at + 1, 4), runs=(at + 10, 90 + late))
                comes, group = at + 110 + late, {"Process Group Name": "0"}
                runs = (comes, at + 410 - comes)
                builder.launch(ALL_REDUCE, call=(at + 20, 3), runs=runs, stream=13, args=group)
            builder.launch("backward", call=(start + 1501, 4), runs=(start + 1510, 200))
        return builder

    def of_rank_0(report: Report) -> Finding:
        return next(one for one in report.findings if one.rule == "OVL302" and one.rank == 0)

    def told(*numbers: int) -> str:
        return of_rank_0(joined(*map(comes_late, numbers))).message

    waits = "in them this rank waits 0.6 ms a step for others that come late in turn: most of what is exposed"
    assert told(0, 1, 2, 3).endswith(f"{waits}, so share out the work more evenly first")
    assert "mostly for rank 1" in told(0, 1)

    def ranged(*numbers: int) -> Finding:
        report = joined(*map(comes_late, numbers))
        ends = {"saving_low_ms_per_step": 6.0, "likely_saving_ms_per_step": 7.0, "saving_high_ms_per_step": 9.0}
        all_ranged = tuple(msgspec.structs.replace(one, **ends) for one in report.findings)
        return of_rank_0(merge([msgspec.structs.replace(report, findings=all_ranged)]))

    # With one late rank the waiting is that rank's to take away; in turn, fewer or hidden collectives do.
    one, many = ranged(0, 1), ranged(0, 1, 2, 3)
    assert one.exposed_ms_per_step == many.exposed_ms_per_step == pytest.approx(0.9)
    assert (one.saving_low_ms_per_step, one.saving_high_ms_per_step) == pytest.approx((0.7 * 2 / 3, 0.7))
    assert (many.saving_low_ms_per_step, many.saving_high_ms_per_step) == pytest.approx((0.2, 0.9))
    assert many.likely_saving_ms_per_step == pytest.approx(0.3)


def stepless(number: int, begins: float, comes: float, warms_up: float = 0) -> TraceBuilder:
    """A recording without steps, from ``begins`` on: 100 µs of compute, an idle device, and an all-reduce that ends at
    2000. It loads a kernel for ``warms_up``."""
    builder = TraceBuilder(rank=number, world_size=2)
    builder.launch("forward", call=(begins, 4), runs=(begins + 10, 100))
    if warms_up:
        builder.launch("loaded", call=(begins + 20, warms_up), runs=(begins + 21 + warms_up, 1))
    return builder.launch(ALL_REDUCE, call=(comes - 20, 3), runs=(comes, 2000 - comes), stream=13)


def test_without_steps_what_a_rank_waits_for_one_that_began_recording_later_is_told_apart():
    report = joined(stepless(0, 0, 400), stepless(1, 600, 1200))
    (found,) = [finding for finding in report.findings if finding.rule == "DST601"]
    assert "holds the others for 0.2 ms in all" in found.message
    assert "it also began recording later, for which they waited 0.6 ms more" in found.message
    assert (found.per_step, found.exposed_ms_per_step, found.exposed_ms) == (None, None, pytest.approx(0.2))
    assert report.between_ranks is not None
    assert report.between_ranks.whole
    (reduces,) = [one for one in report.findings if one.rule == "OVL302" and one.rank == 0]
    assert "waits 0.2 ms for others that come late, mostly for rank 1, and 0.6 ms once for one" in reduces.message
    assert "that began recording later: most of what is exposed" in reduces.message
    assert "see to the late rank" not in reduces.message


def test_without_steps_the_time_before_the_first_launch_is_idle_too_as_far_as_both_recorded_it():
    def began(at: float, first: float, comes: float, number: int) -> TraceBuilder:
        return stepless(number, first, comes).op("aten::empty", at, 2)

    (found,) = stragglers(began(0, 10, 400, 0), began(0, 810, 1200, 1))
    assert "rank 1 comes last" in found.message
    assert found.message.endswith(
        "its device is idle for 0.8 ms before, while the host has not launched its first work"
    )
    # Rank 1 only recorded for longer before: its device does not come later for that.
    busy = began(-800, 10, 1200, 1).launch("long", call=(120, 4), runs=(130, 1060))
    assert not stragglers(began(0, 10, 400, 0), busy)


def test_without_steps_a_rank_that_holds_the_others_for_little_of_the_whole_is_not_told():
    ranks = [
        stepless(number, 0, comes).launch("more", call=(1900, 5), runs=(2010, 20_000))
        for number, comes in enumerate((400, 600))
    ]
    assert stragglers(stepless(0, 0, 400), stepless(1, 0, 600))
    assert not stragglers(*ranks)


def test_without_steps_a_wait_is_most_of_what_is_exposed_only_where_it_is_most_of_the_whole():
    report = joined(stepless(0, 0, 400), stepless(1, 0, 600))
    said = [one.message for one in report.findings if one.rule == "OVL302"]
    assert len(said) == 2
    assert not any("most of what is exposed" in message for message in said)


def test_a_rank_that_is_late_because_it_warms_up_is_to_be_recorded_later():
    (found,) = stragglers(stepless(0, 0, 400), stepless(1, 0, 5000 - 3500, warms_up=1300))
    assert "in warm-up, which later steps do not repeat" in found.message
    assert found.fix.startswith("Record later steps")


def test_several_ranks_can_hold_each_other_in_turn():
    found = stragglers(rank(0, 0, 500, 0), rank(1, 0, 0, 500))
    assert {(finding.rank, finding.exposed_ms_per_step) for finding in found} == {(0, 0.25), (1, 0.25)}


@pytest.mark.parametrize(
    "others",
    [
        (),
        (rank(0, 500, 500, 500),),
        (rank(None, 500, 500, 500),),
        (rank(1, 500, 500, 500, first=7),),
        (rank(1, 500, 500, 500, ends=(1000, 1900, 1300)),),
        (rank(1, 500, 500, 500, group="7"),),
        (SILENT,),
    ],
    ids=["alone", "the same rank", "no rank", "other steps", "other ends", "another group", "no collective"],
)
def test_what_cannot_be_compared_is_not_checked(others: tuple[TraceBuilder, ...]):
    assert stragglers(EARLY, *others) == []
    assert unchecked(EARLY, *others)


def test_without_collectives_there_is_nothing_to_check():
    assert unchecked(SILENT) == []


def test_a_program_of_one_rank_has_nobody_to_wait_for():
    alone = TraceBuilder(rank=0, world_size=1).recording(0, 100)
    assert unchecked(alone.launch(ALL_REDUCE, call=(1, 2), runs=(5, 20))) == []


def test_a_thousand_collectives_a_step_leave_a_short_table():
    builder = TraceBuilder(rank=0, world_size=2).recording(0, 50_000)
    for i in range(1000):
        builder.launch(ALL_REDUCE, call=(40 * i, 2), runs=(40 * i + 5, 20), stream=13)
    meetings = Timeline(builder.trace()).info().meetings
    assert meetings is not None
    assert len(meetings.collectives) == 8
    assert sum(one.ms for one in meetings.collectives) == pytest.approx(20.0)


def test_the_table_survives_the_json_report():
    report = joined(EARLY, rank(1, 500, 500, 500))
    assert Report.from_json(report.to_json()) == report.without_numbers()


def test_a_trace_without_runtime_calls_stays_unchecked_beside_others():
    blind = TraceBuilder(rank=2, world_size=3).kernel("k", 0, 5)
    assert unchecked(EARLY, rank(1, 500, 500, 500), blind) == [
        "the trace holds no runtime calls (was ProfilerActivity.CUDA on?)"
    ]


def test_a_selection_without_it_drops_the_table_too():
    views = [Timeline(builder.trace()) for builder in (EARLY, rank(1, 500, 500, 500))]
    report = analyze_timelines(views, select=["SYN"])
    assert all(info.meetings is None for info in report.traces)


def test_ranks_are_compared_in_the_same_phase():
    late = (500.0, 500.0, 500.0)
    training = rank(0, 0, 0, 0, phase="train"), rank(1, *late, phase="train")
    evaluation = rank(0, *late, phase="evaluate"), rank(1, 0, 0, 0, phase="evaluate")
    (found,) = stragglers(*training)
    assert (found.rank, found.phase) == (1, "train")
    assert {(one.rank, one.phase) for one in stragglers(*training, *evaluation)} == {(1, "train"), (0, "evaluate")}
    assert stragglers(training[0], evaluation[0]) == []


def test_the_report_compares_the_ranks_of_training():
    evaluation = [rank(n, 0, 0, 0, phase="evaluate").phase("evaluate", steps=9).run() for n in (0, 1)]
    training = [rank(n, 0, 0, 0, phase="train").phase("train", steps=9).run() for n in (0, 1)]
    between = joined(*evaluation, *training).between_ranks
    assert between is not None
    assert [row.trace for row in between.ranks] == [2, 3]


def test_how_long_the_others_wait_is_told_step_by_step() -> None:
    between = joined(rank(0, 0, 0, 0), rank(1, 500, 300, 100)).between_ranks
    assert between is not None
    waits, holds = between.ranks
    assert waits.holds_each_step_ms == (0, 0)  # of three steps the first is left out
    assert holds.holds_each_step_ms == (pytest.approx(0.3), pytest.approx(0.1))


def test_of_collectives_alone_the_late_rank_is_told_without_what_it_did() -> None:
    def reduces(number: int, comes: float) -> TraceBuilder:
        builder = TraceBuilder(rank=number, world_size=2)
        for at in range(0, 50_000, 10_000):
            builder.kernel("ncclDevKernel_AllReduce_Sum_f32(x)", at + comes, 5000 - comes)
        return builder

    (found,) = stragglers(reduces(0, 0), reduces(1, 4000))
    assert (
        "rank 1 comes last to allreduce and holds the others for 20 ms in all; of its device nothing" in found.message
    )
    assert "idle" not in found.message and "give its whole trace" in found.fix
    assert stragglers(reduces(0, 0), reduces(1, 100)) == []


def waiting(blocked: float) -> TraceBuilder:
    """A rank whose all-reduce takes 590 µs, of which its host is held for ``blocked``."""
    builder = rank(0, 0, 0, 0)
    for step in range(3):
        builder.stream_sync(2000.0 * step + 1000 - blocked, blocked)
    return builder


def test_a_rank_that_waits_gains_no_more_from_a_cause_of_idle_time_than_from_all() -> None:
    """Traces without steps: what the early rank does sooner, it waits longer."""
    report = joined(EARLY, rank(1, 500, 500, 500))
    assert report.between_ranks is not None
    whole = msgspec.structs.replace(report.between_ranks, whole=True)
    cause = IdleCause(cause="host work", ms_per_step=0.8, saving_low_ms_per_step=0.0, saving_high_ms_per_step=0.8)
    bounds = {"saving_ms_per_step": None, "saving_low_ms_per_step": 0.0, "saving_high_ms_per_step": 0.8}
    idle = next(one for one in report.findings if one.rule == "OVL303" and one.rank == 0)
    (limited,) = limit_by_late_ranks([msgspec.structs.replace(idle, causes=(cause,), **bounds)], "OVL302", whole)
    assert limited.saving_high_ms_per_step == 0
    assert limited.causes[0].saving_high_ms_per_step == 0


def test_a_late_rank_costs_no_more_than_it_holds_the_others_and_their_hosts_are_free() -> None:
    late = rank(1, 500, 500, 500)
    (found,) = stragglers(waiting(550), late)
    assert (found.saving_low_ms_per_step, found.saving_high_ms_per_step) == (0, pytest.approx(0.5))
    (found,) = stragglers(waiting(200), late)
    assert found.saving_high_ms_per_step == pytest.approx(0.2)
    assert found.saving_ms_per_step is None
    assert "what their hosts do" in (found.saving_null_why or "")


def test_a_host_that_is_ahead_of_the_pace_of_all_ranks_is_free_for_as_long() -> None:
    """It takes 44 ms a step, its device 42, and the latest rank 46."""
    each = EachStep(length_ms=(44.0,), blocked_ms=(0.5,), copy_exposed_ms=None, device_ms=(42.0,))
    info = msgspec.structs.replace(joined(EARLY).traces[0], each_step=each, overlap=None, meetings=None)
    latest = msgspec.structs.replace(info, each_step=msgspec.structs.replace(each, length_ms=(46.0,)))
    assert find_pace_ms(latest) == 46
    assert find_free_ms(info) == pytest.approx(0.5)
    assert find_free_ms(info, find_pace_ms(latest)) == pytest.approx(2.5)


def test_a_late_rank_gains_nothing_known_where_recorded_steps_are_not_like_the_others() -> None:
    """Of a step of 18 ms no 69 are saved, though the recorded one took 103."""
    report = joined(waiting(550), rank(1, 500, 500, 500))
    first, *others = report.traces
    steps = msgspec.structs.replace(first.steps, bare_ms=0.3)
    for why in (None, "the recorded steps are 5.3 times as long"):
        infos = [msgspec.structs.replace(first, steps=steps, replay=Replay(null_why=why)), *others]
        (found,) = StragglingSync().compare(infos, report.findings).findings
        assert found.saving_high_ms_per_step == (None if why else pytest.approx(0.5))
        assert found.saving_low_ms_per_step == (None if why else 0)
        assert (found.saving_null_why == why) is (why is not None)


def test_a_host_that_never_waits_leaves_nothing_to_gain_from_a_late_rank() -> None:
    (found,) = stragglers(EARLY, rank(1, 500, 500, 500))
    assert found.saving_high_ms_per_step == 0


def test_a_process_group_is_told_with_what_the_program_calls_it() -> None:
    groups = [{"pg_name": "0", "pg_desc": "mesh_tp"}, {"pg_name": "1", "pg_desc": "undefined"}, "odd", {"pg_desc": 1}]
    ranks = [rank(0, 0, 0, 0), rank(1, 500, 500, 500)]
    for builder in ranks:
        builder.top["distributedInfo"]["pg_config"] = groups
    (found,) = stragglers(*ranks)
    assert "comes last to allreduce of group 0 (mesh_tp) and holds" in found.message
