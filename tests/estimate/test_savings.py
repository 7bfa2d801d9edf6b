"""From hits to findings with savings, or the reason why there is none."""

from __future__ import annotations

from pathlib import Path

import pytest

import syncscope
from syncscope import rules
from syncscope.analysis.analyze import analyze_timelines
from syncscope.estimate import Estimate, estimate_savings, prepare
from syncscope.estimate.prepare import NO_CALLS, NO_DEVICE, NO_STEPS
from syncscope.estimate.savings import OUTSIDE, RANGE, UNLIKE
from syncscope.rules.device_starved import DeviceStarved
from syncscope.schema.findings import Finding
from syncscope.schema.report import Report
from syncscope.timeline import Timeline
from tests.builders import TraceBuilder
from tests.estimate.simulated import Launch, Op, Wait, Work, simulate, trace
from tests.rules.scenes import line

FIXTURES = Path(__file__).parents[2] / "fixtures" / "traces"
LOOP: list[Op] = [Work(300), Launch(800), Wait(), Work(300)]


def waiting(bare: bool = True, steps: int = 4) -> TraceBuilder:
    """A loop that waits for the stream once a step, at a line."""
    ran = simulate([LOOP] * steps)
    builder = trace([LOOP] * steps, [end - begin for begin, end in zip([0, *ran.ends], ran.ends, strict=False)])
    if not bare:
        builder = trace([LOOP] * steps)
    for mark in ran.marks[1:]:
        builder.entry("torch.cuda.synchronize", mark - 1105, mark - 301, line(7, "torch.cuda.synchronize()"))
    return builder


def estimated(builder: TraceBuilder, bare_ms: float | None = None) -> Estimate:
    timeline = Timeline(builder.trace())
    return estimate_savings(prepare(timeline, rules.find(timeline)[0], bare_ms))


def one(found: Estimate, code: str) -> Finding:
    return next(finding for finding in found.findings if finding.rule == code)


def report(builder: TraceBuilder, **options: object) -> Report:
    return analyze_timelines([Timeline(builder.trace())], **options)  # type: ignore[arg-type]


def test_a_finding_says_what_it_blocks_and_what_fixing_it_saves() -> None:
    found = one(estimated(waiting()), "SYN105")
    assert found.stall_ms_per_step == pytest.approx(0.806, abs=0.001)
    assert found.saving_ms_per_step is not None and 0.45 < found.saving_ms_per_step < 0.61
    assert found.saving_low_ms_per_step is not None and found.saving_high_ms_per_step is not None
    assert found.saving_low_ms_per_step < found.saving_ms_per_step < found.saving_high_ms_per_step
    assert found.saving_null_why is None


def test_the_step_before_and_after_is_drawn() -> None:
    found = estimated(waiting())
    after, before = one(found, "SYN105").after, found.replay.before if found.replay else None
    assert before is not None and after is not None
    assert [lane.label for lane in before.lanes] == ["host blocked", "stream 7"]
    assert "9" in before.lanes[0].busy and set(after.lanes[0].busy) == {"0"}
    assert after.step_ms < before.step_ms
    assert len(after.lanes[1].busy) < len(before.lanes[1].busy) == 60


def test_without_a_bare_step_a_finding_has_a_range_and_says_why() -> None:
    found = one(estimated(waiting(bare=False)), "SYN105")
    assert found.saving_ms_per_step is None
    assert found.saving_high_ms_per_step is not None and found.saving_high_ms_per_step > 0
    assert found.saving_null_why == RANGE


def test_a_bare_step_can_be_given() -> None:
    found = estimated(waiting(bare=False), bare_ms=1.4)
    assert one(found, "SYN105").saving_null_why is None
    assert found.replay is not None and found.replay.host_scale == pytest.approx(1.0, abs=0.07)


def test_a_bare_step_out_of_reach_leaves_no_saving_and_says_by_how_much() -> None:
    found = one(estimated(waiting(), bare_ms=0.5), "SYN105")
    assert found.saving_ms_per_step is found.saving_low_ms_per_step is found.saving_high_ms_per_step is None
    assert found.saving_null_why is not None and "a step took 0.5 ms without a profiler" in found.saving_null_why


