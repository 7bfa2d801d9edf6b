"""Steps are found in programs that do not know syncscope."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="the collector's step hooks are PyTorch's")

from syncscope.collect.step_watch import PATIENCE, StepWatch  # noqa: E402

CALL = torch.nn.Module.__call__


class Count:
    def __init__(self) -> None:
        self.boundaries = 0
        self.restarts = 0
        self.may_restart = True
        self.watch = StepWatch(self.boundary, self.restart)
        self.watch.attach(torch)

    def boundary(self) -> None:
        self.boundaries += 1

    def restart(self) -> bool:
        if self.may_restart:
            self.boundaries = 0
            self.restarts += 1
        return self.may_restart


@pytest.fixture
def count() -> Iterator[Count]:
    count = Count()
    yield count
    count.watch.detach()
    assert torch.nn.Module.__call__ is CALL
    assert not sys.modules["torch.optim.optimizer"]._global_optimizer_post_hooks


def model() -> Any:
    return torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU(), torch.nn.Linear(2, 1))


def sgd(net: Any) -> Any:
    return torch.optim.SGD(net.parameters(), lr=0.1)


def train(net: Any, optimizer: Any, batches: int = 1) -> None:
    optimizer.zero_grad()
    for _ in range(batches):
        net(torch.ones(3, 2)).sum().backward()
    optimizer.step()


def test_the_optimizers_step_is_the_step(count: Count) -> None:
    net = model()
    optimizer = sgd(net)
    for _ in range(5):
        train(net, optimizer)
    assert count.watch.source == "optimizer"
    assert count.boundaries == 4  # from the second one on


def test_gradient_accumulation_is_one_step(count: Count) -> None:
    net = model()
    optimizer = sgd(net)
    for _ in range(4):
        train(net, optimizer, batches=8)
    assert (count.watch.source, count.boundaries) == ("optimizer", 3)


def test_of_several_optimizers_the_first_seen_twice_counts(count: Count) -> None:
    generator, critic = model(), model()
    first, second = sgd(generator), sgd(critic)
    for _ in range(4):
        train(generator, first)
        train(critic, second)
    assert (count.watch.source, count.boundaries) == ("optimizer", 3)


def test_a_scalers_skipped_step_is_a_step(count: Count, monkeypatch: pytest.MonkeyPatch) -> None:
    net = model()
    optimizer = sgd(net)
    scaler = torch.amp.GradScaler("cpu")
    monkeypatch.setattr(type(scaler), "_maybe_opt_step", lambda *args, **kwargs: None)  # every step is skipped
    for _ in range(4):
        optimizer.zero_grad()
        scaler.scale(net(torch.ones(3, 2)).sum()).backward()
        scaler.step(optimizer)
        scaler.update()
    assert (count.watch.source, count.boundaries) == ("optimizer", 3)


def test_a_scalers_step_is_not_counted_twice(count: Count) -> None:
    net = model()
    optimizer = sgd(net)
    scaler = torch.amp.GradScaler("cpu")
    for _ in range(4):
        optimizer.zero_grad()
        scaler.scale(net(torch.ones(3, 2)).sum()).backward()
        scaler.step(optimizer)
        scaler.update()
    assert count.boundaries == 3


def test_without_an_optimizer_the_outermost_module_counts(count: Count) -> None:
    net = model().eval()
    with torch.no_grad():
        for _ in range(5):
            net(torch.ones(3, 2))
    assert (count.watch.source, count.boundaries) == ("module", 4)


def test_a_bound_call_that_the_program_kept_is_counted_once(count: Count) -> None:
    net = model().eval()
    call = net.__call__
    with torch.no_grad():
        for _ in range(5):
            call(torch.ones(3, 2))
    assert (count.watch.source, count.boundaries) == ("module", 4)


def test_a_module_in_training_waits_for_the_optimizer(count: Count) -> None:
    net = model()
    for _ in range(PATIENCE - 1):
        net(torch.ones(3, 2))
    assert count.watch.source == "none"
    for _ in range(4):
        net(torch.ones(3, 2))
    assert count.watch.source == "module"


def test_an_optimizer_that_shows_up_later_takes_over(count: Count) -> None:
    net = model()
    optimizer = sgd(net)
    with torch.no_grad():
        for _ in range(5):
            net(torch.ones(3, 2))
    for _ in range(4):
        train(net, optimizer)
    assert (count.watch.source, count.restarts, count.boundaries) == ("optimizer", 1, 3)


def test_while_a_window_is_recorded_the_source_stays(count: Count) -> None:
    net = model()
    optimizer = sgd(net)
    count.may_restart = False
    with torch.no_grad():
        for _ in range(3):
            net(torch.ones(3, 2))
    train(net, optimizer)
    train(net, optimizer)
    assert count.watch.source == "module"


def test_the_programs_own_steps_win(count: Count) -> None:
    net = model()
    optimizer = sgd(net)
    for _ in range(3):
        train(net, optimizer)
    count.watch.user_step()
    train(net, optimizer)
    count.watch.user_step()
    assert (count.watch.source, count.boundaries) == ("user", 2)


def test_a_module_that_raises_does_not_confuse_the_depth(count: Count) -> None:
    class Broken(torch.nn.Module):  # type: ignore[misc, name-defined]
        def forward(self, x: Any) -> Any:
            raise ValueError

    broken, net = Broken(), model().eval()
    with pytest.raises(ValueError), torch.no_grad():
        broken(torch.ones(1))
    with torch.no_grad():
        for _ in range(3):
            net(torch.ones(3, 2))
    assert (count.watch.source, count.boundaries) == ("module", 2)


@pytest.mark.slow
@pytest.mark.parametrize("in_place", [False, True])
def test_a_compiled_module_is_compiled_once_and_without_a_warning(count: Count, in_place: bool) -> None:
    class Net(torch.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.layers = model()

        def forward(self, x: Any) -> Any:
            return self.layers(x) + 1

    net = Net().eval()
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    if in_place:
        net.compile(backend="eager", fullgraph=True)
    called = net if in_place else torch.compile(net, backend="eager", fullgraph=True)
    with torch.no_grad():
        for _ in range(6):
            called(torch.ones(3, 2))
    assert (count.watch.source, count.boundaries) == ("module", 5)
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] == 1
