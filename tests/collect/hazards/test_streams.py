"""Two streams at one memory, on a machine without a device."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="races are looked for in PyTorch programs")

from tests.collect.hazards.fake import EVENT, MAIN, SIDE, Bench  # noqa: E402

aten = torch.ops.aten


@pytest.fixture
def bench() -> Iterator[Bench]:
    with Bench() as open_bench:
        yield open_bench


def run(bench: Bench, func: Any, *args: Any, result: Any = None, waits: int | None = None, **kwargs: Any) -> Any:
    """An operator as the detector sees it on a device: its result lies there, and it may wait inside."""
    detector = bench.hazards._detector
    running = detector.begin(func, args, kwargs)
    if waits is not None:
        bench.synchronize_stream(waits)
    if running is not None:
        detector.end(running, result)
    return result


def device(bench: Bench, *shape: int) -> Any:
    return bench.runtime.on_device(torch.ones(*shape or (8,)))


def test_summing_what_another_stream_may_still_write_is_a_hazard(bench: Bench) -> None:
    a = device(bench)
    a.normal_()
    with bench.runtime.on_stream(SIDE):
        torch.sum(a)
    (event,) = bench.events()
    assert (event.rule, event.access.op, event.earlier.op) == ("HAZ403", "aten::sum", "aten::normal_")
    assert (event.access.stream, event.access.writes, event.earlier.writes) == ("stream 1", False, True)
    assert bench.lines(event) == ("torch.sum(a)", "a.normal_()")


def test_wait_stream_makes_it_safe(bench: Bench) -> None:
    a = device(bench)
    a.normal_()
    bench.wait_stream(SIDE, MAIN)
    with bench.runtime.on_stream(SIDE):
        torch.sum(a)
    assert bench.rules() == []


def test_an_event_recorded_too_early_does_not(bench: Bench) -> None:
    a = device(bench)
    bench.record(EVENT, MAIN)
    a.normal_()
    bench.wait(SIDE)
    with bench.runtime.on_stream(SIDE):
        torch.sum(a)
    assert bench.rules() == ["HAZ403"]


def test_a_host_wait_orders_streams_too(bench: Bench) -> None:
    a = device(bench)
    a.normal_()
    bench.synchronize_stream(MAIN)
    with bench.runtime.on_stream(SIDE):
        torch.sum(a)
    assert bench.rules() == []


def test_writing_what_another_stream_may_still_read_is_a_hazard(bench: Bench) -> None:
    a = device(bench)
    torch.sum(a)
    with bench.runtime.on_stream(SIDE):
        a.zero_()
    (event,) = bench.events()
    assert (event.rule, event.access.writes, event.earlier.writes) == ("HAZ403", True, False)


def test_two_streams_may_read_the_same(bench: Bench) -> None:
    a = device(bench)
    torch.sum(a)
    with bench.runtime.on_stream(SIDE):
        torch.sum(a)
    assert bench.rules() == []


def test_views_of_one_storage_count(bench: Bench) -> None:
    a = device(bench, 4, 4)
    a[:2].zero_()
    with bench.runtime.on_stream(SIDE):
        a.view(-1)[4:6].sum()
    assert bench.rules() == ["HAZ403"]


def test_columns_of_one_matrix_do_not_clash(bench: Bench) -> None:
    a = device(bench, 4, 4)
    a[:, :2].zero_()
    with bench.runtime.on_stream(SIDE):
        a[:, 2:].zero_()
    assert bench.rules() == []


def test_making_a_view_touches_nothing(bench: Bench) -> None:
    a = device(bench)
    a.normal_()
    with bench.runtime.on_stream(SIDE):
        a.view(2, 4).t().detach()[0].unsqueeze(0).expand(3, 2)
        torch.empty_like(a)
        a.new_zeros(3)
        torch.ones_like(a)
    assert bench.rules() == []


def test_a_result_that_is_the_argument_itself_was_not_written(bench: Bench) -> None:
    a = device(bench)
    run(bench, aten.lift.default, a, result=a)
    with bench.runtime.on_stream(SIDE):
        a.sum()
    assert bench.rules() == []


def test_a_new_tensor_was_written_by_the_stream_it_came_from(bench: Bench) -> None:
    a = device(bench)
    b = run(bench, aten.mul.Tensor, a, 2, result=device(bench))
    with bench.runtime.on_stream(SIDE):
        b.sum()
    (event,) = bench.events()
    assert event.earlier.op == "aten::mul"


def test_memory_that_nobody_filled_may_be_used_anywhere(bench: Bench) -> None:
    b = run(bench, aten.empty.memory_format, [8], result=device(bench))
    with bench.runtime.on_stream(SIDE):
        b.zero_()
    assert bench.rules() == []


def test_a_result_of_an_operator_that_waited_half_way_may_still_be_written(bench: Bench) -> None:
    index = run(bench, aten.nonzero.default, device(bench), result=device(bench), waits=MAIN)
    with bench.runtime.on_stream(SIDE):
        index.sum()
    assert bench.rules() == ["HAZ403"]


def test_reading_one_value_ends_with_its_wait(bench: Bench) -> None:
    a = device(bench)
    run(bench, aten._local_scalar_dense.default, a, waits=MAIN)
    with bench.runtime.on_stream(SIDE):
        a.zero_()
    assert bench.rules() == []


def test_a_blocking_copy_to_the_device_has_arrived(bench: Bench) -> None:
    source = bench.runtime.pageable(torch.ones(8))
    with bench.runtime.on_stream(SIDE):
        x = run(bench, aten._to_copy.default, source, device=torch.device("meta"), result=device(bench), waits=SIDE)
    x.sum()
    assert bench.rules() == []


def test_a_prefetched_batch_needs_wait_stream(bench: Bench) -> None:
    with bench.runtime.on_stream(SIDE):
        x = run(
            bench, aten._to_copy.default, torch.ones(8), device=torch.device("meta"), non_blocking=True,
            result=device(bench),
        )  # fmt: skip
    x.sum()
    (event,) = bench.events()
    assert (event.rule, event.earlier.direction) == ("HAZ403", "HtoD")


def test_a_prefetcher_that_waits_is_silent(bench: Bench) -> None:
    for _ in range(3):
        with bench.runtime.on_stream(SIDE):
            x = run(
                bench, aten._to_copy.default, torch.ones(8), device=torch.device("meta"), non_blocking=True,
                result=device(bench),
            )  # fmt: skip
        bench.wait_stream(MAIN, SIDE)
        x.mul_(2)
    assert bench.rules() == []


def copied_to_another_device(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> Any:
    """What a copy from the main stream of one device leaves on another device, whose current stream is ``SIDE``."""
    x = device(bench)
    current = bench.runtime.launch_stream
    monkeypatch.setattr(bench.runtime, "launch_stream", lambda of: SIDE if of.type == "meta" else current(of))
    x.normal_()
    return run(
        bench, aten._to_copy.default, x, device=torch.device("meta"), non_blocking=True, result=device(bench)
    )  # fmt: skip


def test_a_copy_between_devices_orders_the_streams_of_both(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    y = copied_to_another_device(bench, monkeypatch)
    with bench.runtime.on_stream(SIDE):
        y.sum()
    assert bench.rules() == []


def test_a_copy_between_devices_orders_no_third_stream(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    y = copied_to_another_device(bench, monkeypatch)
    with bench.runtime.on_stream(SIDE + 1):
        y.sum()
    assert bench.rules() == ["HAZ403"]


def test_waiting_for_a_functional_collective_orders_the_current_stream(bench: Bench) -> None:
    functional = pytest.importorskip("torch.distributed._functional_collectives", reason="needs torch.distributed")
    a = device(bench)
    a.normal_()
    with bench.runtime.on_stream(SIDE):
        run(bench, functional.torch.ops._c10d_functional.wait_tensor.default, a, result=a)
        a.sum()
    with bench.runtime.on_stream(SIDE + 1):
        a.sum()
    assert bench.rules() == ["HAZ403"]


def test_what_a_graph_capture_writes_down_has_not_run(bench: Bench) -> None:
    a = device(bench)
    with bench.runtime.on_stream(None):
        a.normal_()
    with bench.runtime.on_stream(SIDE):
        a.sum()
    assert bench.rules() == []


def test_printing_a_device_tensor_reads_it(bench: Bench) -> None:
    a = device(bench)
    a.normal_()
    with bench.runtime.on_stream(SIDE):
        repr(a)
    (event,) = bench.events()
    assert (event.rule, event.access.op) == ("HAZ403", "Tensor.__repr__")


def test_a_freed_tensor_accuses_nobody(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    memory = np.ones(8, dtype=np.float32)
    monkeypatch.setattr(bench.runtime, "side", lambda tensor: "device")  # which holds no storage, so that it is freed
    torch.from_numpy(memory).normal_()
    with bench.runtime.on_stream(SIDE):
        torch.from_numpy(memory).zero_()
    assert bench.rules() == []


def test_a_tensor_kept_alive_does(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    memory = np.ones(8, dtype=np.float32)
    monkeypatch.setattr(bench.runtime, "side", lambda tensor: "device")
    kept = torch.from_numpy(memory)
    kept.normal_()
    with bench.runtime.on_stream(SIDE):
        torch.from_numpy(memory).zero_()
    assert bench.rules() == ["HAZ403"]


def test_one_operator_on_many_tensors_is_one_hazard(bench: Bench) -> None:
    params = [device(bench) for _ in range(5)]
    torch._foreach_add_(params, 1.0)
    with bench.runtime.on_stream(SIDE):
        torch._foreach_mul_(params, 2.0)
    (event,) = bench.events()
    assert (event.count, event.bytes) == (1, 5 * 32)
