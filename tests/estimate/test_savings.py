"""From hits to findings with savings, or the reason why there is none."""

from __future__ import annotations

from pathlib import Path

import pytest

import syncscope
from syncscope import rules
from syncscope.analysis.analyze import analyze_timelines
from syncscope.estimate import Estimate, estimate_savings, prepare
from syncscope.estimate.answers import OUTSIDE, RANGE, SUMS_UP, UNLIKE
from syncscope.estimate.idle import WHY_AT_MOST
from syncscope.estimate.prepare import NO_CALLS, NO_DEVICE, WHOLE
from syncscope.report.worth_phrases import find_step_ms
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


def test_what_savings_are_a_part_of_is_the_mean_of_the_steps_however_short_the_last_is() -> None:
    """In each of three steps the device is idle for half of it; the last is a tenth as long."""
    builder = TraceBuilder().steps(0, 10_000, 20_000, 21_000)
    for begin, length in ((0, 10_000), (10_000, 10_000), (20_000, 1_000)):
        builder.launch("k", call=(begin + length / 2, 5), runs=(begin + length / 2 + 10, length / 2 - 20))
        builder.device_sync(begin + length / 2 + 5, length / 2 - 10)
    made = estimated(builder)
    assert made.replay is not None and made.replay.before is not None and made.replay.step_ms is not None
    assert made.replay.step_ms == pytest.approx(7, rel=0.05)
    assert made.replay.before.step_ms < 2
    assert all((found.saving_high_ms_per_step or 0.0) <= made.replay.step_ms for found in made.findings)
    assert find_step_ms(report(builder).traces[0]) == made.replay.step_ms


def test_without_a_bare_step_a_finding_has_a_range_and_says_why() -> None:
    found = one(estimated(waiting(bare=False)), "SYN105")
    assert found.saving_ms_per_step is None
    assert found.saving_high_ms_per_step is not None and found.saving_high_ms_per_step > 0
    assert found.saving_null_why == RANGE


def test_a_bare_step_can_be_given() -> None:
    found = estimated(waiting(bare=False), bare_ms=1.4)
    assert one(found, "SYN105").saving_null_why is None
    assert found.replay is not None and found.replay.host_scale == pytest.approx(1.0, abs=0.07)


def test_a_bare_step_nearly_in_reach_leaves_a_wider_range_and_says_what_differs() -> None:
    near, far = estimated(waiting(), bare_ms=1.4), estimated(waiting(), bare_ms=1.8)
    assert near.replay is not None and far.replay is not None
    assert near.replay.doubt is near.replay.bounds_why is None
    assert far.replay.doubt is not None and far.replay.doubt > 0.05
    assert far.replay.host_scale is None
    assert (near.replay.saving_of, far.replay.saving_of) == ("bare", "recorded")
    assert far.replay.bounds_why is not None and "ranges are wider: the bare steps of 1.8 ms" in far.replay.bounds_why
    assert one(far, "SYN105").saving_ms_per_step is not None and one(far, "SYN105").saving_null_why is None
    assert _width(one(far, "SYN105")) > 1.5 * _width(one(near, "SYN105"))


def _width(finding: Finding) -> float:
    assert finding.saving_low_ms_per_step is not None and finding.saving_high_ms_per_step is not None
    return finding.saving_high_ms_per_step - finding.saving_low_ms_per_step


def test_a_bare_step_that_has_nothing_to_do_with_the_trace_leaves_no_saving() -> None:
    made = estimated(waiting(), bare_ms=0.5)
    found = one(made, "SYN105")
    assert found.saving_ms_per_step is found.saving_low_ms_per_step is found.saving_high_ms_per_step is None
    assert made.replay is not None and made.replay.null_why == found.saving_null_why
    assert "times as long as the bare ones of 0.5 ms" in str(found.saving_null_why)


def test_no_saving_is_more_than_the_bare_step() -> None:
    for finding in estimated(waiting(), bare_ms=1.3).findings:
        assert (finding.saving_high_ms_per_step or 0.0) <= 1.3


def test_a_trace_without_steps_is_replayed_as_one() -> None:
    builder = TraceBuilder()
    for begin in (0, 1000, 2000):
        builder.launch("gemm", call=(begin, 5), runs=(begin + 10, 390)).stream_sync(begin + 20, 400)
    made = estimated(builder)
    found = one(made, "SYN105")
    assert made.replay is not None and WHOLE in made.replay.assumptions
    assert found.per_step is None and found.saving_high_ms_per_step is not None
    assert found.saving_high_ms_per_step > 0.5  # of all three waits


