"""What findings of a rank gain that waits for another one."""

from __future__ import annotations

import msgspec
import pytest

from syncscope.analysis.merge import merge
from syncscope.schema.findings import Finding
from syncscope.schema.report import Report
from tests.builders import TraceBuilder
from tests.rules.rank_scenes import ALL_REDUCE, joined, rank


def reading(number: int, held: float, waits: float) -> TraceBuilder:
    """A rank without steps that reads a value behind ``held`` µs of queued work, and then is in a collective that
    transfers for 100 µs, ``waits`` µs longer."""
    builder = TraceBuilder(rank=number, world_size=2).launch("forward", call=(0, 5), runs=(10, held))
    builder.op("aten::item", 20, held + 10).op("aten::_local_scalar_dense", 21, held + 8)
    builder.copy("DtoH", call=(22, 3), runs=(held + 11, 2), memory="pinned").stream_sync(26, held - 10)
    comes = held + 600.0
    builder.launch("backward", call=(held + 100, 5), runs=(held + 110, 490))
    group = {"Process Group Name": "0"}
    builder.launch(ALL_REDUCE, call=(held + 120, 3), runs=(comes, 100 + waits), stream=13, args=group)
    return builder.launch("step", call=(comes + 200 + waits, 5), runs=(comes + 210 + waits, 50))


def test_a_rank_that_waits_for_another_gains_what_the_late_one_gains():
    report = joined(reading(0, 500, 1000), reading(1, 200, 0))
    waiting, late = sorted((one for one in report.findings if one.rule == "SYN102"), key=lambda one: one.trace)
    assert late.saving_high_ms_per_step and waiting.saving_high_ms_per_step == late.saving_high_ms_per_step
    assert "waits 1 ms in all for others that come late" in waiting.message and "waits" not in late.message[60:]
    (alone,) = [one for one in joined(reading(0, 500, 1000)).findings if one.rule == "SYN102"]
    assert (alone.saving_high_ms_per_step or 0) > waiting.saving_high_ms_per_step
    assert merge([report]).findings == report.findings


def test_memory_of_a_rank_that_waits_for_another_gains_what_that_of_the_late_one_does() -> None:
    def allocates(number: int, late: float) -> TraceBuilder:
        builder = rank(number, late, late, late)
        for step in range(3):
            builder.op("aten::cat", 2000 * step + 1010, 400).call("cudaMalloc", 2000 * step + 1011, 390)
        return builder

    def given(report: Report, *most: float) -> dict[int | None, Finding]:
        found = [one for one in report.findings if one.rule == "SYN106"]
        ranged = [
            msgspec.structs.replace(one, saving_low_ms_per_step=0.0, saving_high_ms_per_step=most[one.trace])
            for one in found
        ]
        merged = merge([msgspec.structs.replace(report, findings=tuple(ranged))])
        return {one.rank: one for one in merged.findings if one.rule == "SYN106"}

    report = joined(allocates(0, 0), allocates(1, 500))
    waiting = given(report, 0.9, 0.2)
    assert [waiting[rank].saving_high_ms_per_step for rank in (0, 1)] == [pytest.approx(0.2), 0.2]
    assert "waits 0.5 ms a step for others that come late, so they set the pace" in waiting[0].message
    # What gains more than it waits for is worth the rest.
    assert given(report, 1.2, 0.2)[0].saving_high_ms_per_step == pytest.approx(0.7)
    again = merge([msgspec.structs.replace(report, findings=tuple(waiting.values()))]).findings
    assert [one.saving_high_ms_per_step for one in again if one.rule == "SYN106"] == [pytest.approx(0.2)] * 2


def copying(number: int, *late: float, size: int = 2) -> TraceBuilder:
    """A rank that copies to the host in each step."""
    builder = rank(number, *late, size=size)
    for step in range(3):
        at = 2000 * step + 1010
        builder.op("aten::to", at, 400).op("aten::copy_", at + 1, 390)
        builder.copy("DtoH", call=(at + 2, 5), runs=(at + 10, 2), memory="pageable").stream_sync(at + 8, 380)
    return builder


@pytest.mark.parametrize(
    ("first", "second", "size", "most"),
    [((0, 0, 0), (500, 500, 500), 2, 0.02), ((0, 0, 50), (0, 500, 0), 2, 0.045), ((0, 0, 0), (500, 500, 500), 4, 0.4)],
    ids=["one is late", "both in turn", "ranks are missing"],
)
def test_copies_of_a_rank_that_waits_gain_what_those_of_the_latest_do_and_what_that_one_waits(
    first: tuple[float, ...], second: tuple[float, ...], size: int, most: float
) -> None:
    report = joined(copying(0, *first, size=size), copying(1, *second, size=size))
    ranged = [
        msgspec.structs.replace(one, saving_low_ms_per_step=0.0, saving_high_ms_per_step=(0.4, 0.02)[one.trace])
        for one in report.findings
        if one.rule in ("SYN101", "CPY201")
    ]
    merged = merge([msgspec.structs.replace(report, findings=tuple(ranged))])
    given = {(one.rule, one.rank): one.saving_high_ms_per_step for one in merged.findings}
    assert [given[rule, 0] for rule in ("SYN101", "CPY201")] == [pytest.approx(most)] * 2
    assert [given[rule, 1] for rule in ("SYN101", "CPY201")] == [0.02] * 2


