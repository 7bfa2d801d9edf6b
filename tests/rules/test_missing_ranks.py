"""What is told where ranks of a run have no trace."""

from __future__ import annotations

from tests.builders import TraceBuilder
from tests.rules.rank_scenes import ALL_REDUCE, joined

ALL_TO_ALL = "ncclDevKernel_SendRecv_f32"


def exchanging(number: int, comes: list[float]) -> TraceBuilder:
    """A rank that begins all-to-alls at some times. Each ends 10 µs after the last of both ranks has begun it."""
    builder = TraceBuilder(rank=number, world_size=2)
    size = {"In msg nelems": 2048, "Out msg nelems": 2048, "dtype": "Float", "Process Group Name": "0"}
    for at, last in zip(comes, BOTH, strict=True):
        builder.op("c10d::alltoall_base_", at - 9, 8)
        builder.launch(ALL_TO_ALL, call=(at - 8, 4), runs=(at, last + 10 - at), stream=13, args=size)
    return builder


BOTH: list[float] = [20, 2500, 5000, 7500]


def test_who_gives_the_traces_of_all_ranks_is_not_told_to_record_the_others():
    report = joined(exchanging(0, [20, 500, 3000, 5500]), exchanging(1, BOTH))
    fixes = [one.fix for one in report.findings if one.rule == "OVL302" and one.rank == 0]
    assert [fix.partition(":")[0] for fix in fixes] == ["See to the rank that comes late"]


def test_who_gives_one_rank_is_told_to_record_the_others():
    fixes = [one.fix for one in joined(exchanging(0, [20, 500, 3000, 5500])).findings if one.rule == "OVL302"]
    assert ["give all traces at once" in fix for fix in fixes] == [True]


def test_of_collectives_whose_other_ranks_have_no_trace_nobody_is_told_to_come_late():
    def of_stage(number: int, world_size: int) -> TraceBuilder:
        """A rank whose all-to-alls are in a group of its own, and which reduces together with the other."""
        builder = exchanging(number, [20, 500, 3000, 5500] if number else BOTH)
        builder.top["distributedInfo"]["world_size"] = world_size
        for event in builder.events:
            if event["name"] == ALL_TO_ALL:
                event["args"]["Process Group Name"] = str(10 + number)
        return builder.launch(ALL_REDUCE, call=(7600, 4), runs=(7700 + 50 * number, 100 - 50 * number), stream=13)

    def of_exchange(world_size: int) -> list[tuple[bool, bool]]:
        found = joined(of_stage(0, world_size), of_stage(1, world_size)).findings
        told = [one for one in found if one.rule == "OVL302" and one.op == "c10d::alltoall_base_"]
        return [("could not be compared" in one.message, "give all traces at once" in one.fix) for one in told]

    assert of_exchange(4) == [(True, True)]
    assert of_exchange(2) == [(True, False)]
