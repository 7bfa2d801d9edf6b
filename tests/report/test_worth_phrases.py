from __future__ import annotations

from typing import Any

import msgspec
import pytest

from syncscope.report.finding_phrases import describe_cost, describe_much
from syncscope.report.impact import describe_impact
from syncscope.report.worth_phrases import UNTOLD, describe_all, describe_causes, describe_saving
from syncscope.schema.findings import Finding, IdleCause
from syncscope.schema.report import Replay
from tests.report import sample

READ = sample.findings()[0]
INFO = sample.trace_info()
UNKNOWN = {"saving_ms_per_step": None, "saving_low_ms_per_step": None, "saving_high_ms_per_step": None}


def saved(**fields: Any) -> Finding:
    return msgspec.structs.replace(READ, **{**UNKNOWN, **fields})


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"saving_ms_per_step": 0.51, "saving_high_ms_per_step": 0.6}, "0.51 ms (10 %)"),
        (
            {"likely_saving_ms_per_step": 0.51, "saving_low_ms_per_step": 0.0, "saving_high_ms_per_step": 1.5},
            "about 0.51 ms (10 %; 0 to 1.5 ms)",
        ),
        ({"saving_low_ms_per_step": 0.0, "saving_high_ms_per_step": 1.53}, "at most 1.53 ms (30 %)"),
        ({"saving_low_ms_per_step": 0.0, "saving_high_ms_per_step": 0.0}, "nothing: the step gets no shorter"),
        ({"saving_ms_per_step": 0.001, "saving_high_ms_per_step": 0.05, "saving_below_drift": True}, UNTOLD),
    ],
)
def test_a_saving_is_told_as_far_as_it_is_known(fields: dict[str, object], says: str) -> None:
    assert describe_saving(saved(**fields), INFO) == [f"saves {says}"]


def test_a_saving_of_a_replay_that_does_not_meet_its_steps_is_told_with_its_range() -> None:
    doubted = msgspec.structs.replace(INFO, replay=Replay(doubt=0.05))
    finding = saved(saving_ms_per_step=0.51, likely_saving_ms_per_step=0.51, saving_low_ms_per_step=0.2)
    finding = msgspec.structs.replace(finding, saving_high_ms_per_step=0.8)
    assert describe_saving(finding, doubted) == ["saves about 0.51 ms (10 %; 0.2 to 0.8 ms)"]
    assert describe_impact(finding, doubted).words.startswith("saves about 10")


AT_MOST = "at most 2.04 ms (40 %)"


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({}, "about 0.51 ms (10 %; 0.1 to 0.8 ms) a step, AT_MOST with those of which only a bound is known"),
        (
            {"saving_all_ms_per_step": 0.51},
            "about 0.51 ms (10 %; 0.1 to 0.8 ms) a step, AT_MOST with those of which only a bound is known",
        ),
        (
            {"saving_all_ms_per_step": 0.51, "saving_all_low_ms_per_step": 0.3},
            "0.51 ms (10 %) a step, AT_MOST with those of which only a bound is known",
        ),
        ({"saving_all_high_ms_per_step": 0.8}, "about 0.51 ms (10 %; 0.1 to 0.8 ms) a step"),
        ({"likely_saving_all_high_ms_per_step": None}, "about 0.51 ms (10 %; 0.1 to 2.04 ms) a step"),
        ({"likely_saving_all_ms_per_step": 0.0, "saving_all_low_ms_per_step": 0.0}, "AT_MOST a step"),
        ({"saving_all_below_drift": True, "saving_all_low_ms_per_step": 0.0}, "AT_MOST a step"),
        ({"likely_saving_all_ms_per_step": 0.05, "saving_all_low_ms_per_step": 0.01}, "AT_MOST a step"),
        (
            {
                "saving_all_ms_per_step": 0.0,
                "likely_saving_all_ms_per_step": 0.0,
                "saving_all_low_ms_per_step": 0.0,
                "likely_saving_all_high_ms_per_step": None,
            },
            "AT_MOST a step",
        ),
        ({"saving_all_below_drift": True, "likely_saving_all_high_ms_per_step": None}, f"{UNTOLD} a step"),
    ],
)
def test_all_together_say_what_is_likely_and_apart_from_it_the_most(fields: dict[str, Any], says: str) -> None:
    likely = {"saving_all_low_ms_per_step": 0.1, "likely_saving_all_ms_per_step": 0.51}
    bounds = {"likely_saving_all_high_ms_per_step": 0.8, "saving_all_high_ms_per_step": 2.04}
    report = msgspec.structs.replace(sample.report(), **{"saving_all_ms_per_step": None, **likely, **bounds, **fields})
    assert describe_all(report, "a step") == [f"saves {says.replace('AT_MOST', AT_MOST)}"]


def test_an_unknown_saving_is_left_out() -> None:
    assert describe_saving(saved(), INFO) == []


