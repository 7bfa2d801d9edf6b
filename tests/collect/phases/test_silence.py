"""Programs that replay the steps of their optimizer from CUDA graphs, so that nobody calls it any more."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from syncscope.collect.phases.monitoring import TOOLS
from syncscope.collect.phases.silence import FEW_STEPS, Silence
from syncscope.collect.phases.sources import SPOKEN
from tests.collect.phases.turning import MS, SECOND, Program, needs_monitoring


class Optimizer:
    """One."""


class Graphs(Program):
    """Such a program."""

    def __init__(self, unheard: int = 0) -> None:
        super().__init__(unheard)
        self.optimizers = True
        self.optimizer = Optimizer()

    def step(self, captured: bool = False, length_ns: int = 10 * MS) -> None:
        """A step with the optimizer."""
        self.work(length_ns)
        self.tracker.optimizer_stepped(sys._getframe(1), self.optimizer, captured)

    def replay(self, length_ns: int = 10 * MS) -> None:
        """The same from a graph: nothing is allocated but what the program does with it."""
        self.turns.silence.replays += 1
        self.work(length_ns)

    @property
    def trained(self) -> dict[str, Any]:
        """What each training's steps are, and how many it made."""
        self.tracker.recorded()
        trains = [phase for phase in self.tracker.phases if phase.kind == "train"]
        return {phase.name: (phase.source, phase.steps) for phase in trains}

    @property
    def names(self) -> set[str]:
        return {phase.name for phase in self.tracker.phases if phase.times and not phase.folded_into}


@pytest.fixture(params=[0, 1000], ids=["heard", "unheard"])
def program(request: pytest.FixtureRequest) -> Iterator[Graphs]:
    program = Graphs(request.param)
    program.turns.open()
    yield program
    assert program.failures == []
    program.turns.close()
    if sys.version_info >= (3, 12):
        assert all(sys.monitoring.get_tool(tool) is None for tool in TOOLS)


def captures(program: Graphs) -> None:
    program.step()
    program.step(captured=True)


@needs_monitoring
def test_turns_of_the_loop_that_captured_its_step_are_its_steps(program: Graphs) -> None:
    for turn in range(1000):
        if turn < 2:
            program.step()
        elif turn == 2:
            captures(program)
        else:
            program.replay()
        if turn == 900:
            before = program.trained["train"][1]
    phase = program.phase()
    assert (phase.kind, phase.source, phase.name) == ("train", "turn", "train")
    assert phase.steps - before == 100 and phase.steps > 750 and phase.lengths.median() == 10 * MS
    assert program.better == ["train"] and program.here() == "train"
    assert "captured in a CUDA graph" in (program.turns.note_of_silence or "")


@needs_monitoring
def test_a_graph_that_is_replayed_in_every_tenth_turn_is_enough(program: Graphs) -> None:
    for turn in range(5000):
        if turn % 10:
            program.work(MS)
        elif turn <= 20:
            captures(program)
        else:
            program.replay(MS)
    assert program.trained["train"][0] == "turn" and program.trained["train"][1] > 2000


@needs_monitoring
def test_another_loop_takes_over_from_the_one_that_warmed_up(program: Graphs) -> None:
    """As PyTorch's documentation has it."""
    for _ in range(3):
        program.step()
    program.step(captured=True)
    program.work(SECOND)
    for _ in range(3):
        for _ in range(300):
            program.replay()
    phase = program.phase()
    assert (phase.kind, phase.source, phase.times) == ("train", "turn", 1)
    assert phase.steps > 600 and phase.lengths.median() == 10 * MS
    assert program.names == {"start", "train"}
    assert phase.user_code is not None and phase.user_line is not None
    assert phase.user_line - phase.user_code.co_firstlineno == 8


@needs_monitoring
def test_the_loop_of_the_steps_comes_before_another_that_replays_graphs(program: Graphs) -> None:
    """A policy plays for long, from a graph as well, before each training."""
    for epoch in range(8):
        for _ in range(300):
            program.replay(5 * MS)
        for turn in range(200):
            if epoch == 0 and turn < 2:
                captures(program)
            else:
                program.replay(2 * MS)
    phase = program.phase()
    assert (phase.kind, phase.source) == ("train", "turn")
    assert phase.lengths.median() == 2 * MS and 600 < phase.steps <= 1600


@needs_monitoring
def test_what_does_not_replay_graphs_does_not_take_over(program: Graphs) -> None:
    """Data are prepared, or a program evaluates, for long."""
    for _ in range(3):
        captures(program)
    before = program.trained
    for _ in range(2000):
        program.work()
    assert program.trained == before == {"train": ("optimizer", 6)} and not program.better
    assert program.turns.note_of_silence is None
    assert program.names == {"train", "start"}


@needs_monitoring
def test_steps_that_were_not_captured_stay_what_they_are(program: Graphs) -> None:
    """A graph makes the forward pass in an evaluation that takes long."""
    for _ in range(3):
        for _ in range(40):
            program.step()
        for _ in range(2000):
            program.replay()
    assert program.trained == {"train": ("optimizer", 120)} and not program.better
    assert program.names == {"train", "start"}


@needs_monitoring
def test_many_steps_before_the_capture_stay_what_they_are(program: Graphs) -> None:
    for turn in range(1000):
        if turn <= FEW_STEPS:
            program.step(captured=turn == 2)
        else:
            program.replay()
    assert program.trained == {"train": ("optimizer", FEW_STEPS + 1)}


@needs_monitoring
def test_an_optimizer_that_steps_once_in_thousands_of_turns_tells_the_steps(program: Graphs) -> None:
    """A policy acts for long between two steps, or gradients are accumulated."""
    for turn in range(20_000):
        program.replay(MS)
        if turn % 3000 == 2999:
            program.step()
    assert program.trained == {"train": ("optimizer", 6)} and not program.better


