"""The order that autograd's engine gives the streams of a backward pass, on a machine without a device.

The engine runs nodes of CPU tensors on the calling thread. What stands for its choice of a stream for a node is an
assignment to the fake runtime; the program's own choice goes through ``torch._C._cuda_setStream``.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="races are looked for in PyTorch programs")

from tests.collect.hazards.fake import MAIN, SIDE, Bench  # noqa: E402


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    bench = Bench()
    monkeypatch.setattr(torch._C, "_cuda_setStream", lambda stream: _set(bench, stream), raising=False)
    with bench:
        yield bench


def _set(bench: Bench, stream: int) -> None:
    bench.runtime.current = stream


def backward(in_node: Callable[[], Any]) -> None:
    """A backward pass with one node, which calls ``in_node``."""

    class Node(torch.autograd.Function):  # type: ignore[misc, name-defined]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x.clone()

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            in_node()
            return grad

    Node.apply(torch.ones(2, requires_grad=True)).sum().backward()


def test_a_node_on_another_stream_comes_after_the_callers_stream_and_before_what_follows(bench: Bench) -> None:
    a = bench.runtime.on_device(torch.ones(8))

    def node() -> None:
        with bench.runtime.on_stream(SIDE):
            a.mul_(2)

    a.normal_()
    backward(node)
    a.sum()
    assert bench.rules() == []


def test_a_stream_that_is_not_in_the_pass_is_not_ordered(bench: Bench) -> None:
    a = bench.runtime.on_device(torch.ones(8))
    with bench.runtime.on_stream(SIDE):
        a.normal_()
    backward(lambda: a.sum())
    assert bench.rules() == ["HAZ403"]


def test_the_host_has_not_waited_for_a_pass(bench: Bench) -> None:
    x = bench.runtime.on_device(torch.ones(8))
    kept: list[Any] = []
    backward(lambda: kept.append(x.to("cpu", non_blocking=True, copy=True)))
    kept[0].sum()
    assert bench.rules() == ["HAZ401"]


def test_a_stream_that_a_hook_chooses_is_the_programs_affair(bench: Bench) -> None:
    a = bench.runtime.on_device(torch.ones(8))

    def hook() -> None:
        a.normal_()
        torch._C._cuda_setStream(SIDE)
        a.sum()
        torch._C._cuda_setStream(MAIN)
        a.mean()  # back on the node's stream: in order with normal_

    backward(hook)
    (event,) = bench.events()
    assert (event.rule, event.access.op, event.earlier.op) == ("HAZ403", "aten::sum", "aten::normal_")


def test_what_a_hook_leaves_on_its_own_stream_races_with_what_follows(bench: Bench) -> None:
    a = bench.runtime.on_device(torch.ones(8))

    def hook() -> None:
        torch._C._cuda_setStream(SIDE)
        a.normal_()
        torch._C._cuda_setStream(MAIN)

    backward(hook)
    a.sum()
    assert bench.rules() == ["HAZ403"]


def test_a_hook_that_orders_its_stream_is_silent(bench: Bench) -> None:
    a = bench.runtime.on_device(torch.ones(8))

    def hook() -> None:
        a.normal_()
        bench.wait_stream(SIDE, MAIN)
        torch._C._cuda_setStream(SIDE)
        a.mul_(2)
        torch._C._cuda_setStream(MAIN)
        bench.wait_stream(MAIN, SIDE)

    backward(hook)
    a.sum()
    assert bench.rules() == []


def test_a_pass_inside_of_a_pass_is_ordered_too(bench: Bench) -> None:
    a = bench.runtime.on_device(torch.ones(8))

    def inner() -> None:
        with bench.runtime.on_stream(SIDE):
            a.mul_(2)

    def outer() -> None:
        a.normal_()
        with torch.enable_grad():
            backward(inner)
        a.sum()

    backward(outer)
    a.mean()
    assert bench.rules() == []


def test_an_error_in_a_node_passes_through_and_the_next_pass_starts_anew(bench: Bench) -> None:
    def fail() -> None:
        raise KeyError("in the node")

    with pytest.raises(KeyError, match="in the node"):
        backward(fail)
    a = bench.runtime.on_device(torch.ones(8))
    a.normal_()
    with bench.runtime.on_stream(SIDE):
        a.sum()  # outside of a pass nothing is ordered
    assert bench.rules() == ["HAZ403"]


def test_a_pass_of_another_thread_is_left_alone(bench: Bench) -> None:
    a = bench.runtime.on_device(torch.ones(8))
    inside, go = threading.Event(), threading.Event()

    def node() -> None:
        inside.set()
        assert go.wait(10)

    thread = threading.Thread(target=backward, args=(node,))
    thread.start()
    assert inside.wait(10)
    a.normal_()
    with bench.runtime.on_stream(SIDE):
        a.sum()
    go.set()
    thread.join()
    assert bench.rules() == ["HAZ403"]


def test_the_engine_does_what_else_it_is_asked(bench: Bench) -> None:
    called: list[int] = []
    engine = torch.autograd.Variable._execution_engine
    backward(lambda: engine.queue_callback(lambda: called.append(1)))
    assert called == [1]
    assert engine.is_checkpoint_valid()
