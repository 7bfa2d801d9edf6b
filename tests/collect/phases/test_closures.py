"""A whole training in one step of L-BFGS: each evaluation of its closure is a step."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="the hooks are PyTorch's")

from tests.collect.phases.following import X, model  # noqa: E402

gather = torch.optim.LBFGS._gather_flat_grad


class Training:
    """Fits two models to be far from what they are, and counts its evaluations."""

    def __init__(self, run: Any, **options: Any) -> None:
        self.net, self.other = torch.nn.Linear(2, 1), model()
        parameters = [*self.net.parameters(), *self.other.parameters()]
        self.optimizer = torch.optim.LBFGS(parameters, tolerance_change=0, tolerance_grad=0, **options)
        self.kinds: set[str] = set()
        self.evaluations = 0
        self._run = run

    def closure(self) -> Any:
        self.optimizer.zero_grad()
        residual = self.net(X) - 3 + 0.1 * self.other(X).sin() + 0.1 * self.other(X + 1).cos()
        loss = residual.square().square().mean() + 0.01 * residual.cosh().mean()
        loss.backward()
        self.evaluations += 1
        if self.evaluations > 2:
            self.kinds.add(self._run.here())
        return loss

    def train(self) -> None:
        self.optimizer.step(self.closure)


@pytest.mark.parametrize("search", [None, "strong_wolfe"])
def test_each_evaluation_is_a_step_where_the_training_is_one_step(run: Any, search: str | None) -> None:
    torch.manual_seed(0)
    training = Training(run, max_iter=60, line_search_fn=search)
    training.train()
    assert training.evaluations > 25
    phase = run.phase("train")
    assert (phase.steps, phase.source) == (training.evaluations, "optimizer")
    assert training.kinds == {"train"}
    training.other.eval()
    training.other(X)
    assert run.here() == "epoch end"
    assert phase.steps == training.evaluations
    training.other.train()
    training.train()
    assert run.phase("train").steps == training.evaluations


def test_few_iterations_in_each_step_are_no_steps(run: Any) -> None:
    training = Training(run, max_iter=5)
    for _ in range(4):
        training.train()
    assert run.steps == {"train": 4}


def test_many_iterations_in_each_step_of_a_loop_are_steps_of_the_loop(run: Any) -> None:
    training = Training(run, max_iter=40)
    for _ in range(3):
        training.train()
    assert run.steps == {"train": training.evaluations}


def test_the_optimizer_is_left_as_it_was(run: Any) -> None:
    assert torch.optim.LBFGS._gather_flat_grad is not gather
    run.signals.detach()
    assert torch.optim.LBFGS._gather_flat_grad is gather
