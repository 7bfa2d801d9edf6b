"""A kernel's lines come from the graphs that Dynamo and AOTAutograd really make; Inductor's code is a stand-in."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from syncscope.collect.compiling.kernels import KernelWatch
from syncscope.collect.paths import Paths
from syncscope.collect.sites.stacks import Stacks

torch: Any = pytest.importorskip("torch", reason="Dynamo is PyTorch's")
compile_fx = pytest.importorskip("torch._inductor.compile_fx")

FILE = "kernel_programs.py"


class Watched:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.stacks = Stacks(Paths(Path(__file__).parent))
        self.watch = KernelWatch(self.stacks, lambda line: line)
        self.written = 0

    def write(self, module: Any, kernel: str, kind: str) -> None:
        """What Inductor would write and load: one kernel that computes all of a graph."""
        names = ", ".join(_name(node) for node in module.graph.nodes if node.op == "call_function")
        path = self.folder / f"{self.written}.py"
        self.written += 1
        path.write_text(
            f"# AOT ID: ['0_{kind}']\n"
            f"{kernel} = async_compile.triton('{kernel}', '''\n''')\n"
            f"        # Topologically Sorted Source Nodes: [{names}], Original ATen: []\n"
            f"        {kernel}.run(buf0, stream=stream0)\n"
        )
        loaded = ModuleType(kernel)
        loaded.__file__ = str(path)
        torch._inductor.codecache.PyCodeCache.modules.append(loaded)

    def lines(self) -> dict[str, set[tuple[str, int | None]]]:
        frames, stacks = self.stacks.resolve()
        assert not self.watch.failure
        innermost = {one.name: [frames[stacks[stack][-1]] for stack in one.stacks] for one in self.watch.recorded()}
        return {name: {(Path(one.file).name, one.line) for one in found} for name, found in innermost.items()}


def _name(node: Any) -> str:
    origin = node.meta.get("from_node")
    return str(origin[0].name if origin else node.name)


@pytest.fixture
def watched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Watched]:
    cache = pytest.importorskip("torch._inductor.codecache").PyCodeCache
    if not isinstance(getattr(cache, "modules", None), list):
        pytest.skip("this PyTorch keeps Inductor's files otherwise")
    monkeypatch.setattr(cache, "modules", [])
    torch._dynamo.reset()
    watched = Watched(tmp_path)
    yield watched
    watched.watch.close()
    torch._dynamo.reset()


def line_of(comment: str) -> tuple[str, int]:
    lines = Path(__file__).with_name(FILE).read_text(encoding="utf-8").splitlines()
    return FILE, next(number for number, line in enumerate(lines, 1) if line.endswith(f"# {comment}"))


def test_a_kernel_has_the_lines_of_all_that_is_fused_into_it(watched: Watched) -> None:
    from tests.collect.compiling.kernel_programs import fused

    def backend(module: Any, inputs: Any) -> Callable[..., Any]:
        watched.write(module, "triton_poi_fused_0", "inference")
        return module.forward

    watched.watch.open(torch)
    torch.compile(fused, backend=backend)(torch.ones(4))
    assert watched.lines() == {"triton_poi_fused_0": {line_of("in a helper"), line_of("the sine")}}


def test_what_was_compiled_before_is_not_taken_for_this_graphs_code(watched: Watched) -> None:
    from tests.collect.compiling.kernel_programs import fused

    def backend(module: Any, inputs: Any) -> Callable[..., Any]:
        return module.forward

    watched.write(torch.fx.symbolic_trace(fused), "triton_poi_fused_sin_0", "inference")
    watched.watch.open(torch)
    torch.compile(fused, backend=backend)(torch.ones(4))
    assert watched.lines() == {}


def test_a_backward_has_the_lines_of_the_forward(watched: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    if not hasattr(compile_fx, "_compile_fx_inner"):
        pytest.skip("this PyTorch has no function of its own that compiles a backward")
    from functorch.compile import make_boxed_func
    from torch._dynamo.backends.common import aot_autograd

    from tests.collect.compiling.kernel_programs import squared

    def stand_in(module: Any, inputs: Any, is_backward: bool) -> Any:
        kind = "backward" if is_backward else "forward"
        watched.write(module, f"triton_{kind}_0", kind)
        return make_boxed_func(module.forward)

    monkeypatch.setattr(compile_fx, "_compile_fx_inner", stand_in)
    watched.watch.open(torch)
    backend = aot_autograd(
        fw_compiler=lambda module, inputs: compile_fx._compile_fx_inner(module, inputs, is_backward=False),
        bw_compiler=lambda module, inputs: compile_fx._compile_fx_inner(module, inputs, is_backward=True),
    )
    x = torch.ones(4, requires_grad=True)
    torch.compile(squared, backend=backend)(x).backward()
    square = line_of("squared")
    assert watched.lines() == {"triton_forward_0": {square}, "triton_backward_0": {square}}


def test_a_backward_from_the_cache_has_no_line_of_another_node(watched: Watched) -> None:
    from tests.collect.compiling.kernel_programs import fused

    def backend(module: Any, inputs: Any) -> Callable[..., Any]:
        watched.write(module, "triton_backward_0", "backward")  # no mapping: any name may be the backward's own
        return module.forward

    watched.watch.open(torch)
    torch.compile(fused, backend=backend)(torch.ones(4))
    assert watched.lines() == {}


def test_kernels_of_the_programs_own_are_found_by_their_def_if_they_ran(
    watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tests.collect.compiling import kernel_programs

    class JITFunction:
        def __init__(self, fn: Any, ran: bool) -> None:
            self.fn, self.device_caches = fn, {0: object()} if ran else {}

    class Autotuner:
        def __init__(self, fn: Any) -> None:
            self.fn = fn

    Autotuner.__module__ = "triton.runtime.autotuner"
    jit = ModuleType("triton.runtime.jit")
    jit.JITFunction = JITFunction  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "triton.runtime.jit", jit)
    monkeypatch.setattr(kernel_programs, "a", Autotuner(JITFunction(kernel_programs.add_kernel, True)), raising=False)
    monkeypatch.setattr(kernel_programs, "b", JITFunction(kernel_programs.idle_kernel, False), raising=False)
    watched.watch.open(torch)
    watched.watch.close()
    assert watched.lines() == {"add_kernel": {line_of("def of add_kernel")}}


def test_objects_that_mind_being_asked_are_left_alone(watched: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    def ask(mind: Any) -> Any:
        raise RuntimeError("asked")

    jit = ModuleType("triton.runtime.jit")
    jit.JITFunction = SimpleNamespace  # type: ignore[attr-defined]
    module = ModuleType("minding")
    module.one = type("Mind", (), {"__class__": property(ask)})()  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "triton.runtime.jit", jit)
    monkeypatch.setitem(sys.modules, "minding", module)
    watched.watch.open(torch)
    watched.watch.close()
    assert watched.lines() == {}
