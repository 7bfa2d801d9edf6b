"""Races between streams on a real GPU (HAZ403). The verdict never depends on timing."""

from __future__ import annotations

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
