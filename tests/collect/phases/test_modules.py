"""Which modules' calls are looked at, and which run as PyTorch made them."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="the hooks are PyTorch's")

from syncscope.collect.phases import modules  # noqa: E402
from syncscope.collect.phases.modules import LOOK_CALLS  # noqa: E402
from tests.collect.phases.following import X, learn, model, sgd  # noqa: E402

plain_call = torch.nn.Module.__call__


class Other(torch.nn.Module):  # type: ignore[misc, name-defined]
    def forward(self, x: Any) -> Any:
        return x


@pytest.fixture(autouse=True)
def nothing_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other tests may have compiled something in this process."""
    monkeypatch.setattr(modules, "has_compiled", lambda: False)


def look_always(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(modules, "LOOK_EVERY_NS", 0)
    monkeypatch.setattr(modules, "LOOK_PARTS", sys.maxsize)


def call_often(net: Any) -> None:
    for _ in range(LOOK_CALLS + 1):
        net(X)


def call_quickly(net: Any, run: Any, calls: int) -> None:
    """Call ``net`` in steps that are not looked at closely, where not all steps must be heard."""
    run.tracker.expected.tell_next()
    for number in range(calls):
        if number > 1:
            run.tracker.expected.mask = 15
        net(X)


def test_modules_inside_of_known_ones_run_as_pytorch_made_them(run: Any) -> None:
    net = model().eval()
    assert torch.nn.Linear.__call__ is not plain_call
    call_often(net)
    assert torch.nn.Linear.__call__ is plain_call
    assert torch.nn.Sequential.__call__ is not plain_call
    assert run.steps == {"evaluate": LOOK_CALLS + 1}


OWN_PROFILER = """
import sys, torch
from pathlib import Path
from syncscope.collect.live.warm_up import WarmUp
from syncscope.collect.paths import Paths
from syncscope.collect.phases import PhaseTracker, Signals

class Listener:
    def stepped(self, phase): return 0
    def changed(self, before, after): pass
    def folded(self, phase, into): pass
    def better_source(self, phase): pass

if sys.argv[1] == "phases":
    Signals(PhaseTracker(Listener(), Paths(Path("/nowhere")))).attach(torch)
elif sys.argv[1] == "warm-up":
    WarmUp(1_000, lambda: None).open(torch)
net, x = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.ReLU()), torch.zeros(2, 3)
with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], with_stack=True) as profiler:
    for _ in range(40):
        net(x)
names = {event.name for event in profiler.events() if event.name.startswith("nn.Module")}
print(sorted(names))
"""


def test_a_profiler_of_the_programs_that_records_stacks_sees_the_modules() -> None:
    """Those that it sees alone: PyTorch 2.11 shows none among these events, 2.13 all."""
    alone, *ours = (
        subprocess.run(
            [sys.executable, "-c", OWN_PROFILER, which], capture_output=True, text=True, check=False,
            cwd=Path(__file__).parents[3],
        )
        for which in ("", "phases", "warm-up")
    )  # fmt: skip
    for one in ours:
        assert alone.returncode == one.returncode == 0, one.stderr
        assert alone.stdout == one.stdout


def test_a_new_class_of_modules_is_seen_after_a_switch_to_evaluation(run: Any) -> None:
    net, other = model(), Other()
    optimizer = sgd(net)
    for _ in range(LOOK_CALLS + 2):
        learn(net, optimizer)
    assert Other.__call__ is plain_call
    other.eval()
    for _ in range(5):
        other(X)
    assert run.steps == {"train": LOOK_CALLS + 2, "evaluate": 5}


def test_all_classes_are_looked_at_again_after_a_while(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    net, other = model().eval(), Other().eval()
    call_often(net)
    run.signals.look_wider()
    other(X)
    assert run.steps == {"evaluate": LOOK_CALLS + 1}
    look_always(monkeypatch)
    run.signals.look_wider()
    for _ in range(4):
        other(X)
    assert sum(run.steps.values()) == LOOK_CALLS + 5


def test_a_class_with_a_call_of_its_own_keeps_it(run: Any) -> None:
    class Own(torch.nn.Module):  # type: ignore[misc, name-defined]
        def forward(self, x: Any) -> Any:
            return x

        def __call__(self, x: Any) -> Any:
            return super().__call__(x) + 1

    call = Own.__call__
    net = Own().eval()
    for _ in range(3 * LOOK_CALLS):
        assert torch.equal(net(X), X + 1)
    run.signals.detach()
    assert Own.__call__ is call and torch.equal(net(X), X + 1)
    assert run.steps == {"evaluate": 3 * LOOK_CALLS}


def test_nothing_is_left_on_the_classes(run: Any) -> None:
    net = model().eval()
    call_often(net)
    assert "__call__" in vars(torch.nn.Sequential)
    run.signals.detach()
    assert "__call__" not in vars(torch.nn.Sequential)
    assert torch.nn.Module.__call__ is plain_call


def test_calls_from_different_places_are_told_apart_where_steps_pass_unheard(run: Any) -> None:
    net = model().eval()
    for _ in range(40):
        net(X)
    for _ in range(40):
        net(X)
    run.tracker.recorded()
    assert [phase.steps for phase in run.tracker.phases if phase.kind == "evaluate"] == [40, 40]


def test_once_something_is_compiled_the_classes_stay_as_they_are(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    compiled: list[int] = []

    def backend(graph: Any, inputs: Any) -> Any:
        compiled.append(1)
        return graph.forward

    torch._dynamo.reset()
    net = model().eval()
    work = torch.compile(lambda x: net(x) + 1, backend=backend)
    other = Other().eval()
    for _ in range(3 * LOOK_CALLS):
        work(X)
        other(X)
    look_always(monkeypatch)
    run.signals.look_wider()
    work(X)
    assert len(compiled) == 1
    torch._dynamo.reset()


def test_what_was_compiled_before_is_not_compiled_again(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The classes are watched, narrowly, when the program compiles."""
    monkeypatch.undo()
    compiled: list[int] = []

    def backend(graph: Any, inputs: Any) -> Any:
        compiled.append(1)
        return graph.forward

    torch._dynamo.reset()
    net = model().eval()
    call_often(net)
    work = torch.compile(lambda x: net(x) + 1, backend=backend)
    for _ in range(3):
        work(X)
    look_always(monkeypatch)
    for _ in range(3):
        run.signals.look_wider()
        net.eval()
        call_often(net)
        work(X)
    assert len(compiled) == 1
    torch._dynamo.reset()


def test_a_program_that_lives_in_one_call_of_a_module_is_stepped_by_time(run: Any) -> None:
    import time

    from syncscope.collect.timer import Timer

    ticks: list[int] = []

    class Lives(torch.nn.Module):  # type: ignore[misc, name-defined]
        def forward(self, x: Any) -> Any:
            until = time.monotonic() + 20
            while len(ticks) < 3 and time.monotonic() < until:
                time.sleep(0.001)
            return x

    timer = Timer(0.001, lambda: ticks.append(1))
    timer.open()
    try:
        Lives()(X)
    finally:
        timer.close()
    assert len(ticks) >= 3


def test_a_program_that_switches_in_each_step_is_not_looked_at_wider_each_time(run: Any) -> None:
    net, other = model(), Other()
    call_often(net)
    looks = 0
    for _ in range(3 * modules.FREE_SWITCHES):
        other.eval()
        other.train()
        looks += torch.nn.Linear.__call__ is not plain_call
        call_often(net)
    assert looks == modules.FREE_SWITCHES


def test_a_switch_that_changes_nothing_is_none(run: Any) -> None:
    net = model()
    call_often(net)
    net.train()
    assert torch.nn.Linear.__call__ is plain_call


def test_a_long_run_is_looked_at_more_seldom(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    net = model()
    call_often(net)
    now = time.perf_counter_ns()
    calls = run.signals._modules
    calls._opened_ns = now - 3600 * 10**9
    calls._narrow_since = now - 3 * modules.LOOK_EVERY_NS
    run.signals.look_wider()
    assert torch.nn.Linear.__call__ is plain_call
    calls._narrow_since = now - 3601 * 10**9 // modules.LOOK_PARTS
    run.signals.look_wider()
    assert torch.nn.Linear.__call__ is not plain_call


def test_calls_have_the_arguments_that_the_program_gave(run: Any) -> None:
    class Told(torch.nn.Module):  # type: ignore[misc, name-defined]
        def forward(self, *args: Any, **named: Any) -> Any:
            return args, named

    net = Told()
    for _ in range(40):  # all classes are watched, then this one, then some pass unheard
        assert net() == ((), {})
        assert net(None) == ((None,), {})
        assert net(1, 2) == ((1, 2), {})
        assert net(1, first=2, module=3) == ((1,), {"first": 2, "module": 3})
        assert net(x=1) == ((), {"x": 1})


def test_dynamo_reads_nothing_that_changes_in_each_step(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is traced while short steps pass quickly is not compiled again when they do not."""
    monkeypatch.undo()
    compiled: list[int] = []

    def backend(graph: Any, inputs: Any) -> Any:
        compiled.append(1)
        return graph.forward

    torch._dynamo.reset()
    net = model().eval()
    call_often(net)
    work = torch.compile(lambda x: net(x) + 1, backend=backend)
    expected = run.tracker.expected
    for expected.quick, expected.left, expected.mask in ((True, 40, 15), (True, 39, 15), (False, 0, 0), (True, 8, 7)):
        work(X)
    assert len(compiled) == 1
    torch._dynamo.reset()


@pytest.mark.parametrize("often", [0, 40], ids=["wide", "narrow"])
def test_compiled_code_calls_modules_with_any_arguments(run: Any, monkeypatch: pytest.MonkeyPatch, often: int) -> None:
    """A function compiled as one graph cannot be left where Dynamo does not know what ours does."""
    monkeypatch.undo()

    class Sum(torch.nn.Module):  # type: ignore[misc, name-defined]
        def forward(self, first: Any, *others: Any, last: Any = None) -> Any:
            return sum(others, first) if last is None else sum(others, first) * last

    net = Sum()
    for _ in range(often):
        net(X)
    torch._dynamo.reset()
    one, two = torch.ones(2, 3), torch.ones(3)
    for work in (
        lambda x, y: net(x),
        lambda x, y: net(x, y),
        lambda x, y: net(x, y, y),
        lambda x, y: net(x, last=y),
        lambda x, y: net(x, y, last=y),
        lambda x, y: net(first=x),
    ):
        assert torch.equal(torch.compile(work, backend="eager", fullgraph=True)(one, two), work(one, two))
    torch._dynamo.reset()


def test_a_look_at_all_classes_waits_for_the_end_of_a_call(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A call that passes quickly is not marked as under way: those inside of it would be taken for outermost ones."""

    class Looks(torch.nn.Module):  # type: ignore[misc, name-defined]
        """Another thread looks in the midst of its calls."""

        def forward(self, x: Any) -> Any:
            thread = threading.Thread(target=run.signals.look_wider)
            thread.start()
            thread.join()
            return inner(x)

    inner, net = Other().eval(), Looks().eval()
    call_often(net)
    look_always(monkeypatch)
    call_quickly(net, run, 5)
    assert Other.__call__ is plain_call
    assert run.signals._modules._classes == {Looks}
    assert sum(run.steps.values()) == LOOK_CALLS + 6
    run.signals.look_wider()
    assert Other.__call__ is not plain_call


def test_a_module_switched_inside_of_a_call_does_not_show_the_modules_inside(run: Any) -> None:
    class Freezes(torch.nn.Module):  # type: ignore[misc, name-defined]
        """A part of it is never in training."""

        def forward(self, x: Any) -> Any:
            inner.train()
            inner.eval()
            return inner(x)

    inner, net = Other(), Freezes().eval()
    call_often(net)
    call_quickly(net, run, 3 * LOOK_CALLS)
    assert run.signals._modules._classes == {Freezes}


class Chunked(torch.nn.Module):  # type: ignore[misc, name-defined]
    """Has a call of its own, which makes several of PyTorch's."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = model()

    def __call__(self, x: Any) -> Any:
        parts = []
        for part in x.split(1):
            parts.append(super().__call__(part))
        return torch.cat(parts)

    def forward(self, x: Any) -> Any:
        return self.inner(x)


def test_the_loop_of_a_call_of_the_classs_own_is_none_of_the_programs(run: Any) -> None:
    """Whether all classes are watched, and PyTorch's calls in it are heard, or the class itself."""
    net = Chunked()

    def collect() -> None:
        with torch.no_grad():
            for _ in range(100):
                net(X)

    collect()
    (phase,) = (phase for phase in run.tracker.phases if phase.loop is not None)
    assert phase.loop.code is collect.__code__
    assert phase.kind == "rollout"
