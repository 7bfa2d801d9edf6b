"""Training is told from what comes before it, after it and inside of it, in programs as people write them."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="the hooks are PyTorch's")

from syncscope.collect.phases import phase, tracker  # noqa: E402
from syncscope.collect.phases.choice import PATIENCE  # noqa: E402
from tests.collect.phases.following import X, learn, loader, model, sgd  # noqa: E402


def test_an_early_evaluation_is_not_the_training(run: Any) -> None:
    net = model()
    optimizer = sgd(net)

    @torch.no_grad()
    def estimate_loss() -> None:
        net.eval()
        for _ in range(10):
            net(X)
        net.train()

    iteration = 0
    while True:
        if iteration % 6 == 0:
            estimate_loss()
        for _ in range(4):  # accumulation
            net(X).sum().backward()
        optimizer.step()
        iteration += 1
        if iteration > 12:
            break
    assert run.turns == ["evaluate", "train"]
    assert run.steps == {"evaluate": 30, "train": 13}
    assert run.tracker.phases[1].user_code.co_name == "estimate_loss"
    assert run.intruded == [("evaluate", 11), ("train", 7), ("evaluate", 21), ("train", 13)]


def test_a_callback_evaluates_and_generates(run: Any) -> None:
    net = model()
    optimizer = sgd(net)

    def generate(length: int) -> None:
        for _ in range(length):
            with torch.no_grad():
                net(X)

    def evaluate() -> None:
        with torch.no_grad():
            for x in loader(4):
                net(x)

    def callback(iteration: int) -> None:
        if iteration % 5 == 0:
            net.eval()
            evaluate()
            generate(12)
            net.train()

    class Trainer:
        def run(self) -> None:
            for iteration in range(15):
                learn(net, optimizer)
                callback(iteration)

    Trainer().run()
    assert run.turns == ["train", "evaluate", "generate"]
    assert run.steps == {"train": 15, "evaluate": 12, "generate": 36}


def test_rollouts_and_updates_in_one_function_are_two_phases(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(phase, "FEW_LOOKS", 0)  # where following takes much of a step, another loop is found late
    net = model()
    optimizer = sgd(net)
    places = []
    for _ in range(4):
        for _ in range(20):
            with torch.no_grad():
                net(X)
            places.append(run.here())
        with torch.no_grad():
            net(X)  # the value of the last observation
        for _ in range(2):
            for _ in range(4):
                learn(net, optimizer)
        places.append(run.here())
    assert run.turns == ["rollout", "train"]
    assert run.steps == {"rollout": 80, "train": 32}
    assert places == ([*["rollout"] * 20, "train"]) * 4


def test_a_loop_that_acts_and_learns_is_training(run: Any) -> None:
    net, target = model(), model()
    optimizer = sgd(net)
    for step in range(100):
        with torch.no_grad():
            net(X)
        if step >= 40:
            with torch.no_grad():
                target(X)
            learn(net, optimizer)
    assert run.better == ["train"]  # calls of the policy were its first steps
    assert run.sequence == ["rollout"]  # and the phase became training
    assert run.steps == {"train": 60}


def test_two_optimizers_in_one_loop_are_one_training(run: Any) -> None:
    generator, critic = model(), torch.nn.Linear(1, 1)
    for_generator, for_critic = sgd(generator), sgd(critic)
    for _ in range(2):
        for number, x in enumerate(loader(6)):
            learn(critic, for_critic, generator(x).detach())
            critic(generator(x)).sum().backward()
            for_generator.step()
            if number % 3 == 0:
                generator.eval()
                with torch.no_grad():
                    generator(X)
                generator.train()
    assert run.sequence == ["train", "epoch end", "train", "epoch end"]
    assert run.steps == {"train": 12}


def test_a_critic_with_a_loop_of_its_own_is_part_of_the_training(run: Any) -> None:
    generator, critic = model(), torch.nn.Linear(1, 1)
    for_generator, for_critic = sgd(generator), sgd(critic)
    for _ in range(8):
        for _ in range(5):
            with torch.no_grad():
                fake = generator(X)
            learn(critic, for_critic, fake)
        critic(generator(X)).sum().backward()
        for_generator.step()
    assert run.steps == {"train": 40}
    assert run.tracker.current.kind == "train"


def test_helper_loops_over_optimizers_are_part_of_the_training(run: Any) -> None:
    nets = [model(), model()]
    optimizers = [sgd(net) for net in nets]
    for x in loader(10):
        for net in nets:
            net(x).sum().backward()
        for optimizer in optimizers:
            optimizer.step()
    assert run.sequence == ["train", "epoch end"]
    assert run.steps == {"train": 10}


def test_accumulation_over_batches_is_one_step(run: Any) -> None:
    net = model()
    optimizer = sgd(net)
    for number, x in enumerate(loader(24)):
        net(x).sum().backward()
        if number % 4 == 3:
            optimizer.step()
    assert run.steps == {"train": 6}


def test_steps_that_a_scaler_skips_are_steps(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    net = model()
    optimizer = sgd(net)
    scaler = torch.amp.GradScaler("cpu")
    original = type(scaler)._maybe_opt_step
    for number in range(8):
        skips = number in (2, 3)
        monkeypatch.setattr(type(scaler), "_maybe_opt_step", (lambda *a, **k: None) if skips else original)
        scaler.scale(net(X).sum()).backward()
        scaler.step(optimizer)
        scaler.update()
    assert run.steps == {"train": 8}


def test_each_epoch_trains_and_tests_with_a_shared_helper(run: Any) -> None:
    net = model()
    optimizer = sgd(net)

    def forward(x: Any) -> Any:
        return net(x)

    def train() -> None:
        net.train()
        for x in loader(5):
            optimizer.zero_grad()
            forward(x).sum().backward()
            optimizer.step()

    def test() -> None:
        net.eval()
        with torch.no_grad():
            for x in loader(4):
                forward(x)

    for _ in range(3):
        train()
        test()
    assert run.turns == ["train", "epoch end", "evaluate"]
    assert run.steps == {"train": 15, "evaluate": 12}
    assert (run.phase("train").times, run.phase("evaluate").times) == (3, 3)


def test_one_function_that_trains_and_evaluates_is_two_phases(run: Any) -> None:
    net = model()
    optimizer = sgd(net)

    def run_epoch(training: bool) -> None:
        net.train(training)
        for x in loader(5):
            with torch.set_grad_enabled(training):
                loss = net(x).sum()
            if training:
                loss.backward()
                optimizer.step()

    for _ in range(3):
        run_epoch(True)
        run_epoch(False)
    assert run.turns == ["train", "epoch end", "evaluate"]
    assert run.steps == {"train": 15, "evaluate": 15}


def test_training_without_an_optimizer_counts_calls_after_a_while(run: Any) -> None:
    net = model()
    for _ in range(PATIENCE + 9):
        net(X).sum().backward()
        with torch.no_grad():
            for parameter in net.parameters():
                parameter -= 0.01 * parameter.grad
    assert run.phase("train").source == "module"
    assert run.steps == {"train": PATIENCE + 9}


def test_training_without_an_optimizer_counts_the_batches_of_its_loader(run: Any) -> None:
    net = model()
    for x in loader(PATIENCE + 9):
        for part in (x, -x):
            net(part).sum().backward()
        for parameter in net.parameters():
            parameter.data -= 0.01 * parameter.grad
    assert run.phase("train").source == "module"
    assert run.steps == {"train": PATIENCE + 9}


def test_an_optimizer_that_shows_up_late_counts_from_the_start(run: Any) -> None:
    net = model()
    optimizer = sgd(net)
    for number in range(PATIENCE + 20):
        net(X).sum().backward()
        if number >= PATIENCE + 10:
            optimizer.step()
    assert run.better == ["train"]
    assert run.phase("train").source == "optimizer"
    assert run.steps == {"train": 10}


def test_a_teacher_in_an_inner_loop_becomes_part_of_the_training(run: Any) -> None:
    student, teachers = model(), [model().eval() for _ in range(3)]
    optimizer = sgd(student)
    for _ in range(10):
        with torch.no_grad():
            for teacher in teachers:
                teacher(X)
        learn(student, optimizer)
    assert run.folds == [("evaluate", "train")]
    assert run.steps == {"train": 10}
    assert run.sequence == ["evaluate", *["train", "evaluate"] * 3, "train"]


def test_generation_in_each_step_stays_a_phase_of_its_own(run: Any) -> None:
    net = model()
    optimizer = sgd(net)

    def generate() -> None:
        with torch.no_grad():
            for _ in range(12):
                net(X)

    for x in loader(8):
        generate()
        learn(net, optimizer, x)
    assert not run.folds
    assert run.phase("generate").in_every_step_of is run.phase("train")
    assert run.steps["train"] == 8
    late = [number for kind, number in run.intruded if kind == "train" and number > 4]
    assert not late  # what is in every step does not intrude


def test_two_stages_of_training_are_two_phases(run: Any) -> None:
    net = model()

    def pretrain() -> None:
        optimizer = sgd(net)
        for x in loader(6):
            learn(net, optimizer, x)

    def finetune() -> None:
        optimizer = sgd(net)
        for x in loader(4):
            learn(net, optimizer, x)

    pretrain()
    finetune()
    assert run.sequence == ["train", "epoch end", "train", "epoch end"]
    assert run.steps == {"train in pretrain": 6, "train in finetune": 4}


def test_a_new_optimizer_in_the_same_loop_takes_over(run: Any) -> None:
    net = model()

    def fit() -> None:
        optimizer = sgd(net)
        for x in loader(6):
            learn(net, optimizer, x)

    fit()
    fit()
    assert run.steps == {"train": 12}


def test_a_second_network_in_the_same_loop_takes_over_though_the_first_is_kept(run: Any) -> None:
    nets = [model(), model()]
    optimizers = [sgd(net) for net in nets]

    def fit(net: Any, optimizer: Any) -> None:
        for _ in range(3):
            for training in (True, False):
                net.train(training)
                for x in loader(5):
                    with torch.set_grad_enabled(training):
                        loss = net(x).sum()
                    if training:
                        loss.backward()
                        optimizer.step()

    for net, optimizer in zip(nets, optimizers, strict=True):
        fit(net, optimizer)
    assert run.turns == ["train", "epoch end", "evaluate"]
    assert run.steps == {"train": 30, "evaluate": 30}


def test_an_optimizer_that_steps_now_and_then_takes_nothing_over(run: Any) -> None:
    net, other = model(), model()
    optimizer, seldom = sgd(net), sgd(other)

    def epoch() -> None:
        for number in range(6):
            learn(net, optimizer)
            if number % 3 == 2:
                learn(other, seldom)

    for _ in range(4):
        epoch()
    assert run.steps == {"train": 24}


def test_a_closure_is_training_of_the_loop_around_the_step(run: Any) -> None:
    net = model()
    optimizer = torch.optim.LBFGS(net.parameters(), max_iter=2)

    def closure() -> Any:
        optimizer.zero_grad()
        loss = net(X).square().sum()
        loss.backward()
        return loss

    for _ in range(6):
        optimizer.step(closure)
    assert run.sequence == ["train"]
    assert run.steps == {"train": 6}


@pytest.mark.parametrize("kept", [False, True], ids=["gone", "kept"])
def test_an_optimizer_made_anew_in_the_midst_of_the_training_makes_its_steps(run: Any, kept: bool) -> None:
    """Once a network has grown, say. The steps of the one before it may have passed unheard."""
    net = model()
    optimizer, before = sgd(net), []
    for number in range(300):
        learn(net, optimizer)
        if number in (100, 200):
            before += [optimizer] * kept
            optimizer = sgd(net)
    assert run.steps == {"train": 300}


def test_what_waits_before_the_first_call_of_an_epoch_is_part_of_its_step(run: Any) -> None:
    """Batches are copied and their lengths read before the model is called."""
    net = model()
    optimizer = sgd(net)
    batches = loader(6)
    places = []
    for _ in range(3):
        for x in batches:
            places.append(run.here())
            learn(net, optimizer, x)
        places.append(run.here())
    epoch = [*["train"] * 6, "epoch end"]
    assert places == ["start", *epoch[1:], *epoch * 2]
    assert run.steps == {"train": 18}
    assert run.phase("train").times == 3


def test_a_loop_that_ends_before_its_first_call_is_an_epochs_end_again(run: Any) -> None:
    net = model()
    optimizer = sgd(net)
    batches = loader(6)
    for number in range(3):
        for x in batches:
            if number != 1:
                learn(net, optimizer, x)
        assert run.here() == "epoch end"
    assert run.steps == {"train": 12}


def test_many_calls_before_the_second_step_of_an_optimizer_are_part_of_the_first(
    run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other models are tried out, each with gradients and without. Few of their calls are told."""
    told = 0

    def count(tracker: Any, *event: Any) -> None:
        nonlocal told
        told += 1
        called(tracker, *event)

    called = run.tracker.__class__.module_called
    monkeypatch.setattr(run.tracker.__class__, "module_called", count)
    net = model()
    optimizer = sgd(net)

    def adapt(other: Any) -> None:
        other(X).sum().backward()
        with torch.no_grad():
            other(X)
        for _ in range(2):
            other(X).sum().backward()

    for step in range(40):
        learn(net, optimizer)
        if step == 0:
            for _ in range(1_000):
                adapt(model())
            assert run.here() == "train" and told < 300
    assert run.turns == ["train"]
    assert run.steps == {"train": 40}


