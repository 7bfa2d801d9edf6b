"""A recording that shows less than its baseline's, or something else, says so; the policy can demand more."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from syncscope.policy import Baseline, Policy, check_baseline, check_gate
from syncscope.policy.extent import Extent, Mode, describe_shortfall, measure_extent
from syncscope.schema.report import Report, TraceInfo
from syncscope.schema.run import Phase
from tests.policy.test_phases import POLICY, finding, info, phase
from tests.report import sample


def extent(kind: str | None = "train", steps: int = 100, one_in: float = 1, mode: Mode = "counted") -> Extent:
    return Extent(phase=kind, steps=steps, one_in=one_in, mode=mode)


def ranks(count: int) -> Extent:
    return msgspec.structs.replace(extent(), processes=count)


def sampled(one_in: float, steps: int = 800) -> Phase:
    return msgspec.structs.replace(phase("train", steps=steps), counted_steps=int(steps / one_in), one_in=one_in)


def report(*infos: TraceInfo, found: Sequence[Any] = ()) -> Report:
    return msgspec.structs.replace(sample.report(infos, found), stale=(), not_checked=())


def uncounted(**more: Any) -> TraceInfo:
    return msgspec.structs.replace(sample.trace_info(), warnings=(), **more)


class TestWhatIsShown:
    def test_a_counted_run_shows_the_counted_steps_of_the_judged_phases(self) -> None:
        run = info(phases=[sampled(8.0), phase("evaluate")])
        assert measure_extent(report(run), POLICY) == (extent(steps=100, one_in=8.0),)
        both = Policy(phases=("train", "evaluate"))
        assert measure_extent(report(run), both) == (extent("evaluate"), extent(steps=100, one_in=8.0))

    def test_a_phase_without_steps_counts_by_how_often_it_is_entered(self) -> None:
        ends = msgspec.structs.replace(phase("epoch end", steps=0), times=12)
        run = info(phases=[phase("train"), ends])
        assert measure_extent(report(run), Policy(phases=("epoch end",))) == (extent("epoch end", 12),)

    def test_of_several_processes_the_one_with_the_fewest_counts(self) -> None:
        ranks = [info(phases=[phase("train", steps=steps)], rank=rank) for rank, steps in enumerate((400, 20))]
        assert [one.steps for one in measure_extent(report(*ranks), POLICY)] == [20]

    def test_without_a_count_the_recorded_steps_are_shown(self) -> None:
        steps = uncounted().steps.count
        assert measure_extent(report(uncounted(mode="windows")), POLICY) == (extent(None, steps, mode="windows"),)
        assert measure_extent(report(uncounted(has=("runtime",))), POLICY) == (extent(None, steps, mode="trace"),)

    @pytest.mark.parametrize(("has", "mode"), [(("sites", "attribution"), "windows"), (("sites",), "full")])
    def test_the_mode_of_an_earlier_versions_report_is_told_from_what_it_holds(
        self, has: tuple[str, ...], mode: Mode
    ) -> None:
        assert [one.mode for one in measure_extent(report(uncounted(has=has)), POLICY)] == [mode]


@pytest.mark.parametrize(
    ("now", "before", "said"),
    [
        ([extent()], [extent()], []),
        ([extent(steps=25)], [extent(steps=100)], []),
        ([extent(steps=24)], [extent(steps=100)], ["train: it is of 100 steps, and this shows 24"]),
        ([extent(steps=9999)], [extent(steps=100)], []),
        ([extent("evaluate")], [extent()], ["it is of train, and this is of evaluate"]),
        ([extent("evaluate"), extent()], [extent()], []),
        ([], [extent()], ["it is of train, and this is of no steps"]),
        ([extent(None)], [extent()], ["it is of train, and this is of steps of no known phase"]),
        ([extent(one_in=4)], [extent()], []),
        ([extent(one_in=8)], [extent()], ["train: each step was counted for it, and here one step in 8"]),
        ([extent(one_in=8)], [extent(one_in=2)], []),
        ([ranks(1)], [ranks(2)], ["train: it is of 2 processes, and this is of 1"]),
        ([ranks(2)], [ranks(1)], []),
        (
            [extent(mode="windows", steps=5)],
            [extent()],
            ["train: it is of a counted run, and this is recorded steps, without a count of the run"],
        ),
        ([extent()], [extent(mode="windows", steps=5)], []),
        (
            [extent(None, 5, mode="trace")],
            [extent(None, 5, mode="full")],
            ["it is of recorded steps (--mode full), without a count of the run, and this is another profiler's trace"],
        ),
    ],
)
def test_a_recording_of_less_or_of_something_else_says_so(
    now: list[Extent], before: list[Extent], said: list[str]
) -> None:
    assert list(describe_shortfall(now, before)) == said


class TestBaselineOfAnotherRecording:
    def test_nothing_is_fixed_by_looking_at_less(self) -> None:
        long = info(phases=[phase("train", steps=400)])
        saved = check_baseline(report(long, found=[finding(per_step=0.1)]), POLICY, None).tightened
        assert saved.recorded == (extent(steps=400),)
        short = check_baseline(report(info(phases=[phase("train", steps=20)])), POLICY, saved)
        assert (short.fixed, short.removed, short.tightened) == (0, (), saved)
        assert short.differs == ("train: it is of 400 steps, and this shows 20",)
        whole = check_baseline(report(long), POLICY, saved)
        assert (whole.fixed, whole.differs, whole.tightened.findings) == (1, (), {})

    def test_what_was_adopted_from_much_is_not_forgotten_where_it_is_tightened_by_less(self) -> None:
        saved = Baseline(recorded=(extent(steps=400),), findings={})
        checked = check_baseline(report(info(phases=[phase("train", steps=200)])), POLICY, saved)
        assert checked.tightened.recorded == saved.recorded

    def test_what_another_rank_shows_is_not_fixed_by_looking_at_one(self) -> None:
        both = [info(phases=[phase("train")], rank=rank) for rank in (0, 1)]
        saved = check_baseline(report(*both, found=[finding()]), POLICY, None).tightened
        assert [one.processes for one in saved.recorded] == [2]
        assert msgspec.json.decode(saved.to_json(), type=Baseline) == saved
        alone = check_baseline(report(both[1]), POLICY, saved)
        assert (alone.fixed, alone.tightened) == (0, saved)
        assert check_baseline(report(*both), POLICY, saved).fixed == 1

    def test_an_older_file_demands_nothing_and_learns_when_it_is_tightened(self) -> None:
        checked = check_baseline(report(info(phases=[phase("train")])), POLICY, Baseline(format=1, findings={}))
        assert (checked.differs, checked.tightened.recorded) == ((), (extent(),))


class TestWhatThePolicyDemands:
    @pytest.mark.parametrize(("steps", "code"), [(100, 0), (99, 3)])
    def test_fewer_steps_are_not_checked(self, steps: int, code: int) -> None:
        verdict = check_gate(report(info(phases=[phase("train", steps=steps)])), Policy(min_steps=100))
        assert verdict.exit_code == code
        whys = {entry.why for entry in verdict.not_checked}
        assert whys == ({"the recording shows 99 steps of train, and min_steps is 100"} if code else set())

    def test_partial_recordings_that_may_pass_still_have_to_show_the_steps(self) -> None:
        few = report(info(phases=[phase("train", steps=3)]))
        assert check_gate(few, Policy(min_steps=100, allow_partial=True)).exit_code == 3

    def test_what_is_found_in_few_steps_still_fails(self) -> None:
        few = report(info(phases=[phase("train", steps=3)]), found=[finding()])
        assert check_gate(few, Policy(min_steps=100)).exit_code == 1

    def test_every_phase_that_is_named_has_to_be_there(self) -> None:
        both = Policy(phases=("train", "evaluate"))
        assert check_gate(report(info(phases=[phase("train"), phase("evaluate")])), both).exit_code == 0
        verdict = check_gate(report(info(phases=[phase("train")])), both)
        assert verdict.exit_code == 3
        assert verdict.not_checked[0].why == "no trace is of a phase that the configuration judges: evaluate"

    def test_a_recording_that_does_not_say_its_phase_is_not_taken_for_one(self) -> None:
        verdict = check_gate(report(uncounted()), Policy(phases=("train",)))
        assert verdict.exit_code == 3
        assert verdict.not_checked[0].why == (
            "the recording does not say which phases are shown; the configuration judges train"
        )
