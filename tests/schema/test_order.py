"""The order of findings, which is the same in every output."""

from __future__ import annotations

from typing import Any

import msgspec

from syncscope.schema.findings import LATE_PEER, Finding, IdleCause, gain
from syncscope.schema.order import ordered
from tests.report import sample, sample_run


def one(rule: str, **fields: Any) -> Finding:
    return msgspec.structs.replace(sample.finding(rule, "name", 1, rule), **fields)


READ = one("SYN102", severity="error", saving_ms_per_step=0.1)
LOADER = one("OVL303", likely_saving_ms_per_step=40.0, saving_high_ms_per_step=50.0)
LAUNCHES = one("LCH501", saving_low_ms_per_step=0.0, saving_high_ms_per_step=10.0)
COUNTED = one("SYN100", site_source="count", stall_ms_per_step=90.0)
RACE = one("HAZ401", severity="error")
NOTE = one("SYN105", severity="note", saving_ms_per_step=70.0)
SUMMARY = one("OVL303", sums_up=True, idle_ms_per_step=99.0)


def test_races_come_first_then_what_gains_most_then_what_is_unknown_notes_and_summaries() -> None:
    wanted = (RACE, LOADER, LAUNCHES, READ, COUNTED, NOTE, SUMMARY)
    assert ordered(reversed(wanted)) == wanted


def test_what_is_expected_comes_last_even_a_race() -> None:
    known = msgspec.structs.replace(RACE, status="expected")
    assert ordered([known, SUMMARY]) == (SUMMARY, known)


def test_a_rank_that_is_late_since_it_launches_comes_behind_the_finding_about_its_launches() -> None:
    def late(**fields: Any) -> Finding:
        known = {"saving_low_ms_per_step": 0.0, "saving_high_ms_per_step": 11.0, "related": (LAUNCHES.fingerprint,)}
        return one("DST601", exposed_ms_per_step=11.0, **{**known, **fields})

    assert ordered([late(), LAUNCHES, READ]) == (LAUNCHES, late(), READ)
    assert ordered([LAUNCHES, late(related=())]) == (late(related=()), LAUNCHES)
    far = late(saving_high_ms_per_step=40.0)
    assert ordered([LAUNCHES, far]) == (far, LAUNCHES), "launches explain only a quarter of it"
    elsewhere = msgspec.structs.replace(LAUNCHES, trace=1)
    assert ordered([elsewhere, late()]) == (late(), elsewhere), "the launches of another rank"


def test_a_rank_that_is_late_since_its_host_works_comes_behind_the_finding_about_that_work() -> None:
    work = one("OVL303", saving_low_ms_per_step=0.0, saving_high_ms_per_step=10.0)
    late = one("DST601", saving_low_ms_per_step=0.0, saving_high_ms_per_step=11.0, related=(work.fingerprint,))
    assert ordered([late, work]) == (work, late)
    other = msgspec.structs.replace(late, related=())
    assert ordered([other, work]) == (other, work)
    most = msgspec.structs.replace(work, saving_high_ms_per_step=9.0)
    assert ordered([most, late]) == (late, most), "the late rank has more to gain than that"


def test_a_wait_for_a_late_rank_comes_behind_what_is_told_of_that_rank() -> None:
    wait = one("OVL302", exposed_ms_per_step=90.0, saving_null_why=LATE_PEER)
    known = {"exposed_ms_per_step": 50.0, "saving_low_ms_per_step": 0.0, "saving_high_ms_per_step": 2.0}
    late = one("DST601", related=(wait.fingerprint,), **known)
    assert ordered([wait, READ, late]) == (late, wait, READ)
    launches = msgspec.structs.replace(LAUNCHES, saving_high_ms_per_step=1.8)
    paced = msgspec.structs.replace(late, related=(wait.fingerprint, LAUNCHES.fingerprint))
    assert ordered([wait, paced, launches]) == (launches, paced, wait)
    short = msgspec.structs.replace(late, exposed_ms_per_step=40.0)
    assert ordered([wait, short]) == (wait, short), "most of it is a wait for something else"
    of_another = msgspec.structs.replace(late, related=())
    assert ordered([wait, of_another]) == (wait, of_another)
    own = msgspec.structs.replace(wait, saving_null_why=None)
    assert ordered([own, late]) == (own, late), "the collective itself is what takes the time"


