"""Races on a real GPU: what must be caught, and what must be silent. The verdict never depends on timing."""

from __future__ import annotations

import contextlib
import io
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="races are looked for in PyTorch programs")
pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU: there is none here"),
]

from syncscope.collect.hazards import hazards  # noqa: E402
from tests.collect.hazards.test_modes import state  # noqa: E402

N = 1 << 20


@pytest.fixture(autouse=True)
def _nothing_left_behind() -> Iterator[None]:
    torch.cuda.init()
    before = state()
    yield
    assert state() == before


@pytest.fixture
def side() -> Any:
    return torch.cuda.Stream()


def on_device() -> Any:
    return torch.randn(N, device="cuda")


def pinned() -> Any:
    return torch.ones(N, pin_memory=True)


def look(case: Callable[[], Any]) -> list[Any]:
    torch.cuda.synchronize()
    with hazards() as found:
        case()
    torch.cuda.synchronize()
    assert all(entry.partial and "was not followed" not in entry.why for entry in found.not_checked)
    return list(found.findings)


def rules(case: Callable[[], Any]) -> list[str]:
    return [finding.rule for finding in look(case)]


# ------------------------------------------------------------------------------------------- HAZ401, HAZ402


def test_the_tutorials_read_before_arrival_is_caught_with_both_lines() -> None:
    def case() -> None:
        cuda_tensor = on_device()
        cuda_tensor.to("cpu", non_blocking=True).mean()

    (found,) = look(case)
    assert found.rule == "HAZ401"
    assert found.site.expression == 'cuda_tensor.to("cpu", non_blocking=True).mean()'
    assert [site.expression for site in found.earlier] == ['cuda_tensor.to("cpu", non_blocking=True)']
    assert found.site.file.endswith("test_hazards_gpu.py")
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


def quiet_pageable() -> None:
    source = torch.ones(N)
    moved = source.to("cuda", non_blocking=True)
    source.zero_()
    back = torch.empty(N)
    back.copy_(moved, non_blocking=True)
    back.sum()


def quiet_strided() -> None:
    source, x = torch.ones(1024, 64, pin_memory=True), torch.randn(1024, device="cuda")
    x.copy_(source[:, 0], non_blocking=True)
    source.zero_()


def quiet_item_on_the_device() -> None:
    x = torch.ones(N, pin_memory=True).to("cuda", non_blocking=True)
    x.sum().item()


def quiet_dropped_batches() -> None:
    loader = torch.utils.data.DataLoader(list(torch.randn(16, 1 << 16)), batch_size=2, pin_memory=True)
    for batch in loader:
        batch.to("cuda", non_blocking=True).sum()


def quiet_reused_addresses() -> None:
    for i in range(8):
        source = torch.full((N,), float(i), pin_memory=True)
        source.to("cuda", non_blocking=True)
        del source


def quiet_prefetcher() -> None:
    copies = torch.cuda.Stream()

    def fetch() -> Any:
        with torch.cuda.stream(copies):
            return pinned().to("cuda", non_blocking=True)

    batch = fetch()
    for _ in range(4):
        torch.cuda.current_stream().wait_stream(copies)
        ready = batch
        ready.record_stream(torch.cuda.current_stream())
        batch = fetch()
        ready.mul_(2).sum()


def quiet_double_buffer() -> None:
    buffers = [(pinned(), torch.cuda.Event()) for _ in range(2)]
    for i in range(6):
        buffer, sent = buffers[i % 2]
        sent.synchronize()
        buffer.fill_(i)
        buffer.to("cuda", non_blocking=True).sum()
        sent.record()


