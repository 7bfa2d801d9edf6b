"""Which finding each collective of a rank is part of, and what of it is exposed."""

from __future__ import annotations

from syncscope.analysis.analyze import analyze_timelines
from syncscope.schema.report import Collective
from syncscope.timeline import Timeline
from tests.builders import TraceBuilder

ALL_REDUCE = "ncclDevKernel_AllReduce_Sum_f32_RING_LL"


def met(builder: TraceBuilder) -> tuple[tuple[Collective, ...], dict[int, str | None]]:
    """The meetings of a trace, and the annotation of each of its findings about collectives."""
    report = analyze_timelines([Timeline(builder.trace())])
    (info,) = report.traces
    assert info.meetings is not None
    found = {one.meets: one.annotation for one in report.findings if isinstance(one.meets, int)}
    return info.meetings.collectives, found


def test_each_collective_names_the_finding_that_it_is_part_of() -> None:
    builder = TraceBuilder(rank=0, world_size=2)
    for at, mark in ((0, "## a ##"), (1000, "## b ##"), (2000, "## a ##"), (3000, "## b ##")):
        builder.annotation(mark, at, 20)
        builder.launch(ALL_REDUCE, call=(at + 2, 3), runs=(at + 10, 500), stream=13)
        builder.launch("gemm", call=(at + 520, 3), runs=(at + 530, 300))
    collectives, found = met(builder)
    assert [[found[number] for number in one.findings] for one in collectives] == [["## a ##"], ["## b ##"]] * 2
    assert [one.each_exposed_ms for one in collectives] == [(0.5,)] * 4
    assert all(not one.each_last_ms for one in collectives)


def test_one_that_no_finding_is_about_is_of_none() -> None:
    builder = TraceBuilder(rank=0, world_size=2)
    builder.launch("gemm", call=(0, 3), runs=(5, 2000))
    builder.launch(ALL_REDUCE, call=(10, 3), runs=(20, 800), stream=13)
    ((one,), found) = met(builder)
    assert (one.findings, found, one.each_exposed_ms, one.each_last_ms) == ((-1,), {}, (0.0,), ((0.0,),))


def test_one_that_compute_hides_in_part_tells_which_part() -> None:
    builder = TraceBuilder(rank=0, world_size=2)
    builder.launch("gemm", call=(0, 3), runs=(10, 400))
    builder.launch(ALL_REDUCE, call=(4, 3), runs=(10, 800), stream=13)
    ((one,), _) = met(builder)
    assert one.each_last_ms == ((0.1, 0.2, 0.3, 0.4, 0.4, 0.4, 0.4, 0.4),)
