"""What phases are called, and where they are said to be."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="the hooks are PyTorch's")

from syncscope.collect.paths import Paths  # noqa: E402
from syncscope.collect.phases import PhaseTracker  # noqa: E402
from tests.collect.phases.following import Followed, X, following, learn, loader, model, sgd  # noqa: E402

LIBRARY = """\
def evaluation_loop(net, batches):
    for x in batches:
        net(x)
def prediction_loop(net, batches):
    for x in batches:
        net(x)
def fit(net, optimizer, batches):
    net.eval()
    evaluation_loop(net, batches)
    net.train()
    while not training_epoch(net, optimizer, batches):
        pass
def training_epoch(net, optimizer, batches):
    for x in batches:
        net(x).sum().backward()
        optimizer.step()
    return True
def test(net, batches):
    evaluation_loop(net.eval(), batches)
def predict(net, batches):
    prediction_loop(net.eval(), batches)
"""


class OutsideIsLibrary(Paths):
    def is_user(self, file: str) -> bool:
        return file.startswith(self.root)


@contextmanager
def in_a_library(folder: Path, program: str, more: str = "") -> Iterator[tuple[Followed, dict[str, Any]]]:
    """Follow the user's ``program``, which has the functions of ``LIBRARY``, and ``more``, under their names."""
    spaces: list[dict[str, Any]] = []
    for name, text in (("library/trainer.py", LIBRARY + more), ("user/train.py", program)):
        (folder / name).parent.mkdir()
        (folder / name).write_text(text)
        spaces.append(dict(spaces[0]) if spaces else {})
        exec(compile(text, str(folder / name), "exec"), spaces[-1])
    run = Followed()
    run.tracker = PhaseTracker(run, OutsideIsLibrary(folder / "user"))
    run.signals = type(run.signals)(run.tracker)
    run.signals.attach(torch)
    try:
        yield run, spaces[-1]
    finally:
        run.signals.detach()


def test_a_library_that_runs_the_loops_is_shown_where_the_user_calls_it(tmp_path: Path) -> None:
    with in_a_library(tmp_path, "def main(*given):\n    fit(*given)\n") as (run, user):
        net = model()
        user["main"](net, sgd(net), [X] * 7)
    assert run.sequence == ["evaluate", "train"]
    places = [(phase.file, phase.line, phase.function) for phase in run.tracker.recorded()[1:]]
    assert places == [("train.py", 2, "main")] * 2
    assert run.steps == {"evaluate": 7, "train": 7}


def test_phases_of_one_function_have_the_name_of_what_it_calls(tmp_path: Path) -> None:
    program = "def main(net, optimizer, xs):\n    fit(net, optimizer, xs)\n    predict(net, xs)\n"
    with in_a_library(tmp_path, program) as (run, user):
        net = model()
        user["main"](net, sgd(net), [X] * 4)
    assert run.steps == {"evaluate in main by fit": 4, "train": 4, "evaluate in main by predict": 4}
    assert [phase.line for phase in run.tracker.recorded()[1:]] == [2, 2, 3]


def test_phases_of_one_call_have_the_name_of_the_librarys_loop(tmp_path: Path) -> None:
    library = "def run(net, optimizer, xs):\n    evaluation_loop(net.eval(), xs)\n    prediction_loop(net, xs)\n"
    with in_a_library(tmp_path, "def main(*given):\n    run(*given)\n", library) as (run, user):
        net = model()
        user["main"](net, sgd(net), [X] * 4)
    assert run.steps == {"evaluate in evaluation_loop of trainer.py": 4, "evaluate in prediction_loop of trainer.py": 4}