def quiet_training_step() -> None:
    net = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1)).cuda()
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
    for _ in range(3):
        x = torch.randn(32, 64, pin_memory=True).to("cuda", non_blocking=True)
        loss = net(x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        loss.item()


def quiet_backward_on_a_side_stream() -> None:
    stream = torch.cuda.Stream()
    weight = torch.randn(64, 64, device="cuda", requires_grad=True)
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        loss = (weight @ weight).relu().sum()
        loss.backward()
    torch.cuda.current_stream().wait_stream(stream)
    weight.grad.add_(1)


def quiet_backward_across_streams() -> None:
    stream = torch.cuda.Stream()
    weight = torch.randn(64, 64, device="cuda", requires_grad=True)
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        hidden = weight @ weight
    torch.cuda.current_stream().wait_stream(stream)
    hidden.relu().sum().backward()  # autograd itself puts the streams in order
    weight.grad.add_(1)


def quiet_backward_of_many_streams() -> None:
    streams = [torch.cuda.Stream() for _ in range(3)]
    weights = [torch.randn(64, 64, device="cuda", requires_grad=True) for _ in streams]
    for _ in range(2):
        parts = []
        for stream, weight in zip(streams, weights, strict=True):
            stream.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(stream):
                parts.append((weight @ weights[0]).relu() @ weights[1])
        for stream in streams:
            torch.cuda.current_stream().wait_stream(stream)
        (parts[0] @ parts[1] + parts[2]).sum().backward()
        with torch.no_grad():
            for weight in weights:
                weight.sub_(weight.grad)
                weight.grad = None


def quiet_hooks_in_backward() -> None:
    stream = torch.cuda.Stream()
    weight = torch.randn(64, 64, device="cuda", requires_grad=True)
    reduced = torch.zeros(64, 64, device="cuda")

    def reduce(grad: Any) -> None:
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            reduced.add_(grad)
            grad.record_stream(stream)

    weight.register_hook(reduce)
    for _ in range(2):
        (weight @ weight).relu().sum().backward()
        torch.cuda.current_stream().wait_stream(stream)
        reduced.mul_(0.5)


def quiet_checkpoint() -> None:
    from torch.utils.checkpoint import checkpoint

    stream = torch.cuda.Stream()
    weight = torch.randn(64, 64, device="cuda", requires_grad=True)
    for reentrant in (False, True):
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            hidden = checkpoint(lambda w: (w @ w).relu(), weight, use_reentrant=reentrant)
        torch.cuda.current_stream().wait_stream(stream)
        hidden.sum().backward()
        weight.grad.add_(1)


def quiet_offloaded_activations() -> None:
    weight = torch.randn(256, 256, device="cuda", requires_grad=True)
    with torch.autograd.graph.save_on_cpu(pin_memory=True):
        loss = (weight @ weight).relu().sum()
    loss.backward()
    weight.grad.add_(1)


def quiet_torch_save_on_a_side_stream() -> None:
    stream, x = torch.cuda.Stream(), on_device()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        torch.save(x, io.BytesIO())


def quiet_dlpack() -> None:
    stream, x = torch.cuda.Stream(), on_device()
    shared = x.__dlpack__(stream=stream.cuda_stream)  # which makes the stream wait
    with torch.cuda.stream(stream):
        torch.from_dlpack(shared).sum()


def quiet_copies_between_devices() -> None:
    if torch.cuda.device_count() < 2:
        return
    x = torch.randn(N, device="cuda:0")
    streams = [torch.cuda.Stream(device) for device in (0, 1)]
    for stream in streams:
        stream.wait_stream(torch.cuda.current_stream(0))
    with torch.cuda.stream(streams[0]), torch.cuda.stream(streams[1]):
        y = x.to("cuda:1", non_blocking=True)
        y.add_(1)
        x.copy_(y, non_blocking=True)
        x.sum()


def quiet_collectives() -> None:
    x, stream = torch.ones(N, device="cuda"), torch.cuda.Stream()
    work = torch.distributed.all_reduce(x, async_op=True)
    with torch.cuda.stream(stream):
        work.wait()
        x.sum()
    torch.cuda.current_stream().wait_stream(stream)
    host = x.to("cpu", non_blocking=True)
    torch.distributed.barrier()
    host.sum()


def quiet_ddp() -> None:
    net = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(64, 64).cuda())
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        net(torch.randn(8, 64, device="cuda")).sum().backward()
        optimizer.step()


