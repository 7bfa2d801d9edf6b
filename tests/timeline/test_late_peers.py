"""Which collectives wait for another rank, as far as one shows it."""

from __future__ import annotations

import numpy as np

from syncscope.timeline import Timeline
from syncscope.timeline.late_peers import find_waiting, mostly_wait
from tests.builders import TraceBuilder

KERNEL = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"


def waiting(*collectives: tuple[float, int], direct: bool = False) -> list[float]:
    """For collectives of (µs, bytes), one behind the other, the µs in which each waits."""
    builder, at = TraceBuilder(rank=0, world_size=2), 10.0
    for dur, size in collectives:
        elements = {"In msg nelems": size // 4, "Out msg nelems": size // 4, "dtype": "Float"} if size else {}
        builder.launch(KERNEL, call=(at - 8, 2), runs=(at, dur), stream=13, args=elements)
        at += dur + 20
    rows = Timeline(builder.trace()).collectives
    found = find_waiting(rows, np.full(len(rows), direct))
    return [ns / 1000 for ns in found.tolist()]


def test_what_takes_ten_times_as_long_as_the_shortest_of_its_size_waits() -> None:
    assert waiting((12, 8192), (14, 8192), (10, 8192), (4510, 8192)) == [0, 0, 0, 4500]


def test_a_smaller_one_takes_no_longer_than_a_larger_one() -> None:
    assert waiting((20, 8192), (22, 8192), (21, 8192), (2020, 4096)) == [0, 0, 0, 2000]


def test_a_larger_one_may_take_longer() -> None:
    assert waiting((20, 8192), (22, 8192), (21, 8192), (2020, 1 << 26)) == [0, 0, 0, 0]


def test_few_of_a_kind_or_unknown_sizes_show_nothing() -> None:
    assert waiting((12, 8192), (1510, 8192)) == [0, 0]
    assert waiting((12, 0), (12, 0), (12, 0), (12, 0), (4510, 0)) == [0] * 5


def test_what_takes_far_longer_than_any_network_waits_though_it_is_alone() -> None:
    assert waiting((11_000, 400)) == [11_000 - 1008]
    assert waiting((11_000, 400_000), (1900, 400)) == [0, 0]


def test_a_kernel_that_uses_no_network_waits_sooner() -> None:
    assert waiting((2500, 40_000)) == [0]
    assert waiting((2500, 40_000), direct=True) == [2500 - 140]
    assert waiting((200, 40_000), direct=True) == [0]


def test_other_work_on_the_device_is_no_waiting() -> None:
    assert waiting((100, 8192), (110, 8192), (105, 8192), (300, 8192)) == [0] * 4


def test_collectives_mostly_wait_if_most_of_what_is_exposed_does() -> None:
    assert mostly_wait(np.array([0, 90]), np.array([10, 60]))
    assert not mostly_wait(np.array([0, 0]), np.array([10, 60]))


def test_kernels_that_write_to_their_peers_memory_are_known_by_their_names() -> None:
    elements = {"In msg nelems": 10_000, "Out msg nelems": 10_000, "dtype": "Float"}
    for kernel, waits in (("multimem_all_reduce_kernel<float>", 2_360_000), (KERNEL, 0)):
        builder = TraceBuilder(rank=0, world_size=2).launch(kernel, call=(0, 2), runs=(10, 2500), args=elements)
        assert Timeline(builder.trace()).waiting_for_peers.tolist() == [waits]
