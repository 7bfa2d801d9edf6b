"""Programs of tensors alone, without modules and optimisers: their gradients tell their steps."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="the hooks are PyTorch's")

from syncscope.collect.paths import Paths  # noqa: E402
from syncscope.collect.phases.choice import PATIENCE  # noqa: E402
from syncscope.collect.sites.stacks import Stacks  # noqa: E402
from tests.collect.phases.following import HERE, X, learn, model, sgd  # noqa: E402


@pytest.fixture(autouse=True)
def no_optimiser(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a program that has made none: PyTorch wraps the ``step`` of a class when the first is made."""
    kinds = [torch.optim.Optimizer]
    for kind in kinds:  # grows
        kinds += kind.__subclasses__()
        if getattr(vars(kind).get("step"), "hooked", False):
            monkeypatch.setattr(kind, "step", kind.step.__wrapped__)


def weights() -> Any:
    return torch.ones(2, requires_grad=True)


def descend(w: Any) -> None:
    (X * w).sum().backward()
    with torch.no_grad():
        w -= 0.01 * w.grad
    w.grad = None


def patched() -> bool:
    return "gradients" in torch.autograd._engine_run_backward.__code__.co_filename


def test_a_rule_of_the_programs_own_trains(run: Any) -> None:
    w = weights()
    for _ in range(100):
        descend(w)
    assert run.turns == ["train"]
    assert run.steps == {"train": 100 - PATIENCE + 1}
    phase = run.phase("train")
    assert (phase.source, phase.user_code.co_name) == ("gradient", "test_a_rule_of_the_programs_own_trains")


def test_gradients_that_are_returned_do_not_train(run: Any) -> None:
    w = weights()
    for _ in range(100):
        torch.autograd.grad((X * w).sum(), w)
    assert run.steps == {"other": 100 - PATIENCE + 1}


def test_of_two_in_a_step_one_ends_it(run: Any) -> None:
    w, v = weights(), weights()
    for _ in range(100):
        (X * w).sum().backward()
        (X * v).sum().backward()
    assert run.steps == {"train": 100 - PATIENCE + 1}


def test_a_loop_in_each_step_is_part_of_it(run: Any) -> None:
    w = weights()
    for _ in range(100):
        fast = w
        for _ in range(3):
            (gradient,) = torch.autograd.grad((fast * fast).sum(), fast, create_graph=True)
            fast = fast - 0.01 * gradient
        (fast * fast).sum().backward()
    assert run.steps == {"train": 100 - PATIENCE + 1}


def test_a_few_gradients_make_no_phase(run: Any) -> None:
    w = weights()
    for _ in range(PATIENCE - 1):
        descend(w)
    assert run.sequence == [] and run.steps == {}


@pytest.mark.parametrize("optimised", [True, False])
def test_steps_of_an_optimiser_and_calls_of_a_module_come_before_gradients(run: Any, optimised: bool) -> None:
    net = model()
    if optimised:
        optimizer = sgd(net)
        for _ in range(5):
            learn(net, optimizer)
        assert not patched()
    for _ in range(2 * PATIENCE):
        net(X).sum().backward()
    assert run.phase("train").source == ("optimizer" if optimised else "module")
    assert not patched()
    assert not [phase for phase in run.tracker.phases if phase.source == "gradient"]


def test_an_optimiser_that_comes_later_has_a_phase_of_its_own(run: Any) -> None:
    w, net = weights(), model()
    for _ in range(100):
        descend(w)
    optimizer = sgd(net)
    for _ in range(20):
        learn(net, optimizer)
    assert run.phase("train").source == "optimizer" and run.phase("train").steps == 20
    assert run.phase("other").source == "gradient" and run.phase("other").steps == 100 - PATIENCE + 1


def test_backward_of_a_checkpoint_inside_of_backward_is_no_step(run: Any) -> None:
    from torch.utils.checkpoint import checkpoint

    w = weights()
    for _ in range(100):
        checkpoint(lambda w: (X * w).sin().sum(), w, use_reentrant=True).backward()
    assert run.steps == {"train": 100 - PATIENCE + 1}


def test_steps_go_on_where_backward_is_timed(run: Any) -> None:
    from syncscope.collect.bare.moments import HostMoments

    w, host = weights(), HostMoments(torch, Stacks(Paths(HERE)), run.signals)
    for number in range(100):
        if number == 60:
            host.open()
        descend(w)
    moments, _ = host.take()
    host.close()
    assert run.turns == ["train"]
    assert run.steps == {"train": 100 - PATIENCE + 1}
    assert [moment.event for moment in moments] == ["backward"] * 40


def test_a_backward_that_fails_ends_no_step(run: Any) -> None:
    w = weights()

    def refuse(gradient: Any) -> None:
        raise KeyError("the program's own")

    failures = 0
    for number in range(100):
        loss = (X * w).sum()
        if number % 2:
            loss.register_hook(refuse)
        try:
            loss.backward()
        except KeyError:
            failures += 1
    assert failures == 50
    assert run.steps == {"train": 50 - PATIENCE + 1}
