"""Evaluation, generation and rollouts."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="the hooks are PyTorch's")

from tests.collect.phases.following import X, learn, loader, model, sgd  # noqa: E402


def test_evaluation_alone(run: Any) -> None:
    net = model().eval()
    with torch.no_grad():
        for x in loader(6):
            net(x)
    assert run.sequence == ["evaluate"]
    assert run.steps == {"evaluate": 6}


def test_several_calls_for_one_batch_are_one_step(run: Any) -> None:
    net, other = model().eval(), model().eval()
    with torch.no_grad():
        for x in loader(6):
            net(x)
            net(-x)
            other(x)
    assert run.steps == {"evaluate": 6}


def test_the_first_length_is_that_of_one_step(run: Any) -> None:
    net = model().eval()
    for _ in range(6):
        net(X)
    phase = run.phase("evaluate")
    assert phase.steps == 6
    assert len(phase.lengths._kept) == 4  # between the calls, from the second on


def test_what_is_done_between_two_steps_is_no_part_of_their_lengths(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    import time

    def stepped(phase: Any) -> int:
        time.sleep(0.05)
        run.tracker.settle()
        time.sleep(0.05)
        return 0

    monkeypatch.setattr(run, "stepped", stepped)
    net = model().eval()
    for _ in range(6):
        net(X)
    assert 0 < min(run.phase("evaluate").lengths._kept) <= max(run.phase("evaluate").lengths._kept) < 50e6


def test_generation_alone_counts_tokens(run: Any) -> None:
    net = model().eval()

    @torch.inference_mode()
    def generate() -> None:
        for _ in range(10):
            net(X)

    generate()
    assert run.sequence == ["generate"]
    assert run.steps == {"generate": 10}


def test_generation_that_calls_the_model_before_its_loop_counts_texts(run: Any) -> None:
    net = model().eval()

    @torch.no_grad()
    def generate() -> None:
        net(X)
        for _ in range(10):
            net(X)

    for _ in range(4):
        generate()
    assert run.sequence == ["generate"]
    assert run.steps == {"generate": 4}


def test_a_translation_counts_sentences(run: Any) -> None:
    """One function encodes the sentence, another one decodes each word."""
    encoder, decoder = model().eval(), model().eval()

    def encode() -> None:
        encoder(X)

    def decode() -> None:
        decoder(X)

    @torch.no_grad()
    def translate_sentence() -> None:
        encode()
        for _ in range(2):
            decode()

    for _ in range(20):
        translate_sentence()
    assert run.steps == {"generate": 20}


def test_a_network_unrolled_over_time_counts_batches(run: Any) -> None:
    cell = torch.nn.Linear(2, 2).eval()

    def evaluate() -> None:
        with torch.no_grad():
            for x in loader(8):
                for _ in range(5):
                    x = cell(x)

    evaluate()
    assert run.better == ["evaluate"]  # the second batch showed that the outer loop is the evaluation's
    assert run.steps == {"evaluate": 8}
    assert run.tracker.phases[1].times == 1


def test_modules_in_training_without_gradients_are_a_rollout(run: Any) -> None:
    net = model()
    with torch.no_grad():
        for _ in range(5):
            net(X)
    assert run.steps == {"rollout": 5}


def test_calls_without_gradients_every_so_many_steps_of_the_training_are_an_evaluation(run: Any) -> None:
    """A solver's loop: it makes the data, is part of each training step, and evaluates, all without ``eval()``."""
    net = model()
    optimizer = sgd(net)

    def solve() -> Any:
        y = X
        for _ in range(10):
            y = net(y).expand(3, 2)
        return y

    with torch.no_grad():
        solve()
    for step in range(1, 41):
        learn(net, optimizer, solve())
        if step % 20 == 0:
            with torch.no_grad():
                solve()
    # The calls of the first training step came before its optimiser told what they were.
    assert run.steps == {"evaluate": 40, "train": 40}


def test_calls_without_gradients_in_every_step_of_the_training_are_a_rollout(run: Any) -> None:
    net = model()
    optimizer = sgd(net)

    def play() -> None:
        with torch.no_grad():
            for _ in range(10):
                net(X)

    for step in range(30):
        if step >= 5:  # the training is known before
            play()
        learn(net, optimizer)
    assert run.steps == {"train": 30, "rollout": 250}