def test_a_trace_without_calls_or_device_has_no_savings() -> None:
    deviceless = TraceBuilder().stream_sync(10, 96).steps(0, 200)
    callless = TraceBuilder().kernel("gemm", 10, 20).kernel("gemm", 180, 20).steps(0, 200)
    for builder, why in ((deviceless, NO_DEVICE), (callless, NO_CALLS)):
        found = estimated(builder)
        assert found.findings and {finding.saving_null_why for finding in found.findings} == {why}
        assert found.replay is not None and found.replay.null_why == why


def test_what_only_happens_outside_the_steps_has_no_saving() -> None:
    builder = waiting()
    builder.entry("torch.cuda.synchronize", 9000, 9020, line(9, "torch.cuda.synchronize()")).stream_sync(9005, 5)
    outside = next(f for f in estimated(builder).findings if f.site and f.site.line == 9)
    assert outside.saving_null_why == OUTSIDE


def test_idle_time_that_other_findings_are_about_is_summed_up_and_comes_last() -> None:
    made = report(starving_read())
    summary = one_of(made, "OVL303")
    assert made.findings[-1] is summary and summary.sums_up
    assert summary.saving_null_why == SUMS_UP and summary.saving_high_ms_per_step is None
    (cause,) = summary.causes
    assert (cause.cause, cause.covered_by) == ("wait", (one_of(made, "SYN102").fingerprint,))
    assert cause.saving_high_ms_per_step is not None


def starving_read() -> TraceBuilder:
    """Four steps of 100 µs, 40 of them idle behind a read."""
    builder = TraceBuilder().recording(*(100 * i for i in range(5)))
    for start in range(0, 400, 100):
        builder.launch("k", call=(start, 1), runs=(start + 1, 59))
        builder.op("aten::item", start + 2, 96).copy("DtoH", call=(start + 3, 2), runs=(start + 60, 1))
        builder.stream_sync(start + 6, 56).warning(start + 99.5, line(12, "loss.item()"))
    return builder


def test_the_loader_that_starves_the_device_is_priced_and_comes_first() -> None:
    made = report(loading(bare=True))
    first = made.findings[0]
    assert (first.rule, first.site and first.site.line, first.sums_up) == ("OVL303", 8, False)
    assert "DataLoader workers" in first.fix
    loader, cause = first.saving_ms_per_step, first.causes[0]
    assert loader == pytest.approx(0.6, abs=0.05)  # of a step of 1000 µs
    assert (cause.cause, cause.saving_ms_per_step, cause.covered_by) == ("data loading", loader, ())
    assert cause.site == first.site
    assert loader is not None and made.saving_all_ms_per_step is not None and made.saving_all_ms_per_step >= loader


def loading(bare: bool = False) -> TraceBuilder:
    """Four steps of 1000 µs, of which loading the next batch takes 600 and the device runs for 300."""
    builder = TraceBuilder().recording(*range(0, 5000, 1000), drained=4000, bare_us=[995] * 4 if bare else None)
    for start in range(0, 4000, 1000):
        builder.entry("DataLoader", start + 10, start + 610, line(8, "DataLoader(data)"))
        builder.launch("k", call=(start + 620, 5), runs=(start + 630, 300))
        builder.stream_sync(start + 640, 300).warning(start + 942, line(9, "loss.item()"))
    return builder


def test_host_work_that_seldom_goes_as_a_whole_is_priced_at_most() -> None:
    found = one(estimated(trace([[Work(900), Launch(100), Wait()]] * 4, [1010] * 4)), "OVL303")
    work = next(cause for cause in found.causes if cause.cause == "host work")
    assert work.saving_ms_per_step is work.likely_saving_ms_per_step is None
    assert work.saving_low_ms_per_step == 0 and work.saving_high_ms_per_step == pytest.approx(0.9, abs=0.1)
    assert work.saving_null_why == WHY_AT_MOST


def test_no_host_work_leaves_less_of_a_bare_step_than_the_device_computes() -> None:
    """The profiler makes the host's work three times as long, and the device's no longer."""
    found = one(estimated(trace([[Work(2900), Launch(100), Wait()]] * 4, [1000] * 4)), "OVL303")
    work = next(cause for cause in found.causes if cause.cause == "host work")
    assert work.ms_per_step == pytest.approx(2.9, abs=0.1)
    assert work.saving_high_ms_per_step == pytest.approx(0.9, abs=0.001)


