"""What following takes is timed in a few steps, and where it takes much, few steps are looked at closely."""

from __future__ import annotations

import random
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="the hooks are PyTorch's")

from syncscope.collect.phases.phase import WHOLE  # noqa: E402
from tests.collect.phases.following import LOOK_NS, Followed, Time, X, loader, model  # noqa: E402

pytestmark = pytest.mark.usefixtures("nothing_is_compiled")


@pytest.fixture
def run(run_in_time: Followed) -> Followed:
    return run_in_time


def act(net: Any, time: Time, steps: int, length_ns: int) -> None:
    with torch.no_grad():
        for _ in range(steps):
            net(X)
            time.now += length_ns


def test_a_step_in_a_hundred_tells_what_following_takes(run: Followed, time: Time) -> None:
    act(model(), time, 2_000, 1_000_000)
    phase = run.phase("rollout")
    assert phase.steps >= 1_999
    assert phase.follow_ns == pytest.approx(WHOLE * LOOK_NS)
    assert 10 < phase.timed_steps < 40
    assert run.tracker.followed_ns == pytest.approx(phase.steps * WHOLE * LOOK_NS, rel=0.5)


def test_steps_that_the_program_tells_are_timed_with_their_calls(run: Followed, time: Time) -> None:
    net = model()
    with torch.no_grad():
        for _ in range(2_000):
            net(X)
            run.signals.user_step()
            time.now += 1_000_000
    (phase,) = (phase for phase in run.tracker.phases if phase.source == "user")
    assert phase.follow_ns == pytest.approx(2 * WHOLE * LOOK_NS)


def test_what_the_listener_does_is_not_following(run: Followed, time: Time, monkeypatch: pytest.MonkeyPatch) -> None:
    def stepped(phase: Any) -> int:
        time.now += 50_000_000
        return 0

    monkeypatch.setattr(run, "stepped", stepped)
    act(model(), time, 200, 1_000_000)
    assert run.phase("rollout").steps >= 199
    assert run.tracker.followed_ns < 200 * 50 * LOOK_NS