def test_a_function_that_says_so_evaluates_also_without_eval(run: Any) -> None:
    net = model()

    def validate() -> None:
        with torch.no_grad():
            for _ in range(5):
                net(X)

    validate()
    assert run.steps == {"evaluate": 5}


def test_after_a_function_that_evaluates_the_program_trains_again(run: Any) -> None:
    net = model()
    optimizer = sgd(net)
    places = []

    def evaluate() -> None:
        net.eval()
        with torch.no_grad():
            for x in loader(4):
                net(x)
                places.append(run.here())
        places.append(run.here())  # the rest of the function is part of the evaluation
        net.train()

    for number in range(9):
        learn(net, optimizer)
        if number % 3 == 2:
            evaluate()
            places.append(run.here())
    assert places == [*["evaluate"] * 5, "train"] * 3


def test_an_evaluation_in_the_function_that_trains_ends_with_its_loop(run: Any) -> None:
    net = model()
    optimizer = sgd(net)
    places = []
    for _ in range(3):
        for x in loader(2):
            learn(net, optimizer, x)
        with torch.no_grad():
            for x in loader(4):
                net(x)
        places.append(run.here())
    assert places == ["epoch end"] * 3


@pytest.mark.parametrize(("steps", "evaluates"), [(40, True), (5, False)])
def test_an_evaluation_in_one_call_after_a_long_round_is_one(run: Any, steps: int, evaluates: bool) -> None:
    net = model()
    optimizer = sgd(net)
    places: list[str] = []

    def evaluate() -> None:
        net.eval()
        with torch.no_grad():
            net(X)
        places.append(run.here())
        net.train()

    def train() -> None:
        for _ in range(steps):
            learn(net, optimizer)
        places.append(run.here())

    for _ in range(3):
        train()
        evaluate()
    train()
    assert run.phase("train").steps == 4 * steps
    assert places == ["train", *(["evaluate" if evaluates else "train", "train"] * 3)]
    if evaluates:
        (recorded,) = (phase for phase in run.tracker.recorded() if phase.kind == "evaluate")
        assert (recorded.times, recorded.steps) == (3, 0)
        assert recorded.function is not None and recorded.function.endswith("evaluate")


def test_a_loop_that_ends_after_one_step_each_time_is_not_what_goes_on(run: Any) -> None:
    """As where a server looks for the handler of each request, or tries a call up to three times."""
    net = model().eval()
    places = []

    def try_call() -> Any:
        for _ in range(3):
            return net(X)

    for _ in range(30):
        places.append(run.here())
        try_call()
    assert run.steps == {"evaluate": 30}
    assert places[8:] == ["evaluate"] * 22 and run.phase("evaluate").times == 1


def test_evaluations_of_one_batch_are_each_one_before_a_training(run: Any) -> None:
    net = model().eval()
    places = []

    def evaluate() -> None:
        for x in loader(2):
            net(x)

    for _ in range(12):
        evaluate()
        places.append(run.here())
    assert run.steps == {"evaluate": 24} and run.phase("evaluate").times == 12
    assert places == ["start"] * 12


def test_a_module_that_is_called_twice_a_step_ends_it_once(run: Any) -> None:
    """With and without a condition, say; behind a generator that takes the batches, no loader tells the steps."""
    net = model().eval()

    def pass_on() -> Any:
        yield from loader(20)

    with torch.no_grad():
        for x in pass_on():
            net(x)
            net(x + 1)
    assert run.steps == {"evaluate": 20}


def test_a_call_that_follows_another_one_for_good_ends_the_steps(run: Any) -> None:
    net = model().eval()
    with torch.no_grad():
        for number in range(20):
            if number < 2:
                net(X)
            else:
                net(X + 1)
    assert run.steps["evaluate"] in (18, 19, 20)


def transform() -> Any:
    """As those of torchvision: a module without parameters that nobody switches to evaluation."""
    return torch.nn.Sequential(torch.nn.ReLU(), torch.nn.Hardtanh())


