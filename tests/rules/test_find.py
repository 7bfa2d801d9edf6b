"""One cause, one finding: grouping, counting, and what a selection changes."""

from __future__ import annotations

import pytest

from syncscope.analysis.analyze import analyze_timelines
from syncscope.rules import find
from syncscope.timeline import Timeline
from tests.builders import TraceBuilder
from tests.rules.scenes import chain, codes, findings, line, lines_of, waiting

LIBRARY = "<site-packages>/transformers/generation/utils.py"


def reads(*stacks: tuple[object, ...], steps: int = 1) -> TraceBuilder:
    """Every 100 µs of a step a read, warned of at a stack."""
    length = 100 * len(stacks) + 100
    builder = TraceBuilder().recording(*(length * i for i in range(steps + 1)))
    for step in range(steps):
        for i, stack in enumerate(stacks):
            at = length * step + 100 * i + 5
            waiting(builder, at, "aten::item").warning(at + 70, *stack)  # type: ignore[arg-type]
    return builder


def test_occurrences_of_one_line_are_one_finding():
    found = findings(reads((line(12, "loss.item()"),), (line(12, "loss.item()"),), steps=3), "SYN102")
    assert [(finding.count, finding.per_step) for finding in found] == [(6, 2)]


def test_two_expressions_of_one_line_are_two_findings():
    found = findings(reads((line(12, "a.item()"),), (line(12, "b.item()"),)), "SYN102")
    assert len({finding.fingerprint for finding in found}) == 2


def test_one_user_line_and_several_library_lines_are_several_findings():
    user = line(40, "model.generate(x)")
    found = findings(reads(*((user, (LIBRARY, number, "_sample", "t.item()")) for number in (10, 20, 30))), "SYN102")
    assert lines_of(found) == [40, 40, 40]
    assert [finding.at.line for finding in found if finding.at] == [10, 20, 30]
    assert len({finding.fingerprint for finding in found}) == 1


def test_the_fingerprint_does_not_move_with_the_line():
    first, second = (findings(reads((line(n, "loss.item()"),)), "SYN102")[0] for n in (12, 90))
    assert first.fingerprint == second.fingerprint


def test_expected_and_unexpected_waits_of_one_line_are_kept_apart():
    builder = TraceBuilder().recording(0, 300)
    waiting(builder, 5, "aten::item").warning(75, line(12, "x.item()"), expected="metrics")
    waiting(builder, 105, "aten::item").warning(175, line(12, "x.item()"))
    found = findings(builder, "SYN102")
    assert [(finding.status, finding.reason) for finding in found] == [("expected", "metrics"), ("unexpected", None)]


def test_waits_outside_the_steps_are_not_counted():
    builder = reads((line(12, "loss.item()"),), steps=2)
    waiting(builder, 1000, "aten::item").warning(1070, line(12, "loss.item()"))
    found = findings(builder, "SYN102")[0]
    assert (found.count, found.per_step, found.severity) == (2, 1, "error")
    assert "1 more outside" in found.message


def test_a_wait_only_outside_the_steps_is_a_note():
    builder = TraceBuilder().recording(0, 100)
    found = findings(waiting(builder, 1000, "aten::item").warning(1070, line(12, "loss.item()")), "SYN102")[0]
    assert (found.count, found.severity, found.stall_ms) == (0, "note", None)


def test_without_steps_everything_counts_and_nothing_is_per_step():
    builder = waiting(waiting(TraceBuilder(), 10, "aten::item"), 110, "aten::item")
    found = findings(builder, "SYN102")[0]
    assert (found.count, found.per_step, found.stall_ms_per_step) == (2, None, None)
    assert found.stall_ms == pytest.approx(0.04)


def test_without_lines_the_chain_of_ops_tells_findings_apart():
    builder = TraceBuilder().step(0, 300)
    waiting(builder, 5, "aten::item")
    waiting(builder, 105, "aten::is_nonzero", "aten::item")
    found = findings(builder, "SYN102")
    assert [finding.site_source for finding in found] == ["op", "op"]
    assert len({finding.fingerprint for finding in found}) == 2


def test_a_finding_names_its_thread_and_rank():
    builder = TraceBuilder(rank=3).step(0, 300).on(4711, "logger")
    found = findings(waiting(builder, 5, "aten::item"), "SYN102")[0]
    assert (found.thread, found.rank) == ("logger", 3)


def test_a_selection_filters_and_changes_no_precedence():
    builder = chain("aten::index", "aten::nonzero")
    report = analyze_timelines([Timeline(builder.trace())], select=["SYN102", "SYN101", "SYN109"])
    assert report.findings == ()
    assert report.not_checked == ()
    assert codes(builder) == ["SYN103"]


def test_every_wait_is_taken_by_exactly_one_rule():
    builder = TraceBuilder().step(0, 2000)
    scenes = [("aten::item",), ("aten::nonzero",), ("aten::to", "aten::copy_"), ("torchvision::nms",), ()]
    for i, ops in enumerate(scenes):
        waiting(builder, 100 * i + 5, *ops)
    view = Timeline(builder.device_sync(900, 20).launch("k", call=(950, 2), runs=(960, 5)).trace())
    found = [hit.finding for hit in find(view)[0] if hit.finding.rule.startswith("SYN")]
    assert sum(finding.count for finding in found) == len(view.waits) == 6