def test_steps_are_calls_of_modules_where_an_optimizer_makes_one_step_alone(
    run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tracker, "LONG_PATIENCE", PATIENCE + 8)
    net = model()
    optimizer = sgd(net)
    for step in range(2_000):
        net(X).sum().backward()
        if step == 0:
            optimizer.step()
    assert run.steps["train"] > 1_000


def test_a_call_outside_of_all_loops_is_no_step_of_a_training_whose_loop_is_over(run: Any) -> None:
    """Its result is read once, behind the last step: also where Python does not tell the end of a loop."""
    net = model()
    optimizer = sgd(net)
    for _ in range(2):
        for _ in range(40):
            learn(net, optimizer)
    assert run.here() == "train"
    net.eval()
    net(X)
    assert run.here() == "epoch end"
    assert run.steps == {"train": 80}


@pytest.mark.parametrize(("calls", "said"), [(1, "was called once."), (5, "was called 5 times.")])
def test_a_training_of_few_steps_with_an_optimizer_of_its_own_says_that_they_are_few(
    run: Any, calls: int, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("syncscope.collect.phases.signals.optimizers_made", lambda torch: False)
    net = model()
    for _ in range(calls):
        net(X).sum().backward()
    note = run.signals.note_without_steps
    assert said in note
    assert "32 or more" in note