def test_a_transform_before_each_evaluation_of_a_model_is_part_of_it(run: Any) -> None:
    """A server: a picture a request."""
    net, prepare = model().eval(), transform()
    for _ in range(60):
        x = prepare(X)
        with torch.inference_mode():
            net(x)
    assert run.steps == {"evaluate": 60}


def test_a_transform_inside_of_what_evaluates_a_model_is_no_rollout(run: Any) -> None:
    """A policy that learns to imitate normalizes the pictures itself, and is validated before it is trained."""
    net, prepare = model(), transform()
    optimizer = sgd(net)
    for _ in range(3):
        with torch.inference_mode():
            net.eval()
            for x in loader(6):
                net(prepare(x))
        net.train()
        for x in loader(20):
            learn(net, optimizer, prepare(x))
    assert run.steps["evaluate"] == 18
    assert run.steps["train"] == 60
    assert "rollout" not in run.steps


def test_a_transform_before_each_call_of_a_policy_in_training_is_part_of_the_rollout(run: Any) -> None:
    net, prepare = model(), transform()
    with torch.no_grad():
        for _ in range(40):
            net(prepare(prepare(X)))
    assert run.steps == {"rollout": 40}


def test_transforms_alone_without_gradients_are_no_rollout(run: Any) -> None:
    prepare = transform()
    with torch.no_grad():
        for _ in range(40):
            prepare(X)
    assert run.steps == {"other": 40}


def test_transforms_on_the_threads_of_a_pool_are_no_training_of_a_server(run: Any) -> None:
    net, prepare = model().eval(), transform()
    places = []
    with ThreadPoolExecutor(4) as pool:
        for _ in range(60):
            batch = torch.stack(list(pool.map(prepare, [X] * 8)))
            with torch.inference_mode():
                net(batch)
            places.append(run.here())
    assert run.steps["evaluate"] == 60
    assert places == ["evaluate"] * 60
    assert "train" not in run.sequence


def test_a_transform_before_each_step_of_a_training_is_part_of_it(run: Any) -> None:
    net, prepare = model(), transform()
    optimizer = sgd(net)
    for _ in range(60):
        learn(net, optimizer, prepare(X))
    assert run.steps == {"train": 60}


def test_a_module_without_parameters_makes_steps_of_its_own(run: Any) -> None:
    """A simulation, say."""
    simulate, state = transform(), X
    for _ in range(60):
        state = simulate(state)
    assert run.steps == {"other": 60}


def test_a_loss_alone_is_a_training(run: Any) -> None:
    """Of tensors that are changed by hand."""
    weights, criterion = torch.ones(2, 1, requires_grad=True), torch.nn.MSELoss()
    for _ in range(60):
        criterion(X @ weights, torch.zeros(3, 1)).backward()
        with torch.no_grad():
            weights -= 0.01 * weights.grad
    assert run.steps["train"] >= 28


def test_a_loss_that_is_made_anew_in_a_function_ends_no_step(run: Any) -> None:
    """Two of its calls in one step come from one line, and often one object has the number of the one before."""
    net = model().eval()

    def score(x: Any) -> Any:
        return torch.nn.MSELoss()(x, x)

    with torch.no_grad():
        for _ in range(20):
            y = net(X)
            score(y)
            score(y + 1)
    assert run.steps["evaluate"] in (19, 20)


def test_a_function_that_calls_at_two_lines_of_a_step_ends_it_once(run: Any) -> None:
    net = model().eval()

    def predict(x: Any) -> Any:
        return net(x)

    with torch.no_grad():
        for number in range(20):
            predict(X)
            if number:
                predict(X + 1)
    assert run.steps["evaluate"] in (19, 20)


@pytest.mark.parametrize("helped", [False, True])
def test_each_branch_of_a_loop_ends_a_step(run: Any, helped: bool) -> None:
    """The players of a game take turns."""
    net = model().eval()

    def act(x: Any) -> Any:
        return net(x)

    move = act if helped else net
    with torch.no_grad():
        for number in range(40):
            if number % 2:
                move(X)
            else:
                move(X + 1)
    assert run.steps["rollout" if helped else "evaluate"] in (38, 39, 40)
