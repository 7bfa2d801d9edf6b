"""Programs of tensors alone: nothing of PyTorch's tells of their steps, but their loops turn."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from types import FrameType, SimpleNamespace
from typing import Any

import pytest

from syncscope.collect.paths import Paths
from syncscope.collect.phases import Phase
from syncscope.collect.phases.choice import PATIENCE
from syncscope.collect.phases.made import allocations, modules_defined
from syncscope.collect.phases.monitoring import TOOLS, Tool
from syncscope.collect.phases.tracker import BRIEF_NS
from syncscope.collect.phases.turn_times import MOST_TURNS, SHORT_TURNS
from syncscope.collect.phases.turns import MANY
from tests.collect.phases.turning import HERE, MS, SECOND, Program, library, needs_monitoring


@pytest.fixture(params=[0, 1000], ids=["heard", "unheard"])
def program(request: pytest.FixtureRequest) -> Iterator[Program]:
    """Its steps are all heard, or pass together; afterwards Python monitors nothing."""
    program = Program(request.param)
    program.turns.open()
    yield program
    assert program.failures == []
    program.turns.close()
    if sys.version_info >= (3, 12):
        assert all(sys.monitoring.get_tool(tool) is None for tool in TOOLS)


@needs_monitoring
def test_the_turns_of_a_loop_are_steps(program: Program) -> None:
    for turn in range(400):
        if turn == 300:
            before = sum(program.steps.values())
        program.work()
    phase = program.phase()
    assert (phase.kind, phase.source, phase.times) == ("other", "turn", 1)
    assert phase.user_code is not None and phase.user_line is not None
    assert phase.user_code.co_name == "test_the_turns_of_a_loop_are_steps"
    assert phase.user_line - phase.user_code.co_firstlineno == 2
    assert phase.steps - before == 100 and 200 < phase.steps < 400  # until it was found there were none
    assert phase.lengths.median() == 10 * MS


def simulate(program: Program, steps: int, inside: int = 3, length_ns: int = 10 * MS) -> None:
    for _ in range(steps):
        for _ in range(inside):
            program.work(length_ns // inside)


@needs_monitoring
def test_a_short_loop_in_each_turn_is_part_of_it(program: Program) -> None:
    simulate(program, 600)
    phase = program.phase()
    assert phase.user_code is not None and phase.user_line == phase.user_code.co_firstlineno + 1
    assert phase.lengths.median() == pytest.approx(10 * MS, rel=0.01)


@needs_monitoring
def test_epochs_over_batches_are_times_of_the_loop_of_the_batches(program: Program) -> None:
    for _ in range(5):
        simulate(program, 100)
    phase = program.phase()
    assert phase.user_code is simulate.__code__ and phase.times in (3, 4, 5)
    assert phase.steps > 300 and phase.lengths.median() == pytest.approx(10 * MS, rel=0.01)


@needs_monitoring
def test_what_follows_a_loop_is_no_part_of_its_steps(program: Program) -> None:
    """Nor is it where the rest of the function waits for nothing."""
    kinds, before = [], []
    for epoch in range(6):
        for turn in range(100):
            program.work()
            if turn == 0 and epoch > 3:
                before.append(program.tracker.current.kind)
                kinds.append(program.here())
        if epoch > 3:
            kinds.append(program.tracker.current.kind)
            program.work(SECOND)
            kinds.append(program.here())
    assert kinds == ["other", "epoch end", "epoch end"] * 2
    assert before == ["other", "epoch end"] or before == ["epoch end", "epoch end"]
    phase = program.phase()
    assert phase.lengths.median() == phase.lengths.p95() == 10 * MS and phase.lengths.mean() == 10 * MS
    assert phase.time_ns == pytest.approx(phase.steps * 10 * MS, rel=0.03)


@needs_monitoring
def test_brief_loops_are_not_left_each_time(program: Program) -> None:
    """Going from phase to phase takes more than hearing of a turn does."""
    for _ in range(400):
        simulate(program, 10, length_ns=MS)
        program.work()
        program.here()
    assert program.phase().lengths.median() == pytest.approx(MS, rel=0.01)
    assert program.changes <= 2 * (400 * 20 * MS) // BRIEF_NS + 2


@pytest.mark.parametrize(("how", "late"), [("turn", True), ("call", False)])
def test_a_phase_that_is_known_by_turns_begins_late(
    program: Program, monkeypatch: pytest.MonkeyPatch, how: str, late: bool
) -> None:
    heard: list[bool] = []
    tracker = program.tracker
    monkeypatch.setattr(tracker._listener, "changed", lambda before, after: heard.append(tracker.begins_late))
    for _ in range(3):
        frame = sys._getframe()
        if how == "turn":
            tracker.turned(frame, tracker.nests.loops_around(frame)[0])
        else:
            tracker.module_called(frame, object(), "call")
    assert heard == [late]


@needs_monitoring
def test_a_loop_that_is_left_in_its_first_turn_is_over(program: Program) -> None:
    def search(turns: int) -> str:
        for turn in range(400):
            program.work()
            kind = program.here()
            if turn == turns:
                break
        return f"{kind}, then {program.here()}"

    search(399)
    assert [search(0), search(0), search(5)] == ["other, then epoch end"] * 3


@needs_monitoring
def test_two_loops_in_turn_are_two_phases(program: Program) -> None:
    for _ in range(4):
        for _ in range(300):
            program.work()
        for _ in range(300):
            program.work(20 * MS)
        program.work()
    lengths = {phase.lengths.median() for phase in program.tracker.phases if phase.steps}
    assert lengths == {10 * MS, 20 * MS}
    assert all(steps > 500 for steps in program.steps.values()) and len(program.steps) == 2


@needs_monitoring
def test_loops_one_after_the_other_in_a_function_are_phases(program: Program) -> None:
    for _ in range(500):
        program.work()
    for _ in range(500):
        program.work()
    for _ in range(500):
        program.work()
    assert [steps > 300 for steps in program.steps.values()] == [True] * 3


@needs_monitoring
def test_a_loop_that_is_seldom_seen_is_preferred_to_the_one_around_it(program: Program) -> None:
    """The program is outside of the inner loop at most looks."""
    for _ in range(40):
        for _ in range(20):
            program.work(5 * MS)
        program.work(200 * MS)
    assert program.phase().lengths.median() == 5 * MS


@needs_monitoring
def test_a_while_loop_that_goes_on_in_several_places(program: Program) -> None:
    number = 0
    while number < 400:
        number += 1
        if number % 3 == 0:
            program.work()
            continue
        program.work()
    phase = program.phase()
    assert phase.source == "turn" and phase.steps > 200


@needs_monitoring
def test_a_handler_that_goes_on_in_the_turn_that_it_is_in_begins_none(program: Program) -> None:
    """Python 3.12 moves handlers to the end of the function, from where they jump back."""
    turns = 0
    while turns < 600:
        turns += 1
        try:
            program.work()
            if turns % 2:
                raise ValueError
        except ValueError:
            pass
        if turns == 500:
            before = sum(program.steps.values())
    phase = program.phase()
    assert phase.source == "turn"
    assert phase.steps - before in (100, 101)  # Python 3.14 also jumps back to find that the loop is over
    assert phase.lengths.median() == 10 * MS


def solver(work: Callable[[], object], turns: int) -> None:
    space: dict[str, Any] = {}
    source = f"def solve(work):\n    for _ in range({turns}):\n        work()\n"
    exec(compile(source, library("solver"), "exec"), space)
    space["solve"](work)


@needs_monitoring
def test_a_loop_of_a_library_has_the_users_line(program: Program) -> None:
    solver(program.work, 3000)
    phase = program.phase()
    assert phase.user_code is not None and phase.steps > 200
    assert (phase.user_code.co_name, phase.called) == ("solver", "solve")


@needs_monitoring
def test_the_loop_of_a_loader_makes_a_batch_a_step(program: Program) -> None:
    """Also where each batch is worked on in many turns of a loop inside."""

    class Batches:
        def __iter__(self) -> Iterator[int]:
            return self

        left = 100

        def __next__(self) -> int:
            frame = sys._getframe(1)
            if not self.left:
                program.tracker.loader_ended(frame)
                raise StopIteration
            self.left -= 1
            program.tracker.loader_next(frame, self)
            return 1

    kinds = []
    for _ in range(3):
        for _ in Batches():
            if program.steps:
                kinds.append(program.tracker.current.kind)
            for _ in range(20):
                program.work(MS)
        kinds.append(program.tracker.current.kind)
    assert program.phase().lengths.median() == 20 * MS and program.phase().times == 3
    assert "".join(kind[0] for kind in kinds).endswith("oe" + "o" * 100 + "e")


@needs_monitoring
def test_turns_that_use_no_memory_of_the_device_are_no_steps(program: Program) -> None:
    for _ in range(1000):
        program.work(allocates=0)
    assert program.steps == {}
    assert program.turns.note is not None and "no loop was found that turns again and again" in program.turns.note


@needs_monitoring
def test_turns_that_wait_for_the_device_are_steps(program: Program) -> None:
    """All is done in place, or in CUDA graphs."""
    waits = 0
    program.turns.waits = lambda: waits
    for _ in range(400):
        waits += 1
        program.work(allocates=0)
    assert program.phase().source == "turn"


@needs_monitoring
def test_where_allocations_cannot_be_told_turns_are_steps(program: Program) -> None:
    program.turns.allocations = lambda: None
    for _ in range(400):
        program.work()
    assert program.phase().source == "turn" and program.turns.note is None


@needs_monitoring
def test_many_turns_of_a_fifth_of_a_millisecond_are_steps_and_few_are_not(program: Program) -> None:
    simulate(program, 1000, 12, 12 * MS // 5)  # layers
    assert program.phase().lengths.median() == pytest.approx(12 * MS // 5, rel=0.01)
    program.turns.close()
    again = Program()
    again.turns.open()
    simulate(again, 10, MANY + 2000, (MANY + 2000) * MS // 5)
    again.turns.close()
    assert again.phase().lengths.median() == MS // 5


@needs_monitoring
def test_turns_that_are_too_short_are_let_go_of(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    heard = count_calls(program, monkeypatch)
    for _ in range(20_000):
        program.work(MS // 20)
    assert program.steps == {}
    assert SHORT_TURNS <= heard() < SHORT_TURNS + 4


@needs_monitoring
def test_turns_that_become_too_short_are_let_go_of(program: Program) -> None:
    for turn in range(200_000):
        program.work(MS // 50 if turn > 300 else 10 * MS)
        if turn == 150_000:
            steps = sum(program.steps.values())
    assert sum(program.steps.values()) == steps


@needs_monitoring
def test_of_a_loop_that_turns_for_nothing_few_turns_are_heard(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard = count_calls(program, monkeypatch)
    for _ in range(2000):
        program.work(allocates=0)
    assert MOST_TURNS <= heard() < MOST_TURNS + 4


def count_calls(program: Program, monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    calls = 0
    original = program.turns.heard

    def heard(*args: Any) -> object:
        nonlocal calls
        calls += 1
        return original(*args)

    monkeypatch.setattr(program.turns, "heard", heard)
    return lambda: calls


@needs_monitoring
def test_turns_are_no_steps_before_others_had_time_to_show(program: Program) -> None:
    begin = program.now
    for _ in range(300):
        program.work(5 * MS)
        assert not program.steps or program.now > begin + SECOND


@pytest.mark.parametrize("sign", ["class", "call", "gradient", "library"])
@needs_monitoring
def test_where_modules_may_be_called_yet_they_have_long_to_do_so(program: Program, sign: str) -> None:
    """They are loaded in a loop, or their data are prepared."""
    if sign == "class":
        program.turns.modules_defined = lambda: True
    elif sign == "call":
        program.tracker.module_called(sys._getframe(), program, "eval")
    elif sign == "gradient":
        program.tracker.gradients_computed(sys._getframe(), "grad")
    begin = program.now

    def work() -> None:
        program.work()
        assert not program.steps or program.now > begin + 20 * SECOND

    if sign == "library":
        solver(work, 3000)
    else:
        for _ in range(3000):
            work()
    assert program.phase().source == "turn"


@needs_monitoring
def test_a_module_takes_over_and_turns_are_heard_no_more(program: Program) -> None:
    module = SimpleNamespace()
    for turn in range(600):
        if turn >= 400:
            program.tracker.module_called(sys._getframe(), module, "eval")
        program.work()
    phase = program.phase()
    assert (phase.source, phase.steps, program.better) == ("module", 200, ["other"])
    assert sys.monitoring.get_tool(TOOLS[0]) is None  # type: ignore[attr-defined,unused-ignore]


@needs_monitoring
def test_a_module_in_a_few_turns_does_not_take_over(program: Program) -> None:
    metric = SimpleNamespace()
    for turn in range(1000):
        if turn > 400 and turn % 50 == 0:
            program.tracker.module_called(sys._getframe(), metric, "eval")
        program.work()
    phase = program.phase()
    assert phase.source == "turn" and phase.steps > 800 and not program.better


@needs_monitoring
def test_gradients_take_over(program: Program) -> None:
    for turn in range(600):
        if turn >= 300:
            program.tracker.gradients_computed(sys._getframe(), "backward")
        program.work()
    phase = program.phase()
    assert (phase.kind, phase.source, phase.steps) == ("train", "gradient", 300 - PATIENCE + 1)


@needs_monitoring
def test_the_programs_own_steps_take_over(program: Program) -> None:
    for turn in range(600):
        program.work()
        if turn >= 400 and turn % 2:
            program.tracker.user_stepped(sys._getframe())
    phase = program.phase()
    assert (phase.source, phase.steps) == ("user", 100)


@needs_monitoring
def test_nothing_is_heard_in_a_program_that_made_an_optimiser(program: Program) -> None:
    program.optimizers = True
    for _ in range(400):
        program.work()
    assert program.steps == {} and program.turns.note is None


@needs_monitoring
def test_turns_of_several_ranks_are_not_heard(program: Program) -> None:
    """Each would begin to hear them at another one."""
    program.turns.several_ranks = lambda: True
    simulate(program, 400)
    assert program.steps == {}
    assert program.turns.note is not None and "where there are several ranks" in program.turns.note


@needs_monitoring
def test_another_threads_turns_are_not_those_of_the_program(program: Program) -> None:
    simulate(program, 400)
    before = program.phase().steps
    thread = threading.Thread(target=simulate, args=(program, 100))
    thread.start()
    thread.join()
    assert program.phase().steps == before


@needs_monitoring
def test_the_programs_exit_passes_from_a_turn_to_the_program(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(phase: Phase) -> int:
        raise SystemExit(0)

    monkeypatch.setattr(program, "stepped", stop)
    with pytest.raises(SystemExit):
        simulate(program, 400)


@needs_monitoring
def test_an_error_of_ours_does_not_reach_the_program(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(frame: FrameType, loop: object) -> None:
        program.turns.close()  # as the hooks do then
        raise ValueError("ours")

    monkeypatch.setattr(program.tracker, "turned", fail)
    simulate(program, 400)
    assert [str(error) for error in program.failures] == ["ours"]
    program.failures.clear()


@needs_monitoring
def test_where_other_tools_monitor_nothing_is_heard(program: Program) -> None:
    monitoring: Any = sys.monitoring  # type: ignore[attr-defined,unused-ignore]
    for tool in TOOLS:
        monitoring.use_tool_id(tool, "another")
    try:
        simulate(program, 400)
        assert program.steps == {}
        assert program.turns.note is not None and "other tools use sys.monitoring" in program.turns.note
    finally:
        for tool in TOOLS:
            monitoring.free_tool_id(tool)


def test_below_3_12_a_run_without_steps_says_why(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    program.turns.close()
    monkeypatch.setattr(Tool, "exists", False)
    program.turns.open()
    simulate(program, 400)
    assert program.steps == {}
    assert program.turns.note is not None
    assert "can be heard from Python 3.12 on, not with " in program.turns.note
    assert "syncscope.step()" in program.turns.note


def test_loops_around_a_place_are_those_of_the_user_and_of_what_he_calls(program: Program) -> None:
    space: dict[str, Any] = {}
    source = "def outside(call):\n    for _ in range(2):\n        call()\n"
    exec(compile(source, library("runner"), "exec"), space)
    found: list[str] = []

    def look() -> None:
        found.extend(loop.code.co_name for loop in program.tracker.nests.loops_around(sys._getframe()))

    def inside() -> None:
        for _ in range(2):
            space["outside"](look)

    thread = threading.Thread(target=space["outside"], args=(inside,))
    thread.start()
    thread.join()
    assert found == ["outside", "inside"] * 8  # what calls the user is none of his


def test_modules_of_the_users_own_files_are_found() -> None:
    Module = type("Module", (), {"__module__": "torch.nn.modules.module"})
    torch = SimpleNamespace(nn=SimpleNamespace(Module=Module))
    assert not modules_defined(torch, Paths(HERE).is_user)
    Library = type("Library", (Module,), {"__module__": "pathlib"})
    assert not modules_defined(torch, Paths(HERE).is_user)
    kept = [type("Theirs", (Library,), {"__module__": __name__})]
    assert modules_defined(torch, Paths(HERE).is_user)
    kept.clear()


def test_allocations_are_none_where_pytorch_does_not_know() -> None:
    stats = {"allocation": {"all": {"allocated": 7}}}
    cuda = SimpleNamespace(memory_stats_as_nested_dict=lambda: stats)
    assert allocations(SimpleNamespace(cuda=cuda)) == 7
    stats.clear()
    assert allocations(SimpleNamespace(cuda=cuda)) is None
