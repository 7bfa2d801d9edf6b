"""Which rules that could not be checked on a trace of others have nothing there to look for."""

from __future__ import annotations

import pytest

from syncscope.rules import find
from syncscope.timeline import Timeline
from tests.builders import TraceBuilder

ABOUT_COMPILED = {"CMP701", "CMP702", "CMP703", "CMP704"}
ABOUT_COPIES = {"CPY203", "CPY204", "HAZ401", "HAZ402"}


def needless(builder: TraceBuilder) -> set[str]:
    entries = [entry for entry in find(Timeline(builder.trace()))[1] if not entry.partial]
    return {entry.rule for entry in entries if entry.needless}


def plain() -> TraceBuilder:
    return TraceBuilder().op("aten::mm", 0, 10).launch("gemm", call=(1, 5), runs=(10, 300)).device_sync(900, 5)


def test_nothing_is_to_be_found_where_nothing_is_compiled_or_copied() -> None:
    assert needless(plain()) == ABOUT_COMPILED | ABOUT_COPIES | {"HAZ403"}


@pytest.mark.parametrize(
    "compiled",
    [
        plain().op("CompiledFunction", 20, 5),
        plain().annotation("## Call CompiledFxGraph fabc ##", 20, 5),
        plain().launch("triton_poi_fused_add_0", call=(20, 5), runs=(310, 5)),
        plain().frame("/tmp/torchinductor_me/ab/cab.py", 30, "call", 0, 30),
    ],
)
def test_whatever_is_compiled_may_be_compiled_again(compiled: TraceBuilder) -> None:
    assert not needless(compiled) & ABOUT_COMPILED


def test_a_trace_without_ops_does_not_show_what_is_compiled() -> None:
    assert not needless(TraceBuilder().launch("gemm", call=(1, 5), runs=(10, 300))) & ABOUT_COMPILED


def test_copies_that_nobody_waits_for_may_race() -> None:
    assert "HAZ401" not in needless(plain().copy("DtoH", call=(20, 2), runs=(320, 5), memory="pinned"))
    assert "HAZ402" not in needless(plain().copy("HtoD", call=(20, 2), runs=(320, 5), memory="pinned"))
    both = plain().copy("HtoD", call=(20, 2), runs=(320, 5)).copy("DtoH", call=(30, 2), runs=(330, 5))
    assert "CPY204" not in needless(both)


def test_only_a_trace_that_speaks_of_other_ranks_may_have_to_do_with_them() -> None:
    def lost(rank: int | None = None) -> TraceBuilder:
        """A trace whose first kernel has no row of the device."""
        return TraceBuilder(rank=rank).call("cudaLaunchKernel", 0, 1).launch("gemm", call=(2, 5), runs=(10, 300))

    of_ranks = {"OVL302", "DST601"}
    assert needless(lost()) >= of_ranks
    assert needless(lost(rank=0)) & of_ranks == set()
    assert needless(lost().annotation("nccl:all_reduce", 20, 5)) & of_ranks == set()
    assert needless(lost().launch("ncclDevKernel_AllReduce", call=(20, 5), runs=(320, 5))) & of_ranks == set()


def test_two_streams_may_race() -> None:
    assert "HAZ403" not in needless(plain().launch("b", call=(20, 2), runs=(320, 5), stream=13))


def test_a_recording_is_of_a_part_of_the_run_that_may_have_more() -> None:
    assert needless(plain().recording(0, 400)) == set()
