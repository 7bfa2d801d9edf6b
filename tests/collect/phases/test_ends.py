"""Where phases end: epochs and the program; and steps that the program tells itself."""

from __future__ import annotations

import sys
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="the hooks are PyTorch's")

from syncscope.collect.phases.book import MAX_PHASES  # noqa: E402
from tests.collect.phases.following import X, following, learn, loader, model, sgd  # noqa: E402


def test_another_thread_does_not_end_a_phase(run: Any) -> None:
    import threading

    net = model().eval()
    kinds: list[str] = []
    learn(model(), sgd(model()))
    with torch.no_grad():
        for x in loader(3):
            net(x)
            thread = threading.Thread(target=lambda: kinds.append(run.here()))
            thread.start()
            thread.join()
    assert kinds == ["evaluate"] * 3


def test_the_end_of_an_epoch_lasts_until_the_next_event(run: Any) -> None:
    net = model()
    optimizer = sgd(net)
    places = []
    for _ in range(3):
        for x in loader(3):
            learn(net, optimizer, x)
            places.append(run.here())
        places.append(run.here())
    assert places == ["train", "train", "train", "epoch end"] * 3
    assert run.phase("train").times == 3


def test_an_iterator_that_begins_again_is_one_training(run: Any) -> None:
    net = model()
    optimizer = sgd(net)
    batches = loader(3)
    iterator = iter(batches)
    for _ in range(10):
        try:
            x = next(iterator)
        except StopIteration:
            iterator = iter(batches)
            x = next(iterator)
        learn(net, optimizer, x)
    assert run.steps == {"train": 10}
    assert run.tracker.current.kind == "train"


def test_the_batch_that_a_loader_reads_before_its_own_loop_is_a_step_too(run: Any) -> None:
    net = model()
    optimizer = sgd(net)

    def ahead(batches: Any) -> Any:
        batches = iter(batches)
        now = next(batches)
        while True:
            try:
                following = next(batches)
            except StopIteration:
                yield now
                return
            yield now
            now = following

    def evaluate() -> None:
        net.eval()
        for x in ahead(loader(4)):
            with torch.no_grad():
                net(x)
        net.train()

    for step in range(12):
        learn(net, optimizer)
        if step % 4 == 3:
            evaluate()
    assert run.turns == ["train", "evaluate"]
    assert run.steps == {"train": 12, "evaluate": 12}


def test_a_loader_that_reads_ahead_ends_after_the_last_step(run: Any) -> None:
    net = model()
    optimizer = sgd(net)

    def ahead(batches: Any) -> Any:
        iterator = iter(batches)
        batch = next(iterator)
        for coming in iterator:
            yield batch
            batch = coming
        yield batch

    places = []
    for _ in range(3):
        for x in ahead(loader(4)):
            learn(net, optimizer, x)
        places.append(run.here())
    assert places == ["epoch end"] * 3
    assert run.steps == {"train": 12}


def test_a_loader_inside_of_each_step_does_not_end_an_epoch(run: Any) -> None:
    net = model()
    optimizer, inner = sgd(net), sgd(net)
    for _ in range(5):
        for x in loader(3):
            learn(net, inner, x)
        learn(net, optimizer)
    assert run.sequence == ["train", "epoch end", "train"]  # until the outer optimiser stepped
    assert run.steps == {"train": 15}


def test_a_later_frame_with_the_number_of_one_that_is_over_is_not_in_its_phase(run: Any) -> None:
    net = model()
    optimizer = sgd(net)

    def evaluate() -> None:
        for _ in range(4):
            with torch.no_grad():
                net(X)

    def reset() -> str:
        run.tracker.current.frame_id = id(sys._getframe())  # Python uses the memory of frames again
        return run.here()

    places = []
    for _ in range(3):
        net.train()
        for _ in range(10):
            learn(net, optimizer)
        net.eval()
        evaluate()
        places.append(reset())
    assert places == ["epoch end"] * 3


def test_user_steps_win(run: Any) -> None:
    net = model()
    optimizer = sgd(net)
    for number in range(12):
        learn(net, optimizer)
        if number % 3 == 2:
            run.signals.user_step()
    assert run.better == ["train"]
    assert run.phase("train").source == "user"
    assert run.steps == {"train": 4}


def test_user_steps_without_any_module(run: Any) -> None:
    for _ in range(4):
        X.sum()
        run.signals.user_step()
    assert run.steps == {"other": 4}


def test_steps_by_time(run: Any) -> None:
    net = model()
    optimizer = sgd(net)
    for number in range(9):
        learn(net, optimizer)
        if number % 4 == 3:
            run.signals.tick()
    phase = run.phase("other")
    assert (phase.source, phase.steps) == ("seconds", 2)
    assert run.phase("train").steps == 4  # those before the first stretch was over


def test_endless_new_loops_take_constant_memory(run: Any) -> None:
    net = model().eval()
    for number in range(MAX_PHASES + 30):
        space: dict[str, Any] = {"net": net, "x": X}
        exec(compile(f"for _ in range(3): net(x)  # {number}", f"cell{number}.py", "exec"), space)
    run.tracker.recorded()
    assert len(run.tracker.phases) <= MAX_PHASES + 2
    assert sum(phase.steps for phase in run.tracker.phases) == 3 * (MAX_PHASES + 30)  # those that share a phase, too


def test_time_is_exclusive_and_lengths_leave_out_what_intrudes() -> None:
    now = 0

    def passes(ms: int) -> None:
        nonlocal now
        now += ms * 1_000_000

    with following(clock=lambda: now) as run:
        net = model()
        optimizer = sgd(net)

        def evaluate() -> None:
            net.eval()
            for _ in range(4):
                net(X)
                passes(10)
            net.train()

        for number in range(20):
            passes(1)
            learn(net, optimizer)
            if number == 10:
                evaluate()
                run.here()
    train, evaluation = run.phase("train"), run.phase("evaluate")
    run.tracker.settle()
    assert evaluation.time_ns == 40_000_000
    assert train.time_ns == 19_000_000  # the first passed before it began
    assert train.lengths.p95() == train.lengths.median() == 1_000_000
    recorded = run.tracker.recorded()
    assert recorded[train.number].median_ns == train.lengths.median()
    assert recorded[train.number].time_ns == train.time_ns


def test_the_programs_exit_passes_from_a_step_to_the_program(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(phase: Any) -> None:
        raise SystemExit(0)

    net = model()
    optimizer = sgd(net)
    learn(net, optimizer)
    monkeypatch.setattr(run, "stepped", stop)

    def train() -> None:
        for _ in range(3):
            learn(net, optimizer)

    with pytest.raises(SystemExit):
        train()
