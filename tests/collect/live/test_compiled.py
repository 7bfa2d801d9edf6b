"""Programs that PyTorch compiles run the same graphs inside a guard, with PyTorch for the CPU."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from types import FrameType, SimpleNamespace
from typing import Any

import pytest

import syncscope
from syncscope.collect.annotations import expectation
from syncscope.collect.live.guard import guard
from syncscope.collect.live.waits import LiveWait, prepares

WAYS: tuple[Callable[[], AbstractContextManager[Any]], ...] = (
    nullcontext,
    lambda: guard("raise"),
    nullcontext,
    lambda: guard("raise", threads="all"),
    lambda: guard("warn"),
)


@pytest.fixture
def torch(monkeypatch: pytest.MonkeyPatch) -> Any:
    """PyTorch for the CPU as it is, where a guard takes it for one with a GPU."""
    torch: Any = pytest.importorskip("torch", reason="watched blocks listen to PyTorch")
    mode = [0]
    monkeypatch.setattr("syncscope.collect.live.guard._has_gpu", lambda: True)
    monkeypatch.setattr(torch.cuda, "init", lambda: None)
    monkeypatch.setattr(torch._C, "_cuda_get_sync_debug_mode", lambda: mode[0], raising=False)
    monkeypatch.setattr(torch._C, "_cuda_set_sync_debug_mode", lambda new: mode.__setitem__(0, new), raising=False)
    return torch


def work(torch: Any) -> Callable[[Any], Any]:
    def run(x: Any) -> Any:
        y = x.to(torch.float64).cpu()
        torch.zeros_like(y).copy_(y)
        return torch.ops.aten.relu(y) + y.sin()

    return run


def compiled_so_far(torch: Any) -> tuple[int, int, int]:
    """How many graphs Dynamo has made, how often it broke one, and how many frames it compiled."""
    counters = torch._dynamo.utils.counters
    return counters["stats"]["unique_graphs"], sum(counters["graph_break"].values()), counters["frames"]["ok"]


@pytest.mark.slow
@pytest.mark.parametrize("first", range(len(WAYS)))
@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_a_whole_graph_stays_one_and_is_compiled_once(torch: Any, backend: str, first: int) -> None:
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    run = torch.compile(work(torch), backend=backend, fullgraph=True)
    for number in range(2 * len(WAYS)):
        with WAYS[(first + number) % len(WAYS)]():
            assert run(torch.ones(3)).dtype == torch.float64
    assert compiled_so_far(torch)[:2] == (1, 0)


def in_the_graph(x: Any) -> Any:
    with syncscope.expected("a log"), syncscope.guard("raise"):
        y = x + 1
    syncscope.step()
    return guarded(expecting(y))


@guard("raise")
def guarded(x: Any) -> Any:
    return x * 2


@syncscope.expected("another log")
def expecting(x: Any) -> Any:
    return x - 3


@pytest.mark.parametrize("armed", [False, True])
def test_our_own_blocks_may_be_compiled_and_are_no_part_of_the_graph(torch: Any, armed: bool) -> None:
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    run = torch.compile(in_the_graph, backend="eager", fullgraph=True)
    for way in (WAYS if armed else (nullcontext,)) * 2:
        with way():
            assert run(torch.ones(3)).tolist() == [-2.0] * 3
    assert compiled_so_far(torch)[:2] == (1, 0)
    assert armed or len(torch.export.export(Whole(torch), (torch.ones(3),)).graph.nodes) == 5


def Whole(torch: Any) -> Any:
    return type("Whole", (torch.nn.Module,), {"forward": lambda self, x: in_the_graph(x)})()


def test_what_is_expected_around_a_break_of_the_graph_is_expected(torch: Any) -> None:
    seen = []

    def broken(x: Any) -> Any:
        with syncscope.expected("the sum"):
            torch._dynamo.graph_break()
            look()
            return x + 1

    @torch._dynamo.disable
    def look() -> None:
        seen.append(expectation.get())

    torch._dynamo.reset()
    run = torch.compile(broken, backend="eager")
    run(torch.ones(3)), run(torch.ones(3))
    assert seen == ["the sum"] * 2 and expectation.get() is None


def test_modes_and_subclasses_of_the_program_see_the_same_calls(torch: Any) -> None:
    from torch.overrides import TorchFunctionMode
    from torch.utils._python_dispatch import TorchDispatchMode

    seen: list[str] = []

    class Functions(TorchFunctionMode):  # type: ignore[misc]
        def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            seen.append(f"mode {getattr(function, '__name__', function)}")
            return function(*args, **(kwargs or {}))

    class Operators(TorchDispatchMode):  # type: ignore[misc]
        def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            seen.append(f"operator {function}")
            return function(*args, **(kwargs or {}))

    class Subclass(torch.Tensor):  # type: ignore[misc]
        @classmethod
        def __torch_function__(cls, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            seen.append(f"subclass {getattr(function, '__name__', function)}")
            return super().__torch_function__(function, types, args, kwargs)

    found = []
    for way in WAYS:
        seen.clear()
        with way(), torch.inference_mode():
            for mode in (Functions, Operators):
                with mode():
                    work(torch)(torch.ones(3)), torch.ones(3).to_sparse().coalesce()
            work(torch)(torch.ones(3).as_subclass(Subclass))
        found.append(tuple(seen))
    assert len(set(found)) == 1
    assert {"mode to", "subclass to"} < set(found[0]) and any("operator" in call for call in found[0])


@pytest.mark.slow
def test_a_graph_that_breaks_breaks_where_it_does_alone(torch: Any) -> None:
    def broken(x: Any) -> Any:
        y = x * 2
        return y + 1 if y.sum().item() > 0 else y.cpu() - 1

    found = []
    for way in WAYS:
        torch._dynamo.reset()
        torch._dynamo.utils.counters.clear()
        run = torch.compile(broken, backend="eager")
        with way():
            run(torch.ones(3)), run(torch.ones(3))
        found.append(compiled_so_far(torch))
    assert len(set(found)) == 1 and found[0][1] == 1


@pytest.mark.slow
def test_training_in_a_compiled_module_is_compiled_once(torch: Any) -> None:
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    net = torch.compile(torch.nn.Linear(3, 3), backend="aot_eager")
    for number in range(2 * len(WAYS)):
        with WAYS[number % len(WAYS)]():
            net(torch.ones(2, 3)).sum().backward()
    assert compiled_so_far(torch) == (1, 0, 1)


@pytest.mark.slow
def test_a_program_exported_inside_is_the_one_exported_outside(torch: Any) -> None:
    class Net(torch.nn.Module):  # type: ignore[misc]
        def forward(self, x: Any) -> Any:
            return x.to(torch.float64) + torch.ops.aten.relu(x)

    texts = []
    for way in WAYS:
        with way():
            program = torch.export.export(Net(), (torch.ones(3),))
            texts.append(str(program.graph))
            saved = io.BytesIO()
            torch.export.save(program, saved)
            saved.seek(0)
            assert torch.export.load(saved).module()(torch.ones(3)).tolist() == [2.0] * 3
    assert len(set(texts)) == 1


def test_fake_tensors_and_traces_see_no_wrapper(torch: Any) -> None:
    from torch._subclasses.fake_tensor import FakeTensorMode

    traces = []
    for way in WAYS:
        with way():
            with FakeTensorMode():
                assert torch.ones(3).to("meta", torch.float64).device.type == "meta"
            traced = torch.fx.experimental.proxy_tensor.make_fx(work(torch))(torch.ones(3))
            traces.append(traced.code)
    assert len(set(traces)) == 1


def stack_of(*files: str, function: str = "call") -> FrameType:
    """A frame of ``function`` in the last of ``files``, called from one in each before it, and from here."""
    source = f"import sys\ndef {function}(rest): return rest[0](rest[1:]) if rest else sys._getframe()"
    calls = []
    for file in files:
        names: dict[str, Any] = {}
        exec(compile(source, file, "exec"), names)
        calls.append(names[function])
    found: FrameType = calls[0](calls[1:])
    return found


def test_only_what_pytorch_does_for_itself_is_preparation(monkeypatch: pytest.MonkeyPatch) -> None:
    from syncscope.collect.live import waits

    waits._origin.cache_clear()
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(__file__="/site/torch/__init__.py"))
    passes, generated = "/site/torch/_inductor/fx_passes/joint_graph.py", "/tmp/torchinductor_me/ab/cab.py"
    trees, synchronize = "/site/torch/_inductor/cudagraph_trees.py", "/site/torch/cuda/__init__.py"
    try:
        assert prepares(LiveWait(stack_of("/me/train.py", passes)))
        assert prepares(LiveWait(stack_of("/me/train.py", "/site/torch/cuda/graphs.py", synchronize), before=True))
        assert prepares(LiveWait(stack_of("/me/train.py", trees, synchronize), before=True))
        assert not prepares(LiveWait(stack_of("/me/train.py", trees)))  # in each step
        kernels = "/site/torch/_inductor/runtime/triton_heuristics.py"
        assert prepares(LiveWait(stack_of("/me/train.py", kernels, function="autotune_to_one_config")))
        assert not prepares(LiveWait(stack_of("/me/train.py", kernels, function="run")))
        assert not prepares(LiveWait(stack_of("/me/train.py", function="autotune_to_one_config")))
        assert not prepares(LiveWait(stack_of("/me/train.py", trees, generated)))
        assert not prepares(LiveWait(stack_of("/me/train.py", synchronize), before=True))
        assert not prepares(LiveWait(stack_of("/site/torch/_dynamo/eval_frame.py", "/me/torch/_inductor/mine.py")))
    finally:
        waits._origin.cache_clear()
