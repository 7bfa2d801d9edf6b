"""Correct programs on a real GPU: nothing is found in them. The verdict never depends on timing."""

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
    pytest.mark.usefixtures("nothing_left_behind"),
]

from tests.collect.hazards.on_gpu import N, look, on_device, pinned, rules  # noqa: E402


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
