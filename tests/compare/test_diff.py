"""New, fixed, more, fewer: by fingerprint and count a step, and nothing is fixed that nobody looked for."""

from typing import Any

import msgspec
import pytest

from syncscope.compare.diff import diff
from syncscope.schema.findings import Finding
from syncscope.schema.report import NotChecked, Report, Steps
from tests.policy.test_phases import info, phase
from tests.report import sample


def finding(key: str = "a", per_step: float | None = 1.0, line: int = 42, **changes: Any) -> Finding:
    """A SYN102 in a function of its own."""
    made = sample.finding("SYN102", "scalar-read", line, "loss.item()")
    site = msgspec.structs.replace(made.site or sample.finding("", "", 1, "").site, function=key)  # type: ignore[type-var]
    return msgspec.structs.replace(made, **{"fingerprint": key, "per_step": per_step, "site": site, **changes})


def report(*findings: Finding, **changes: Any) -> Report:
    return msgspec.structs.replace(sample.report(found=findings), **{"not_checked": (), "stale": (), **changes})


def kinds(before: Report, after: Report) -> list[tuple[str, str, float | None, float | None]]:
    return [(c.kind, c.finding.fingerprint, c.before, c.after) for c in diff(before, after).changes]


def test_what_came_went_and_changed() -> None:
    before = report(finding("gone"), finding("less", 3.0), finding("more"), finding("same"))
    after = report(finding("more", 2.0), finding("same", line=77), finding("less", 1.0), finding("came"))
    assert kinds(before, after) == [
        ("more", "more", 1.0, 2.0),
        ("fewer", "less", 3.0, 1.0),
        ("new", "came", 0.0, 1.0),
        ("fixed", "gone", 1.0, 0.0),
    ]
    assert diff(before, after).same == 1
    assert [change.kind for change in diff(before, after).of("new", "fixed")] == ["new", "fixed"]


def test_a_report_against_itself_is_the_same() -> None:
    found = diff(sample.report(), sample.report())
    assert (found.changes, found.same) == ((), 5)


def test_what_nobody_looked_for_is_neither_new_nor_fixed() -> None:
    blind = report(not_checked=(NotChecked(rule="SYN102", why="no"),))
    assert kinds(report(finding()), blind) == [("unclear", "a", 1.0, None)]
    assert kinds(blind, report(finding())) == [("unclear", "a", None, 1.0)]
    partly = report(not_checked=(NotChecked(rule="SYN102", why="in part", partial=True),))
    assert kinds(report(finding()), partly) == [("fixed", "a", 1.0, 0.0)]


def test_what_never_happens_inside_the_steps_does_not_come_or_go() -> None:
    assert kinds(report(finding("a", 0.0)), report(finding("b", 0.0))) == []
    assert kinds(report(finding("a", 0.0)), report(finding("a", 1.0))) == [("more", "a", 0.0, 1.0)]


def test_pieces_of_idle_time_are_not_counted_against_each_other() -> None:
    idle, more = (finding("idle", count, site=None, op=None) for count in (114.3, 115.3))
    assert kinds(report(idle), report(more)) == []
    assert kinds(report(), report(more)) == [("new", "idle", 0.0, 115.3)]


def test_without_steps_only_coming_and_going_is_seen() -> None:
    assert kinds(report(finding("a", None)), report(finding("a", 1.0), finding("b", None))) == [("new", "b", 0.0, None)]


def test_among_equal_lines_any_may_be_the_new_one() -> None:
    one, other = finding("a", line=40), finding("b", line=42)
    other = msgspec.structs.replace(other, site=msgspec.structs.replace(one.site, line=42))  # type: ignore[type-var]
    (change,) = diff(report(one), report(one, other)).changes
    assert (change.kind, change.lines) == ("new", (40, 42))
    assert [change.lines for change in diff(report(), report(one, other)).changes] == [(), ()]


def timed(bare: float | None, profiled: float | None) -> Report:
    steps = Steps(count=3, profiled_ms=profiled, bare_ms=bare, source="user")
    return report(traces=(msgspec.structs.replace(sample.trace_info(), steps=steps),))


