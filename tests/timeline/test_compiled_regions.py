"""The compiled graphs of a step are counted by PyTorch's marks of them."""

from __future__ import annotations

from syncscope.schema.compiling import CompiledRegion, RecordedRegions
from syncscope.timeline import Timeline
from tests.builders import TraceBuilder


def test_parts_of_a_step_and_what_is_launched_in_and_between_their_graphs() -> None:
    builder = TraceBuilder().steps(0, 100, 200)
    for begin in (0, 100):
        builder.op("Torch-Compiled Region: 0/0", begin + 10, 80)
        builder.op("## Call CompiledFxGraph fabc ##", begin + 12, 10)
        builder.launch("fused", call=(begin + 14, 2), runs=(begin + 17, 1))
        builder.launch("eager", call=(begin + 30, 2), runs=(begin + 33, 1))
        builder.op("Torch-Compiled Region: 1/2", begin + 50, 30)
        builder.op("## Call CompiledFxGraph fdef ##", begin + 52, 10)
        builder.launch("fused", call=(begin + 54, 2), runs=(begin + 57, 1))
        builder.launch("outside", call=(begin + 95, 2), runs=(begin + 98, 1))
    assert Timeline(builder.trace()).regions == RecordedRegions(
        steps=2,
        regions=(
            CompiledRegion(compile_id="0/0", count=2, launches=4),
            CompiledRegion(compile_id="1/2", count=2, launches=2),
        ),
        launches_between=2,
    )


def test_without_marks_of_graphs_nobody_knows_what_is_between_them() -> None:
    builder = TraceBuilder().steps(0, 100).op("Torch-Compiled Region", 10, 50)
    builder.launch("k", call=(20, 2), runs=(23, 1))
    found = Timeline(builder.trace()).regions
    assert found is not None
    assert (found.regions[0].compile_id, found.launches_between) == (None, None)


def test_a_program_that_compiles_nothing_has_none() -> None:
    builder = TraceBuilder().steps(0, 100).op("aten::add", 10, 5).launch("k", call=(11, 2), runs=(14, 1))
    assert Timeline(builder.trace()).regions is None


def test_regions_outside_of_the_steps_do_not_count() -> None:
    builder = TraceBuilder().steps(100, 200).op("Torch-Compiled Region: 0/0", 10, 5)
    assert Timeline(builder.launch("k", call=(111, 2), runs=(114, 1)).trace()).regions is None
