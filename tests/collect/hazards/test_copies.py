"""Host memory touched by asynchronous copies, on a machine without a device."""

from __future__ import annotations

import copy
import io
import pickle
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="races are looked for in PyTorch programs")

from tests.collect.hazards.fake import MAIN, SIDE, Bench  # noqa: E402


@pytest.fixture
def bench() -> Iterator[Bench]:
    with Bench() as open_bench:
        yield open_bench


def arriving(bench: Bench, n: int = 8) -> Any:
    """A tensor on the host that a copy from the device may still be writing."""
    return bench.runtime.on_device(torch.ones(n)).to("cpu", non_blocking=True, copy=True)


def leaving(bench: Bench, n: int = 8) -> tuple[Any, Any]:
    """A pinned tensor that a copy to the device may still be reading, and where it goes."""
    source, target = torch.ones(n), bench.runtime.on_device(torch.zeros(n))
    target.copy_(source, non_blocking=True)
    return source, target


READS: dict[str, Callable[[Any], Any]] = {
    "an operator": lambda host: host.mean(),
    "item": lambda host: host[0].item(),
    "a condition": lambda host: bool(host[0] > 0),
    "tolist": lambda host: host.tolist(),
    "numpy": lambda host: host.numpy(),
    "asarray": np.asarray,
    "dlpack": np.from_dlpack,
    "torch dlpack": torch.from_dlpack,
    "print": lambda host: print(host, file=io.StringIO()),
    "an f-string": lambda host: f"{host}",
    "an f-string of one value": lambda host: f"{host[0]:.2f}",
    "another copy": lambda host: torch.empty(8).copy_(host),
    "clone": lambda host: host.clone(),
    "a view": lambda host: host.view(2, 4)[1].sum(),
    "pickle": lambda host: pickle.dumps(host),
    "torch.save": lambda host: torch.save(host, io.BytesIO()),
    "deepcopy": copy.deepcopy,
    "a list of tensors": lambda host: torch.cat([torch.ones(1), host]),
    "a keyword argument": lambda host: torch.add(torch.ones(8), other=host),
}


@pytest.mark.parametrize("read", READS.values(), ids=READS)
def test_a_result_read_before_it_arrived_is_one_hazard(bench: Bench, read: Callable[[Any], Any]) -> None:
    host = arriving(bench)
    read(host)
    (event,) = bench.events()
    assert (event.rule, event.count) == ("HAZ401", 1)
    assert event.earlier.direction == "DtoH"
    assert event.earlier.op == "aten::_to_copy"


@pytest.mark.parametrize("read", READS.values(), ids=READS)
def test_it_may_be_read_after_a_wait_for_its_stream(bench: Bench, read: Callable[[Any], Any]) -> None:
    host = arriving(bench)
    bench.synchronize_stream()
    read(host)
    assert bench.rules() == []


def test_both_lines_are_named(bench: Bench) -> None:
    host = bench.runtime.on_device(torch.ones(8)).to("cpu", non_blocking=True, copy=True)
    host.tolist()
    (event,) = bench.events()
    access, earlier = bench.lines(event)
    assert access == "host.tolist()"
    assert earlier == 'bench.runtime.on_device(torch.ones(8)).to("cpu", non_blocking=True, copy=True)'


def test_a_print_belongs_to_the_line_that_prints(bench: Bench) -> None:
    host = arriving(bench)
    print(host, file=io.StringIO())
    (event,) = bench.events()
    assert bench.lines(event)[0] == "print(host, file=io.StringIO())"
    assert event.access.op == "Tensor.__repr__"


def test_an_event_after_the_copy_makes_it_safe(bench: Bench) -> None:
    host = arriving(bench)
    bench.record()
    bench.synchronize_event()
    host.mean()
    assert bench.rules() == []


def test_an_event_before_the_copy_does_not(bench: Bench) -> None:
    bench.record()
    host = arriving(bench)
    bench.synchronize_event()
    host.mean()
    assert bench.rules() == ["HAZ401"]


def test_waiting_for_another_stream_does_not(bench: Bench) -> None:
    host = arriving(bench)
    bench.synchronize_stream(SIDE)
    host.mean()
    assert bench.rules() == ["HAZ401"]


def test_a_device_wait_does(bench: Bench) -> None:
    host = arriving(bench)
    bench.synchronize()
    host.mean()
    assert bench.rules() == []


def test_a_copy_into_a_pinned_buffer_is_followed_too(bench: Bench) -> None:
    buffer = torch.zeros(8)
    buffer.copy_(bench.runtime.on_device(torch.ones(8)), non_blocking=True)
    buffer.sum()
    (event,) = bench.events()
    assert (event.rule, event.earlier.op) == ("HAZ401", "aten::copy_")


