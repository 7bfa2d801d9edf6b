"""Which phase gets windows, and when: with windows that only count their steps."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from syncscope.collect import schedule
from syncscope.collect.plan import Plan
from syncscope.collect.recorded import Recorded
from syncscope.collect.schedule import Schedule, StopProgram
from syncscope.schema.recording import Bare

LOG: list[str] = []

TWO = Plan(warmup=0, bare=0, steps=2)
"""So short that no early window comes first."""


def phase(number: int, kind: str, **other: Any) -> Any:
    """A phase of a program, as the tracker would have it."""
    usual = {"name": kind, "slug": kind, "source": "module", "steps": 0, "times": 1, "time_ns": 1, "intruder": None}
    return SimpleNamespace(number=number, kind=kind, **{"user_code": None, "in_every_step_of": None, **usual, **other})


class FakeWindows:
    """Is over after as many steps as its plan has, or three where it times bare steps again."""

    bare: Bare | None = None
    """What its bare window timed."""

    def __init__(self, plan: Plan, *parts: Any, **others: Any) -> None:
        self.plan = plan
        self.recorded = Recorded()
        self._on_finish = parts[-1]
        self.done = 0
        self.finished = False
        self.gave_way = False

    @property
    def occupied(self) -> bool:
        return self.done >= 1 and not self.finished

    def boundary(self, number: int, *, intruder: str | None, began_anew: bool) -> None:
        self.done += 1
        if began_anew:
            LOG.append(f"anew at {number}")
        if self.plan.repeats_bare:
            if self.done == 3:
                self.recorded.bare = Bare(steps_ns=(1,) * 3)
                self.close("")
        elif self.done == self.plan.steps:
            self.recorded.bare = FakeWindows.bare
            self.recorded.timed = SimpleNamespace(steps=self.plan.steps)  # type: ignore[assignment]
            self.close("")

    def interrupt(self) -> None:
        LOG.append("interrupt")
        self.done = 0

    def close(self, note: str) -> None:
        self.finished = True
        self._on_finish(self)

    def discard(self) -> None:
        LOG.append("discard")
        self.finished = True


class Program:
    """Drives a schedule as the tracker would."""

    def __init__(self, plan: Plan, training_may_come: bool = False) -> None:
        self.phases: list[Any] = [phase(0, "start")]
        self.schedule = Schedule(
            plan, object(), object(), object(), self.keep,  # type: ignore[arg-type]
            sync=lambda: None, on_bare=self.keep_bare, phases=lambda: self.phases,
            training_may_come=lambda: training_may_come,
        )  # fmt: skip

    def keep(self, kept: Any, recorded: Any) -> None:
        LOG.append(f"{kept.name} {recorded.timed.steps}")

    def keep_bare(self, kept: Any, recorded: Any) -> None:
        LOG.append(f"{kept.name} bare {len(recorded.bare.steps_ns)}")

    def begin(self, kind: str, **other: Any) -> Any:
        self.phases.append(phase(len(self.phases), kind, **other))
        return self.phases[-1]

    def step(self, one: Any, times: int = 1) -> None:
        for _ in range(times):
            one.steps += 1
            one.time_ns += 100
            self.schedule.stepped(one)


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Program]:
    LOG.clear()
    monkeypatch.setattr(schedule, "Windows", FakeWindows)
    return Program


def test_a_short_window_comes_first_and_the_plans_own_replaces_it(run: Callable[..., Program]) -> None:
    program = run(Plan(steps=5))
    train = program.begin("train")
    program.step(train, 2)
    assert LOG == ["train 2"]
    program.step(train, 9)
    assert LOG == ["train 2", "train 5"]


@pytest.mark.parametrize(("plan", "windows"), [(Plan(steps=1), ["train 1", "train 1"]), (TWO, ["train 2"])])
def test_an_early_window_comes_first_where_it_ends_much_earlier(
    run: Callable[..., Program], plan: Plan, windows: list[str]
) -> None:
    program = run(plan)
    train = program.begin("train")
    program.step(train, 20)
    assert windows == LOG


@pytest.mark.parametrize(("step_s", "warmup", "bare"), [(2.8, 0, 1), (0.3, 1, 2)])
def test_a_phase_of_long_steps_is_recorded_after_fewer_of_them(
    run: Callable[..., Program], step_s: float, warmup: int, bare: int
) -> None:
    """Six sequences of a generation are all that there is."""
    program = run(Plan(steps=5))
    generation = program.begin("generate")
    generation.steps, generation.time_ns = 1, int(step_s * 1e9)
    program.schedule.stepped(generation)
    plan = program.schedule._takes[generation.number].windows.plan
    assert (plan.warmup, plan.bare, plan.steps) == (warmup, bare, 2)


@pytest.mark.parametrize(("lengths_s", "few"), [((4.0, 0.2), False), ((0.5, 1.5), True)])
def test_ranks_decide_by_a_step_that_they_made_together_how_soon_they_are_recorded(
    run: Callable[..., Program], monkeypatch: pytest.MonkeyPatch, lengths_s: tuple[float, float], few: bool
) -> None:
    """The first step of one may be short and that of another long: their loaders begin by themselves."""
    monkeypatch.setattr(schedule, "several_ranks", lambda torch: True)
    now = [100.0]
    monkeypatch.setattr(schedule, "time", SimpleNamespace(monotonic=lambda: now[0]))
    program = run(Plan(steps=5))
    train = program.begin("train")
    for length_s in lengths_s:
        assert not program.schedule._takes
        now[0] += length_s
        train.time_ns += int(length_s * 1e9)
        train.steps += 1
        program.schedule.stepped(train)
    plan = program.schedule._takes[train.number].windows.plan
    assert (plan.warmup, plan.bare, plan.steps) == ((0, 1, 2) if few else (1, 2, 2))


@pytest.mark.parametrize(("plan", "settle"), [(Plan(steps=5), 100), (Plan(warmup=2, bare=3, steps=2), 7)])
def test_without_an_early_window_few_other_steps_pass(run: Callable[..., Program], plan: Plan, settle: int) -> None:
    """Else a program of twenty steps would end before its only window."""
    program = run(plan)
    train = program.begin("train")
    program.step(train, 3)
    assert program.schedule._takes[train.number].windows.plan.settle == settle


def test_an_early_evaluation_gets_windows_of_its_own_and_takes_none_from_training(run: Callable[..., Program]) -> None:
    program = run(Plan(steps=5))
    evaluation = program.begin("evaluate")
    program.step(evaluation, 9)
    assert LOG == ["evaluate 2", "evaluate 5"]
    train = program.begin("train")
    program.schedule.changed(evaluation, train)
    program.step(train, 2)
    assert LOG == ["evaluate 2", "evaluate 5", "train 2"]  # soon, for it may be a short program
    program.step(train, 5)
    assert LOG == ["evaluate 2", "evaluate 5", "train 2", "train 5"]


def test_a_phase_that_takes_little_time_gets_none(run: Callable[..., Program]) -> None:
    program = run(Plan(steps=3))
    train, evaluation = program.begin("train"), program.begin("evaluate")
    program.step(train, 100)
    LOG.clear()
    program.step(evaluation, 4)
    assert LOG == []
    program.step(evaluation, 4)  # now it has had a twentieth
    assert LOG == ["evaluate 3"]


def test_leaving_a_phase_interrupts_its_window_unless_the_other_is_a_part_of_its_steps(
    run: Callable[..., Program],
) -> None:
    program = run(Plan(steps=5))
    train = program.begin("train", steps=10)
    generate = program.begin("generate", in_every_step_of=train)
    evaluation = program.begin("evaluate")
    program.step(train, 4)  # the short one is over
    LOG.clear()
    program.schedule.changed(train, generate)
    assert LOG == []
    program.schedule.changed(generate, evaluation)
    assert LOG == ["interrupt"]


@pytest.mark.parametrize(("times", "interrupts"), [(1, True), (12, False)])
def test_only_the_rare_end_of_an_epoch_interrupts(run: Callable[..., Program], times: int, interrupts: bool) -> None:
    program = run(Plan(steps=5))
    train, epoch_end = program.begin("train", steps=40), program.begin("epoch end", times=times)
    program.step(train, 4)
    LOG.clear()
    program.schedule.changed(train, epoch_end)
    assert (LOG == ["interrupt"]) is interrupts


@pytest.mark.parametrize(("times", "heard"), [(2, ["anew at 13"]), (4, [])])
def test_windows_hear_at_which_steps_the_loop_began_anew_unless_it_often_does(
    run: Callable[..., Program], times: int, heard: list[str]
) -> None:
    program = run(Plan(steps=20))
    evaluation = program.begin("evaluate", times=times - 1)
    program.step(evaluation, 12)
    LOG.clear()
    evaluation.times = times
    program.step(evaluation, 3)
    assert heard == LOG


def test_what_is_inside_of_training_waits_for_the_windows_of_training(run: Callable[..., Program]) -> None:
    program = run(Plan(steps=3))
    train = program.begin("train")
    generate = program.begin("generate", in_every_step_of=train)
    for _ in range(4):
        program.step(train)
        program.step(generate, 4)
    assert LOG == ["train 2"]
    program.step(train)
    assert LOG == ["train 2", "train 3"]
    program.step(generate, 4)
    assert LOG[-1] == "generate 3"


def test_a_better_source_of_steps_begins_anew_even_in_a_window(run: Callable[..., Program]) -> None:
    program = run(Plan(steps=5))
    train = program.begin("train")
    program.step(train, 4)
    program.schedule.better_source(train)
    assert LOG == ["train 2", "discard"]
    program.step(train, 9)
    assert LOG[2:] == ["train 2", "train 5"]


def test_a_folded_phase_is_forgotten(run: Callable[..., Program]) -> None:
    program = run(Plan(steps=5))
    train, teacher = program.begin("train"), program.begin("evaluate")
    program.step(teacher)
    program.schedule.folded(teacher, train)
    assert LOG == ["discard"]
    program.schedule.close("")
    assert LOG == ["discard"]


@pytest.fixture
def timed_bare(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Let the bare window have timed steps of so many ns."""
    return lambda *steps_ns: monkeypatch.setattr(FakeWindows, "bare", Bare(steps_ns=steps_ns))