def test_a_bare_step_nearly_in_reach_leaves_a_wider_range_and_says_so() -> None:
    near, far = estimated(waiting(), bare_ms=1.4), estimated(waiting(), bare_ms=1.8)
    assert near.replay is not None and far.replay is not None
    assert near.replay.doubt is None and far.replay.doubt is not None and far.replay.doubt > 0.05
    assert any("ranges are wider" in text for text in far.replay.assumptions)

    def width(found: Estimate) -> float:
        low, high = one(found, "SYN105").saving_low_ms_per_step, one(found, "SYN105").saving_high_ms_per_step
        assert low is not None and high is not None
        return high - low

    assert width(far) > 1.5 * width(near)


def test_a_trace_without_steps_calls_or_device_has_no_savings() -> None:
    stepless = TraceBuilder().launch("gemm", call=(0, 5), runs=(10, 90)).op("aten::item", 5, 99)
    stepless.copy("DtoH", call=(6, 3), runs=(101, 2), bytes=4).stream_sync(10, 96)
    deviceless = TraceBuilder().stream_sync(10, 96).steps(0, 200)
    callless = TraceBuilder().kernel("gemm", 10, 20).kernel("gemm", 180, 20).steps(0, 200)
    for builder, why in ((stepless, NO_STEPS), (deviceless, NO_DEVICE), (callless, NO_CALLS)):
        found = estimated(builder)
        assert found.findings and {finding.saving_null_why for finding in found.findings} == {why}
        assert found.replay is not None and found.replay.null_why == why


def test_what_only_happens_outside_the_steps_has_no_saving() -> None:
    builder = waiting()
    builder.entry("torch.cuda.synchronize", 9000, 9020, line(9, "torch.cuda.synchronize()")).stream_sync(9005, 5)
    outside = next(f for f in estimated(builder).findings if f.site and f.site.line == 9)
    assert outside.saving_null_why == OUTSIDE


def test_findings_that_no_change_stands_for_say_why() -> None:
    assert one(estimated(waiting()), "OVL303").saving_null_why == DeviceStarved.question.why


def test_launches_that_differ_from_step_to_step_say_that_no_graph_can_be_made() -> None:
    builder, marks = TraceBuilder(), [0]
    for step in range(4):
        for number in range(120 + step):
            builder.launch(f"tiny{step}", call=(marks[-1] + 10 * number, 4), runs=(marks[-1] + 10 * number + 6, 2))
        marks.append(marks[-1] + 10 * (120 + step))
    found = one(estimated(builder.recording(*marks, drained=marks[-1] + 5)), "LCH501")
    assert found.saving_null_why == UNLIKE


def test_a_wait_that_costs_next_to_nothing_is_no_error() -> None:
    loop: list[Op] = [Work(20), Launch(5000), Launch(5000), Work(20), Wait()]
    builder = trace([loop] * 4, [10_060] * 4)
    for mark in simulate([loop] * 4).marks[1:]:
        builder.entry("torch.cuda.synchronize", mark - 9_000, mark + 1, line(7, "torch.cuda.synchronize()"))
    found = one(estimated(builder), "SYN105")
    assert found.stall_ms_per_step is not None and found.stall_ms_per_step > 9
    assert found.severity == "warning"
    assert one(estimated(waiting()), "SYN105").severity == "error"


def test_nothing_is_replayed_where_nothing_was_found() -> None:
    assert estimate_savings(prepare(Timeline(waiting().trace()), [])).replay is None


def test_the_saving_of_all_together_is_that_of_the_selected_rules() -> None:
    trace_file = FIXTURES / "pageable_blocking" / "trace.json.gz"
    whole, part = syncscope.analyze(trace_file), syncscope.analyze(trace_file, select=["SYN101"])
    assert part.saving_all_ms_per_step == part.findings[0].saving_ms_per_step
    assert whole.saving_all_ms_per_step is not None and part.saving_all_ms_per_step is not None
    assert whole.saving_all_ms_per_step > part.saving_all_ms_per_step + 1
    ignored = syncscope.analyze(trace_file, ignore=["OVL301"])
    assert ignored.saving_all_ms_per_step == pytest.approx(part.saving_all_ms_per_step)


def test_the_report_carries_savings_and_what_stands_behind_them() -> None:
    found = report(waiting())
    assert found.saving_all_ms_per_step == one_of(found, "SYN105").saving_ms_per_step
    assert found.traces[0].replay is not None
    assert abs(found.traces[0].replay.misfit or 0.0) < 0.01
    again = Report.from_json(found.to_json())
    assert again == found.without_numbers()


def one_of(found: Report, code: str) -> Finding:
    return next(finding for finding in found.findings if finding.rule == code)