def test_idle_time_is_told_by_its_length_and_not_by_the_number_of_bubbles() -> None:
    idle = saved(rule="OVL303", per_step=1290.0, stall_ms_per_step=None, idle_ms_per_step=2.5)
    assert describe_cost(idle, [INFO]) == "idle 2.5 ms (42 % of the recorded step)"


def test_each_cause_of_idle_time_has_its_worth_or_names_the_findings_about_it() -> None:
    loading = IdleCause(cause="data loading", ms_per_step=2.0, saving_ms_per_step=1.53, saving_high_ms_per_step=1.6)
    wait = IdleCause(cause="wait", ms_per_step=0.5, covered_by=(READ.fingerprint,))
    gone = IdleCause(cause="launching", ms_per_step=0.4, covered_by=("not in the report",))
    queued = IdleCause(cause="queued on device", ms_per_step=0.3)
    idle = sample.finding("OVL303", "device-starved", None, None)
    idle = msgspec.structs.replace(idle, causes=(loading, wait, gone, queued))
    told = describe_causes(idle, sample.report(found=[READ, idle]))
    assert told == [
        "data loading: saves 1.53 ms (30 %); wait: 0.5 ms, see SYN102; "
        "launching: 0.4 ms, which another finding is about"
    ]
    assert describe_causes(READ, sample.report()) == []
    much = msgspec.structs.replace(idle, idle_ms_per_step=2.9)
    assert describe_causes(much, sample.report(found=[READ, much]))[0].endswith("; queued but held back: 0.3 ms")
    alone = msgspec.structs.replace(much, causes=(queued,))
    assert describe_causes(alone, sample.report(found=[alone])) == []


def test_the_idle_time_of_launches_is_a_share_of_the_step_without_the_profiler() -> None:
    one = saved(rule="LCH501", idle_ms_per_step=1.53, stall_ms_per_step=None, stall_ms=None)
    assert describe_cost(one, [INFO]).startswith("idle 1.53 ms (30 % of the step without the profiler)")
    unknown = msgspec.structs.replace(INFO, steps=msgspec.structs.replace(INFO.steps, bare_ms=None))
    assert describe_cost(one, [unknown]).startswith("idle 1.53 ms without the profiler, at a guess")
    other = msgspec.structs.replace(one, rule="OVL303")
    assert describe_cost(other, [INFO]).startswith("idle 1.53 ms (26 % of the recorded step)")


def test_what_blocks_for_long_is_told_of_the_steps_that_its_frequency_is_of() -> None:
    assert describe_much(saved(stall_ms_per_step=1.5), [INFO]) == ["blocked 1.5 ms (25 %)"]
    assert describe_much(saved(stall_ms_per_step=0.2, exposed_ms_per_step=0.6), [INFO]) == ["exposed 0.6 ms (10 %)"]
    assert describe_much(saved(stall_ms_per_step=0.2), [INFO]) == []
    assert describe_much(saved(stall_ms_per_step=1.5, run_per_step=0.1), [INFO]) == []
    whole = saved(per_step=None, stall_ms=3.0, stall_ms_per_step=None)
    assert describe_much(whole, [INFO]) == ["blocked 3 ms (50 %)"]


def test_a_cause_of_idle_time_that_saves_nothing_is_not_told() -> None:
    causes = [
        IdleCause(cause=cause, ms_per_step=0.1, saving_ms_per_step=ms, saving_low_ms_per_step=0.0,
                  saving_high_ms_per_step=ms)
        for cause, ms in (("host work", 0.51), ("data loading", 0.0))
    ]  # fmt: skip
    idle = saved(causes=tuple(causes))
    assert describe_causes(idle, sample.report(found=[idle])) == ["host work: saves 0.51 ms (10 %)"]


def test_idle_time_of_unknown_saving_says_what_one_cause_of_it_saves() -> None:
    loading = IdleCause(
        cause="data loading", ms_per_step=1.0, saving_ms_per_step=0.51, saving_low_ms_per_step=0.4,
        saving_high_ms_per_step=0.6, likely_saving_ms_per_step=0.51,
    )  # fmt: skip
    impact = describe_impact(saved(causes=(loading,), asks_for_more=True), INFO)
    assert (impact.level, impact.words, impact.amount) == ("unknown", "data loading alone saves 10 %", "0.51 ms")
    bound = msgspec.structs.replace(
        loading, cause="host work", saving_ms_per_step=None, saving_low_ms_per_step=0.0, likely_saving_ms_per_step=None
    )
    assert describe_impact(saved(causes=(bound,)), INFO).words == "host work alone saves at most 12 %"
    little = msgspec.structs.replace(loading, saving_ms_per_step=0.01, likely_saving_ms_per_step=0.01)
    assert describe_impact(saved(causes=(little,), asks_for_more=True), INFO).words == "saving not known"
