"""Sends and receives between ranks."""

from __future__ import annotations

from syncscope.schema.findings import Finding
from tests.builders import TraceBuilder
from tests.rules.rank_scenes import joined, stragglers

SEND_RECV = "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)"


def stage(number: int, late: float, size: int = 2) -> TraceBuilder:
    """Three steps of 2000 µs, in each of which a stage sends to another and receives from it, after ``late`` more of
    host work; NCCL's kernel names no group."""
    builder = TraceBuilder(rank=number, world_size=size)
    builder.steps(0, 2000, 4000, 6000)
    for at in (0.0, 2000.0, 4000.0):
        comes = at + 410 + late
        builder.launch("forward", call=(at + 1, 4), runs=(at + 10, 300))
        builder.annotation("nccl:coalesced", comes - 20, 15)
        builder.launch(SEND_RECV, call=(comes - 15, 3), runs=(comes, at + 1000 - comes), stream=13)
    return builder


def exchanges(*builders: TraceBuilder) -> list[Finding]:
    return [finding for finding in joined(*builders).findings if finding.rule == "OVL302"]


def test_two_ranks_that_are_all_there_are_meet_in_sends_and_receives() -> None:
    (late,) = stragglers(stage(0, 0), stage(1, 500))
    assert late.rank == 1
    assert "rank 1 comes last to send_recv and holds the others for 0.5 ms a step" in late.message
    first, _ = exchanges(stage(0, 0), stage(1, 500))
    assert first.rank == 0
    assert "in them this rank waits 0.5 ms a step for others that come late, mostly for rank 1" in first.message


def test_of_more_ranks_sends_and_receives_are_not_compared_and_the_finding_says_so() -> None:
    several = (stage(0, 0, size=3), stage(1, 500, size=3))
    assert stragglers(*several) == []
    for found in exchanges(*several):
        assert "could not be compared with those of another rank" in found.message
        assert "one rank alone" not in found.message


def test_a_rank_alone_says_that_one_rank_does_not_show_it() -> None:
    (found,) = exchanges(stage(0, 0, size=3))
    assert "one rank alone does not show" in found.message
