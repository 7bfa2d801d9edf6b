"""Which calls of modules with gradients are told of a training: few, and enough to tell when it is over."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="the hooks are PyTorch's")

from tests.collect.phases.following import X, learn, model, sgd  # noqa: E402


@pytest.fixture
def told(run: Any, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The modes of the calls that were told."""
    modes: list[str] = []
    original = run.tracker.module_called

    def module_called(frame: Any, module: Any, event: str) -> None:
        modes.append(event)
        original(frame, module, event)

    monkeypatch.setattr(run.tracker, "module_called", module_called)
    return modes


def test_a_policy_that_acts_with_gradients_between_its_updates(run: Any) -> None:
    net, value = model(), model()
    optimizer = sgd(net)

    def train() -> None:
        for _ in range(4):
            value(X)
            learn(net, optimizer)

    for _ in range(40):
        for _ in range(20):
            net(X)
        train()
    assert 800 - 20 <= run.steps["other"] <= 800 + 40  # the first call of each update may pass for one
    assert run.steps["train"] == 160


def test_letters_are_drawn_in_training_mode_now_and_then(run: Any) -> None:
    """As char-rnn does: each step of its training calls a network for each letter."""
    net, loss = model(), torch.nn.MSELoss()
    optimizer = sgd(net)

    def train() -> None:
        total = 0.0
        for _ in range(20):
            total = total + loss(net(X), X[:, :1])
        total.backward()  # type: ignore[attr-defined]
        optimizer.step()

    def generate() -> None:
        for _ in range(100):
            net(X)

    for step in range(200):
        train()
        if step % 40 == 39:
            generate()
    assert run.steps["train"] == 200
    assert 450 <= run.steps["generate"] <= 500


def test_few_calls_are_told_where_each_step_has_as_many(run: Any, told: list[str]) -> None:
    net, value = model(), model()
    optimizer = sgd(net)
    for _ in range(300):
        for _ in range(50):
            value(X)
        learn(net, optimizer)
    assert run.steps == {"train": 300}
    assert len(told) < 51 * 3 + 30


def test_few_calls_are_told_in_loops_around_the_training(run: Any, told: list[str]) -> None:
    net = model()
    optimizer = sgd(net)
    for step in range(3_000):
        if step % 300 == 0:
            for _ in range(10):
                learn(net, optimizer)
        net(X)
    assert run.steps["train"] == 100
    assert len(told) < 3_000 / 10


def test_actions_are_chosen_with_gradients_in_the_loop_around_the_updates(run: Any) -> None:
    net, value = model(), model()
    optimizer = sgd(net)

    def choose_action() -> None:
        net(X)
        value(X)

    def learn_from_them() -> None:
        for _ in range(4):
            for _ in range(4):
                value(X)
                learn(net, optimizer)

    for step in range(1_000):
        choose_action()
        if step % 20 == 19:
            learn_from_them()
    assert run.steps["train"] == 800
    assert 950 <= run.steps["rollout"] <= 1_000 + 50  # the first call of each update may pass for one
    assert run.turns[-2:] == ["rollout", "train"]
