"""A policy that acts in the loop around its updates, and modules that are no part of the model."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="the hooks are PyTorch's")

from tests.collect.phases.following import X, following, learn, model, sgd  # noqa: E402


def act(net: Any) -> None:
    with torch.no_grad():
        net(X)


def test_a_policys_steps_around_its_updates_are_a_rollout() -> None:
    """Fifty updates every fifty steps; before the first ones it acts at random."""
    net = model()
    optimizer = sgd(net)
    with following() as run:
        for step in range(240):
            if step >= 80:
                act(net)
            if step % 40 == 39:
                for _ in range(10):
                    learn(net, optimizer)
    assert run.phase("train").steps == 60
    assert 150 <= run.phase("rollout").steps <= 160
    assert run.turns == ["train", "rollout"]


def test_it_is_one_rollout_where_it_came_before_the_first_update() -> None:
    net = model()
    optimizer = sgd(net)
    with following() as run:
        for step in range(300):
            act(net)
            if step % 100 == 99:
                for _ in range(10):
                    learn(net, optimizer)
    assert run.turns == ["rollout", "train"]
    assert run.steps == {"rollout": 300, "train": 30}


def test_the_loop_over_the_layers_in_a_forward_that_is_called_by_its_name_makes_no_steps() -> None:
    class Policy(torch.nn.Module):  # type: ignore[misc,name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.layers, self.head = torch.nn.ModuleList([torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)]), model()

        def forward(self, x: Any) -> Any:
            for layer in self.layers:
                x = torch.tanh(layer(x))
            return self.head(x)

        def select_action(self, x: Any) -> Any:
            return self.forward(x)

    policy = Policy()
    optimizer = sgd(policy)
    with following() as run:
        for _ in range(4):
            for _ in range(50):
                with torch.no_grad():
                    policy.select_action(X)
            for _ in range(10):
                learn(policy, optimizer)
    assert run.turns == ["rollout", "train"]
    assert run.steps == {"rollout": 200, "train": 40}


def test_a_few_calls_between_two_rounds_of_the_training_are_part_of_it() -> None:
    net = model()
    optimizer = sgd(net)
    with following() as run:
        for _ in range(20):
            for _ in range(10):
                learn(net, optimizer)
            act(net)
            act(net)
    assert run.sequence == ["train"]


def test_a_policy_that_a_function_for_rollouts_switches_out_of_training_is_a_rollout() -> None:
    """As in stable-baselines3, with the value of what it saw last after the loop."""
    net, features, value = model(), model(), torch.nn.Linear(2, 1)
    optimizer = sgd(net)

    def sample_action() -> None:
        with torch.no_grad():
            net(X)

    def predict_values() -> None:
        with torch.no_grad():
            features(X)
            value(X)

    def collect_rollouts(length: int) -> None:
        net.eval(), features.eval(), value.eval()
        for _ in range(length):
            sample_action()
        predict_values()

    def train() -> None:
        net.train()
        for _ in range(10):
            learn(net, optimizer)

    def evaluate_policy() -> None:
        for _ in range(7):
            act(net)

    with following() as run:
        for iteration in range(30):
            collect_rollouts(20)
            train()
            if iteration % 10 == 9:
                net.eval()
                evaluate_policy()
    assert run.steps == {"rollout": 600, "train": 300, "evaluate": 21}
    assert run.sequence[:3] == ["rollout", "train", "rollout"]


class Transformed:
    """Its transforms are modules, called in a loop, as torchvision's are."""

    def __init__(self) -> None:
        self.transforms = [torch.nn.Flatten(0), torch.nn.Identity()]

    def __len__(self) -> int:
        return 12

    def __getitem__(self, index: int) -> Any:
        item = torch.ones(2)
        for transform in self.transforms:
            item = transform(item)
        return item


def test_transforms_of_a_dataset_that_are_modules_join_no_phases() -> None:
    net = model()
    optimizer = sgd(net)

    def train(batches: Any) -> None:
        for x in batches:
            learn(net, optimizer, x)

    def test(batches: Any) -> None:
        with torch.no_grad():
            for x in batches:
                net(x)

    batches = torch.utils.data.DataLoader(Transformed(), batch_size=3)
    with following() as run:
        for _ in range(3):
            train(batches)
            test(batches)
    assert run.steps == {"train": 12, "evaluate": 12}


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("_sample_training_data", "rollout"),
        ("sample_trajectories", "rollout"),
        ("sample_images", "generate"),
        ("sampling", "generate"),
    ],
)
def test_a_function_that_samples_what_is_learned_from_generates_nothing(name: str, kind: str) -> None:
    net = model()
    optimizer = sgd(net)
    space: dict[str, Any] = {"act": lambda: net(X), "torch": torch}
    loop = f"def {name}():\n    for _ in range(50):\n        with torch.no_grad():\n            act()\n"
    exec(compile(loop, __file__, "exec"), space)
    with following() as run:
        for _ in range(4):
            space[name]()
            for _ in range(10):
                learn(net, optimizer)
    assert run.steps == {kind: 200, "train": 40}


def test_a_rollout_before_each_update_in_the_loop_of_the_training_is_one_where_its_function_says_so() -> None:
    """Not an evaluation after every so many steps. The first update is part of the loop that trains."""
    net = model()
    optimizer = sgd(net)

    def _sample_training_data() -> None:
        for _ in range(50):
            act(net)

    with following() as run:
        for _ in range(6):
            _sample_training_data()
            for _ in range(4):
                for _ in range(4):
                    learn(net, optimizer)
            learn(net, optimizer)
    assert run.steps == {"rollout": 300, "train": 6 * 17}


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("_collect", "rollout"),
        ("collect_episodes", "rollout"),
        ("select_action", "rollout"),
        ("collect_outputs", "evaluate"),
        ("evaluate_action", "evaluate"),
        ("get_outputs", "evaluate"),
    ],
)
def test_a_policy_in_evaluation_mode_acts_where_its_function_says_so(name: str, kind: str) -> None:
    net = model()
    optimizer = sgd(net)
    space: dict[str, Any] = {"net": net, "X": X}
    exec(compile(f"def {name}():\n    for _ in range(50):\n        net(X)\n", __file__, "exec"), space)
    with following() as run:
        for _ in range(4):
            net.eval()
            space[name]()
            net.train()
            for _ in range(10):
                learn(net, optimizer)
    assert run.steps == {kind: 200, "train": 40}
