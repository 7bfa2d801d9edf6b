"""What is advised on traces that others recorded: by collective, memory, direction and cause, as a reader of the raw
events would advise it. A row sums up all findings of a rule that say something, however finely they are split."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from syncscope.analysis.analyze import analyze
from syncscope.report.worth_phrases import find_step_ms
from syncscope.rules import BY_CODE
from syncscope.schema.findings import Finding, Severity
from syncscope.schema.report import Report
from syncscope.trace import TraceError
from tests.foreign import EXTRA, index

pytestmark = pytest.mark.skipif(EXTRA is None, reason="SYNCSCOPE_EXTRA_TRACES is not set")

HTA, DLRM = "HolisticTraceAnalysis__", "param__dlrm_kineto__worker"
EVENT_CALL_MS = 0.02
"""Waiting for an event that has happened takes no longer."""


@dataclass(frozen=True)
class Row:
    """What the raw events of a trace ask for."""

    file: str
    """How the file's name begins."""
    rule: str
    says: str
    """What the findings' messages hold."""
    count: int
    """Occurrences of all those findings."""
    severity: Severity | None
    """``None`` where it depends on what the findings cost."""
    fix: str
    """What each fix holds, ..."""
    not_fix: str = "\\0"
    """... and what none does."""
    at: str | None = None
    """The function that each names, where the trace has stacks."""


ROWS = (
    # nccl:all_to_all, with c10d:: ops or without, of TorchRec's embeddings; DDP's buckets are for gradients.
    # Each annotation is a place of its own, and places with little exposed are not told.
    Row(f"{HTA}control__", "OVL302", "all_to_all", 30, None, "embeddings' all-to-all", "bucket_cap_mb"),
    Row(f"{HTA}control__", "OVL302", "send_recv", 0, None, ""),
    Row(f"{HTA}negative_queue", "OVL302", "all_to_all", 5, "warning", "embeddings' all-to-all", "bucket_cap_mb"),
    Row(f"{HTA}negative_queue", "OVL302", "allreduce", 10, "warning", "bucket_cap_mb"),
    # Five kernels of the step before the first, which the device has run when it begins what the first one launched.
    Row(f"{HTA}negative_queue", "OVL302", "in all, launched before the trace begins", 0, None, ""),
    Row(f"{DLRM}1", "OVL302", "all_to_all", 3, "warning", "embeddings' all-to-all", "bucket_cap_mb"),
    Row(f"{DLRM}1", "OVL302", "allreduce", 3, "warning", "bucket_cap_mb"),
    # Five buckets of 20 MB on average, all behind the backward.
    Row(f"{HTA}nccl_parser", "OVL302", "allreduce", 15, "warning", "Reduce sooner and in smaller pieces", "Join"),
    # The all-reduces of tensor parallelism, by kernels of symmetric memory.
    Row("TraceLens__b200__", "OVL302", "allreduce", 73, "warning", "split the model over fewer", "one-shot"),
    # Events that had happened: 3.3 µs each of 24, and 2.2 µs.
    Row(f"{HTA}nccl_parser", "SYN105", "it had happened", 24, "note", "DistributedDataParallel waits for the events"),
    Row("TraceLens__vllm", "SYN105", "it had happened", 1, "note", "Wait for", at="synchronize_input_prep"),
    # One that had not: the host waits for 34 µs.
    Row(f"{HTA}cuda_event_sync", "SYN105", "wait for an event", 1, None, "Wait for the event just before"),
    # Copies of a wait: the wait's finding advises, by direction; the copies' refers to it.
    # model.cuda(): 16 tensors of 256 bytes to 151 MB, before anything is computed.
    Row(f"{HTA}alexnet", "SYN101", "to the device (pageable", 16, None, "weights are moved once", "DataLoader"),
    Row(f"{HTA}alexnet", "CPY201", "to the device", 16, None, "moved once", "DataLoader"),
    Row(f"{HTA}control__", "SYN101", "to the host (pageable", 36, None, ".to('cpu', non_blocking=True)", "DataLoader"),
    Row(f"{HTA}control__", "CPY201", "into pageable memory", 36, None, "wait on an event", "buffer pinned once"),
    Row("kernelforge__", "CPY201", "to the device", 3, None, "pinned memory", at="<cell line: 0>"),
    # An index on the host, in forward and in backward.
    Row(f"{DLRM}0", "SYN101", "aten::index", 2, None, "Keep the index", "DataLoader"),
    Row(f"{DLRM}0", "SYN101", "aten::_index_put_impl_", 2, None, "Keep the index", "DataLoader"),
    # Two lists of 8 bytes each in an inference server, copied without a wait by calls that returned before.
    Row("TraceLens__b200__", "CPY201", "at once", 2, None, "once outside the loop", "DataLoader", at="build"),
)