@needs_monitoring
def test_rare_steps_that_are_captured_once_tell_the_steps_while_they_are_told(program: Graphs) -> None:
    for turn in range(9000):
        program.replay(MS)
        if turn % 100 == 99:
            program.step(captured=turn < 200)
    assert program.trained == {"train": ("optimizer", 90)} and not program.better


@needs_monitoring
def test_an_evaluation_whose_steps_are_told_is_no_silence(program: Graphs) -> None:
    for _ in range(3):
        captures(program)
    module = SimpleNamespace()
    for _ in range(1000):
        program.tracker.module_called(sys._getframe(), module, "eval")
        program.replay()
    program.tracker.recorded()
    assert program.trained == {"train": ("optimizer", 6)}
    assert program.steps == {"train": 6, "evaluate": 1000}


@needs_monitoring
def test_an_evaluation_behind_the_replays_has_its_phase(program: Graphs) -> None:
    module = SimpleNamespace()
    for turn in range(1000):
        if turn < 3:
            captures(program)
        else:
            program.replay()
    before = program.trained
    for _ in range(400):
        program.tracker.module_called(sys._getframe(), module, "eval")
        program.work()
    assert before["train"][0] == "turn" and program.trained == before
    assert program.steps == {"train": before["train"][1], "evaluate": 400}


@needs_monitoring
def test_capturing_another_graph_changes_nothing(program: Graphs) -> None:
    for turn in range(2000):
        if turn < 3 or turn in (1000, 1500):
            captures(program)
        else:
            program.replay()
    assert program.trained["train"][0] == "turn" and program.trained["train"][1] > 1700
    assert program.better == ["train"]


@needs_monitoring
def test_modules_and_gradients_in_the_turns_end_no_steps(program: Graphs) -> None:
    module = SimpleNamespace()
    for turn in range(1000):
        if turn < 3:
            captures(program)
        else:
            for _ in range(2):
                program.tracker.module_called(sys._getframe(), module, "training")
                program.tracker.gradients_computed(sys._getframe(), "backward")
            program.replay()
    assert program.trained["train"][0] == "turn" and program.trained["train"][1] < 1000


@needs_monitoring
def test_an_optimizer_that_is_called_again_in_the_turns_leaves_the_steps_as_they_are(program: Graphs) -> None:
    for turn in range(2000):
        if 3 <= turn < 1000:
            program.replay()
        else:
            program.step(captured=turn == 2)
    assert program.trained["train"][0] == "turn" and program.trained["train"][1] > 1700


@needs_monitoring
def test_an_optimizer_that_speaks_before_the_next_turn_tells_the_steps(program: Graphs) -> None:
    """A turn is as long as several looks."""
    for turn in range(40):
        if turn < 3:
            captures(program)
        else:
            for _ in range(3):
                program.replay(400 * MS)
            program.step()
    assert program.trained == {"train": ("optimizer", 43)} and not program.better


@needs_monitoring
def test_an_optimizer_that_is_called_again_elsewhere_tells_of_steps(program: Graphs) -> None:
    for turn in range(1000):
        if turn < 3:
            captures(program)
        else:
            program.replay()
    for _ in range(400):
        program.step()
    trained = program.trained
    assert {source for source, _ in trained.values()} <= {"turn", "optimizer"}
    assert sum(steps for source, steps in trained.values() if source == "optimizer") >= 400 - SPOKEN


@needs_monitoring
def test_the_programs_own_steps_come_before_turns(program: Graphs) -> None:
    for turn in range(1000):
        if turn < 3:
            captures(program)
        else:
            program.replay()
        if turn % 2:
            program.tracker.user_stepped(sys._getframe())
    assert program.trained["train"][0] == "user" and not program.better[1:]


@needs_monitoring
def test_several_ranks_are_left_alone(program: Graphs) -> None:
    program.turns.several_ranks = lambda: True
    for turn in range(1000):
        if turn < 3:
            captures(program)
        else:
            program.replay()
    assert program.trained == {"train": ("optimizer", 6)}


def test_replays_are_counted_only_while_somebody_is_silent() -> None:
    class Graph:
        def replay(self) -> str:
            return "replayed"

    program, original = Graphs(), Graph.replay
    silence = Silence(program.tracker, lambda: program.now)
    cuda = SimpleNamespace(CUDAGraph=Graph, is_current_stream_capturing=lambda: True)
    silence.open(SimpleNamespace(_C=None, cuda=cuda))
    assert silence.is_captured() and Graph().replay() == "replayed" and silence.replays == 0
    for count in (1, 2):
        silence.hear_replays()
        silence.hear_replays()
        assert Graph().replay() == "replayed" and silence.replays == count
        silence.close()
        silence.close()
        assert Graph.replay is original


def test_a_step_in_a_capture_is_told_as_such(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    from tests.collect.phases.following import learn, model, sgd

    net = model()
    optimizer = sgd(net)
    for captured in (False, False, True):
        assert run.tracker.fallen_silent() is None
        monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda found=captured: found)
        learn(net, optimizer)
    assert run.tracker.fallen_silent() is run.phase("train")
    assert run.steps == {"train": 3}


def test_without_cuda_nothing_is_captured() -> None:
    def fails() -> bool:
        raise RuntimeError("a dummy")

    silence = Silence(Graphs().tracker, lambda: 0)
    assert not silence.is_captured()
    silence.open(SimpleNamespace(cuda=SimpleNamespace(is_current_stream_capturing=fails)))
    assert not silence.is_captured()
    silence.hear_replays()
    silence.close()