def test_the_gain_is_that_of_the_run_where_its_frequency_is_known() -> None:
    rare = one("SYN102", saving_ms_per_step=5.0, likely_saving_ms_per_step=5.0, run_saving_ms_per_step=0.01)
    assert gain(rare) == 0.01
    assert ordered([rare, READ]) == (READ, rare)


def test_what_is_rare_over_the_run_gains_as_much_less_also_where_no_bare_step_is_known() -> None:
    assert gain(one("SYN102", likely_saving_ms_per_step=5.0, per_step=1.0, run_per_step=0.1)) == 0.5
    assert gain(one("SYN102", likely_saving_ms_per_step=5.0, per_step=None, run_per_step=0.1)) == 5.0


def test_the_gain_of_what_is_known_at_most_is_half_of_it() -> None:
    assert (gain(LAUNCHES), gain(LOADER), gain(COUNTED)) == (5.0, 40.0, None)


def test_the_gain_of_launches_is_no_more_than_half_of_what_the_device_waits_at_a_guess() -> None:
    waits = msgspec.structs.replace(LAUNCHES, idle_ms_per_step=4.0)
    assert gain(waits) == 2.0
    assert gain(msgspec.structs.replace(waits, idle_ms_per_step=40.0)) == 5.0


def test_what_is_told_of_a_longer_recorded_step_counts_as_much_less_over_the_run() -> None:
    info = sample_run.info()
    longer = msgspec.structs.replace(info, steps=msgspec.structs.replace(info.steps, bare_ms=200.0))
    recorded = one("LCH501", phase="train", saving_low_ms_per_step=0.0, saving_high_ms_per_step=10.0)
    of_run = one("SYN102", phase="train", saving_ms_per_step=4.0, run_saving_ms_per_step=4.0)
    assert ordered([of_run, recorded], [info]) == (recorded, of_run)
    assert ordered([recorded, of_run], [longer]) == (of_run, recorded)


def test_a_guess_that_may_be_nothing_is_behind_what_is_sure() -> None:
    guess = one("SYN101", likely_saving_ms_per_step=5.0, saving_low_ms_per_step=0.0, saving_high_ms_per_step=9.0)
    sure = one("SYN102", saving_ms_per_step=4.0, saving_low_ms_per_step=3.5, saving_high_ms_per_step=4.5)
    assert ordered([guess, sure]) == (sure, guess)


def test_what_gains_nothing_that_is_likely_counts_half_of_its_most_unless_that_cannot_be_told() -> None:
    fields = {"likely_saving_ms_per_step": 0.0, "saving_low_ms_per_step": 0.0, "saving_high_ms_per_step": 20.0}
    assert (gain(one("OVL302", **fields)), gain(one("OVL302", **fields, saving_below_drift=True))) == (10.0, 0.0)


def test_a_note_that_a_trace_is_warm_up_leads_what_gains_less_than_can_be_told() -> None:
    little = one("SYN101", likely_saving_ms_per_step=3.0, saving_below_drift=True)
    warm_up = one("OVL303", severity="note", idle_ms_per_step=900.0)
    assert ordered([NOTE, little, warm_up]) == (warm_up, little, NOTE)


