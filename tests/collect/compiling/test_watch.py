"""What Dynamo compiles is heard with its line and reason, and Dynamo does nothing else for it: PyTorch for the CPU."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest

from syncscope.collect.annotations import expected
from syncscope.collect.compiling.graphs import ANOTHER_SIZE, RECORDED_AGAIN
from syncscope.collect.compiling.watch import CompileWatch
from syncscope.collect.paths import Paths
from syncscope.collect.sites.stacks import Stacks
from syncscope.collect.sites.threads import Threads
from syncscope.schema.compiling import CompileEvent
from syncscope.schema.recording import RecordedFrame

torch: Any = pytest.importorskip("torch", reason="Dynamo is PyTorch's")
FILE = "programs.py"


class Watched:
    """A watch, and the phase that its program is in."""

    def __init__(self) -> None:
        self.phase = SimpleNamespace(number=0, kind="train", steps=0, times=1)
        self.stacks = Stacks(Paths(Path(__file__).parent))
        self.watch = CompileWatch(self.stacks, Threads(), lambda frame: self.phase)

    def events(self, *kinds: str) -> list[CompileEvent]:
        assert not self.watch.failure
        return [event for event in self.watch.log.recorded(()).events if event.kind in kinds]

    def frames(self, stack: int | None) -> list[RecordedFrame]:
        frames, stacks = self.stacks.resolve()
        return [frames[number] for number in stacks[stack]] if stack is not None else []

    def at(self, event: CompileEvent) -> tuple[str, int | None, str]:
        frame = self.frames(event.stack)[-1]
        return frame.file, frame.line, frame.function


@pytest.fixture
def programs() -> Any:
    from tests.collect.compiling import programs

    return programs


@pytest.fixture
def watched() -> Iterator[Watched]:
    torch._dynamo.reset()
    watched = Watched()
    watched.watch.open(torch)
    yield watched
    watched.watch.close()
    torch._dynamo.reset()


def compiled(function: Any, backend: str = "eager") -> Any:
    return torch.compile(function, backend=backend)


def line_of(comment: str) -> int:
    lines = Path(__file__).with_name(FILE).read_text(encoding="utf-8").splitlines()
    return next(number for number, line in enumerate(lines, 1) if line.endswith(f"# {comment}"))


def test_a_recompile_names_the_guard_and_the_line_that_it_comes_from(watched: Watched, programs: Any) -> None:
    run = compiled(programs.scaled)
    for step, n in enumerate((2, 2, 2, 2, 3)):
        watched.phase.steps = step
        run(torch.ones(4), n)
    (first,), (again,) = watched.events("compile"), watched.events("recompile")
    assert watched.at(again) == (FILE, line_of("guard on n"), "scaled")
    assert (again.reason, again.count, again.warm, again.graphs, again.steps) == ("n == 2", 1, 1, 1, (4,))
    assert again.time_ns == again.warm_ns
    assert (again.time_ns or 0) > 0
    assert (first.count, first.warm, first.steps) == (1, 0, (0,))
    outer = watched.frames(again.stack)[-2]
    assert (outer.file, outer.expression) == ("test_watch.py", "run(torch.ones(4), n)")
    (definition,) = watched.frames(again.compiled)
    assert (definition.line, definition.function) == (line_of("guard on n") - 1, "scaled")


def test_a_shape_that_changes_points_at_the_def(watched: Watched, programs: Any) -> None:
    run = compiled(programs.Net())
    for rows in (2, 3):
        run(torch.ones(rows, 4))
    (again,) = watched.events("recompile")
    assert watched.at(again) == (FILE, line_of("def of forward"), "Net.forward")
    assert "size mismatch at index 0" in (again.reason or "")


def test_reasons_that_differ_in_numbers_are_one(watched: Watched, programs: Any) -> None:
    run = torch.compile(programs.Net(), backend="eager", dynamic=False)
    for rows in range(2, 6):
        run(torch.ones(rows, 4))
    (again,) = watched.events("recompile")
    assert again.count == 3


def test_a_break_names_its_line_reason_and_function(watched: Watched, programs: Any) -> None:
    compiled(programs.broken)(torch.ones(4))
    (broken,) = watched.events("break")
    assert watched.at(broken) == (FILE, line_of("break"), "broken")
    assert "item" in (broken.reason or "")
    expression = watched.frames(broken.stack)[-1].expression or ""  # the whole line where Dynamo names no columns: 2.11
    assert expression.removeprefix("if ").startswith("y.sum().item()")
    assert [frame.function for frame in watched.frames(broken.compiled)] == ["broken"]
    assert (broken.count, broken.uncompiled) == (1, 0)
    assert sum(event.graphs for event in watched.events("compile")) == 2


def test_a_break_inside_of_a_call_is_at_the_line_in_there(watched: Watched, programs: Any) -> None:
    compiled(programs.calls)(torch.ones(4))
    breaks = watched.events("break")
    assert {watched.at(event) for event in breaks} == {(FILE, line_of("break in a call"), "reading")}
    assert [frame.function for frame in watched.frames(breaks[0].stack)][-2:] == ["calls", "reading"]


def test_a_break_in_a_loop_leaves_the_function_uncompiled(watched: Watched, programs: Any) -> None:
    compiled(programs.looping)(torch.ones(4))
    (broken,) = watched.events("break")
    assert watched.at(broken) == (FILE, line_of("break in a loop"), "looping")
    assert broken.uncompiled == 1
    assert sum(event.graphs for event in watched.events("compile")) == 0


def test_dynamos_limit_leaves_the_function_uncompiled(
    watched: Watched, programs: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = torch._dynamo.config
    name = "recompile_limit" if hasattr(config, "recompile_limit") else "cache_size_limit"
    run = torch.compile(programs.Net(), backend="eager", dynamic=False)
    with config.patch({name: 2}):
        for rows in range(2, 6):
            run(torch.ones(rows, 4))
    (again,) = watched.events("recompile")
    assert again.uncompiled == 1
    assert not watched.events("break")


def test_one_graph_that_stays_is_compiled_and_no_more(watched: Watched, programs: Any) -> None:
    run = compiled(programs.whole)
    for _ in range(3):
        run(torch.ones(4))
    assert [event.kind for event in watched.watch.log.recorded(()).events] == ["compile"]
    assert watched.watch.log.compilations == 1


@pytest.mark.slow
def test_a_backward_that_is_compiled_later_counts_with_its_forward(watched: Watched, programs: Any) -> None:
    run = compiled(programs.Net(), "aot_eager")
    loss = run(torch.ones(2, 4)).sum()
    (before,) = watched.events("compile")
    loss.backward()
    (after,) = watched.events("compile")
    assert after.count == 1
    assert (after.time_ns or 0) >= (before.time_ns or 0)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_inductors_compilation_is_heard_as_any(watched: Watched, programs: Any) -> None:
    run = compiled(programs.broken, "inductor")
    run(torch.ones(4))
    assert len(watched.events("break")) == 1
    assert len(watched.events("compile")) == 2


def test_a_block_that_expects_it_gives_its_reason(watched: Watched, programs: Any) -> None:
    with expected("reads on purpose"):
        compiled(programs.broken)(torch.ones(4))
    assert [event.expected for event in watched.events("break")] == ["reads on purpose"]


def test_a_phase_that_begins_again_forgets_which_steps_were_warm(watched: Watched, programs: Any) -> None:
    watched.phase.steps = 9
    compiled(programs.broken)(torch.ones(4))
    watched.watch.log.begin_again(watched.phase)
    (broken,) = watched.events("break")
    assert (broken.count, broken.warm, broken.steps) == (1, 0, ())


def test_after_the_end_nothing_is_heard_and_dynamo_is_as_it_was(programs: Any) -> None:
    convert = sys.modules["torch._dynamo.convert_frame"]
    before, hooks = convert._compile, len(sys.meta_path)
    watched = Watched()
    watched.watch.open(torch)
    run = compiled(programs.whole)
    run(torch.ones(4))
    heard = len(watched.events("compile"))
    watched.watch.close()
    run(torch.ones(4, 4))
    assert (heard, len(watched.events("recompile"))) == (1, 0)
    assert convert._compile is before
    assert len(sys.meta_path) == hooks
    handler = torch._dynamo.callback.callback_handler
    assert watched.watch._backward_begins not in handler.start_callbacks
    torch._dynamo.reset()


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_somebody_hears_when_the_compiler_is_at_work(watched: Watched, programs: Any, backend: str) -> None:
    heard: list[bool] = []
    watched.watch.at_work = heard.append
    run = compiled(programs.whole, backend)
    for size in (4, 4, 5):
        run(torch.ones(size, requires_grad=True)).sum().backward()
    assert heard and len(heard) == 2 * heard.count(True)
    assert all(began is (number % 2 == 0) for number, began in enumerate(heard))


def test_somebody_hears_that_the_compiler_has_failed(watched: Watched) -> None:
    heard: list[bool] = []
    watched.watch.at_work = heard.append

    def fails(graph: Any, inputs: Any) -> Any:
        raise RuntimeError("no")

    with pytest.raises(Exception, match="no"):
        torch.compile(lambda x: x + 1, backend=fails)(torch.ones(4))
    assert heard == [True, False]


def counters() -> tuple[dict[str, int], dict[str, int], int]:
    found = torch._dynamo.utils.counters
    return dict(found["frames"]), dict(found["stats"]), sum(found["graph_break"].values())


def steps(programs: Any) -> list[float]:
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    torch.manual_seed(0)
    runs: list[Callable[[], Any]] = [
        lambda: compiled(programs.broken)(torch.randn(4)),
        lambda: compiled(programs.looping)(torch.randn(4)),
        *(lambda n=n: compiled(programs.scaled)(torch.randn(4), n) for n in (2, 3, 4)),
        *(lambda rows=rows: compiled(programs.Net(), "aot_eager")(torch.randn(rows, 4)) for rows in (2, 3)),
    ]
    return [float(run().sum().detach()) for run in runs]


def test_dynamo_does_the_same_with_and_without_us(programs: Any) -> None:
    alone, before = steps(programs), counters()
    watched = Watched()
    watched.watch.open(torch)
    try:
        assert (steps(programs), counters()) == (alone, before)
    finally:
        watched.watch.close()
    assert (steps(programs), counters()) == (alone, before)


def test_coming_and_going_compiles_nothing_anew(programs: Any) -> None:
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    run = compiled(programs.whole)
    for _ in range(3):
        watched = Watched()
        watched.watch.open(torch)
        run(torch.ones(4))
        watched.watch.close()
        run(torch.ones(4))
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] == 1


def test_an_error_of_ours_stays_with_us(watched: Watched, programs: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(frame: Any) -> int:
        raise ValueError("no stack")

    monkeypatch.setattr(watched.stacks, "take", fails)
    assert compiled(programs.whole)(torch.ones(4)).shape == (4,)
    assert watched.watch.failure == "What torch.compile did is not all known (ValueError: no stack)."


def test_an_error_of_dynamos_reaches_the_program(watched: Watched, programs: Any) -> None:
    run = torch.compile(programs.broken, backend="eager", fullgraph=True)
    with pytest.raises(Exception, match="item"):
        run(torch.ones(4))
    assert [event.uncompiled for event in watched.events("break")] == [1]


def test_what_a_version_lacks_is_named_and_the_program_compiles(programs: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("syncscope.collect.compiling.watch.COMPILE", "_compiles_no_more")
    watched = Watched()
    watched.watch.open(torch)
    try:
        assert compiled(programs.whole)(torch.ones(4)).shape == (4,)
        assert "torch._dynamo.convert_frame._compiles_no_more" in watched.watch.missing
    finally:
        watched.watch.close()


def test_a_cuda_graph_that_is_skipped_has_inductors_reason_and_line(watched: Watched, programs: Any) -> None:
    said: list[str] = []
    skip = watched.watch.graphs._make_skip(said.append)
    skip("skipping cudagraphs due to cpu device (arg0_1)")
    skip(f'skipping cudagraphs due to mutated inputs. Found from : \n   File "{programs.__file__}", line 12, in scaled')
    assert len(said) == 2
    device, mutated = watched.events("skip")
    assert (device.reason, watched.at(device)[0]) == ("cpu device (arg0_1)", "test_watch.py")
    assert (mutated.reason, watched.at(mutated)) == ("mutated inputs", (FILE, 12, "scaled"))


def test_a_cuda_graph_is_recorded_at_the_call_into_compiled_code(watched: Watched, programs: Any) -> None:
    graphs: list[int] = []
    record = watched.watch.graphs._make_record(lambda manager, inputs, function: graphs.append(function.id))

    def backend(graph: Any, inputs: Any) -> Any:
        def run(*given: Any) -> Any:
            record(backend, given, Function(1))
            return graph.forward(*given)

        return run

    run = torch.compile(programs.whole, backend=backend)
    for _ in range(2):
        run(torch.ones(4))
    first, again = watched.events("record")
    assert graphs == [1, 1]
    assert (first.reason, first.count, again.count) == (None, 1, 1)
    assert "recorded again" in (again.reason or "")
    assert (again.time_ns or 0) > 0


class Trees:
    """What Inductor's manager of CUDA graphs does with graphs and the sizes of their inputs."""

    def __init__(self, watched: Watched) -> None:
        self.ids_to_funcs: dict[Any, Any] = {}
        self.warmed_up_functions: set[Any] = set()
        self.warm = watched.watch.graphs._make_warm(
            lambda manager, inputs, function: manager.warmed_up_functions.add(function)
        )
        self.record = watched.watch.graphs._make_record(lambda manager, inputs, function: None)

    def run(self, number: int, model: object, *, recorded: bool = False) -> None:
        function = next((one for one in self.ids_to_funcs if one.id == number), None) or Function(number)
        self.ids_to_funcs[function] = SimpleNamespace(model=model)
        (self.record if recorded else self.warm)(self, [], function)