def test_calls_in_training_beside_the_optimisers_loop_are_not_called_training(run: Any) -> None:
    net = model()
    optimizer = sgd(net)

    def predict() -> None:
        for _ in range(40):
            net(X)

    def train() -> None:
        for _ in range(3):
            learn(net, optimizer)

    predict()
    assert run.tracker.phases[1].name == "train"  # so far nothing else trains
    train()
    predict()
    assert run.steps["train"] == 3
    kinds = [(phase.name, phase.kind, phase.function.split(".")[-1]) for phase in run.tracker.recorded()[1:]]
    assert kinds == [("other", "other", "predict"), ("train", "train", "train")]


def test_names_tell_phases_of_one_kind_apart(run: Any) -> None:
    net = model().eval()

    def validate() -> None:
        for _ in range(3):
            net(X)
        for _ in range(3):
            net(X)

    def sanity_check() -> None:
        for _ in range(3):
            net(X)

    sanity_check()
    assert [phase.name for phase in run.tracker.phases] == ["start", "evaluate"]
    first = run.tracker.phases[1].slug
    validate()
    names = [phase.name for phase in run.tracker.phases[1:]]
    assert names == ["evaluate in sanity_check", "evaluate in validate", "evaluate 2 in validate"]
    assert [first, *(phase.slug for phase in run.tracker.phases[2:])] == ["evaluate", "evaluate2", "evaluate3"]
    assert run.tracker.phases[1].slug == first


def test_a_function_that_has_the_name_of_its_kind_is_told_by_its_file(run: Any) -> None:
    net = model().eval()

    def evaluate() -> None:
        for _ in range(3):
            net(X)

    def test() -> None:
        for _ in range(3):
            net(X)

    evaluate()
    test()
    names = [phase.name for phase in run.tracker.phases[1:]]
    assert names == ["evaluate in test_phase_names.py", "evaluate in test"]


def test_phases_that_turned_out_to_be_part_of_others_have_names_of_their_own(run: Any) -> None:
    """A recording in which two phases have one name is malformed."""

    def fit() -> None:
        net, teacher = model(), model().eval()
        optimizer = sgd(net)
        for _ in range(10):
            with torch.no_grad():
                for _ in range(2):
                    teacher(X)
            learn(net, optimizer)

    def refit() -> None:
        net, teacher = model(), model().eval()
        optimizer = sgd(net)
        for _ in range(10):
            with torch.no_grad():
                for _ in range(2):
                    teacher(X)
            learn(net, optimizer)

    fit()
    refit()
    names = [phase.name for phase in run.tracker.recorded()]
    assert len(run.folds) == 2 and len(set(names)) == len(names)


def test_a_loop_that_a_library_runs_for_several_calls_is_a_phase_for_each(tmp_path: Path) -> None:
    program = (
        "def main(net, optimizer, x):\n    for _ in range(2):\n        fit(net, optimizer, x)\n        test(net, x)\n"
    )
    with in_a_library(tmp_path, program) as (run, user):
        net = model()
        user["main"](net, sgd(net), [X] * 6)
        assert run.steps == {"evaluate in main by fit": 12, "train": 12, "evaluate in main by test": 12}


def test_a_loop_that_a_library_runs_for_several_calls_has_its_loaders_batches(tmp_path: Path) -> None:
    program = "def main(net, optimizer, x, loader):\n    fit(net, optimizer, x)\n    test(net, loader)\n"
    with in_a_library(tmp_path, program) as (run, user):
        net = model()
        user["main"](net, sgd(net), loader(6), loader(9))
        assert run.steps == {"evaluate in main by fit": 6, "train": 6, "evaluate in main by test": 9}


@pytest.mark.skipif(sys.version_info < (3, 11), reason="Python tells the function around an expression from 3.11 on")
def test_a_loop_in_an_expression_has_the_name_of_its_function() -> None:
    net = model()
    net.eval()

    def judge() -> float:
        return sum(float(net(X).sum()) for _ in range(5))

    def predict() -> tuple[Any, ...]:
        return tuple(net(X) for _ in range(5))

    with following() as run, torch.no_grad():
        judge()
        predict()
    assert set(run.steps) == {"evaluate in judge", "evaluate in predict"}