def test_what_a_finding_saves_at_most_is_no_part_of_all_together() -> None:
    made = report(trace([[Work(900), Launch(100), Wait()]] * 4, [1010] * 4))
    assert one_of(made, "OVL303").saving_high_ms_per_step is not None
    assert made.saving_all_ms_per_step is not None and made.saving_all_ms_per_step < 0.2
    likely_high, most = made.likely_saving_all_high_ms_per_step, made.saving_all_high_ms_per_step
    bound, step_ms = one_of(made, "OVL303").saving_high_ms_per_step, find_step_ms(made.traces[0])
    assert likely_high is not None and most is not None and bound is not None and step_ms is not None
    assert likely_high < 0.3 < bound <= most <= step_ms


def test_launches_that_differ_from_step_to_step_say_that_no_graph_can_be_made() -> None:
    builder, marks = TraceBuilder(), [0]
    for step in range(4):
        for number in range(120 + step):
            builder.launch(f"tiny{step}", call=(marks[-1] + 10 * number, 4), runs=(marks[-1] + 10 * number + 6, 2))
        marks.append(marks[-1] + 10 * (120 + step))
    found = one(estimated(builder.recording(*marks, drained=marks[-1] + 5)), "LCH501")
    assert found.saving_null_why == UNLIKE


def test_where_graphs_would_take_few_launches_the_saving_is_of_fewer_ones() -> None:
    builder, marks = TraceBuilder(), [0]
    for step in range(4):
        at = marks[-1]
        for number in range(120):
            name = f"tiny{step}" if number < 100 else "same"
            builder.launch(name, call=(at + 10 * number, 4), runs=(at + 10 * number + 6, 2))
            if number == 99:
                builder.stream_sync(at + 995, 4)
        marks.append(at + 1200)
    found = one(estimated(builder.recording(*marks, drained=marks[-1] + 5)), "LCH501")
    assert found.saving_null_why == UNLIKE and found.likely_saving_ms_per_step is None
    assert found.saving_high_ms_per_step is not None and found.saving_high_ms_per_step > 0.4


def test_without_the_device_a_wait_saves_no_more_than_it_blocks_and_little_is_told() -> None:
    builder = TraceBuilder().op("aten::mm", 0, 100_000)
    builder.call("cudaLaunchKernel", 1, 5).call("cudaLaunchKernel", 99_000, 5)
    little = builder.entry("torch.cuda.synchronize", 50_000, 50_101, line(7, "torch.cuda.synchronize()"))
    found = one(estimated(little.call("cudaDeviceSynchronize", 50_001, 90)), "SYN105")
    assert found.saving_null_why == NO_DEVICE and found.saving_below_drift
    assert (found.saving_low_ms_per_step, found.saving_high_ms_per_step) == (0, pytest.approx(0.09))
    long = builder.entry("torch.cuda.synchronize", 60_000, 70_000, line(8, "torch.cuda.synchronize()"))
    found = one(estimated(long.call("cudaDeviceSynchronize", 60_001, 9_990)), "SYN105")
    longer = max(estimated(long).findings, key=lambda finding: finding.stall_ms or 0.0)
    assert longer.saving_high_ms_per_step is None and not longer.saving_below_drift


def test_a_wait_that_costs_next_to_nothing_is_no_error() -> None:
    loop: list[Op] = [Work(20), Launch(5000), Launch(5000), Work(20), Wait()]
    builder = trace([loop] * 4, [10_060] * 4)
    for mark in simulate([loop] * 4).marks[1:]:
        builder.entry("torch.cuda.synchronize", mark - 9_000, mark + 1, line(7, "torch.cuda.synchronize()"))
    found = one(estimated(builder), "SYN105")
    assert found.stall_ms_per_step is not None and found.stall_ms_per_step > 9
    assert found.severity == "warning"
    assert one(estimated(waiting()), "SYN105").severity == "error"


def test_without_a_bare_step_too_what_costs_next_to_nothing_is_no_error() -> None:
    loop: list[Op] = [Work(20), Launch(5000), Launch(5000), Work(20), Wait()]
    builder = trace([loop] * 4)
    for mark in simulate([loop] * 4).marks[1:]:
        builder.entry("torch.cuda.synchronize", mark - 9_000, mark + 1, line(7, "torch.cuda.synchronize()"))
    found = one(estimated(builder), "SYN105")
    assert found.severity == "warning" and found.saving_null_why == RANGE
    assert found.saving_below_drift and found.saving_high_ms_per_step is not None
    assert found.saving_high_ms_per_step > 0.01 * 10  # the doubt alone is 1 % of the step
    dear = one(estimated(waiting(bare=False)), "SYN105")
    assert dear.severity == "error" and not dear.saving_below_drift


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
