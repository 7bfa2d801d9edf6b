"""The proof of the savings: its pairs, its arithmetic, and what its recordings give."""

from __future__ import annotations

import functools
import json
import math
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest

from benchmarks.savings.catalogue import Named, Pair, different_on_cpu, pairs
from benchmarks.savings.patched import PATCHED
from benchmarks.savings.scatter import draw
from benchmarks.savings.scores import MODES, RECORDINGS, SETS, Measured, Predicted, Row, predict, rows, score, summarise
from benchmarks.savings.slim import keep
from syncscope import analyze
from tests.interrupts import heed_interrupts

PAIRS = pairs()
FIXTURES = Path(__file__).parents[2] / "fixtures" / "traces"


def row(
    saving: float | None,
    low: float | None = None,
    high: float | None = None,
    *,
    measured: tuple[float, float, float] = (2.0, 1.95, 2.05),
    kind: str = "wait",
    blocked: float = 5.0,
) -> Row:
    """A step of 10 ms of which a fix saves 2."""
    pair = Pair("made_up", "small", (1,), "wait removed", kind, (Named("SYN102", "x.item()"),))
    predicted = Predicted(("SYN102",), saving, low, high, blocked=blocked, idle=3.0, busy=9.5)
    return Row(pair, "windows", Measured(10.0, *measured), predicted)


class TestPairs:
    def test_there_are_enough_for_every_kind_of_fix(self):
        assert len(PAIRS) >= 70
        assert {pair.kind for pair in PAIRS} == {"wait", "transform"}

    def test_several_fixes_are_looked_at_on_small_medium_and_large_steps(self):
        sizes = [{pair.size for pair in PAIRS if pair.program == program} for program in {p.program for p in PAIRS}]
        assert sum({"small", "medium", "large"} <= found for found in sizes) >= 3

    @pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.name)
    def test_what_a_fix_answers_is_in_its_program(self, pair):
        source = pair.script.read_text(encoding="utf-8")
        assert pair.findings and all(named.expression in source for named in pair.findings)

    @pytest.mark.parametrize("pair", different_on_cpu(PAIRS), ids=lambda pair: pair.name)
    def test_both_versions_return_the_same(self, pair):
        pytest.importorskip("torch")
        for library in ("transformers", "torch_geometric"):
            if f"from {library}" in pair.script.read_text(encoding="utf-8"):
                pytest.importorskip(library)
        from benchmarks.savings.dry import results, without_gpu

        with without_gpu():
            assert results(pair, "before") == results(pair, "after")


class TestMeasured:
    def test_is_the_median_of_paired_differences(self):
        drifting = [10.0 + block for block in range(20)]
        measured = Measured.of(drifting, [length - 3.0 for length in drifting])
        assert (measured.saving, measured.low, measured.high) == (3.0, 3.0, 3.0)
        assert measured.step == 19.5

    def test_interval_covers_what_the_blocks_disagree_on(self):
        measured = Measured.of([10.0] * 20, [9.0] * 10 + [8.0] * 10)
        assert (measured.low, measured.high) == (1.0, 2.0)
        assert not measured.scored

    def test_distance_is_from_the_interval(self):
        measured = Measured(10.0, 2.0, 1.9, 2.1)
        assert measured.off(2.05) == 0.0
        assert measured.off(2.5) == pytest.approx(0.4)
        assert measured.off(1.0) == pytest.approx(0.9)


def test_each_block_times_both_versions(monkeypatch):
    pytest.importorskip("torch")
    from benchmarks.savings import worker

    asked: list[tuple[str, int]] = []

    def block_ms(step: str, count: int, warm: int = worker.WARM) -> float:
        asked.append((step, count))
        return 5.0

    monkeypatch.setattr(worker, "block_ms", block_ms)
    program = ModuleType("made_up")
    vars(program).update(before=lambda size: "before", after=lambda size: "after")
    figures = worker.timings(program, row(None).pair)
    blocks = asked[-2 * worker.BLOCKS :]  # all are alike, so the fewest do
    pairs_asked = list(zip(blocks[::2], blocks[1::2], strict=True))
    assert all({first[0], second[0]} == {"before", "after"} for first, second in pairs_asked)
    assert len({first[0] for first, _ in pairs_asked}) == 2, "the order changes"
    assert {count for _, count in blocks} == {figures["steps_a_block"]}
    assert len(figures["before_ms"]) == len(figures["after_ms"]) == worker.BLOCKS >= 20