def test_what_the_listener_does_when_phases_change_is_not_following(
    run: Followed, time: Time, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may end a window, for half a second."""

    def changed(before: Any, after: Any) -> None:
        told.append(after.kind)
        time.now += 500_000_000

    told: list[str] = []
    monkeypatch.setattr(run, "changed", changed)
    net = model()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(4):
        for _ in loader(5):
            net(X).sum().backward()
            optimizer.step()
            time.now += 1_000_000
        net.eval()
        act(net, time, 5, 1_000_000)
        net.train()
    assert told.count("train") == told.count("rollout") == 4
    assert run.tracker.followed_ns < 100_000_000
    longest = run.phase("train").lengths.p95()
    assert longest is not None and longest < 10_000_000


@pytest.mark.parametrize("how", ["by time", "as the program says"])
def test_what_the_listener_does_is_not_following_either_where_it_ends_steps_or_the_program(
    run: Followed, time: Time, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    def stepped(phase: Any) -> int:
        time.now += 50_000_000
        if phase.steps == 20:
            raise SystemExit
        return 0

    monkeypatch.setattr(run, "stepped", stepped)
    step = run.signals.tick if how == "by time" else run.signals.user_step

    def live() -> None:
        while True:
            time.now += 1_000_000
            step()

    with pytest.raises(SystemExit):
        live()
    assert 0 < run.tracker.followed_ns < 20 * 50 * LOOK_NS


def test_the_steps_to_time_are_drawn_without_the_programs_random_numbers(run: Followed, time: Time) -> None:
    random.seed(5)
    before = random.getstate()
    act(model(), time, 500, 1_000_000)
    assert random.getstate() == before


@pytest.mark.parametrize(("length_ns", "seldom"), [(20_000, True), (10_000_000, False)])
def test_short_steps_are_looked_at_closely_now_and_then(
    run: Followed, time: Time, length_ns: int, seldom: bool
) -> None:
    net = model()
    act(net, time, 1_000, length_ns)
    phase = run.phase("rollout")
    assert phase.seldom is seldom
    assert (run.tracker.expected.mask > 0) is seldom
    assert phase.steps >= 999
    with torch.no_grad():
        for _ in range(50):  # another loop with the same module
            net(X)
    other = [steps for name, steps in run.steps.items() if phase.name != name]
    late = 8 if seldom else 1
    assert phase.steps <= 999 + late
    assert len(other) == 1 and 50 - late <= other[0] <= 50


def act_until_calls_pass(run: Followed, net: Any, time: Time) -> int:
    """Act until the calls of ``net`` pass by themselves, and five of them have. Returns how often it acted."""
    lent = run.tracker.expected.lent
    with torch.no_grad():
        for acted in range(1, 2_000):
            net(X)
            time.now += 20_000
            if acted > 1_000 and any(loan.used == 5 for loan in lent.values()):
                return acted
    raise AssertionError("no call passed")


def test_calls_that_pass_by_themselves_are_counted(run: Followed, time: Time) -> None:
    acted = act_until_calls_pass(run, model(), time)
    assert run.tracker.unheard >= 5
    assert run.phase("rollout").steps in (acted - 1, acted)
    assert not run.tracker.expected.lent and run.tracker.unheard == 0


@pytest.mark.parametrize("change", ["gradients", "evaluation", "another module"])
def test_no_call_of_another_kind_passes_by_itself(run: Followed, time: Time, change: str) -> None:
    net, other = model(), model()
    acted = act_until_calls_pass(run, net, time)
    if change == "evaluation":
        net.eval()
        with torch.no_grad():
            net(X)
    elif change == "gradients":
        net(X)
    else:
        with torch.no_grad():
            other(X)
    assert not run.tracker.expected.lent
    assert run.phase("rollout").steps in (acted - 1, acted)


def test_short_steps_that_call_a_second_module_tell_of_it_seldom(
    run: Followed, time: Time, monkeypatch: pytest.MonkeyPatch
) -> None:
    actor, critic, told = model(), model(), []
    called = run.tracker.module_called

    def telling(frame: Any, module: Any, event: Any) -> None:
        told.append(module)
        called(frame, module, event)

    monkeypatch.setattr(run.tracker, "module_called", telling)
    with torch.no_grad():
        for _ in range(2_000):
            actor(X)
            critic(X)
            time.now += 20_000
        assert run.phase("rollout").steps >= 1_999
        assert told.count(critic) < 300
        for _ in range(100):  # another loop with the second one alone
            critic(X)
    assert sum(run.steps.values()) >= 1_999 + 100 - 4
    assert len(run.steps) == 2


def test_steps_with_a_further_loop_of_calls_are_always_looked_at_closely(run: Followed, time: Time) -> None:
    net = model()

    def sample(first: bool) -> None:
        if first:
            net(X)
        else:
            for _ in range(3):
                net(X)

    def generate() -> None:
        for _ in range(1_000):
            sample(True)
            sample(False)
            time.now += 20_000

    with torch.no_grad():
        generate()
    phase = run.phase("generate")
    assert phase.called_inside and not phase.seldom
    assert phase.steps in (999, 1_000)


def test_batches_of_an_evaluation_pass_unheard(run: Followed, time: Time) -> None:
    net = model().eval()
    for x in loader(600):
        net(x)
        time.now += 1_000_000
    assert run.phase("evaluate").steps == 600
    assert len(run.boundaries) < 100
    assert run.phase("evaluate").calls <= 600


def test_each_batch_of_a_short_evaluation_is_a_step(run: Followed, time: Time) -> None:
    net = model().eval()

    def evaluate(batches: int) -> None:
        for batch in loader(batches):
            net(batch)
            time.now += 20_000

    evaluate(1_500)
    phase = run.phase("evaluate")
    assert phase.by_batch and phase.seldom
    assert phase.steps == 1_500
    evaluate(500)
    assert run.phase("evaluate").steps == 2_000