@pytest.mark.parametrize(
    ("before", "after", "step"),
    [
        (timed(5, 6), timed(4, 7), (5, 4, "bare")),
        (timed(None, 6), timed(4, 7), (6, 7, "profiled")),
        (timed(5, None), timed(None, 7), None),
    ],
)
def test_steps_are_compared_as_both_were_measured(before: Report, after: Report, step: Any) -> None:
    found = diff(before, after).step
    assert (found and (found.before, found.after, found.measured)) == step


def test_of_several_ranks_the_slowest_step_and_the_most_waits_count() -> None:
    ranks = (sample.trace_info("a"), timed(9, 9).traces[0])
    found = diff(timed(5, 6), report(finding("a", 1.0), finding("a", 2.0, trace=1), traces=ranks))
    assert found.step is not None and found.step.after == 9
    assert found.changes[0].after == 2.0
    back = diff(report(traces=ranks), timed(5, 6)).step
    assert back is not None and (back.before, back.after) == (9, 5)


def test_steps_of_training_are_compared_only_where_both_reports_have_any() -> None:
    phases = [phase("train", recorded=True), phase("evaluate", recorded=True)]
    training = info("train", phases, steps=timed(5, 6).traces[0].steps)
    evaluation = info("evaluate", phases, steps=timed(9, 9).traces[0].steps)
    both, other = report(traces=(training, evaluation)), report(traces=(evaluation,))
    steps = [diff(both, after).step for after in (both, other, timed(4, 4))]
    assert [step and (step.before, step.after) for step in steps] == [(5, 5), (9, 9), (9, 4)]


def counted(*findings: Finding, **changes: Any) -> Report:
    """A report whose run was counted."""
    base = report(*findings, **changes)
    infos = tuple(msgspec.structs.replace(info, has=(*info.has, "counts")) for info in base.traces)
    return msgspec.structs.replace(base, traces=infos)


def over_run(key: str, often: float, phase: str = "train", **changes: Any) -> Finding:
    """A finding that occurs so often a step over 1000 steps, and in one of five recorded steps."""
    run = {"run_per_step": often, "run_per_step_low": often, "run_per_step_high": often, "phase": phase}
    return finding(key, occurrences=round(often * 1000), **{"per_step": 0.2, **run, **changes})


def test_counted_runs_are_compared_by_their_own_frequency_phase_by_phase() -> None:
    before = counted(over_run("a", 0.1), over_run("a", 1.0, "evaluate"), over_run("b", 0.1))
    after = counted(
        over_run("a", 0.5), over_run("a", 1.0, "evaluate"), over_run("b", 0.1), over_run("b", 1, "generate")
    )
    assert kinds(before, after) == [("more", "a", 0.1, 0.5), ("new", "b", 0.0, 1.0)]
    assert [change.finding.phase for change in diff(before, after).changes] == ["train", "generate"]
    assert diff(before, after).same == 2


def test_frequencies_within_their_intervals_are_the_same() -> None:
    sampled = over_run("a", 0.3, run_per_step_low=0.15, run_per_step_high=0.45)
    assert kinds(counted(over_run("a", 0.2)), counted(sampled)) == []
    assert kinds(counted(over_run("a", 0.1)), counted(sampled)) == [("more", "a", 0.1, 0.3)]


def test_against_a_report_without_a_count_only_recorded_steps_are_compared() -> None:
    after = counted(over_run("a", 0.1), over_run("b", 1.0, site_source="count", per_step=None))
    assert kinds(report(finding("a", 0.2)), after) == []
    assert kinds(after, report(finding("a", 1.0))) == [("more", "a", 0.2, 1.0)]


def test_a_wait_whose_rule_became_known_is_the_same_wait() -> None:
    unknown = over_run("a", 1.0, rule="SYN100", fingerprint="other", site_source="count", per_step=None)
    assert kinds(counted(unknown), counted(over_run("a", 1.0))) == []
    assert kinds(counted(over_run("a", 1.0)), counted(unknown)) == []
    assert kinds(counted(unknown), counted(over_run("a", 2.0))) == [("more", "a", 1.0, 2.0)]
    elsewhere = over_run("a", 1.0, "evaluate")
    assert [kind for kind, *_ in kinds(counted(unknown), counted(elsewhere))] == ["new", "fixed"]