def test_blocks_at_the_power_limit_come_with_power_and_clock(monkeypatch):
    pytest.importorskip("torch")
    from benchmarks.savings import worker
    from syncscope.schema.recording import GpuWindow, RecordedGpu

    class Clocks:
        def open(self, torch: ModuleType) -> None: ...

        def close(self) -> None: ...

        def about(self, bare: tuple[int, int] | None, timed: tuple[int, int]) -> RecordedGpu:
            assert bare is None and timed[1] > timed[0] - 10**9
            return RecordedGpu(timed=GpuWindow(power_w=690, sm_clock_mhz=1800, throttled={"power cap": 0.5}, samples=8))

    monkeypatch.setattr(worker, "block_ms", lambda step, count, warm=worker.WARM: 5.0)
    monkeypatch.setattr(worker, "ClockWatch", Clocks)
    program = ModuleType("made_up")
    vars(program).update(before=lambda size: "before", after=lambda size: "after")
    figures = worker.timings(program, replace(row(None).pair, limited=True, settle_ms=10))
    assert figures["before_gpu"] == figures["after_gpu"] == [(690, 1800, 0.5)] * len(figures["before_ms"])


def test_a_recording_begins_when_clock_and_power_have_settled():
    pytest.importorskip("torch")
    from benchmarks.savings import worker

    assert worker.steps_before([8.0, 10.0, 30.0]) == worker.RECORD_AFTER_MS / 10


def test_blocks_end_when_the_interval_is_narrow_or_will_not_be():
    pytest.importorskip("torch")
    from benchmarks.savings.worker import settled

    def blocks(spread: float) -> tuple[list[float], list[float]]:
        return [10.0] * 20, [9.0 - spread, 9.0 + spread] * 10

    assert settled(*blocks(0.05))
    assert not settled(*blocks(0.15))
    assert settled(*blocks(0.5))


def test_a_slimmed_recording_says_the_same(tmp_path):
    whole = FIXTURES / "ddp_exposed" / "full" / "rank0.json.gz"
    keep(whole, tmp_path / "rank0.json.gz")
    reports = [analyze(path) for path in (whole, tmp_path / "rank0.json.gz")]
    assert (tmp_path / "rank0.json.gz").stat().st_size < 0.8 * whole.stat().st_size
    assert reports[0].findings == reports[1].findings


class TestPredict:
    def test_sums_what_the_named_findings_block(self):
        pair = Pair("item", "large", (), "", "wait", (Named("SYN", "loss.item()"),))
        predicted = predict(pair, FIXTURES / "item_logging" / "trace.json.gz")
        assert predicted.rules == ("SYN102",)
        assert predicted.blocked == pytest.approx(12.83, abs=0.01)

    def test_says_when_no_finding_is_meant(self):
        pair = Pair("item", "large", (), "", "wait", (Named("SYN102", "accuracy.item()"),))
        predicted = predict(pair, FIXTURES / "item_logging" / "trace.json.gz")
        assert predicted.rules == () and predicted.saving is None and predicted.why == "no finding"

    def test_tells_waits_of_one_line_apart_by_the_library_function(self):
        found = {
            function: predict(
                Pair("generate", "short", (), "", "wait", (Named("SYN102", "model.generate(", function),)),
                FIXTURES / "generate" / "trace.json.gz",
            ).blocked
            for function in ("StopCheck.__call__", "_ignore_causal_mask_sdpa")
        }
        assert len(set(found.values())) == 2 and None not in found.values()


class TestScore:
    def test_distances_are_shares_of_the_step(self):
        result = score([row(2.0), row(2.55), row(1.45)], "wait")
        assert result.rows == 3
        assert result.median == pytest.approx(0.05)
        assert result.worst == pytest.approx(0.05)
        assert result.blocked == (pytest.approx(0.295), pytest.approx(0.295))
        assert result.idle == (pytest.approx(0.095), pytest.approx(0.095))

    def test_more_than_twice_a_large_saving_is_counted_and_of_a_small_one_not(self):
        assert score([row(4.2), row(3.9), row(0.9, measured=(0.4, 0.35, 0.45))], "wait").overpromised == 1

    def test_a_wide_interval_is_not_scored(self):
        assert score([row(9.0, measured=(2.0, 1.0, 3.0))], "wait").rows == 0

    def test_a_range_holds_what_it_meets_and_no_answer_holds_nothing(self):
        made = [(2.5, 2.0, 3.0), (2.5, 2.1, 3.0), (None,)]
        result = score([row(*answer, kind="transform") for answer in made], "transform")
        assert result.held == pytest.approx(1 / 3)
        assert result.widest == pytest.approx(0.1)
        assert result.unanswered == 1

    def test_nothing_to_score_is_no_number(self):
        assert math.isnan(score([], "wait").median)