def test_a_note_that_a_first_pass_is_warm_up_leads_what_gains_little_of_it() -> None:
    info = sample.trace_info()
    replay = info.replay
    assert info.overlap is not None
    assert replay is not None
    overlap = msgspec.structs.replace(info.overlap, device_busy_ms=40.0, idle_ms=60.0)
    warm_up = one("OVL303", severity="note", idle_ms_per_step=55.0)

    def first(gains_ms: float, *others: Finding, replayed_ms: float = 98.0, steps: int = 0) -> Finding:
        of_all = msgspec.structs.replace(info.steps, count=steps)
        replayed = msgspec.structs.replace(replay, step_ms=replayed_ms)
        trace = msgspec.structs.replace(info, overlap=overlap, steps=of_all, replay=replayed)
        read = one("SYN102", likely_saving_ms_per_step=gains_ms, saving_high_ms_per_step=gains_ms)
        return ordered([read, *others, warm_up], [trace])[0]

    assert first(9.0) == warm_up
    assert first(11.0) != warm_up, "it gains more than a tenth"
    bound = one("OVL302", saving_low_ms_per_step=0.0, saving_high_ms_per_step=6.0)
    assert first(6.0, bound) != warm_up, "both together may gain more than a tenth"
    assert first(1.0, one("OVL302", exposed_ms_per_step=20.0)) != warm_up, "nobody knows what that gains"
    assert first(9.0, steps=3) != warm_up, "the steps have to be like each other"
    assert first(4.0, replayed_ms=44.0) != warm_up, "what was replayed holds no warm-up"


def test_collectives_that_are_exposed_for_far_longer_than_anything_gains_come_first() -> None:
    waiting = one("OVL302", exposed_ms_per_step=110.0, saving_ms_per_step=None)
    assert ordered([LOADER, waiting]) == (waiting, LOADER)
    little = one("OVL302", exposed_ms_per_step=90.0, saving_ms_per_step=None)
    assert ordered([little, LOADER]) == (LOADER, little)


def test_others_come_before_what_gains_next_to_nothing_beside_them() -> None:
    waiting = one("DST601", exposed_ms_per_step=60.0, saving_ms_per_step=None)
    nothing, something = one("SYN102", saving_ms_per_step=0.5), one("SYN101", saving_ms_per_step=0.7)
    assert ordered([nothing, something, waiting, LOADER]) == (LOADER, something, waiting, nothing)


def test_a_bound_of_a_large_part_of_the_step_comes_before_many_small_savings() -> None:
    small = [one("SYN102", saving_ms_per_step=0.1, fingerprint=f"{number}") for number in range(20)]
    bound = one("OVL302", saving_low_ms_per_step=0.0, saving_high_ms_per_step=30.0)
    assert ordered([*small, bound])[0] == bound


def test_what_happens_once_in_a_run_comes_behind_what_happens_often_where_neither_gain_is_known() -> None:
    once = one("SYN102", site_source="count", occurrences=1, run_per_step=0.003, phase="train")
    often = one("SYN102", site_source="count", occurrences=713, run_per_step=45.0, phase="evaluate")
    assert ordered([once, often]) == (often, once)


def test_what_holds_the_device_or_the_host_for_longer_comes_first_where_no_gain_is_known() -> None:
    idle = one("OVL303", severity="warning", idle_ms_per_step=88.0)
    read = one("SYN102", severity="error", stall_ms_per_step=6.0)
    copy = one("CPY201", exposed_ms_per_step=0.05)
    assert ordered([copy, read, idle]) == (idle, read, copy)
    known = one("SYN101", saving_ms_per_step=10.0)
    assert ordered([copy, read, known]) == (known, read, copy)


def test_what_a_wait_holds_is_that_of_the_run_and_of_the_steps_of_its_phase() -> None:
    slow = one("SYN101", stall_ms_per_step=1.4, run_stall_ms_per_step=0.2)
    steady = one("SYN101", stall_ms_per_step=0.3, run_stall_ms_per_step=0.3)
    assert ordered([slow, steady]) == (steady, slow)
    once = one("SYN101", phase="start", run_stall_ms_per_step=255.0)
    assert ordered([once, slow]) == (slow, once)
    rare = one("SYN102", phase="evaluate", stall_ms_per_step=1.0)
    often = one("SYN102", phase="train", stall_ms_per_step=0.9)
    assert ordered([rare, often], [sample_run.info()]) == (often, rare)


