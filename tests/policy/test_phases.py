"""A counted run is judged by how often it waits in training, and a wait of unknown cause by any rule at its place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from syncscope.policy import Baseline, Budgets, Expectation, Policy, apply, check_baseline, check_gate
from syncscope.policy.baseline import Entry
from syncscope.policy.phases import judged_phases
from syncscope.schema.counting import PhaseKind
from syncscope.schema.findings import Finding, fingerprint
from syncscope.schema.report import NotChecked, Report, Steps, TraceInfo
from syncscope.schema.run import Counted, Phase, Run
from tests.report import sample

POLICY = Policy()


def phase(kind: PhaseKind, share: float = 0.5, *, steps: int = 100, recorded: bool = False) -> Phase:
    return Phase(
        name=kind, kind=kind, where=None, steps=steps, counted_steps=steps, one_in=1.0, times=1, share=share,
        step_ms=None, waits_per_step=None, recorded=recorded,
    )  # fmt: skip


def info(recorded: str | None = "train", phases: Sequence[Phase] = (), **more: Any) -> TraceInfo:
    """A trace of one phase of a run."""
    run = Run(
        id="run", seconds=10.0, complete=True, stopped=False, steps=100, counted=Counted(one_in=1, overhead_share=None),
        main=more.pop("main", True), phases=tuple(phases),
    )  # fmt: skip
    base = msgspec.structs.replace(sample.trace_info(), warnings=(), phase=recorded, run=run)
    return msgspec.structs.replace(base, has=(*base.has, "counts"), **more)


TRAINING = info(phases=[phase("train", recorded=True), phase("evaluate")])


def finding(rule: str = "SYN102", per_step: float = 1.0, **more: Any) -> Finding:
    """A finding at ``loss.item()`` in train.py, so often a step of training over 100 steps of the run."""
    base = sample.finding(rule, "scalar-read", 42, "loss.item()", per_step=more.pop("window", 1.0))
    run = {
        "phase": "train", "run_per_step": per_step, "run_per_step_low": per_step, "run_per_step_high": per_step,
        "occurrences": round(per_step * 100), "run_steps": (0, 99),
    }  # fmt: skip
    return msgspec.structs.replace(base, **{**run, **more})


def unseen(rule: str = "SYN100", per_step: float = 1.0, **more: Any) -> Finding:
    """One that no window recorded."""
    return finding(rule, per_step, site_source="count", window=None, **{"count": 0, "severity": "warning", **more})


def report(*findings: Finding, infos: Sequence[TraceInfo] = (TRAINING,)) -> Report:
    return msgspec.structs.replace(sample.report(infos, findings), stale=(), not_checked=())


def code(*findings: Finding, policy: Policy = POLICY, infos: Sequence[TraceInfo] = (TRAINING,)) -> int:
    return check_gate(report(*findings, infos=infos), policy).exit_code


class TestWhichPhases:
    def test_training_is_judged_and_the_rest_is_listed(self) -> None:
        evaluation = unseen(phase="evaluate")
        assert code(evaluation) == 0
        assert apply(report(evaluation), POLICY).findings[0].status == "unexpected"
        assert code(evaluation, unseen()) == 1

    def test_without_training_the_longest_phase_with_steps_is_judged(self) -> None:
        infos = [info("evaluate", [phase("start", 0.6, steps=0), phase("evaluate", 0.1), phase("generate", 0.3)])]
        assert code(finding(phase="evaluate"), infos=infos) == 0
        assert code(finding(phase="generate"), infos=infos) == 1

    @pytest.mark.parametrize(("phases", "expected"), [(("evaluate",), 1), (("train",), 0), (("train", "evaluate"), 1)])
    def test_the_policy_names_kinds_or_names(self, phases: tuple[str, ...], expected: int) -> None:
        assert code(unseen(phase="evaluate"), policy=Policy(phases=phases)) == expected

    def test_a_phase_that_no_trace_has_is_not_checked(self) -> None:
        verdict = check_gate(report(), Policy(phases=("rollout",)))
        assert verdict.exit_code == 3
        assert verdict.not_checked[0].why == "no trace is of a phase that the configuration judges: rollout"

    def test_a_trace_of_evaluation_alone_is_judged_by_it(self) -> None:
        phases = [phase("train", recorded=True), phase("evaluate", recorded=True)]
        alone = info("evaluate", phases, main=False)
        assert code(finding(phase="evaluate"), infos=[alone]) == 1
        both = [info("train", phases), alone]
        assert judged_phases(report(infos=both), POLICY) == ({"train"}, {"train"})
        assert code(finding(phase="evaluate", trace=1), infos=both) == 0

    def test_only_the_main_trace_of_a_process_speaks_for_phases_without_a_window(self) -> None:
        phases = [phase("train"), phase("evaluate", recorded=True)]
        side, main = info("evaluate", phases, main=False), info("evaluate", phases)
        assert judged_phases(report(infos=[side]), POLICY) == ({"evaluate"},)
        assert judged_phases(report(infos=[main]), POLICY) == ({"train"},)

    def test_what_could_not_be_checked_of_another_phase_does_not_count(self) -> None:
        phases = [phase("train", recorded=True), phase("evaluate", recorded=True)]
        blind = NotChecked(rule="SYN102", why="no", trace=1)
        both = report(infos=[info("train", phases), info("evaluate", phases, main=False)])
        assert check_gate(msgspec.structs.replace(both, not_checked=(blind,)), POLICY).exit_code == 0
        first = msgspec.structs.replace(blind, trace=0)
        assert check_gate(msgspec.structs.replace(both, not_checked=(first,)), POLICY).exit_code == 3

    def test_a_recording_without_a_run_is_judged_as_a_whole(self) -> None:
        assert code(sample.findings()[0], infos=[sample.trace_info()]) == 1


class TestCountedLines:
    def test_notes_never_fail(self) -> None:
        assert code(unseen(severity="note")) == 0

    def test_a_window_of_what_never_happens_over_the_run_does_not_fail(self) -> None:
        assert code(finding(per_step=0.0)) == 0

    def test_only_counted_is_checked_and_without_a_count_it_is_not(self) -> None:
        steps = Steps(count=0, profiled_ms=None, bare_ms=None, source="none")
        only = info(None, [phase("train")], steps=steps)
        counted = msgspec.structs.replace(only, has=("sites", "counts"))
        nothing = msgspec.structs.replace(only, has=("sites",))
        assert code(infos=[counted]) == 0
        assert code(unseen(), infos=[counted]) == 1
        assert code(infos=[nothing]) == 3

    def test_the_rule_is_never_unchecked_where_nothing_was_counted(self) -> None:
        plain = sample.trace_info()
        blind = msgspec.structs.replace(plain, has=("cpu_op",))
        verdict = check_gate(report(infos=[plain, blind]), POLICY)
        assert "SYN100" not in verdict.gate
        assert "SYN100" not in {entry.rule for entry in verdict.not_checked}
        assert "SYN100" in check_gate(report(), POLICY).gate

    def test_a_budget_of_waits_is_kept_over_the_run(self) -> None:
        budget = Policy(budgets=Budgets(max_unexpected_syncs_per_step=0.5))
        assert code(finding(per_step=0.25), unseen(per_step=0.25), policy=budget) == 0
        assert code(finding(per_step=0.25), unseen(per_step=0.5), policy=budget) == 1


def expect(rule: str, **more: Any) -> Policy:
    entry = Expectation(rule=rule, codes=frozenset({rule}), reason="fine", where="pyproject.toml:7", **more)
    return Policy(expect=(entry,))


class TestExpectations:
    @pytest.mark.parametrize(
        ("rule", "found", "more", "status"),
        [
            ("SYN102", "SYN100", {"file": "train.py"}, "expected"),
            ("SYN100", "SYN102", {"function": "train_step"}, "expected"),
            ("SYN102", "SYN100", {"file": "other.py"}, "unexpected"),
            ("SYN100", "SYN100", {}, "expected"),
            ("SYN100", "OVL301", {"file": "train.py"}, "unexpected"),
            ("HAZ401", "SYN100", {"file": "train.py"}, "unexpected"),
            ("SYN102", "SYN101", {"file": "train.py"}, "unexpected"),
            ("SYN102", "SYN100", {"file": "train.py", "line": 42}, "expected"),
            ("SYN102", "SYN100", {"file": "train.py", "line": 41}, "unexpected"),
        ],
    )
    def test_a_wait_of_unknown_cause_is_covered_by_any_rule_about_its_place(
        self, rule: str, found: str, more: dict[str, Any], status: str
    ) -> None:
        applied = apply(report(unseen(found)), expect(rule, **more))
        assert applied.findings[0].status == status
        assert (applied.stale == ()) == (status == "expected")

    def test_of_a_rule_alone_it_covers_none_and_is_not_stale_either(self) -> None:
        applied = apply(report(unseen("SYN100")), expect("SYN102"))
        assert (applied.findings[0].status, applied.stale) == ("unexpected", ())

    @pytest.mark.parametrize(("most", "status"), [(0.1, "expected"), (0.11, "expected"), (0.05, "unexpected")])
    def test_a_limit_is_held_against_the_run(self, most: float, status: str) -> None:
        found = apply(report(finding(per_step=0.11)), expect("SYN102", max_per_step=most)).findings[0]
        assert found.status == status
        assert found.exceeds == (None if status == "expected" else "expected at most 0.05 a step, found 0.11")

    def test_a_limit_inside_the_sampling_interval_is_kept(self) -> None:
        sampled = finding(per_step=0.3, run_per_step_low=0.19, run_per_step_high=0.4)
        assert apply(report(sampled), expect("SYN102", max_per_step=0.2)).findings[0].status == "expected"
        assert apply(report(sampled), expect("SYN102", max_per_step=0.1)).findings[0].status == "unexpected"


def baseline(rule: str, per_step: float) -> Baseline:
    key = fingerprint(rule, "train.py", "train_step", "loss.item()")
    entry = Entry(rule=rule, file="train.py", function="train_step", expression="loss.item()", per_step=per_step)
    return Baseline(findings={key: entry})


class TestBaselines:
    def test_a_new_one_stores_the_frequency_of_the_run(self) -> None:
        (entry,) = check_baseline(report(finding(per_step=0.1)), POLICY, None).tightened.findings.values()
        assert entry.per_step == 0.1

    @pytest.mark.parametrize(
        ("before", "now", "held"), [(1, 1.0, True), (1, 0.1, True), (0.2, 0.1, True), (0.1, 0.2, False), (1, 2, False)]
    )
    def test_one_of_a_window_holds_over_the_run(self, before: float, now: float, held: bool) -> None:
        checked = check_baseline(report(finding(per_step=now)), POLICY, baseline("SYN102", before))
        assert (checked.report.findings[0].status == "baseline") == held
        assert (checked.fixed == 1) == (now < before)

    def test_every_tenth_step_is_the_same_in_runs_of_other_lengths(self) -> None:
        eleven = finding(per_step=11 / 101, occurrences=11)
        assert check_baseline(report(eleven), POLICY, baseline("SYN102", 0.1)).covered == 1

    @pytest.mark.parametrize(("before", "now"), [("SYN102", "SYN100"), ("SYN100", "SYN102"), ("CPY201", "SYN100")])
    def test_a_wait_of_unknown_cause_stands_for_any_rule_at_its_expression(self, before: str, now: str) -> None:
        checked = check_baseline(report(unseen(now)), POLICY, baseline(before, 1))
        assert (checked.covered, checked.fixed) == (1, 0)
        assert [entry.rule for entry in checked.tightened.findings.values()] == [now]
        more = check_baseline(report(unseen(now, 2.0)), POLICY, baseline(before, 1))
        assert more.report.findings[0].exceeds == "baseline 1, now 2 a step"

    def test_it_cannot_stand_for_what_is_still_there(self) -> None:
        checked = check_baseline(report(finding(), unseen()), POLICY, baseline("SYN102", 1))
        assert {one.rule: one.status for one in checked.report.findings} == {
            "SYN102": "baseline",
            "SYN100": "unexpected",
        }

    def test_what_the_count_cannot_tell_beside_a_known_rule_is_neither_fixed_nor_stale(self) -> None:
        blocking, pageable = baseline("SYN101", 1), baseline("CPY201", 1)
        both = Baseline(findings={**blocking.findings, **pageable.findings})
        checked = check_baseline(report(unseen("SYN101")), POLICY, both)
        assert (checked.covered, checked.fixed, checked.tightened.findings) == (1, 0, both.findings)
        assert check_baseline(report(finding("SYN101")), POLICY, both).fixed == 1
        assert apply(report(unseen("SYN101")), expect("CPY201", file="train.py")).stale == ()
        assert len(apply(report(finding("SYN101")), expect("CPY201", file="train.py")).stale) == 1

    def test_another_rule_does_not_stand_for_it(self) -> None:
        assert check_baseline(report(finding("SYN101")), POLICY, baseline("SYN102", 1)).covered == 0

    def test_a_new_line_is_new_however_rare(self) -> None:
        rare = unseen("SYN102", 0.00001, occurrences=1)
        checked = check_baseline(report(rare), POLICY, Baseline(findings={}))
        assert checked.report.findings[0].status == "unexpected"