class TestSummary:
    def test_a_pair_is_scored_where_its_interval_is_no_wider_than_near_allows(self):
        scored = row(2.0, measured=(2.0, 1.6, 2.5))
        assert not scored.unscored and not scored.narrow
        assert row(2.0, measured=(2.0, 1.4, 2.5)).unscored == "the interval is too wide"
        assert summarise([scored, row(2.0, measured=(2.0, 1.4, 2.5))]).rows == 1

    def test_near_is_the_distance_from_the_median_and_possible_that_from_the_interval(self):
        found = row(2.8, measured=(2.0, 1.6, 2.4))
        assert found.possible and not found.near
        assert row(2.5, measured=(2.0, 1.6, 2.4)).near
        assert not row(3.0, measured=(2.0, 1.6, 2.4)).possible

    def test_every_row_counts_by_its_interval(self):
        some = [row(2.0, 1.9, 2.1), row(3.2, 2.9, 3.4, measured=(2.0, 1.0, 3.0)), row(None)]
        found = summarise(some)
        assert (found.rows, found.every) == (2, 3)
        assert found.near == 0.5
        assert found.possible == found.met == pytest.approx(2 / 3)

    def test_steps_that_were_timed_at_another_speed_are_compared_as_shares_and_far_ones_not_scored(self):
        def timed(step: float) -> Row:
            given = row(2.0)
            scaled = Measured(step, 0.2 * step, 0.19 * step, 0.21 * step).scaled(10.0 / step)
            return replace(given, measured=scaled, predicted=replace(given.predicted, bare=10.0))

        assert timed(9.0).near and not timed(9.0).unscored
        assert timed(9.0).drift == pytest.approx(1 / 9)
        assert timed(5.0).unscored == "timed and recorded steps differ"


def test_a_process_that_goes_on_after_its_recording_is_interrupted(tmp_path, monkeypatch):
    from benchmarks.savings import record

    monkeypatch.setattr(record, "LINGER", 0.1)
    trace = tmp_path / "trace.json.gz"
    goes_on = f"import pathlib, time; input(); pathlib.Path({str(trace)!r}).touch(); time.sleep(60)"
    command = [sys.executable, "-c", goes_on]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, preexec_fn=heed_interrupts
    ) as process:
        record.Job(row(None).pair, "windows", tmp_path, tmp_path, [process]).run()
    assert process.returncode in (-signal.SIGINT, 1) and trace.exists()


def test_picture_shows_each_answered_row_and_escapes_names():
    picture = draw([row(2.0, 1.8, 2.2), row(None)])
    assert picture.count("<title>") == 1
    assert "measured 2.000, predicted 2.000 ms" in picture
    assert picture.startswith("<svg ") and picture.endswith("</svg>\n")


SILENT = {("image_prefetch.medium", "windows"), ("image_prefetch.medium", "full")}
"""Recordings of too little to fix for a rule to speak."""

MISSED = {
    ("pageable_copy.large", "windows"), ("one_bucket.medium", "windows"), ("one_bucket.medium", "full"),
}  # fmt: skip
"""Scored recordings of fixes that change what is done, with an answer whose range does not hold the measured saving."""

LOST = {("throughput_clock.medium", "full")}
"""Never recorded."""


@functools.cache
def predicted(name: str) -> list[Row]:
    """The rows of a set."""
    return rows(wanted=SETS[name])