def test_a_copy_into_pageable_memory_blocks_and_is_safe(bench: Bench) -> None:
    buffer = bench.runtime.pageable(torch.zeros(8))
    buffer.copy_(bench.runtime.on_device(torch.ones(8)), non_blocking=True)
    buffer.sum()
    assert bench.rules() == []


def test_a_strided_buffer_is_filled_by_the_host_and_is_safe(bench: Bench) -> None:
    buffer = torch.zeros(8, 2)[:, 0]
    buffer.copy_(bench.runtime.on_device(torch.ones(8)), non_blocking=True)
    buffer.sum()
    assert bench.rules() == []


def test_a_pinned_source_overwritten_in_flight_is_a_hazard(bench: Bench) -> None:
    source, _ = leaving(bench)
    source.zero_()
    (event,) = bench.events()
    assert (event.rule, event.access.op, event.earlier.direction) == ("HAZ402", "aten::zero_", "HtoD")
    assert event.bytes == 32


WRITES: dict[str, Callable[[Any], Any]] = {
    "fill_": lambda source: source.fill_(2.0),
    "an item": lambda source: source.__setitem__(0, 2.0),
    "a slice": lambda source: source.__setitem__(slice(2, 4), torch.ones(2)),
    "copy_": lambda source: source.copy_(torch.ones(8)),
    "in place": lambda source: source.add_(1),
    "out": lambda source: torch.add(torch.ones(8), 1, out=source),
    "a view": lambda source: source.view(2, 4)[1].zero_(),
    "foreach": lambda source: torch._foreach_add_([source], 1.0),
    "uniform_": lambda source: source.uniform_(),
}


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_every_way_to_write_is_seen(bench: Bench, write: Callable[[Any], Any]) -> None:
    write(leaving(bench)[0])
    assert bench.rules() == ["HAZ402"]


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_it_may_be_written_after_a_wait(bench: Bench, write: Callable[[Any], Any]) -> None:
    source, _ = leaving(bench)
    bench.record()
    bench.synchronize_event()
    write(source)
    assert bench.rules() == []


def test_a_source_in_flight_may_be_read(bench: Bench) -> None:
    source, _ = leaving(bench)
    source.sum()
    source.tolist()
    assert bench.rules() == []


def test_a_buffer_that_a_copy_still_fills_must_not_be_written_either(bench: Bench) -> None:
    arriving(bench).zero_()
    (event,) = bench.events()
    assert (event.rule, event.earlier.direction) == ("HAZ402", "DtoH")


def test_a_pageable_source_is_safe(bench: Bench) -> None:
    source, target = bench.runtime.pageable(torch.ones(8)), bench.runtime.on_device(torch.zeros(8))
    target.copy_(source, non_blocking=True)
    source.zero_()
    assert bench.rules() == []


def test_a_strided_source_is_gathered_first_and_is_safe(bench: Bench) -> None:
    source, target = torch.ones(8, 2)[:, 0], bench.runtime.on_device(torch.zeros(8))
    target.copy_(source, non_blocking=True)
    source.zero_()
    assert bench.rules() == []


def test_a_strided_buffer_is_written_by_the_host_when_its_bytes_have_come(bench: Bench) -> None:
    buffer = torch.zeros(8, 2)
    bench.runtime.on_device(torch.zeros(8, 2)).copy_(buffer, non_blocking=True)
    buffer[:, 0].copy_(bench.runtime.on_device(torch.ones(8)), non_blocking=True)
    (event,) = bench.events()
    assert (event.rule, event.access.op) == ("HAZ402", "aten::copy_")


def test_a_transposed_source_is_read_in_place(bench: Bench) -> None:
    source, target = torch.ones(4, 2).t(), bench.runtime.on_device(torch.zeros(4, 2).t())
    target.copy_(source, non_blocking=True)
    source.zero_()
    assert bench.rules() == ["HAZ402"]


def test_a_source_converted_on_the_way_is_read_in_place(bench: Bench) -> None:
    source, target = torch.ones(8), bench.runtime.on_device(torch.zeros(8, dtype=torch.half))
    target.copy_(source, non_blocking=True)
    source.zero_()
    assert bench.rules() == ["HAZ402"]


def test_a_source_expanded_by_the_host_is_safe(bench: Bench) -> None:
    source, target = torch.ones(8), bench.runtime.on_device(torch.zeros(4, 8))
    target.copy_(source, non_blocking=True)
    source.zero_()
    assert bench.rules() == []


