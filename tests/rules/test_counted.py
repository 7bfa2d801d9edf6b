"""How often findings occur over a counted run, and the lines that no window recorded."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.json import encode

from syncscope.analysis.analyze import analyze_timelines
from syncscope.report.cards import make_cards
from syncscope.rules import find
from syncscope.rules.base.counted import BETWEEN, NO_STEPS, OTHER_PHASE, OTHER_STEPS, PASSED
from syncscope.rules.base.counted_lines import Frequency, quantile
from syncscope.schema.counting import PhaseKind
from syncscope.schema.findings import Finding, fingerprint
from syncscope.schema.recording import RecordedFrame
from syncscope.schema.report import Report
from syncscope.timeline import Timeline
from syncscope.trace.reader import read_bytes
from tests.builders import FrameSpec, TraceBuilder
from tests.rules.scenes import findings, line, waiting
from tests.runs import document_of, with_run

ITEM = line(5, "loss.item()")


def report_of(document: dict[str, Any]) -> Report:
    return analyze_timelines([Timeline(read_bytes(encode(document), "trace.json"))])


def only_counted(*stack: FrameSpec, count: int = 100, **wait: Any) -> list[Finding]:
    """The findings of a run of 100 training steps that waited at one stack, without a window."""
    builder = TraceBuilder().phase("train", steps=100).counted(0, count, *stack, **wait)
    return findings(builder.run())


def recorded(*, steps: int = 5, every: int = 1) -> TraceBuilder:
    """Steps of 100 µs, of which every so many read a value."""
    builder = TraceBuilder().recording(*(100 * i for i in range(steps + 1)), phase="train")
    for step in range(0, steps, every):
        waiting(builder, 100 * step + 5, "aten::item").warning(100 * step + 75, ITEM)
    return builder


@pytest.mark.parametrize("case", ["item_logging", "explicit_sync", "print_tensor", "generate", "round_trip"])
def test_a_run_that_went_on_as_recorded_has_the_frequencies_of_the_window(case: str) -> None:
    report = report_of(with_run(document_of(case)))
    about_waits = [finding for finding in report.findings if finding.rule.startswith("SYN")]
    assert about_waits
    for finding in about_waits:
        assert finding.site_source == "hook"
        assert finding.run_per_step == finding.run_per_step_low == finding.run_per_step_high
        assert finding.run_per_step == pytest.approx(finding.per_step)
        assert finding.occurrences == round((finding.per_step or 0) * 100)
        assert finding.run_saving_ms_per_step == pytest.approx(finding.saving_ms_per_step, abs=1e-6)
        assert (finding.phase, finding.run_steps) == ("train", (0, 99))


def test_what_is_rare_over_the_run_blocks_and_saves_as_much_less() -> None:
    often, seldom = (report_of(with_run(document_of("item_logging"), every=every)).findings[0] for every in (1, 10))
    assert (often.run_per_step, seldom.run_per_step) == (1.0, 0.1)
    assert often.stall_ms_per_step is not None and often.saving_ms_per_step is not None
    assert seldom.run_stall_ms_per_step == pytest.approx(often.stall_ms_per_step / 10, abs=1e-6)
    assert seldom.run_saving_ms_per_step == pytest.approx(often.saving_ms_per_step / 10, abs=1e-6)
    assert (seldom.per_step, seldom.stall_ms_per_step) == (often.per_step, often.stall_ms_per_step)
    assert (often.severity, seldom.severity) == ("error", "warning")  # 0.37 and 0.04 of 14.5 ms


def test_two_rules_at_one_place_have_one_frequency() -> None:
    report = report_of(with_run(document_of("round_trip"), every=4))
    at_place = [finding for finding in report.findings if finding.rule in ("SYN101", "CPY201")]
    assert len(at_place) == 4
    assert {finding.run_per_step for finding in at_place} == {0.25}


def test_rules_that_are_not_about_waits_have_the_phase_alone() -> None:
    report = report_of(with_run(document_of("item_logging")))
    others = [finding for finding in report.findings if not finding.site and finding.site_source != "count"]
    assert all((finding.phase, finding.run_per_step) == ("train", None) for finding in others)


def test_two_ops_of_one_line_share_its_waits_as_they_did_in_the_window() -> None:
    builder = TraceBuilder().recording(0, 400, 800, phase="train")
    for start in (0, 400):
        waiting(builder, start + 5, "aten::item").warning(start + 75, line(5, "f(x)"))
        waiting(builder, start + 105, "aten::nonzero").warning(start + 175, line(5, "f(x)"))
    builder.phase("train", steps=10).counted(0, 20, line(5, "f(x)"), steps=10).run()
    assert [(one.rule, one.run_per_step) for one in findings(builder, "SYN102", "SYN103")] == [
        ("SYN103", 1.0),
        ("SYN102", 1.0),
    ]


def test_measured_time_counts_more_than_that_of_the_window() -> None:
    builder = TraceBuilder().recording(0, 100, 200, phase="train")
    for start in (0, 100):
        builder.device_sync(start + 10, 20).entry("torch.cuda.synchronize", start + 9, start + 31, line(9, "sync()"))
    builder.phase("train", steps=10)
    builder.counted(0, 5, line(9, "sync()"), name="torch.cuda.synchronize", blocked_ns=50_000_000).run()
    (found,) = findings(builder, "SYN105")
    assert (found.run_per_step, found.run_stall_ms_per_step, found.stall_ms_per_step) == (0.5, 5.0, 0.02)


@pytest.mark.parametrize(("blocked_ms", "told"), [(500, 0.03), (0.05, 0.01)])
def test_a_copy_blocks_no_longer_over_the_run_than_in_the_window(blocked_ms: float, told: float) -> None:
    """The whole call is timed, in which the host may convert what it copies."""
    builder = TraceBuilder().recording(0, 400, 800, phase="train")
    for start in (0, 400):
        waiting(builder, start + 5, "aten::to", "aten::copy_", copy="HtoD", memory="pageable")
        builder.warning(start + 95, line(9, "x.cuda()"))
    builder.phase("train", steps=5)
    blocked = int(blocked_ms * 1_000_000)
    builder.counted(0, 5, line(9, "x.cuda()"), steps=5, direction="HtoD", blocked_ns=blocked).run()
    (found,) = findings(builder, "SYN101")
    assert (found.run_per_step, found.run_stall_ms_per_step) == (1.0, told)


class TestLinesWithoutAWindow:
    @pytest.mark.parametrize(
        ("stack", "wait", "rule"),
        [
            (line(1, "loss.item()"), {}, "SYN102"),
            (line(1, "float(loss)"), {}, "SYN102"),
            (line(1, "done"), {}, "SYN102"),
            (line(1, "mask.nonzero()"), {}, "SYN103"),
            (line(1, "x.masked_select(m)"), {}, "SYN103"),
            (line(1, "x.unique()"), {}, "SYN103"),
            (line(1, "x.tolist()"), {}, "SYN101"),
            (line(1, "x.cuda()"), {}, "SYN101"),
            (line(1, "torch.cuda.synchronize()"), {"name": "torch.cuda.synchronize"}, "SYN105"),
            (line(1, "done.synchronize()"), {"name": "Event.synchronize"}, "SYN105"),
            (line(1, "free()"), {"name": "torch.cuda.empty_cache"}, "SYN106"),
            (line(1, "move(x)"), {"name": "Tensor.to", "direction": "HtoD"}, "SYN101"),
            (
                line(1, "x.to(d, non_blocking=True)"),
                {"name": "Tensor.to", "direction": "HtoD", "pageable": True, "non_blocking": True},
                "CPY201",
            ),
            (line(1, "torch.linalg.eigh(a)"), {"name": "torch.linalg.eigh"}, "SYN109"),
            (line(1, "dist.barrier()"), {"name": "ProcessGroup.barrier"}, "SYN110"),
            (line(1, "metrics.update(x)"), {}, "SYN100"),
        ],
    )
    def test_have_the_rule_that_their_call_or_expression_tells(
        self, stack: FrameSpec, wait: dict[str, Any], rule: str
    ) -> None:
        (found,) = only_counted(stack, **wait)
        assert (found.rule, found.site_source, found.count, found.per_step) == (rule, "count", 0, None)
        assert (found.run_per_step, found.occurrences, found.phase) == (1.0, 100, "train")
        assert found.saving_ms_per_step is None and found.fix

    @pytest.mark.parametrize(("kind", "of_loss"), [("train", True), ("evaluate", False), ("generate", False)])
    def test_a_value_that_is_read_where_nothing_is_trained_is_no_loss(self, kind: PhaseKind, *, of_loss: bool) -> None:
        builder = TraceBuilder().phase(kind, steps=10).counted(0, 10, line(1, "losses.sum().item()"))
        (found,) = findings(builder.run(), "SYN102")
        assert ("loss.detach()" in found.fix) == of_loss

    def test_a_bound_of_a_slice_and_an_index_of_a_list_are_read_where_the_source_tells(self) -> None:
        builder = TraceBuilder().phase("evaluate", steps=10).counted(0, 10, line(1, "x[:n]"))
        builder.source("train.py", 1, "y = x[:n].tolist()").counted(0, 10, line(2, "x[i]"))
        builder.source("train.py", 2, "y = x[i]").counted(0, 900, line(3, "names[i]"), steps=10)
        builder.source("train.py", 3, "text = ''.join([names[i] for i in row])")
        found = {one.site.line: one for one in findings(builder.run()) if one.site}
        assert [found[number].rule for number in (1, 2, 3)] == ["SYN102", "SYN100", "SYN102"]
        assert "a slice's bound on the host" in found[1].fix
        assert "indices.tolist()" in found[2].fix
        assert found[3].fix.startswith("Bring all its values to the host at once")

    def test_a_blocking_copy_of_pageable_memory_has_both_rules_as_in_a_window(self) -> None:
        found = only_counted(line(1, "x.to(d)"), name="Tensor.to", direction="HtoD", pageable=True)
        assert [(one.rule, one.run_per_step) for one in found] == [("SYN101", 1.0), ("CPY201", 1.0)]

    def test_both_rules_of_a_blocking_copy_share_a_card(self) -> None:
        wait, copy = found = only_counted(line(1, "x.to(d)"), name="Tensor.to", direction="HtoD", pageable=True)
        assert (wait.related, copy.related) == ((copy.fingerprint,), (wait.fingerprint,))
        assert [card.tags for card in make_cards(found)] == [
            (("SYN101", "blocking-copy"), ("CPY201", "pageable-copy")),
        ]

    def test_a_print_is_one_finding_at_the_line_that_prints(self) -> None:
        inside = "<site-packages>/torch/_tensor_str.py"
        builder = TraceBuilder().phase("train", steps=100)
        for number, count in ((120, 100), (150, 100), (160, 700)):
            stack = (line(7, "print(x)"), (inside, 700, "_str", "f()"), (inside, number, "__init__", "v.item()"))
            builder.counted(0, count, *stack, steps=100)
        (found,) = findings(builder.run())
        assert (found.rule, found.run_per_step, found.at and found.at.line) == ("SYN104", 1.0, 7)

    def test_the_attribution_window_knows_more_than_the_expression(self) -> None:
        builder = TraceBuilder().phase("train", steps=100).counted(0, 10, line(3, "f(x)"))
        builder.attribution(line(3, "f(x)"), ops=["aten::index", "aten::nonzero"]).run()
        assert [one.rule for one in findings(builder)] == ["SYN103"]

    def test_have_the_fingerprint_that_a_window_would_have_given(self) -> None:
        (seen,) = findings(recorded(), "SYN102")
        (counted,) = only_counted(ITEM)
        assert counted.fingerprint == seen.fingerprint == fingerprint("SYN102", "train.py", "step", "loss.item()")

    def test_stand_beside_those_that_a_window_saw(self) -> None:
        builder = recorded().phase("train", steps=100).counted(0, 100, ITEM).counted(0, 1, line(9, "x.cpu()")).run()
        seen, unseen = findings(builder, "SYN101", "SYN102")
        assert (seen.site_source, seen.run_per_step) == ("hook", 1.0)
        assert (unseen.site_source, unseen.per_step, unseen.run_per_step) == ("count", 0.0, 0.01)
        assert "counted 1 time in 100 steps of train; no window recorded it" in unseen.message

    def test_say_what_would_tell_their_savings(self) -> None:
        builder = recorded().phase("train", steps=100).counted(0, 1, line(9, "x.cpu()"))
        builder.phase("evaluate", steps=10).counted(1, 5, line(10, "y.cpu()"))
        builder.phase("epoch end").counted(2, 5, line(11, "z.cpu()"))
        builder.phase("start").counted(3, 5, line(12, "w.cpu()"))
        builder.run()
        why = {one.site.line: one.saving_null_why for one in findings(builder, "SYN101") if one.site}
        assert why == {9: OTHER_STEPS, 10: OTHER_PHASE.format("evaluate"), 11: BETWEEN, 12: PASSED}

    def test_are_found_where_a_window_saw_only_a_copy(self) -> None:
        copying = line(9, "x.to(d, non_blocking=True)")
        builder = TraceBuilder().recording(0, 1000, 2000, phase="train")
        for start in (0, 1000):
            builder.copy("HtoD", call=(start + 10, 4), runs=(start + 20, 500)).entry(
                "Tensor.to", start + 9, start + 15, copying
            )
        builder.phase("train", steps=10).counted(0, 10, copying, name="Tensor.to", direction="HtoD").run()
        assert {one.rule: one.site_source for one in findings(builder, "OVL301", "SYN101")} == {
            "OVL301": "hook",
            "SYN101": "count",
        }

    def test_that_may_wait_are_notes(self) -> None:
        (found,) = only_counted(line(3, "nms(x)"), name="torch.ops", may_wait=True)
        assert (found.rule, found.severity) == ("SYN100", "note")
        assert "may wait" in found.message

    @pytest.mark.parametrize(
        ("length", "waits", "rules"),
        [(150, False, []), (50, False, ["SYN100"]), (150, True, ["SYN102"])],
        ids=["as long", "shorter", "waits"],
    )
    def test_that_may_wait_are_nothing_where_a_window_saw_calls_as_long_that_did_not(
        self, length: float, waits: bool, rules: list[str]
    ) -> None:
        call = line(3, "attention(q, k, v)")
        builder = TraceBuilder().recording(0, 500, 1000, phase="train").phase("train", steps=100)
        builder.launch("k", call=(120, 5), runs=(130, 20)).entry("torch.ops", 100, 100 + length, call)
        if waits:
            waiting(builder, 160, "aten::item")
        builder.counted(0, 900, call, name="torch.ops", may_wait=True)
        assert [one.rule for one in findings(builder.run()) if one.rule.startswith("SYN")] == rules

    def test_that_wait_in_the_first_step_alone_are_notes(self) -> None:
        (found,) = only_counted(ITEM, count=1, first_step=0, last_step=0)
        assert (found.severity, found.run_steps) == ("note", (0, 0))

    def test_before_the_first_phase_are_notes_where_steps_follow(self) -> None:
        (found,) = findings(TraceBuilder().phase("start").counted(0, 200, line(2, "model.cuda()")).run())
        assert (found.severity, found.run_per_step) == ("error", 200.0)
        builder = TraceBuilder().phase("start").phase("train", steps=9).counted(0, 200, line(2, "model.cuda()")).run()
        (found,) = findings(builder)
        assert found.severity == "note"
        assert "counted 200 times before the first phase of the program" in found.message

    def test_expected_ones_keep_the_reason(self) -> None:
        (found,) = only_counted(ITEM, expected="the log")
        assert (found.status, found.reason) == ("expected", "the log")

    def test_of_a_phase_without_steps_are_counted_each_time_that_it_ran(self) -> None:
        builder = TraceBuilder().phase("epoch end", times=4).counted(0, 8, ITEM).run()
        (found,) = findings(builder)
        assert (found.run_per_step, found.occurrences, found.run_steps) == (2.0, 8, None)

    def test_of_a_phase_with_a_file_of_its_own_are_left_to_that_file(self) -> None:
        builder = recorded().phase("train", steps=100, recorded=True).phase("evaluate", steps=9, recorded=True)
        builder.phase("generate", steps=9).counted(0, 100, ITEM).counted(1, 9, ITEM).counted(2, 9, ITEM)
        assert [one.phase for one in findings(builder.run(), "SYN102")] == ["train", "generate"]
        assert [one.phase for one in findings(builder.run(main=False), "SYN102")] == ["train"]


def test_a_line_that_a_window_saw_and_nothing_certain_counted_keeps_its_own_frequency_alone() -> None:
    builder = recorded().phase("train", steps=100).counted(0, 900, ITEM, name="torch.ops", may_wait=True).run()
    (found,) = findings(builder, "SYN102")
    assert (found.per_step, found.run_per_step) == (1.0, None)


def test_sampled_steps_give_an_interval_that_holds_the_frequency() -> None:
    # Two waits in each of 10 of the 100 steps that were counted of 400, which stand for all of them.
    builder = TraceBuilder().phase("train", steps=400, counted_steps=100, one_in=4.0)
    builder.counted(0, 20, ITEM, steps=10, estimate=80.0, variance=400.0).run()
    (found,) = findings(builder)
    assert found.run_per_step == 0.2
    assert found.run_per_step_low == pytest.approx(0.2 - 1.984 * 0.05, rel=1e-3)
    assert found.run_per_step_high == pytest.approx(0.2 + 1.984 * 0.05, rel=1e-3)
    assert found.occurrences == 80
    assert "about 80 times in 400 steps of train, by those of 100 of them" in found.message


def test_what_was_counted_of_a_phase_without_steps_for_a_part_of_its_time_is_an_estimate() -> None:
    builder = TraceBuilder().phase("train", steps=400).phase("epoch end", times=4, one_in=3.0)
    builder.counted(1, 40, ITEM, steps=1, first_step=0, last_step=0, estimate=120.0, variance=1600.0).run()
    (found,) = findings(builder)
    assert (found.run_per_step, found.occurrences) == (30.0, 120)
    assert found.run_per_step_low == pytest.approx(30 - 1.96 * 10, rel=1e-3)
    assert "about 120 times" in found.message


def test_a_recording_that_estimates_nothing_gives_no_interval() -> None:
    builder = TraceBuilder().phase("train", steps=400, counted_steps=100, one_in=4.0).counted(0, 20, ITEM).run()
    (found,) = findings(builder)
    assert (found.run_per_step, found.run_per_step_low, found.run_per_step_high) == (0.2, None, None)
    assert found.occurrences == 80


def test_one_sampled_step_gives_no_interval() -> None:
    builder = TraceBuilder().phase("train", steps=400, counted_steps=1, one_in=400.0).counted(0, 1, ITEM).run()
    (found,) = findings(builder)
    assert (found.run_per_step, found.run_per_step_low, found.run_per_step_high) == (1.0, None, None)


@pytest.mark.parametrize(("freedom", "expected"), [(3, 3.182), (10, 2.228), (30, 2.042), (10_000, 1.960)])
def test_the_quantile_is_that_of_students_distribution(freedom: int, expected: float) -> None:
    assert quantile(freedom) == pytest.approx(expected, rel=0.01)


def test_bounds_never_fall_below_nothing() -> None:
    assert Frequency(0.1, 1.0, 50).bounds[0] == 0.0


def test_without_a_window_only_rules_about_waits_are_checked() -> None:
    builder = TraceBuilder().phase("train", steps=100).run()
    _, not_checked = find(Timeline(builder.trace()))
    codes = {entry.rule for entry in not_checked}
    assert {"OVL301", "LCH501", "HAZ401"} <= codes
    assert not codes & {"SYN100", "SYN101", "SYN102", "SYN105", "SYN109", "CPY201"}


def test_the_advice_of_an_unexplained_wait_is_that_of_its_call_where_there_is_one() -> None:
    (known,) = only_counted(line(1, "torch.linalg.inv(matrix)"))
    (unknown,) = only_counted(line(1, "metrics.update(x)"))
    assert (known.rule, known.fix) == ("SYN100", "Call torch.linalg.inv_ex, and look at its info later.")
    assert unknown.fix.startswith("Look at what the line does")


def library(file: str, expression: str) -> FrameSpec:
    return RecordedFrame(
        file=f"<site-packages>/torch/{file}", line=7, function="of_torch", expression=expression, user=False
    )


STEP = line(8, "compiled(x)")
TUNES = (
    STEP, library("_inductor/runtime/triton_heuristics.py", "bench()"), library("cuda/__init__.py", "synchronize()"),
)  # fmt: skip
TRACES = (STEP, library("_dynamo/convert_frame.py", "trace()"), library("_ops.py", "self._op()"))


def test_what_pytorch_waits_for_to_compile_is_a_note_and_what_it_may_wait_for_is_nothing() -> None:
    (found,) = only_counted(*TUNES, name="torch.cuda.synchronize", count=12)
    assert (found.rule, found.severity) == ("SYN105", "note")
    assert "to compile or to capture" in found.message
    assert only_counted(*TRACES, name="torch.ops", may_wait=True) == []
    heard = TraceBuilder().phase("train", steps=100).compiled().counted(0, 12, *TUNES, name="torch.cuda.synchronize")
    assert findings(heard.run()) == []


def test_a_line_that_waits_of_itself_is_told_apart_from_what_is_done_to_compile() -> None:
    builder = TraceBuilder().phase("train", steps=100).counted(0, 100, STEP, name="torch.cuda.synchronize")
    found = findings(builder.counted(0, 12, *TUNES, name="torch.cuda.synchronize").run())
    assert [(one.severity, one.run_per_step) for one in found] == [("error", 1.0), ("note", 0.12)]


def test_a_counted_read_that_an_optimizer_makes_by_design_is_marked() -> None:
    inside = ("<site-packages>/torch/optim/lbfgs.py", 300, "LBFGS.step", "float(loss)")
    assert {one.by_design for one in only_counted(line(9, "optimizer.step(closure)"), inside)} == {True}
    assert {one.by_design for one in only_counted(line(9, "model(x)"), ITEM)} == {False}


def test_a_line_seen_in_a_phase_of_which_no_step_was_counted_has_no_number() -> None:
    builder = TraceBuilder().phase("rollout", steps=4, counted_steps=0)
    (found, *_) = findings(builder.counted(0, 0, ITEM, first_step=0, last_step=0).run())
    assert found.message == (
        "loss.item() waits for the device: seen in rollout, of whose steps none was counted; no window recorded it"
    )


def test_a_line_of_which_only_parts_of_steps_were_counted_has_the_estimate_of_the_run() -> None:
    builder = TraceBuilder().phase("train", steps=3, counted_steps=0, one_in=5.76)
    builder.counted(0, 2083, ITEM, first_step=3, last_step=3, estimate=9520.0, variance=1_000_000.0).run()
    (found, *_) = findings(builder)
    assert (found.occurrences, found.run_steps_with) == (9520, None)
    assert found.run_per_step == pytest.approx(9520 / 3)
    assert found.run_per_step_low == pytest.approx((9520 - 1960) / 3, rel=1e-3)
    assert found.run_per_step_high == pytest.approx((9520 + 1960) / 3, rel=1e-3)
    assert found.message == (
        "loss.item() waits for the device: counted about 9,520 times in train, by parts of its steps: none was counted "
        "whole; no window recorded it"
    )


def test_where_the_run_has_no_steps_nothing_follows_what_was_counted() -> None:
    alone = findings(TraceBuilder().phase("start").counted(0, 3000, ITEM).run())
    assert {one.saving_null_why for one in alone} == {NO_STEPS}
    followed = findings(TraceBuilder().phase("start").phase("train", steps=9).counted(0, 3000, ITEM).run())
    assert {one.saving_null_why for one in followed} == {PASSED}


def without_ops(expression: str, *, size: int, memory: str = "pinned", copy: str = "DtoH") -> TraceBuilder:
    """Five steps of training that wait at one expression, recorded without ops, and the same line before them."""
    at = line(5, expression)
    builder = TraceBuilder().recording(*(100 * i for i in range(6)), phase="train")
    for step in range(5):
        waiting(builder, 100 * step + 5, copy=copy, memory=memory, size=size).warning(100 * step + 75, at)
    builder.phase("start").phase("train", steps=100, recorded=True)
    return builder.counted(0, 14, at).counted(1, 100, at).run()


@pytest.mark.parametrize(
    ("expression", "size", "rule", "fix"),
    [
        ("x.masked_fill_(mask, self.value)", 8, "SYN102", "torch.where(mask, value, x)"),
        ("x[mask]", 4, "SYN103", ""),
        ("x[mask]", 8, "SYN101", ""),  # an integer of the device as an index
        ("solve(x)", 8, "SYN101", ""),
    ],
)
def test_a_wait_without_ops_has_one_rule_in_the_window_and_before_it(
    expression: str, size: int, rule: str, fix: str
) -> None:
    found = [one for one in findings(without_ops(expression, size=size)) if one.rule.startswith(("SYN", "CPY"))]
    assert [(one.rule, one.phase, one.site_source) for one in found] == [
        (rule, "train", "hook"), (rule, "start", "count"),
    ]  # fmt: skip
    assert len({one.fingerprint for one in found}) == 1 and len({one.fix for one in found}) == 1
    assert fix in found[0].fix


def test_in_how_many_of_the_counted_steps_a_line_waits_is_known() -> None:
    (few,) = only_counted(ITEM, count=60, steps=2)
    assert (few.run_per_step, few.run_steps_with) == (0.6, 2)
    builder = TraceBuilder().phase("train", steps=100).counted(0, 60, ITEM, steps=60)
    (both,) = findings(builder.counted(0, 90, line(9, "step()"), ITEM, steps=70).run())[:1]
    assert both.run_steps_with is not None and both.run_steps_with <= 100
    builder = TraceBuilder().phase("train", steps=100).counted(0, 30, ITEM, first_step=0, last_step=0)
    (once,) = findings(builder.counted(0, 40, line(9, "step()"), ITEM, first_step=0, last_step=0).run())[:1]
    assert once.run_steps_with == 1
    (start,) = findings(TraceBuilder().phase("start").counted(0, 30, ITEM).run())
    assert start.run_steps_with is None


MODULE: FrameSpec = ("<site-packages>/torch/nn/modules/module.py", 1370, "Module.to.<locals>.convert", "t.to(device)")
SERIALIZATION: FrameSpec = ("<site-packages>/torch/serialization.py", 1311, "_save", "storage.cpu()")
STORAGE: FrameSpec = (
    "<site-packages>/torch/storage.py",
    264,
    "_StorageBase.cpu",
    "torch.UntypedStorage(n).copy_(self)",
)


def test_weights_that_were_counted_while_they_moved_are_told_as_such() -> None:
    builder = TraceBuilder().phase("start").phase("train", steps=9)
    stack = (line(7, "model.to(device)"), MODULE)
    builder.counted(0, 84, *stack)
    builder.counted(0, 84, *stack, name="Tensor.to", direction="HtoD", pageable=True)
    found = findings(builder.run())
    assert {one.rule for one in found} == {"SYN101", "CPY201"}
    assert all(one.fix.startswith("The weights are moved once") for one in found)


@pytest.mark.parametrize("steps", [0, 9])
def test_weights_that_move_once_are_a_note_also_where_no_step_follows(steps: int) -> None:
    builder = TraceBuilder().phase("start").phase("train", steps=steps)
    stack = (line(7, "model.to(device)"), MODULE)
    builder.counted(0, 84, *stack, name="Tensor.to", direction="HtoD", pageable=True).counted(0, 3, ITEM)
    told = {one.rule: one.severity for one in findings(builder.run())}
    assert told["CPY201"] == "note"
    assert (told["SYN102"] == "note") is (steps > 0), "what else waits there is all that such a program does"


def test_what_a_checkpoint_copies_is_not_to_be_copied_from_pinned_memory() -> None:
    frames = (line(9, "torch.save(state, path)"), ("<site-packages>/torch/serialization.py", 1004, "save", "_save()"))
    (found, *_) = only_counted(*frames, SERIALIZATION, STORAGE)
    assert found.rule == "SYN101" and found.fix.startswith("Saving copies each tensor by itself")


def test_a_checkpoint_that_is_loaded_is_no_batch() -> None:
    frames = (line(9, "torch.load(path)"), ("<site-packages>/torch/serialization.py", 1570, "load", "_load()"))
    (found, *_) = only_counted(*frames, ("<site-packages>/torch/_utils.py", 107, "_to", "x.copy_(self)"))
    assert found.rule == "SYN101" and found.fix.startswith("Leave it where a checkpoint is loaded once")


def test_a_part_that_waits_says_what_a_mask_and_an_index_would_need() -> None:
    (found,) = only_counted(line(3, "x[mask]"))
    assert found.rule == "SYN100" and "Where the index is a mask" in found.fix


def test_an_index_that_is_copied_without_ops_stays_on_the_device() -> None:
    found = findings(without_ops("x[order]", size=64, memory="pageable", copy="HtoD"), "SYN101", "CPY201")
    assert found and all(one.fix.startswith("Keep the index on the device") for one in found)


def test_a_read_of_a_program_that_only_infers_is_no_loss_to_be_summed() -> None:
    def fix(*kinds: PhaseKind) -> str:
        builder = TraceBuilder().recording(*(100 * i for i in range(6)), phase=kinds[0])
        for step in range(5):
            waiting(builder, 100 * step + 5, "aten::item").warning(100 * step + 75, ITEM)
            builder.launch("k", call=(100 * step + 85, 5), runs=(100 * step + 91, 5))
        for kind in kinds:
            builder.phase(kind, steps=40)
        (found,) = findings(builder.run(), "SYN102")
        return found.fix

    assert "sum loss" not in fix("evaluate") and "sum loss" in fix("train", "evaluate")
    assert fix("evaluate", "train").startswith("Add it up on the device, and read the sum once, behind the last batch")
    assert fix("generate", "train") == fix("generate") == fix("evaluate")


def test_a_counted_read_of_an_evaluation_of_a_program_that_trains_is_no_loss_to_be_summed() -> None:
    builder = TraceBuilder().phase("train", steps=40).phase("evaluate", steps=9).counted(1, 9, ITEM)
    (found,) = findings(builder.run(), "SYN102")
    assert found.fix.startswith("Add it up on the device, and read the sum once, behind the last batch")


def test_a_read_in_few_steps_or_between_them_is_left_as_seldom_as_it_is() -> None:
    builder = TraceBuilder().phase("train", steps=100).counted(0, 10, ITEM, steps=10)
    builder.counted(0, 30, line(51, "correct.sum().item()"), steps=2)
    builder.phase("epoch end", turns=5).counted(1, 5, line(60, "total.item()"))
    fixes = {one.site.line: one.fix for one in findings(builder.run(), "SYN102") if one.site}
    assert [fix.startswith("Leave it, where it is read as seldom as now") for fix in fixes.values()].count(True) == 2
    assert fixes[51].startswith("Bring all its values to the host at once, before the loop")


FOLDS = ("<site-packages>/torch/_inductor/fx_passes/joint_graph.py", 295, "fold", "bool(value)")


def test_waits_of_the_compiler_are_no_finding_and_no_part_of_a_frequency() -> None:
    call = line(30, "model(x).item()")
    builder = TraceBuilder().phase("train", steps=100).counted(0, 61, call, FOLDS, compiling=True)
    assert not findings(builder.run())
    (found,) = findings(builder.counted(0, 100, call).run())
    assert (found.rule, found.run_per_step, found.occurrences) == ("SYN102", 1.0, 100)


def test_what_windows_find_at_a_line_that_also_compiles_stays() -> None:
    builder = recorded().phase("train", steps=100).counted(0, 100, ITEM)
    before = findings(builder.run())
    assert [finding.rule for finding in before] == ["SYN102", "OVL303"]
    assert findings(builder.counted(0, 61, ITEM, FOLDS, compiling=True).run()) == before