def checking(number: int, *late: float, held: float = 380) -> TraceBuilder:
    """A rank that reads a value in each step, which holds it for so long."""
    builder = rank(number, *late, wait=False)
    for step in range(3):
        at = 2000 * step + 1010
        builder.op("aten::item", at, held + 20).copy("DtoH", call=(at + 2, 5), runs=(at + 10, 2), memory="pinned")
        builder.stream_sync(at + 8, held)
    return builder


@pytest.mark.parametrize(
    ("first", "second", "held", "most"),
    [
        ((0, 0, 0), (500, 500, 500), 380, 0.02),
        ((0, 0, 50), (0, 500, 0), 380, 0.045),
        ((0, 0, 50), (0, 500, 0), 5, 0.02),
    ],
    ids=["one is late", "both in turn", "the late one is hardly held"],
)
def test_waits_of_a_rank_that_waits_gain_what_those_of_the_latest_do_and_what_holds_that_one(
    first: tuple[float, ...], second: tuple[float, ...], held: float, most: float
) -> None:
    report = joined(checking(0, *first), checking(1, *second, held=held))
    ranged = [
        msgspec.structs.replace(
            one, severity="error", saving_low_ms_per_step=0.0, saving_high_ms_per_step=(0.4, 0.02)[one.trace],
            message="reads a value",
        )
        for one in report.findings
        if one.rule == "SYN102"
    ]  # fmt: skip
    merged = merge([msgspec.structs.replace(report, findings=tuple(ranged))])
    waiting, late = sorted((one for one in merged.findings if one.rule == "SYN102"), key=lambda one: one.trace)
    assert (waiting.saving_high_ms_per_step, late.saving_high_ms_per_step) == (pytest.approx(most), 0.02)
    assert (waiting.severity, late.severity) == ("warning", "error")


def test_a_rank_that_launches_too_slowly_is_told_to_launch_less() -> None:
    def launches(number: int, many: int) -> TraceBuilder:
        builder = TraceBuilder(rank=number, world_size=2).recording(0, 3000, 6000, 9000)
        for at in (0, 3000, 6000):
            for launch in range(many):
                builder.launch("small", call=(at + 20 * launch + 5, 5), runs=(at + 20 * launch + 12, 2))
            comes = at + 20 * many + 100
            group = {"Process Group Name": "0"}
            builder.launch(ALL_REDUCE, call=(comes - 90, 5), runs=(comes, at + 2500 - comes), stream=13, args=group)
        return builder

    report = joined(launches(0, 10), launches(1, 90))
    (found,) = [one for one in report.findings if one.rule == "DST601"]
    assert "launches one small thing after the other" in found.message
    assert found.fix.startswith("Launch fewer and larger kernels before it")
    (own,) = [one for one in report.findings if one.rule == "LCH501" and one.trace == 1]
    assert own.fingerprint in found.related and report.findings.index(own) < report.findings.index(found)


def test_a_read_of_a_rank_that_waits_gains_what_that_of_the_late_one_does() -> None:
    def reads(number: int, late: float) -> TraceBuilder:
        builder = rank(number, late, late, late, wait=False)
        for step in range(3):
            at = 2000 * step + 1010
            builder.op("aten::item", at, 400).op("aten::_local_scalar_dense", at + 1, 390)
            builder.copy("DtoH", call=(at + 2, 5), runs=(at + 10, 2), memory="pinned").stream_sync(at + 8, 380)
        return builder

    report = joined(reads(0, 0), reads(1, 500))
    found = [one for one in report.findings if one.rule == "SYN102"]
    ranged = [
        msgspec.structs.replace(
            one, saving_low_ms_per_step=0.0, saving_high_ms_per_step=(0.4, 0.02)[one.trace], message="reads a value"
        )
        for one in found
    ]
    merged = merge([msgspec.structs.replace(report, findings=tuple(ranged))])
    given = {one.rank: one for one in merged.findings if one.rule == "SYN102"}
    assert [given[number].saving_high_ms_per_step for number in (0, 1)] == [pytest.approx(0.02)] * 2
    assert "waits 0.5 ms a step for others that come late, so they set the pace" in given[0].message