class Function(NamedTuple):
    id: int


def test_sizes_that_a_graph_has_not_seen_are_warmed_up_and_recorded(watched: Watched) -> None:
    trees, forward, backward = Trees(watched), object(), object()
    for number, model in enumerate((forward, backward, forward, forward)):
        trees.run(number, model)
    trees.run(2, forward)  # behind another one that is warmed up
    trees.run(0, forward, recorded=True)
    trees.run(2, forward, recorded=True)
    warm = [(event.reason, event.count, event.time_ns) for event in watched.events("warm")]
    assert warm == [(None, 2, None), (ANOTHER_SIZE, 2, None)]
    assert [(event.reason, event.count) for event in watched.events("record")] == [(None, 1), (ANOTHER_SIZE, 1)]


def test_a_graph_that_is_recorded_for_the_same_size_again_is_told_apart(watched: Watched) -> None:
    trees, model = Trees(watched), object()
    for _ in range(2):
        trees.run(0, model, recorded=True)
    assert [event.reason for event in watched.events("record")] == [None, RECORDED_AGAIN]


def test_warming_up_leaves_the_steps_as_steady_as_they_are(watched: Watched) -> None:
    trees = Trees(watched)
    trees.run(0, object())
    assert watched.watch.log.compilations == 0


def test_inductors_manager_of_cuda_graphs_has_all_that_is_wrapped(watched: Watched) -> None:
    trees = pytest.importorskip("torch._inductor.cudagraph_trees")
    assert trees.CUDAGraphTreeManager.run_eager.__name__ == "run_eager"
    assert not watched.watch.missing