AGAIN = Plan(steps=5, bare=2, bare_seconds=3.0)


def test_bare_steps_are_timed_again_once_the_windows_are_kept(
    run: Callable[..., Program], timed_bare: Callable[..., None]
) -> None:
    timed_bare(1_000, 2_000)
    program = run(AGAIN)
    train = program.begin("train")
    program.step(train, 2 + 5)
    assert LOG == ["train 2", "train 5"]
    program.step(train, 9)
    assert LOG == ["train 2", "train 5", "train bare 3"]


def test_stop_waits_for_the_bare_steps(run: Callable[..., Program], timed_bare: Callable[..., None]) -> None:
    timed_bare(1_000, 2_000)
    program = run(replace(AGAIN, stop=True))
    train = program.begin("train")
    with pytest.raises(StopProgram):
        program.step(train, 50)
    assert train.steps == 2 + 5 + 3 and LOG[-1] == "train bare 3"


@pytest.mark.parametrize(
    "steps_ns",
    [
        (2 * 10**9, 2 * 10**9),  # they took longer than may be spent
        (10**8,) * 20,  # they took long enough, and their median is known
    ],
)
def test_bare_steps_that_are_good_enough_are_not_timed_again(
    run: Callable[..., Program], timed_bare: Callable[..., None], steps_ns: tuple[int, ...]
) -> None:
    timed_bare(*steps_ns)
    program = run(AGAIN)
    program.step(program.begin("train"), 30)
    assert LOG == ["train 2", "train 5"]


