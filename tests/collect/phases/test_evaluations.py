"""Evaluations that share the training's loop, or leave the model in training mode."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="the hooks are PyTorch's")

from tests.collect.phases.following import X, learn, loader, model, sgd  # noqa: E402

ZEROS = torch.zeros(3, 1)


def batches(loader: Any) -> Iterator[Any]:
    """Those of ``loader``, read one ahead."""
    before = None
    for x in loader:
        if before is not None:
            yield before
        before = x
    yield before


def test_training_and_validation_by_one_loop_over_numbers_are_two_phases(run: Any) -> None:
    """Nothing but ``eval()`` tells that the loop has begun again, in the same frame."""
    net, criterion = model(), torch.nn.MSELoss()
    optimizer = sgd(net)
    places = []
    for _ in range(4):
        for mode in ("train", "val"):
            net.train(mode == "train")
            for _ in range(8):
                with torch.set_grad_enabled(mode == "train"):
                    loss = criterion(net(X), ZEROS)
                if mode == "train":
                    loss.backward()
                    optimizer.step()
                else:
                    places.append(run.here())
    assert run.turns == ["train", "evaluate"]
    assert run.steps == {"train": 32, "evaluate": 32}
    assert places == ["evaluate"] * 32


def test_a_network_that_is_asked_before_each_step_of_its_training_is_no_evaluation(run: Any) -> None:
    net = model()
    optimizer = sgd(net)

    def predict() -> Any:
        return net(X)

    for _ in range(20):
        net.eval()
        with torch.no_grad():
            predict()
        net.train()
        predict().sum().backward()
        optimizer.step()
    assert run.steps == {"train": 20}


def test_a_loss_that_is_a_module_is_part_of_the_evaluation_in_the_training_loop(run: Any) -> None:
    net, criterion = model(), torch.nn.MSELoss()
    optimizer = sgd(net)
    places = []

    def epoch(training: bool) -> None:
        net.train(training)
        for x in loader(6):
            with torch.set_grad_enabled(training):
                loss = criterion(net(x), ZEROS)
            if training:
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            else:
                places.append(run.here())

    for _ in range(3):
        epoch(training=True)
        epoch(training=False)
    assert run.turns == ["train", "epoch end", "evaluate"]
    assert run.steps == {"train": 18, "evaluate": 18}
    assert set(places) == {"evaluate"}


def test_a_loss_is_part_of_the_evaluation_also_with_gradients(run: Any) -> None:
    net, criterion = model(), torch.nn.MSELoss()
    optimizer = sgd(net)

    def epoch(training: bool) -> None:
        net.train(training)
        for _ in range(8):
            optimizer.zero_grad()
            loss = criterion(net(X), ZEROS)
            if training:
                loss.backward()
                optimizer.step()

    for _ in range(3):
        epoch(training=True)
        epoch(training=False)
    assert run.turns == ["train", "evaluate"]
    assert run.steps == {"train": 24, "evaluate": 24}


def test_an_evaluation_in_an_expression_does_not_end_the_training(run: Any) -> None:
    net, teacher = model(), model().eval()
    optimizer = sgd(net)
    for number, x in enumerate(loader(60)):
        with torch.no_grad():
            teacher(x)
        learn(net, optimizer, x)
        if number % 20 == 19:
            net.eval()
            with torch.no_grad():
                sum(net(y).sum() for y in loader(10))
            net.train()
    assert run.sequence[-6:] == ["evaluate", "train", "evaluate", "train", "evaluate", "epoch end"]
    assert run.steps == {"train": 60, "evaluate": 30}


def test_a_teacher_that_each_step_asks_first_is_part_of_the_training(run: Any) -> None:
    net, teacher = model(), model().eval()
    optimizer = sgd(net)
    frames = []  # none is used again

    def train_one_epoch() -> None:
        frames.append(sys._getframe())
        for x in loader(10):
            with torch.no_grad():
                target = teacher(x)
            optimizer.zero_grad()
            (net(x) - target).sum().backward()
            optimizer.step()

    for _ in range(5):
        train_one_epoch()
    assert run.steps == {"train": 50}
    assert run.sequence[-6:] == ["train", "epoch end"] * 3


def test_a_teacher_in_the_function_that_evaluates_too(run: Any) -> None:
    net, teacher = model(), model().eval()
    optimizer = sgd(net)
    frames = []

    def epoch(training: bool) -> None:
        frames.append(sys._getframe())
        net.train(training)
        for x in loader(10):
            if training:
                with torch.no_grad():
                    target = teacher(x)
                optimizer.zero_grad()
                (net(x) - target).sum().backward()
                optimizer.step()
            else:
                with torch.no_grad():
                    net(x)

    for _ in range(5):
        epoch(training=True)
        epoch(training=False)
    assert run.sequence[-6:] == ["train", "epoch end", "evaluate"] * 2
    assert run.steps["train"] == 50
    assert 50 <= run.steps["evaluate"] <= 53


def test_one_loop_over_two_loaders_trains_and_evaluates(run: Any) -> None:
    net, criterion = model(), torch.nn.MSELoss()
    optimizer = sgd(net)
    loaders = {"train": loader(6), "val": loader(4)}
    for _ in range(3):
        for phase in ("train", "val"):
            net.train(phase == "train")
            for x in loaders[phase]:
                optimizer.zero_grad()
                with torch.set_grad_enabled(phase == "train"):
                    loss = criterion(net(x), ZEROS)
                    if phase == "train":
                        loss.backward()
                        optimizer.step()
    assert run.turns == ["train", "epoch end", "evaluate"]
    assert run.steps == {"train": 18, "evaluate": 12}


def test_an_engine_of_generators_trains_and_evaluates(run: Any) -> None:
    class Engine:
        def __init__(self, process: Callable[[Any], Any], at_end: Callable[[], Any]) -> None:
            self.process, self.at_end = process, at_end

        def run(self, batches: Any, epochs: int) -> None:
            with pytest.raises(StopIteration):
                next(self.epochs(batches, epochs))

        def epochs(self, batches: Any, epochs: int) -> Iterator[None]:
            for _ in range(epochs):
                yield from self.once(iter(batches), len(batches))
                self.at_end()

        def once(self, batches: Any, length: int) -> Iterator[None]:
            done = 0
            while True:
                self.process(next(batches))
                done += 1
                if done == length:
                    return
                yield from ()

    net, criterion = model(), torch.nn.MSELoss()
    optimizer = sgd(net)

    def update(x: Any) -> None:
        net.train()
        optimizer.zero_grad()
        criterion(net(x), ZEROS).backward()
        optimizer.step()

    def evaluate(x: Any) -> None:
        net.eval()
        with torch.no_grad():
            criterion(net(x), ZEROS)

    evaluator = Engine(evaluate, lambda: None)
    Engine(update, lambda: evaluator.run(loader(4), 1)).run(loader(6), 3)
    assert run.turns == ["train", "evaluate"]
    assert run.steps == {"train": 18, "evaluate": 12}


def test_a_function_that_says_so_evaluates_also_in_training_mode_with_gradients(run: Any) -> None:
    net = model()
    optimizer = sgd(net)
    places = []

    def inference() -> None:
        for x in loader(5):
            net(x)
            places.append(run.here())

    for number, x in enumerate(loader(60)):
        learn(net, optimizer, x)
        if number % 20 == 19:
            inference()
    assert run.turns[:2] == ["train", "evaluate"]
    assert run.steps == {"train": 60, "evaluate": 15}
    assert set(places) == {"evaluate"}


def test_batches_inside_of_each_training_step_are_part_of_it(run: Any) -> None:
    net = model()
    optimizer = sgd(net)

    def train_and_evaluate() -> None:
        for _ in range(20):
            optimizer.zero_grad()
            for x in loader(3):
                net(x).sum().backward()
            optimizer.step()

    train_and_evaluate()
    assert run.steps == {"train": 20}
    assert set(run.sequence) <= {"train", "epoch end"}


def test_generation_in_training_mode_after_the_training(run: Any) -> None:
    net = model()
    optimizer = sgd(net)
    for _ in range(100):
        learn(net, optimizer)

    def generate(length: int) -> None:
        for _ in range(length):
            net(X)

    generate(300)
    assert run.sequence == ["train", "generate"]
    assert run.steps["train"] == 100
    assert 298 <= run.steps["generate"] <= 300


def learn_and_evaluate(run: Any, loaders: dict[str, Any]) -> list[str]:
    """One loop that learns and evaluates, three times each; where the program is at each batch."""
    net = model()
    optimizer = sgd(net)
    places = []
    for _ in range(3):
        for mode in ("train", "val"):
            net.train(mode == "train")
            for x in loaders[mode]:
                places.append(run.here())
                with torch.set_grad_enabled(mode == "train"):
                    loss = net(x).sum()
                if mode == "train":
                    optimizer.zero_grad()
                    loss.backward()
                    optimizer.step()
    return places


def test_a_loop_that_evaluates_what_it_learns_from_is_no_training_before_its_first_call(run: Any) -> None:
    batches = loader(6)
    places = learn_and_evaluate(run, {"train": batches, "val": batches})
    assert run.steps == {"train": 18, "evaluate": 18}
    assert places[:6] == ["start", *["train"] * 5]
    assert places[6:12] == ["train", *["evaluate"] * 5]  # once
    assert places[12:] == ["evaluate", *["train"] * 5, "epoch end", *["evaluate"] * 5] * 2


def test_a_training_begins_again_with_the_first_batch_after_an_evaluation_by_its_loop(run: Any) -> None:
    places = learn_and_evaluate(run, {"train": loader(6), "val": loader(4)})
    assert run.steps == {"train": 18, "evaluate": 12}
    assert places == ["start", *["train"] * 5, *["epoch end", *["evaluate"] * 3, *["train"] * 6] * 2,
                      "epoch end", *["evaluate"] * 3]  # fmt: skip


def test_pictures_by_the_function_that_trains_are_an_evaluation_in_training_mode_too(run: Any) -> None:
    """The innermost loop, over parts of the rays, is that of the training: the loop over pictures tells."""
    net = model()
    optimizer = sgd(net)
    places = []

    def render(rays: Any) -> Any:
        parts = []
        for part in rays.split(3):
            parts.append(net(part))
        return torch.cat(parts)

    @torch.no_grad()
    def show() -> None:
        for _ in range(4):
            render(torch.ones(9, 2))
            places.append(run.here())

    for number in range(80):
        render(X).sum().backward()
        optimizer.step()
        if number % 20 == 19:
            show()
            places.append(run.here())
    assert run.turns == ["train", "evaluate"]
    assert run.steps["train"] == 80
    assert places == [*["evaluate"] * 4, "train"] * 4


def test_targets_by_the_function_that_trains_are_part_of_each_step(run: Any) -> None:
    net = model()
    optimizer = sgd(net)

    def render(rays: Any) -> Any:
        parts = []
        for part in rays.split(3):
            parts.append(net(part))
        return torch.cat(parts)

    def targets() -> Any:
        with torch.no_grad():
            for _ in range(2):
                target = render(X)
        return target

    for _ in range(60):
        (render(X) - targets()).sum().backward()
        optimizer.step()
    assert run.steps == {"train": 60}
    assert run.sequence[-1] == "train"


def test_what_waits_between_a_first_evaluation_and_the_training_is_of_neither(run: Any) -> None:
    """An agent that is evaluated, acts at random for long, and learns only then."""
    net = model()
    optimizer = sgd(net)
    places = []

    def evaluate() -> None:
        net.eval()
        for _ in range(20):
            with torch.no_grad():
                net(X)
            places.append(run.here())
        net.train()

    for step in range(60):
        if step % 30 == 0:
            evaluate()
        places.append(run.here())
        if step >= 40:
            learn(net, optimizer)
    assert places == ["evaluate"] * 20 + ["start"] * 30 + ["evaluate"] * 20 + ["start"] * 11 + ["train"] * 19
    assert run.steps == {"evaluate": 40, "train": 20}


def test_what_follows_an_evaluation_is_no_step_of_a_training_whose_loop_is_over(run: Any) -> None:
    """Trainings in turn without a loader: each makes a network, and reads the best one for a last evaluation."""
    places = []

    def train(net: Any, optimizer: Any) -> None:
        for _ in range(10):
            learn(net, optimizer)
            places.append(run.here())

    def evaluate(net: Any) -> None:
        net.eval()
        for _ in range(4):
            with torch.no_grad():
                net(X)
        net.train()

    for _ in range(3):
        net = model()
        places.append(run.here())  # it is moved to the device
        train(net, sgd(net))
        evaluate(net)
        places.append(run.here())  # whether it is the best
        evaluate(net)
    assert places == ["start", *["train"] * 10, *["epoch end", "epoch end", *["train"] * 10] * 2, "epoch end"]
    assert run.steps == {"train": 30, "evaluate": 24}


def test_what_follows_an_evaluation_in_the_training_loop_is_part_of_the_step(run: Any) -> None:
    net = model()
    optimizer = sgd(net)
    places = []
    for step in range(40):
        if step % 10 == 9:
            net.eval()
            for _ in range(4):
                with torch.no_grad():
                    net(X)
            net.train()
            places.append(run.here())
        learn(net, optimizer)
    assert places == ["train"] * 4


def test_what_an_engine_does_with_the_results_of_its_validation_is_no_step(run: Any) -> None:
    """One loop that trains and validates: the validation begins it again."""
    net = model()
    optimizer = sgd(net)
    places = []

    def epoch(batches: Any, step: Callable[[Any], None]) -> None:
        for x in batches:
            step(x)

    def update(x: Any) -> None:
        net.train()
        learn(net, optimizer, x)

    def validate(x: Any) -> None:
        net.eval()
        with torch.no_grad():
            net(x)

    for _ in range(3):
        epoch(loader(6), update)
        epoch(loader(4), validate)
        places.append(run.here())
    assert places == ["epoch end"] * 3


def test_a_loss_behind_the_last_batch_of_one_evaluation_ends_no_step_of_the_next(run: Any) -> None:
    """Each evaluation is of a network that has just been read."""
    criterion = torch.nn.MSELoss()

    def evaluate(net: Any) -> None:
        for _ in range(4):
            with torch.no_grad():
                output = net(X)
            criterion(output, ZEROS)

    for _ in range(3):
        run.here()  # it is moved to the device
        evaluate(model().eval())
    assert run.steps == {"evaluate": 12}


def test_evaluations_of_one_batch_of_new_networks_have_steps(run: Any) -> None:
    def evaluate(net: Any, batches: int) -> None:
        for _ in range(batches):
            with torch.no_grad():
                net(X)

    evaluate(model().eval(), 4)
    net = model().eval()
    for _ in range(6):
        evaluate(net, 1)
    assert run.steps == {"evaluate": 10}


def test_two_models_that_are_evaluated_in_turn_have_each_batch_as_a_step(run: Any) -> None:
    """A model and the mean of its weights. Both are known once the second one has been called twice."""
    net, mean, criterion = model(), model().eval(), torch.nn.MSELoss()
    optimizer = sgd(net)
    steps = []

    def evaluate(one: Any) -> None:
        for x in batches(loader(5)):
            with torch.no_grad():
                criterion(one(x), ZEROS)
            run.here()
            steps.append(run.phase("evaluate").steps)

    for _ in range(4):
        net.train()
        for x in batches(loader(6)):
            learn(net, optimizer, x)
        net.eval()
        evaluate(net)
        evaluate(mean)
    assert run.steps == {"train": 24, "evaluate": 40}
    assert steps[10:] == list(range(11, 41))


def test_a_module_that_ended_steps_before_is_no_step_behind_the_one_that_does_now(run: Any) -> None:
    """Pictures are first asked for by one network, then by another, then by both: a batch is a step each time."""
    first, second = model().eval(), model().eval()

    def ask(one: Any, other: Any = None) -> None:
        for _ in range(4):
            with torch.no_grad():
                one(X)
                if other is not None:
                    other(X)

    for networks in ((first,), (second,), (first, second), (second, first), (first,)):
        ask(*networks)
        run.here()  # the results are read
    assert run.steps == {"evaluate": 20}


@pytest.mark.parametrize(("every", "apart"), [(40, True), (1, False)])
def test_letters_that_are_drawn_with_gradients_now_and_then_are_a_generation(run: Any, every: int, apart: bool) -> None:
    """As old programs do. Those of each step are part of it."""
    net = model()
    optimizer = sgd(net)
    places = []

    def generate() -> None:
        for _ in range(100):
            net(X)
        places.append(run.here())

    for number in range(120):
        learn(net, optimizer)
        if number % every == every - 1:
            for _ in range(2):
                generate()
    assert run.steps["train"] == 120
    assert ("generate" in run.steps) == apart
    if apart:
        assert run.turns == ["train", "generate"]
        assert run.steps["generate"] > 3 * 150


@pytest.mark.parametrize("gradients", [False, True])
def test_metrics_in_a_loop_of_both_end_no_step_of_an_evaluation(run: Any, gradients: bool) -> None:
    """A trainer's function goes over its metrics, modules that nobody switches to evaluation, in each step of both."""
    net, metrics = model(), [torch.nn.L1Loss(), torch.nn.MSELoss()]
    optimizer = sgd(net)
    places = []

    def judge(said: Any) -> list[Any]:
        with torch.set_grad_enabled(gradients):
            return [metric(said.detach(), said) for metric in metrics]

    def fit() -> None:
        for _ in range(40):
            said = net(X)
            judge(said)
            said.sum().backward()
            optimizer.step()
            optimizer.zero_grad()

    def validate() -> None:
        for _ in range(20):
            with torch.no_grad():
                said = net(X)
            judge(said)
            places.append(run.here())

    for _ in range(3):
        net.train()
        fit()
        net.eval()
        validate()
    assert run.steps["train"] == 120
    assert run.steps["evaluate"] == 60
    assert set(places) == {"evaluate"}
    assert len(run.sequence) < 20
