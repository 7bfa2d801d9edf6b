"""Races of the host with a copy on a real GPU (HAZ401, HAZ402). The verdict never depends on timing."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="races are looked for in PyTorch programs")
pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU: there is none here"),
    pytest.mark.usefixtures("nothing_left_behind"),
]

from tests.collect.hazards.on_gpu import N, look, on_device, pinned, rules  # noqa: E402


def test_the_tutorials_read_before_arrival_is_caught_with_both_lines() -> None:
    def case() -> None:
        cuda_tensor = on_device()
        cuda_tensor.to("cpu", non_blocking=True).mean()

    (found,) = look(case)
    assert found.rule == "HAZ401"
    assert found.site.expression == 'cuda_tensor.to("cpu", non_blocking=True).mean()'
    assert [site.expression for site in found.earlier] == ['cuda_tensor.to("cpu", non_blocking=True)']
    assert found.site.file.endswith("test_copies_gpu.py")
    assert (found.op, found.count, found.bytes) == ("aten::mean", 1, 4 * N)


def test_the_tutorials_overwrite_is_caught_with_both_lines() -> None:
    def case() -> None:
        source = pinned()
        moved = source.to("cuda", non_blocking=True)
        source.zero_()
        del moved

    (found,) = look(case)
    assert found.rule == "HAZ402"
    assert found.site.expression == "source.zero_()"
    assert [site.expression for site in found.earlier] == ['source.to("cuda", non_blocking=True)']


READS: dict[str, Callable[[Any], Any]] = {
    "an operator": lambda host: host.sum(),
    "item": lambda host: host[0].item(),
    "float": lambda host: float(host[0]),
    "a condition": lambda host: bool((host > 0).any()),
    "tolist": lambda host: host[:4].tolist(),
    "numpy": lambda host: host.numpy(),
    "dlpack": lambda host: host.__dlpack__(),
    "print": lambda host: print(host, file=io.StringIO()),
    "an f-string": lambda host: f"{host[0]}",
    "clone": lambda host: host.clone(),
    "a blocking conversion to the device": lambda host: host.to("cuda", torch.float64),
    "torch.save": lambda host: torch.save(host, io.BytesIO()),
}


@pytest.mark.parametrize("read", READS.values(), ids=READS)
def test_a_read_is_a_hazard_before_a_wait_and_none_after(read: Callable[[Any], Any]) -> None:
    def too_early() -> None:
        read(on_device().to("cpu", non_blocking=True))

    def in_time() -> None:
        host = on_device().to("cpu", non_blocking=True)
        torch.cuda.current_stream().record_event().synchronize()
        read(host)

    assert rules(too_early) == ["HAZ401"]
    assert rules(in_time) == []


def wait_for_event() -> None:
    event = torch.cuda.Event()
    event.record()
    event.synchronize()


def wait_by_query() -> None:
    event = torch.cuda.current_stream().record_event()
    while not event.query():
        pass


def wait_by_stream_query() -> None:
    while not torch.cuda.current_stream().query():
        pass


def wait_by_timing() -> None:
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    begin.record()
    end.record()
    while True:
        try:
            begin.elapsed_time(end)
            return
        except RuntimeError:
            continue


def wait_through_another_stream() -> None:
    other = torch.cuda.Stream()
    other.wait_stream(torch.cuda.current_stream())
    other.synchronize()


WAITS: dict[str, Callable[[], Any]] = {
    "torch.cuda.synchronize": lambda: torch.cuda.synchronize(),
    "Stream.synchronize": lambda: torch.cuda.current_stream().synchronize(),
    "Event.synchronize": wait_for_event,
    "Event.query": wait_by_query,
    "Stream.query": wait_by_stream_query,
    "Event.elapsed_time": wait_by_timing,
    "another stream": wait_through_another_stream,
    "item of another tensor": lambda: torch.ones(1, device="cuda").item(),
    "a blocking copy": lambda: torch.ones(4, device="cuda").cpu(),
    "a blocking copy to the device": lambda: torch.ones(4).cuda(),
    "nonzero": lambda: torch.ones(4, device="cuda").nonzero(),
    "a mask": lambda: torch.ones(4, device="cuda")[torch.ones(4, device="cuda") > 0],
    "unique": lambda: torch.ones(4, device="cuda").unique(),
    "a check of linalg": lambda: torch.linalg.inv(torch.eye(3, device="cuda")),
    "bincount": lambda: torch.bincount(torch.ones(4, device="cuda", dtype=torch.int64)),
    "torch.ops": lambda: torch.ops.aten.nonzero(torch.ones(4, device="cuda")),
    "torch.Event": lambda: _generic_event().synchronize(),
    "torch.Event.query": lambda: _until(_generic_event().query),
}
if hasattr(torch, "accelerator"):
    WAITS |= {
        "torch.accelerator.synchronize": lambda: torch.accelerator.synchronize(),
        "torch.Stream.synchronize": lambda: torch.accelerator.current_stream().synchronize(),
        "torch.Stream.query": lambda: _until(torch.accelerator.current_stream().query),
        "torch.Stream.record_event": lambda: torch.accelerator.current_stream().record_event().synchronize(),
        "torch.Stream.wait_stream": lambda: _generic_side(lambda s: s.wait_stream(torch.accelerator.current_stream())),
        "torch.Stream.wait_event": lambda: _generic_side(lambda s: s.wait_event(_generic_event())),
        "torch.Event.wait": lambda: _generic_side(lambda s: _generic_event().wait(s)),
    }


def _external(stream: Any) -> Any:
    return torch.cuda.ExternalStream(stream.cuda_stream)


def _until(over: Callable[[], bool]) -> None:
    while not over():
        pass


def _generic_side(wait: Callable[[Any], Any]) -> None:
    """A ``torch.Stream`` that waits for the current one, and then the host for it."""
    side = torch.Stream("cuda")
    wait(side)
    side.synchronize()


def _generic_event() -> Any:
    event = torch.Event("cuda")
    event.record(torch.cuda.current_stream())
    return event


@pytest.mark.parametrize("wait", WAITS.values(), ids=WAITS)
def test_every_wait_counts(wait: Callable[[], Any]) -> None:
    def case() -> None:
        host, source = on_device().to("cpu", non_blocking=True), pinned()
        moved = source.to("cuda", non_blocking=True)
        wait()
        host.sum()
        source.zero_()
        del moved

    assert rules(case) == []


WRONG_WAITS: dict[str, Callable[[Any], Any]] = {
    "Stream.synchronize": lambda side: side.synchronize(),
    "Stream.query": lambda side: _until(side.query),
    "Event.synchronize": lambda side: side.record_event().synchronize(),
    "an event that was never recorded": lambda side: torch.cuda.Event().synchronize(),
    "a stream that waits": lambda side: torch.cuda.current_stream().record_event().wait(side),
    "ExternalStream": lambda side: _external(side).synchronize(),
    "a blocking copy": lambda side: _on(side, lambda: torch.ones(4, device="cuda").cpu()),
    "item": lambda side: _on(side, lambda: torch.ones(1, device="cuda").item()),
    "torch.Stream.synchronize": lambda side: torch.Stream("cuda").synchronize(),
}


def _on(stream: Any, call: Callable[[], Any]) -> None:
    with torch.cuda.stream(stream):
        call()


def test_a_wait_for_an_external_stream_counts(side: Any) -> None:
    def case() -> None:
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            host = on_device().to("cpu", non_blocking=True)
        _external(side).synchronize()
        host.sum()

    assert rules(case) == []


@pytest.mark.parametrize("wait", WRONG_WAITS.values(), ids=WRONG_WAITS)
def test_a_wait_for_the_wrong_stream_does_not_count(side: Any, wait: Callable[[Any], Any]) -> None:
    def case() -> None:
        host = on_device().to("cpu", non_blocking=True)
        wait(side)
        host.sum()

    assert rules(case) == ["HAZ401"]


def test_an_event_before_the_copy_does_not_count() -> None:
    def case() -> None:
        x = on_device()
        event = torch.cuda.current_stream().record_event()
        host = x.to("cpu", non_blocking=True)
        event.synchronize()
        host.sum()

    assert rules(case) == ["HAZ401"]


def test_a_false_query_does_not_count() -> None:
    def case() -> None:
        x = on_device()
        torch.cuda._sleep(200_000_000)
        host = x.to("cpu", non_blocking=True)
        assert not torch.cuda.current_stream().record_event().query()
        host.sum()

    assert rules(case) == ["HAZ401"]


def test_copies_into_a_pinned_buffer_and_its_slices() -> None:
    def case() -> None:
        buffer, x = pinned(), on_device()
        buffer[: N // 2].copy_(x[: N // 2], non_blocking=True)
        buffer[N // 2 :].sum()  # the other half
        buffer.view(2, N // 2)[0, 3].item()

    (found,) = look(case)
    assert (found.rule, found.site.expression) == ("HAZ401", "buffer.view(2, N // 2)[0, 3].item()")


def test_a_converting_copy_is_asynchronous_too() -> None:
    def case() -> None:
        source = pinned()
        moved = torch.empty(N, device="cuda", dtype=torch.half)
        moved.copy_(source, non_blocking=True)
        source.zero_()

    assert rules(case) == ["HAZ402"]


def test_a_buffer_filled_again_each_step_without_a_wait() -> None:
    def case() -> None:
        buffer = pinned()
        for i in range(4):
            buffer.fill_(i)
            buffer.to("cuda", non_blocking=True).sum()

    (found,) = look(case)
    assert (found.rule, found.count) == ("HAZ402", 3)