class Scored:
    """The table, from the recordings: what docs/savings.md says of it is true."""

    name = ""
    """Of the set."""

    @pytest.fixture
    def every(self) -> list[Row]:
        return predicted(self.name)

    def test_every_pair_is_there_with_enough_blocks(self, every):
        wanted = {(pair.name, mode) for pair in PAIRS if SETS[self.name](pair) for mode in MODES}
        assert {(row.pair.name, row.mode) for row in every} == wanted - LOST
        for row in every:
            timings = json.loads((RECORDINGS / row.pair.name / f"{MODES[row.mode]}.timings.json").read_text())
            assert len(timings["before_ms"]) == len(timings["after_ms"]) >= 20

    def test_only_what_has_no_finding_has_no_answer(self, every):
        unanswered = {(row.pair.name, row.mode): row.predicted.why for row in every if row.predicted.saving is None}
        assert set(unanswered) == SILENT & {(row.pair.name, row.mode) for row in every}
        assert set(unanswered.values()) <= {"no finding"}

    def test_the_ranges_of_fixes_that_change_what_is_done_hold_the_rest(self, every):
        changing = [row for row in every if row.pair.kind == "transform" and row.narrow]
        missed = {(row.pair.name, row.mode) for row in changing if row.predicted.saving is not None and not row.held}
        assert missed == MISSED & {(row.pair.name, row.mode) for row in every}
        assert not any(row.overpromised for row in changing)


def test_the_recordings_stay_small():
    assert sum(file.stat().st_size for file in RECORDINGS.rglob("*") if file.is_file()) < 21_000_000


class TestInView(Scored):
    name = "In view"

    @pytest.mark.parametrize("mode", MODES)
    def test_fixes_that_remove_waits_save_what_was_predicted(self, every, mode):
        result = score([row for row in every if row.mode == mode], "wait")
        assert result.rows >= 20
        assert result.median <= 0.005
        assert result.worst <= 0.025
        assert result.overpromised == 0
        assert 5 * result.median < min(result.blocked[0], result.idle[0])
        assert 10 * result.worst < min(result.blocked[1], result.idle[1])


@pytest.mark.slow
class TestHeldOut(Scored):
    name = "Held out"

    @pytest.mark.parametrize("mode", MODES)
    def test_fixes_that_remove_waits_save_what_was_predicted(self, every, mode):
        result = score([row for row in every if row.mode == mode], "wait")
        assert result.rows >= 7 and result.unanswered == 0
        assert result.median <= 0.0065
        assert result.worst <= 0.025
        assert result.held == 1.0
        assert result.overpromised == 0

    def test_what_the_host_bounds_is_too_noisy_to_be_scored(self, every):
        assert not any(row.narrow for row in every if row.pair.size == "hosted")


@pytest.mark.slow
class TestTwoRanks(Scored):
    name = "Two ranks"

    @pytest.mark.parametrize("mode", MODES)
    def test_savings_are_what_was_predicted(self, every, mode):
        mine = [row for row in every if row.mode == mode]
        assert score(mine, "wait").worst <= 0.0175
        assert score(mine, "transform").worst <= 0.03
        assert score(mine, "transform").widest <= 0.07
        assert score(mine, "transform").rows == 4


@pytest.mark.slow
class TestNew:
    """What docs/evidence.md says of the pairs held out by date, now that they are in view."""

    @pytest.fixture
    def every(self) -> list[Row]:
        return predicted("New")

    def test_all_are_there_and_answered(self, every):
        assert len(every) == 38
        assert all(row.predicted.saving is not None for row in every)

    def test_what_was_timed_well_is_near(self, every):
        found = summarise(every)
        assert found.rows >= 14
        assert found.possible >= 0.8
        far = {row.pair.name for row in every if not row.unscored and not row.near}
        assert far == {"metrics_dict.medium", "bf16_item.heavy"}, "recorded and timed steps differ"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "rows", "scored", "near", "held"),
    [
        ("Newest", 10, 3, 0.8, 0.8),
        ("Met", 39, 15, 0.95, 0.95),
        ("Met third", 22, 16, 0.8, 0.8),
        ("Met sixth", 7, 7, 0.85, 1.0),
        ("Met seventh", 23, 17, 0.9, 0.9),
        ("Met eighth", 6, 2, 0.8, 0.8),
        ("Met ninth", 15, 10, 1.0, 1.0),
        ("Compiled", 10, 4, 0.2, 0.6),
    ],
)
def test_the_pairs_that_were_out_of_sample_are_as_the_page_says(name, rows, scored, near, held):
    found = summarise(predicted(name))
    assert (found.every, found.rows) == (rows, scored)
    assert found.possible >= near
    assert found.met >= held


def test_what_was_met_is_no_longer_unseen():
    named = {pair.name: pair for pair in [*PAIRS, *(one.pair for one in PATCHED)]}
    recorded = {name for name in named if any((RECORDINGS / name).glob("*.json.gz"))}
    assert {name for name, pair in named.items() if pair.contact == 1} <= recorded