def test_to_the_device_is_followed_like_copy_(bench: Bench) -> None:
    source = torch.ones(8)
    source.to("meta", non_blocking=True)
    source.zero_()
    (event,) = bench.events()
    assert (event.rule, event.earlier.op) == ("HAZ402", "aten::_to_copy")


def test_foreach_copies_are_followed(bench: Bench) -> None:
    source, target = torch.ones(8), bench.runtime.on_device(torch.zeros(8))
    torch._foreach_copy_([target], [source], non_blocking=True)
    source.zero_()
    assert bench.rules() == ["HAZ402"]


def test_disjoint_slices_of_one_buffer_do_not_clash(bench: Bench) -> None:
    buffer, target = torch.ones(16), bench.runtime.on_device(torch.zeros(8))
    target.copy_(buffer[:8], non_blocking=True)
    buffer[8:].zero_()
    assert bench.rules() == []


def test_overlapping_slices_of_one_buffer_do(bench: Bench) -> None:
    buffer, target = torch.ones(16), bench.runtime.on_device(torch.zeros(8))
    target.copy_(buffer[:8], non_blocking=True)
    buffer[6:].zero_()
    (event,) = bench.events()
    assert (event.rule, event.bytes) == ("HAZ402", 8)


def test_a_dropped_batch_accuses_nobody_at_its_address(bench: Bench) -> None:
    target, memory = bench.runtime.on_device(torch.zeros(8)), np.ones(8, dtype=np.float32)
    source = torch.from_numpy(memory)
    target.copy_(source, non_blocking=True)
    address = source.data_ptr()
    del source
    again = torch.from_numpy(memory)
    assert again.data_ptr() == address
    again.fill_(1)
    assert bench.rules() == []


def test_an_alias_through_numpy_is_the_same_memory(bench: Bench) -> None:
    source, target = torch.ones(8), bench.runtime.on_device(torch.zeros(8))
    alias = torch.from_numpy(source.numpy())
    target.copy_(source, non_blocking=True)
    alias.zero_()
    assert bench.rules() == ["HAZ402"]


def test_a_line_in_a_loop_is_one_hazard_and_counts_each_copy(bench: Bench) -> None:
    for _ in range(3):
        host = arriving(bench)
        for _ in range(2):
            host.sum()
    (event,) = bench.events()
    assert (event.count, event.bytes) == (3, 3 * 32)


def test_the_same_copy_read_at_two_lines_is_two_hazards(bench: Bench) -> None:
    host = arriving(bench)
    host.sum()
    host.mean()
    assert bench.rules() == ["HAZ401", "HAZ401"]


def test_one_operator_that_reads_many_results_counts_once(bench: Bench) -> None:
    sources = [bench.runtime.on_device(torch.ones(8)) for _ in range(4)]
    targets = [torch.zeros(8) for _ in range(4)]
    torch._foreach_copy_(targets, sources, non_blocking=True)
    torch.cat(targets)
    (event,) = bench.events()
    assert (event.count, event.bytes) == (1, 4 * 32)


def test_copies_in_opposite_directions_on_one_stream_are_ordered(bench: Bench) -> None:
    buffer = torch.zeros(8)
    buffer.copy_(bench.runtime.on_device(torch.ones(8)), non_blocking=True)
    bench.runtime.on_device(torch.zeros(8)).copy_(buffer, non_blocking=True)
    assert bench.rules() == []


def test_on_two_streams_they_race(bench: Bench) -> None:
    buffer = torch.zeros(8)
    buffer.copy_(bench.runtime.on_device(torch.ones(8)), non_blocking=True)
    with bench.runtime.on_stream(SIDE):
        bench.runtime.on_device(torch.zeros(8)).copy_(buffer, non_blocking=True)
    (event,) = bench.events()
    assert (event.rule, event.access.stream, event.earlier.stream) == ("HAZ403", "stream 1", "the default stream")


def test_a_blocking_copy_waits_for_what_its_stream_did_before(bench: Bench) -> None:
    host, other = arriving(bench), bench.runtime.on_device(torch.ones(4))
    detector = bench.hazards._detector
    running = detector.begin(torch.ops.aten._to_copy.default, (other,), {"device": torch.device("cpu")})
    assert running is not None
    bench.synchronize_stream(MAIN)  # what PyTorch reports from inside the copy
    detector.end(running, other.clone())
    host.sum()
    assert bench.rules() == []


def test_expected_races_carry_the_reason(bench: Bench) -> None:
    from syncscope.collect.annotations import expected

    host = arriving(bench)
    with expected("only a progress bar"):
        host.sum()
    (event,) = bench.events()
    assert event.expected == "only a progress bar"