def quiet_graph() -> None:
    x = torch.ones(64, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = x * 2
    graph.replay()
    y.sum().item()


def quiet_columns() -> None:
    stream, x = torch.cuda.Stream(), torch.empty(64, 64, device="cuda")
    x[:, :32].zero_()
    with torch.cuda.stream(stream):
        x[:, 32:].zero_()


def quiet_blocking_copies_between_streams() -> None:
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        x = torch.ones(64).cuda()
    host = x.mul(2).cpu()
    host.sum()
    with torch.cuda.stream(stream):
        torch.ones(64, device="cuda").cpu().sum()


QUIET = {name.removeprefix("quiet_"): case for name, case in list(globals().items()) if name.startswith("quiet_")}


@pytest.fixture(scope="module")
def process_group() -> Iterator[None]:
    """A group of one process, for the programs that need one."""
    if not torch.distributed.is_nccl_available():
        pytest.skip("this PyTorch has no NCCL")
    store, device = torch.distributed.HashStore(), torch.device("cuda", 0)
    with warnings.catch_warnings(action="ignore") if sys.version_info >= (3, 11) else contextlib.nullcontext():
        torch.distributed.init_process_group("nccl", store=store, rank=0, world_size=1, device_id=device)
    yield
    torch.distributed.destroy_process_group()


@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::FutureWarning")
@pytest.mark.parametrize("case", QUIET.values(), ids=QUIET)
def test_correct_programs_are_silent(case: Callable[[], Any], request: pytest.FixtureRequest) -> None:
    if case in (quiet_collectives, quiet_ddp):
        request.getfixturevalue("process_group")
    assert [finding.message for finding in look(case)] == []


@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
def test_batches_of_a_loader_with_workers_are_silent() -> None:
    def case() -> None:
        data = list(torch.randn(16, 1 << 12))
        for batch in torch.utils.data.DataLoader(data, batch_size=2, pin_memory=True, num_workers=1):
            batch.to("cuda", non_blocking=True).sum()

    assert rules(case) == []


# --------------------------------------------------------------------------------------------------- HAZ403


def test_the_tutorials_sum_on_a_side_stream_is_caught_with_both_lines(side: Any) -> None:
    def case() -> None:
        a = torch.empty(N, device="cuda").normal_(0.0, 1.0)
        with torch.cuda.stream(side):
            torch.sum(a)

    (found,) = look(case)
    assert found.rule == "HAZ403"
    assert found.site.expression == "torch.sum(a)"
    assert [site.expression for site in found.earlier] == ['torch.empty(N, device="cuda").normal_(0.0, 1.0)']
    assert "the default stream" in found.message


ORDERS: dict[str, Callable[[Any], Any]] = {
    "wait_stream": lambda side: side.wait_stream(torch.cuda.current_stream()),
    "wait_event": lambda side: side.wait_event(torch.cuda.current_stream().record_event()),
    "Event.wait": lambda side: torch.cuda.current_stream().record_event().wait(side),
    "synchronize": lambda side: torch.cuda.current_stream().synchronize(),
}


@pytest.mark.parametrize("order", ORDERS.values(), ids=ORDERS)
def test_streams_in_order_are_silent(side: Any, order: Callable[[Any], Any]) -> None:
    def case() -> None:
        a = torch.empty(N, device="cuda").normal_(0.0, 1.0)
        order(side)
        with torch.cuda.stream(side):
            torch.sum(a)

    assert rules(case) == []


def test_a_prefetched_batch_used_without_waiting(side: Any) -> None:
    def case() -> None:
        with torch.cuda.stream(side):
            x = pinned().to("cuda", non_blocking=True)
        x.sum()

    (found,) = look(case)
    assert (found.rule, found.site.expression) == ("HAZ403", "x.sum()")


def test_a_result_of_nonzero_used_on_another_stream(side: Any) -> None:
    def case() -> None:
        index = torch.ones(64, device="cuda").nonzero()
        with torch.cuda.stream(side):
            index.sum()

    assert rules(case) == ["HAZ403"]


def test_writing_what_a_side_stream_still_reads(side: Any) -> None:
    def case() -> None:
        a = torch.zeros(N, device="cuda")
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            a.sum()
        a.add_(1)

    (found,) = look(case)
    assert (found.rule, found.site.expression) == ("HAZ403", "a.add_(1)")


def test_a_race_in_backward_belongs_to_the_line_that_called_it(side: Any) -> None:
    def case() -> None:
        weight = torch.randn(64, 64, device="cuda", requires_grad=True)
        other = torch.randn(64, 64, device="cuda")
        loss = (weight * other).sum()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            other.data.zero_()  # saved for backward; so written, autograd does not complain
        loss.backward()

    found = [finding for finding in look(case) if finding.site and finding.site.expression == "loss.backward()"]
    assert [finding.rule for finding in found] == ["HAZ403"]
    assert found[0].at.function.endswith("run_backward")


def test_a_hook_in_backward_that_does_not_order_its_stream(side: Any) -> None:
    def case() -> None:
        weight = torch.randn(64, 64, device="cuda", requires_grad=True)

        def reduce(grad: Any) -> None:
            with torch.cuda.stream(side):
                grad.sum()

        weight.register_hook(reduce)
        (weight @ weight).relu().sum().backward()

    (found,) = look(case)
    assert (found.rule, found.site.expression) == ("HAZ403", "grad.sum()")


def test_gradients_used_on_a_stream_that_did_not_call_backward(side: Any) -> None:
    def case() -> None:
        weight = torch.randn(64, 64, device="cuda", requires_grad=True)
        side.wait_stream(torch.cuda.current_stream())
        (weight @ weight).sum().backward()
        with torch.cuda.stream(side):
            weight.grad.add_(1)

    (found,) = look(case)
    assert (found.rule, found.site.expression) == ("HAZ403", "weight.grad.add_(1)")


def test_streams_of_the_generic_classes_race_too() -> None:
    def case() -> None:
        a = torch.empty(N, device="cuda").normal_()
        generic = torch.Stream("cuda")
        torch.accelerator.set_stream(generic)
        try:
            a.sum()
        finally:
            torch.accelerator.set_stream(torch.cuda.default_stream())

    if not hasattr(torch, "accelerator"):
        pytest.skip("this PyTorch has no torch.accelerator")
    assert rules(case) == ["HAZ403"]


def test_the_verdict_is_the_same_each_time(side: Any) -> None:
    def case() -> None:
        a = torch.empty(64, device="cuda").normal_()
        host = a.to("cpu", non_blocking=True)
        with torch.cuda.stream(side):
            a.sum()
        host.sum()

    assert {tuple(rules(case)) for _ in range(10)} == {("HAZ401", "HAZ403")}


def test_a_line_in_a_loop_is_one_finding_that_counts_each_time() -> None:
    def case() -> None:
        for _ in range(5):
            on_device().to("cpu", non_blocking=True).sum()

    (found,) = look(case)
    assert found.count == 5
