from __future__ import annotations

from syncscope.timeline import Timeline
from syncscope.timeline.tables import Copies
from tests.builders import TID, TraceBuilder

US = 1000


def copies(builder: TraceBuilder) -> Copies:
    return Timeline(builder.trace()).copies


def test_a_copy_is_joined_with_the_call_that_launched_it():
    copy = copies(
        TraceBuilder()
        .step(0, 100)
        .op("aten::to", 8, 20)
        .copy("HtoD", call=(10, 5), runs=(30, 40), memory="pageable", bytes=640, stream=9)
    )
    assert (copy.launch_ts[0], copy.launch_dur[0], copy.tid[0], copy.step[0]) == (10 * US, 5 * US, TID, 0)
    assert (copy.direction[0], copy.memory[0], copy.bytes[0], copy.stream[0]) == ("HtoD", "pageable", 640, 9)
    assert copy.ops[0] == ("aten::to",)
    assert copy.wait[0] == -1


def test_a_copy_belongs_to_the_step_that_launched_it():
    found = copies(TraceBuilder().steps(0, 100, 200).copy("HtoD", call=(90, 5), runs=(120, 10)))
    assert found.step.tolist() == [0]


def test_a_copy_launched_before_the_trace_has_no_thread():
    copy = copies(TraceBuilder().step(0, 100).memcpy("DtoH", 20, 10))
    assert (copy.launch[0], copy.launch_dur[0], copy.tid[0], copy.step[0]) == (-1, -1, -1, 0)


def test_exposed_is_the_part_of_a_copy_with_no_compute_on_its_device():
    builder = (
        TraceBuilder()
        .copy("HtoD", call=(0, 5), runs=(10, 40), stream=9)
        .launch("gemm", call=(6, 2), runs=(30, 15))
        .launch("gemm", call=(9, 2), runs=(40, 30), stream=8)
        .launch("elsewhere", call=(12, 2), runs=(0, 90), device=1)
    )
    assert copies(builder).exposed.tolist() == [20 * US]


def test_a_collective_beside_a_copy_does_not_hide_it():
    builder = TraceBuilder().copy("HtoD", call=(0, 5), runs=(10, 40), stream=9)
    builder.launch("ncclDevKernel_AllReduce_Sum_f32_RING_LL(args)", call=(6, 2), runs=(10, 40), stream=11)
    assert copies(builder).exposed.tolist() == [40 * US]


def test_a_cast_on_the_copy_stream_does_not_make_it_a_compute_stream():
    builder = (
        TraceBuilder()
        .copy("HtoD", call=(0, 5), runs=(10, 40), stream=9)
        .launch("cast", call=(6, 2), runs=(50, 2), stream=9)
        .launch("gemm", call=(9, 2), runs=(10, 90), stream=7)
        .copy("HtoD", call=(20, 5), runs=(100, 40), stream=7)
    )
    assert copies(builder).with_compute.tolist() == [False, True]


def test_the_launching_call_corrects_what_rocm_labels_wrongly():
    builder = TraceBuilder(vendor="hip").call("hipMemcpyWithStream", 10, 9, args={"kind": "2"})
    builder.memcpy("DtoD", 12, 2, correlation=1)
    assert copies(builder).direction.tolist() == ["DtoH"]
