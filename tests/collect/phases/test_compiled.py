"""Generation by a compiled function: the calls of modules in it are in compiled code, and its runs tell the steps."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="the hooks are PyTorch's")
output_code = pytest.importorskip("torch._inductor.output_code", reason="graphs are Inductor's")

from tests.collect.phases.following import X, learn, model, sgd  # noqa: E402
from tests.collect.phases.test_gradients import no_optimiser  # noqa: E402, F401


@pytest.fixture(autouse=True)
def compiles_anew() -> Iterator[None]:
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


class Graph:
    """Compiled code without a compiler."""

    def __init__(self, run: Any) -> None:
        self.run = run

    def __call__(self, inputs: Any) -> Any:
        return self.run(inputs)


@pytest.fixture
def graphs(monkeypatch: pytest.MonkeyPatch) -> type:
    """Stands in for PyTorch's class of what Inductor compiled."""
    kind = type("CompiledFxGraph", (Graph,), {"__call__": Graph.__call__})
    monkeypatch.setattr(output_code, "CompiledFxGraph", kind)
    return kind


def decode(graph: Any, length: int) -> None:
    for _ in range(length):
        graph([X])


def test_each_run_of_a_compiled_function_ends_a_step_of_generation(graphs: type, run: Any) -> None:
    places: list[str] = []
    graph = graphs(lambda _: places.append(run.here()))
    with torch.no_grad():
        for _ in range(3):
            decode(graph, 40)
    assert run.turns == ["generate"]
    assert run.steps == {"generate": 120}
    assert places == ["generate"] * 120


def test_a_graph_in_the_call_of_a_module_is_part_of_it(graphs: type, run: Any) -> None:
    graph = graphs(lambda inputs: inputs[0])
    net = torch.nn.Sequential(torch.nn.Identity()).eval()
    net[0].forward = lambda _: graph([X])
    with torch.no_grad():
        for _ in range(40):
            net(X)
    assert run.steps == {"evaluate": 40}


def test_graphs_of_a_training_and_of_its_optimiser_are_none_of_its_steps(graphs: type, run: Any) -> None:
    net, graph = model(), graphs(lambda inputs: inputs[0])
    optimizer = sgd(net)
    for _ in range(40):
        learn(net, optimizer)
        graph([X])
        with torch.no_grad():
            for _ in range(20):
                graph([X])
    assert run.steps == {"train": 40}
    assert graphs.__call__ is Graph.__call__  # PyTorch is left alone


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_function_that_inductor_compiled(run: Any) -> None:
    net = model().eval()

    def one(x: Any) -> Any:
        return net(x).sum() * X

    compiled = torch.compile(one, fullgraph=True)

    def sample(x: Any, length: int) -> None:
        for _ in range(length):
            x = compiled(x)

    with torch.no_grad():
        sample(X, 40)
    assert run.turns == ["generate"]
    assert run.steps == {"generate": 40}
