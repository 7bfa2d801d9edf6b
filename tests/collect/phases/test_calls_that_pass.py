"""Calls of a short step that pass by themselves: what may change meanwhile, and what Dynamo and fx see of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="the hooks are PyTorch's")

from syncscope.collect.phases.traces import GRAPH, TraceBegins  # noqa: E402
from tests.collect.phases.following import Followed, Time, X, model  # noqa: E402

pytestmark = pytest.mark.usefixtures("nothing_is_compiled")


@pytest.fixture
def run(run_in_time: Followed) -> Followed:
    return run_in_time


def act(run: Followed, call: Callable[[], Any], time: Time) -> bool:
    """Act until calls pass by themselves. Returns whether any did."""
    lent = run.tracker.expected.lent
    with torch.no_grad():
        for acted in range(2_000):
            call()
            time.now += 20_000
            if acted > 1_000 and any(loan.used == 5 for loan in lent.values()):
                return True
    return False


class Noting(torch.nn.Module):  # type: ignore[misc, name-defined]
    """Returns what it was given."""

    def forward(self, *given: Any, **named: Any) -> Any:
        return given, named


def test_what_is_passed_on_is_what_was_given(run: Followed, time: Time) -> None:
    net = Noting()
    assert act(run, lambda: net(X), time)
    with torch.no_grad():
        assert net(X) == ((X,), {})
        assert net() == ((), {})
        assert net(None) == ((None,), {})
        assert net(X, 1) == ((X, 1), {})
        assert net(X, name=1) == ((X,), {"name": 1})
        assert net(name=1) == ((), {"name": 1})


def test_a_copy_of_the_module_does_not_pass_for_it(run: Followed, time: Time) -> None:
    net = Noting()
    other = Noting()
    assert act(run, lambda: net(X), time)
    used = [loan.used for loan in run.tracker.expected.lent.values()]
    assert max(used) == 5
    with torch.no_grad():
        other(X)
    assert not run.tracker.expected.lent


def test_a_module_with_a_hook_is_looked_at(run: Followed, time: Time) -> None:
    net = model()
    net.register_full_backward_pre_hook(lambda *given: None)
    assert not act(run, lambda: net(X), time)
    assert run.phase("rollout").steps >= 1_999


class Doubling(torch.nn.Module):  # type: ignore[misc, name-defined]
    """Has a call of its own."""

    def __call__(self, x: Any) -> Any:
        return 2 * super().__call__(x)

    def forward(self, x: Any) -> Any:
        return x


def test_a_class_with_a_call_of_its_own_is_looked_at(run: Followed, time: Time) -> None:
    net = Doubling()
    assert not act(run, lambda: net(X), time)
    assert sum(run.steps.values()) >= 1_999


def compile_one(net: Any) -> Any:
    return torch.compile(net, backend="eager")(X)


def export(net: Any) -> Any:
    return torch.export.export(net, (X,), strict=True)


@pytest.mark.parametrize("trace", [compile_one, export])
def test_no_call_passes_by_itself_once_dynamo_has_traced(
    run: Followed, time: Time, trace: Callable[[Any], Any]
) -> None:
    net = model()
    assert act(run, lambda: net(X), time)
    with torch.no_grad():
        trace(net)
    assert not run.tracker.expected.lent
    assert not act(run, lambda: net(X), time)


def test_nothing_is_compiled_again_for_calls_that_passed(run: Followed, time: Time) -> None:
    net, compiled = model(), 0

    def count(graph: Any, examples: Any) -> Any:
        nonlocal compiled
        compiled += 1
        return graph.forward

    function = torch.compile(lambda x: net(x) + 1, backend=count)
    assert act(run, lambda: net(X), time)
    with torch.no_grad():
        for _ in range(5):
            function(X)
            act(run, lambda: net(X), time)
    assert compiled == 1


def test_a_trace_is_heard_also_where_dynamo_is_imported_later() -> None:
    heard: list[bool] = []
    traces = TraceBegins(lambda: heard.append(True), lambda error: None)
    traces.open(torch)
    try:
        torch.compile(lambda x: x + 1, backend="eager")(X)
        assert heard and traces.certain
    finally:
        traces.close()
    known = len(heard)
    torch.compile(lambda x: x + 2, backend="eager")(X)
    assert len(heard) == known


def test_it_is_not_certain_where_dynamo_has_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    from torch._dynamo import output_graph

    assert output_graph.__name__ == GRAPH
    traces = TraceBegins(lambda: None, lambda error: None)
    monkeypatch.setattr(output_graph, "OutputGraph", None)
    traces.open(torch)
    try:
        assert not traces.certain
    finally:
        traces.close()


def test_fx_sees_a_call_that_passes_as_any_other(run: Followed, time: Time) -> None:
    leaf = torch.nn.Linear(2, 2)
    net = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU())
    assert act(run, lambda: leaf(X), time)
    nodes = [node.op for node in torch.fx.symbolic_trace(net).graph.nodes]
    assert nodes == ["placeholder", "call_module", "call_module", "output"]