def test_bare_steps_are_not_timed_again_under_cupti(
    run: Callable[..., Program], timed_bare: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    timed_bare(1_000, 2_000)
    monkeypatch.setattr("syncscope.collect.schedule.KinetoWindow.attached", True)
    program = run(AGAIN)
    program.step(program.begin("train"), 30)
    assert LOG == ["train 2", "train 5"]


def test_a_program_that_ends_while_bare_steps_are_timed_again_has_lost_nothing(
    run: Callable[..., Program], timed_bare: Callable[..., None]
) -> None:
    timed_bare(1_000, 2_000)
    program = run(AGAIN)
    program.step(program.begin("train"), 2 + 5 + 1)
    program.schedule.close("The program ended before its windows were over.")
    assert LOG == ["train 2", "train 5"] and program.schedule.notes == []


class Clocks:
    """Takes notes where the GPU's sensors would be."""

    def close(self) -> None:
        LOG.append("rest")


def test_the_gpu_is_left_alone_once_no_windows_are_under_way(run: Callable[..., Program]) -> None:
    program = run(TWO)
    program.schedule._clocks = Clocks()  # type: ignore[assignment]
    program.step(program.begin("train"), 1)
    assert LOG == []
    program.step(program.phases[-1], 9)
    assert LOG == ["rest", "train 2"]


def test_stop_waits_for_training(run: Callable[..., Program]) -> None:
    program = run(replace(TWO, stop=True), training_may_come=True)
    evaluation, train = program.begin("evaluate"), program.begin("train")
    program.step(evaluation, 50)
    with pytest.raises(StopProgram):
        program.step(train, 5)
    assert LOG == ["evaluate 2", "train 2"] and program.schedule.stopped


@pytest.mark.parametrize(("ranks", "order"), [(1, ["evaluate 2", "train 2"]), (2, ["train 2", "evaluate 2"])])
def test_an_early_evaluation_of_one_of_several_ranks_is_recorded_after_the_training(
    run: Callable[..., Program], monkeypatch: pytest.MonkeyPatch, ranks: int, order: list[str]
) -> None:
    monkeypatch.setattr(schedule, "several_ranks", lambda torch: ranks > 1)
    program = run(TWO, training_may_come=True)
    evaluation, train = program.begin("evaluate"), program.begin("train")
    program.step(evaluation, 40)
    program.step(train, 5)
    program.step(evaluation, 40)
    assert order == LOG


@pytest.mark.parametrize(("may_come", "ms"), [(True, 1_000), (False, 1)])
def test_ranks_that_may_not_train_are_recorded_in_what_they_do(
    run: Callable[..., Program], monkeypatch: pytest.MonkeyPatch, may_come: bool, ms: int
) -> None:
    monkeypatch.setattr(schedule, "several_ranks", lambda torch: True)
    program = run(TWO, training_may_come=may_come)
    evaluation = program.begin("evaluate", time_ns=ms * 1_000_000)
    program.step(evaluation, 4)
    assert LOG == ["evaluate 2"]


def test_stop_ends_a_program_that_trains_nothing_after_a_while(
    run: Callable[..., Program], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = SimpleNamespace(now=0.0)
    monkeypatch.setattr(schedule, "time", SimpleNamespace(monotonic=lambda: clock.now))
    program = run(replace(TWO, stop=True))
    generate = program.begin("generate")
    program.step(generate, 50)
    clock.now = schedule.STOP_AFTER_S + 1
    with pytest.raises(StopProgram):
        program.step(generate)


def test_only_the_phase_that_was_asked_for_gets_windows(run: Callable[..., Program]) -> None:
    program = run(replace(TWO, phase="validate", stop=True))
    train = program.begin("train")
    evaluation = program.begin("evaluate", user_code=SimpleNamespace(co_name="validate"))
    program.step(train, 50)
    with pytest.raises(StopProgram):
        program.step(evaluation, 2)
    assert LOG == ["evaluate 2"]


def test_windows_begin_at_the_step_that_was_asked_for(run: Callable[..., Program]) -> None:
    program = run(replace(TWO, begin_at=10))
    train = program.begin("train")
    program.step(train, 10)
    assert LOG == []
    program.step(train)
    assert LOG == ["train 2"]


def test_what_windows_recorded_is_not_kept_once_it_was_handed_on(run: Callable[..., Program]) -> None:
    program = run(TWO)
    train = program.begin("train")
    program.step(train, 9)
    assert LOG == ["train 2"]
    (take,) = program.schedule._takes.values()
    assert take.windows.recorded.timed is None


def test_windows_that_give_way_again_and_again_say_so_once(run: Callable[..., Program]) -> None:
    program = run(Plan(steps=5))
    train = program.begin("train")
    for _ in range(3):
        program.step(train)
        (take,) = program.schedule._takes.values()
        take.windows.recorded.notes.append("The program started a profiler of its own.")
        take.windows.gave_way = True
        take.windows.close("")
    assert program.schedule.notes == ["The program started a profiler of its own."]


def test_stop_in_a_thread_ends_the_program_and_not_only_the_thread(run: Callable[..., Program]) -> None:
    program = run(replace(TWO, stop=True))
    train = program.begin("train")
    ended: list[bool] = []

    def work() -> None:
        with pytest.raises(StopProgram):  # as threads do, without pytest's warning
            program.step(train, 50)
        ended.append(True)

    def wait_for_thread() -> None:
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            time.sleep(0.001)

    with pytest.raises(StopProgram):
        wait_for_thread()
    assert ended