def test_what_saves_more_over_the_whole_run_comes_first_though_it_saves_less_of_its_step() -> None:
    often = one("SYN101", phase="train", saving_ms_per_step=4.0)
    rare = one("SYN101", phase="evaluate", saving_ms_per_step=5.0)
    run = sample_run.info()
    assert ordered([rare, often], [run]) == (often, rare)
    assert ordered([often, rare]) == (rare, often)
    far = msgspec.structs.replace(rare, saving_ms_per_step=21.0)
    assert ordered([often, far], [run]) == (far, often)


def test_what_only_asks_for_another_recording_comes_behind_what_can_be_changed() -> None:
    unnamed = one("OVL303", saving_high_ms_per_step=99.0, idle_ms_per_step=99.0, asks_for_more=True)
    assert ordered([unnamed, READ, LOADER]) == (LOADER, READ, unnamed)
    assert gain(unnamed) is None


def test_what_asks_for_another_recording_comes_first_where_no_change_has_a_line_or_gains_a_tenth_of_what_it_may() -> (
    None
):
    unnamed = one("OVL303", saving_high_ms_per_step=99.0, idle_ms_per_step=99.0, asks_for_more=True)
    little, much = (one("SYN103", site=None, likely_saving_ms_per_step=ms) for ms in (9.0, 11.0))
    assert ordered([little, unnamed]) == (unnamed, little)
    assert ordered([much, unnamed]) == (much, unnamed)
    assert ordered([READ, little, unnamed]) == (little, READ, unnamed)
    exposed = one("OVL302", site=None, exposed_ms_per_step=50.0)
    assert ordered([exposed, unnamed]) == (exposed, unnamed)


def test_what_was_only_counted_in_each_step_comes_before_what_happens_once_though_that_is_more_severe() -> None:
    unknown: dict[str, Any] = {"saving_ms_per_step": None, "site_source": "count", "phase": "train"}
    each = one("CPY201", severity="warning", run_per_step=1.0, occurrences=400, **unknown)
    rare = one("SYN102", severity="error", run_per_step=0.01, occurrences=4, **unknown)
    between = one("SYN101", severity="error", run_per_step=74.0, occurrences=888, **{**unknown, "phase": "epoch end"})
    severe = one("SYN102", severity="error", run_per_step=1.0, occurrences=400, **unknown)
    assert ordered([rare, between, each, severe], [sample_run.info()]) == (severe, each, between, rare)


def test_a_wait_by_design_comes_behind_what_can_be_changed() -> None:
    line_search = one("SYN102", severity="error", saving_ms_per_step=50.0, by_design=True)
    assert ordered([line_search, READ]) == (READ, line_search)


def test_what_gains_nothing_comes_behind_what_may_gain_something() -> None:
    nothing = one("SYN101", severity="error", saving_ms_per_step=0.0, likely_saving_ms_per_step=0.0)
    unnamed = one("OVL303", saving_high_ms_per_step=99.0, idle_ms_per_step=99.0, asks_for_more=True)
    assert ordered([nothing, unnamed, COUNTED]) == (COUNTED, unnamed, nothing)


def test_what_asks_for_another_recording_gains_what_its_other_causes_are_known_to() -> None:
    loading = IdleCause(
        cause="data loading", ms_per_step=4.0, likely_saving_ms_per_step=3.0, saving_low_ms_per_step=1.0
    )
    waits = IdleCause(cause="wait", ms_per_step=9.0, likely_saving_ms_per_step=9.0, covered_by=("read",))
    unnamed = one("OVL303", saving_high_ms_per_step=99.0, asks_for_more=True, causes=(waits, loading))
    assert gain(unnamed) == 2.0
    assert ordered([READ, unnamed]) == (unnamed, READ)