@cache
def report_of(*names: str) -> Report | None:
    """The report of files that begin with ``names``; ``None`` for a file that is refused."""
    files = [Path(EXTRA or "") / row["file"] for row in index() for name in names if row["file"].startswith(name)]
    try:
        return analyze(*sorted(files))
    except TraceError:
        return None


@pytest.fixture(params=[row["file"] for row in index()])
def report(request: pytest.FixtureRequest) -> Report:
    found = report_of(request.param)
    if found is None:
        pytest.skip("refused")
    return found


def of_rule(report: Report, *rules: str) -> list[Finding]:
    return [finding for finding in report.findings if finding.rule in rules]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.rule} {row.says} in {row.file}")
def test_the_fix_is_about_what_the_raw_events_show(row: Row) -> None:
    report = report_of(row.file)
    assert report is not None
    found = [finding for finding in of_rule(report, row.rule) if row.says in finding.message]
    assert sum(finding.count for finding in found) == row.count
    for finding in found:
        assert row.fix in finding.fix
        assert row.not_fix not in finding.fix
        assert row.severity in (None, finding.severity)
        assert row.at is None or (finding.at is not None and finding.at.function == row.at)


def test_exposed_collectives_add_up_to_no_more_than_the_device_shows(report: Report) -> None:
    exposed = sum(finding.exposed_ms_per_step or 0 for finding in of_rule(report, "OVL302"))
    if exposed:
        overlap, step = report.traces[0].overlap, report.traces[0].steps.profiled_ms
        assert overlap is not None
        assert step is not None
        assert exposed <= overlap.comm_exposed_ms + 1e-3
        assert exposed <= step


def test_no_finding_is_named_after_what_only_records_arguments(report: Report) -> None:
    assert all(finding.op != "record_param_comms" for finding in report.findings)
    assert not any("record_param_comms" in finding.message for finding in of_rule(report, "OVL302"))


def test_no_loader_is_advised_for_copies_to_the_host(report: Report) -> None:
    for finding in of_rule(report, "SYN101", "CPY201", "OVL301"):
        to_host = "to the host" in finding.message or "into pageable memory" in finding.message
        assert not (to_host and "DataLoader" in finding.fix)


def test_two_findings_about_the_same_copies_ask_for_the_same_change(report: Report) -> None:
    fixes = {finding.fingerprint: finding.fix for finding in of_rule(report, "SYN101")}
    for finding in of_rule(report, "CPY201"):
        asked = {fixes[other] for other in finding.related if other in fixes}
        if asked and finding.stall_ms is None and "to the device" in finding.message:
            assert finding.fix in asked


def test_waits_for_events_that_had_happened_are_notes(report: Report) -> None:
    for finding in of_rule(report, "SYN105"):
        if "for an event" in finding.message and (finding.stall_ms or 0) <= EVENT_CALL_MS:
            assert finding.severity == "note"


def test_the_change_of_code_shown_is_that_of_the_fix(report: Report) -> None:
    for finding in report.findings:
        rule = BY_CODE[finding.rule]
        example = rule.example(finding.fix)
        own = [entry for entry in rule.advice if entry.sentence == finding.fix]
        if own and own[0].when:
            assert example == own[0].example


def test_no_saving_is_more_than_the_step_that_it_is_a_part_of(report: Report) -> None:
    step_ms = find_step_ms(report.traces[0])
    savings = [report.saving_all_high_ms_per_step]
    for finding in report.findings:
        savings += [finding.saving_high_ms_per_step, *(cause.saving_high_ms_per_step for cause in finding.causes)]
    assert step_ms is None or max((saving or 0.0 for saving in savings), default=0.0) <= step_ms + 1e-3


def test_several_ranks_give_one_answer() -> None:
    report = report_of(DLRM)
    assert report is not None
    between = report.between_ranks
    assert between is not None
    (late,) = of_rule(report, "DST601")
    table = {row.rank: row for row in between.ranks}
    # Rank 2 began its step 6.9 ms after rank 1 and is another millisecond late in it.
    assert late.rank == 2
    assert late.exposed_ms_per_step == pytest.approx(table[2].holds_ms_per_step)
    # What the others wait with compute beside, 0.03 ms, does not count.
    assert table[2].holds_ms_per_step == pytest.approx(0.93, abs=0.01)
    assert table[2].holds_before_ms == pytest.approx(6.89, abs=0.01)
    assert [table[rank].waits_before_ms for rank in (0, 1, 3)] == pytest.approx([1.42, 6.89, 5.59], abs=0.01)
    assert all(table[rank].waits_for[0].rank == 2 for rank in (0, 1, 3))
    for finding in of_rule(report, "OVL302"):
        waits = "waits for no other" not in finding.message
        assert ("mostly for rank 2" in finding.message) == waits
        assert not waits or finding.rank != 2
        assert "one rank alone" not in finding.message
