"""The guard and the record on a real GPU: what waits is seen, and what is compiled or captured stays as it is."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import pytest

import syncscope
from fixtures import waits
from fixtures.waits import make_harmless, make_kinds, make_unknown
from syncscope.collect.live.guard import SyncError, guard
from syncscope.collect.live.record import record
from syncscope.collect.paths import Paths

ROOT = Path(__file__).parents[3]

torch = pytest.importorskip("torch", reason="guards PyTorch programs")
pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU: there is none here"),
    pytest.mark.filterwarnings("default"),  # PyTorch warns of itself where it imports its compiler or finds no context
]

WAYS: tuple[Callable[[], AbstractContextManager[Any]], ...] = (
    nullcontext,
    lambda: guard("raise"),
    nullcontext,
    lambda: guard("raise", threads="all"),
)


@pytest.fixture(scope="module")
def x() -> Any:
    return torch.randn(64, 64, device="cuda")


def test_every_kind_of_wait_raises_and_prints_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    passed, elsewhere = [], []
    for name, run in make_kinds(torch).items():
        try:
            with guard("raise", threads="all"):
                run()
            passed.append(name)
        except SyncError as error:
            elsewhere += [] if Path(waits.__file__).name in str(error) else [str(error)]
    assert (passed, elsewhere) == ([], [])
    assert capfd.readouterr().err == ""


def test_every_kind_of_wait_is_recorded_once(capfd: pytest.CaptureFixture[str]) -> None:
    found = {}
    for name, run in make_kinds(torch).items():
        with record(Paths(Path(__file__).parent), "all") as seen:
            run()
        found[name] = len(seen)
    assert found == dict.fromkeys(found, 1)
    assert capfd.readouterr().err == ""


def test_what_does_not_wait_passes(x: Any) -> None:
    pinned, net = torch.ones(64, 64).pin_memory(), torch.nn.Linear(64, 64, device="cuda")
    optimizer = torch.optim.Adam(net.parameters(), fused=True)
    for _ in range(3):
        with nullcontext() if _ == 0 else guard("raise", threads="all"):
            optimizer.zero_grad()
            net(x).sum().backward()
            optimizer.step()
            pinned.copy_(x, non_blocking=True)
            pinned.to("cuda", non_blocking=True)
            pinned.t().to("cuda", non_blocking=True)
            x.to("cpu", non_blocking=True)
            torch.ops.aten.relu(x)
            with torch.inference_mode():
                net(x)


@pytest.mark.parametrize("kind", ["a library that calls CUDA itself", "torch.Event.synchronize"])
def test_a_held_device_shows_what_waits_without_pytorchs_knowledge(kind: str) -> None:
    run = make_unknown(torch)[kind]
    run()
    torch.cuda.synchronize()
    said = r"test_guard_gpu.py:\d+: the block took .* PyTorch does not know of"
    with pytest.raises(SyncError, match=said), guard("raise", hold_ms=50):
        run()
    with guard("raise"):
        run()


def test_a_block_that_does_not_wait_passes_a_held_device_each_time(x: Any) -> None:
    kinds = make_harmless(torch)
    for _ in range(10):
        with guard("raise", hold_ms=100):
            for run in kinds.values():
                run()
        torch.cuda.synchronize()


def test_a_wait_that_is_seen_is_told_at_its_line_though_the_device_is_held(x: Any) -> None:
    with pytest.raises(SyncError, match="waited for the device"), guard("raise", hold_ms=50):
        x.sum().item()
    with guard("raise", hold_ms=50), syncscope.expected("the sum goes out"):
        x.sum().item()
    side = torch.cuda.Stream()
    with torch.cuda.stream(side), pytest.raises(SyncError, match="the device was held"), guard("raise", hold_ms=50):
        make_unknown(torch)["a library that calls CUDA itself"]()


def test_a_graph_is_captured_inside_of_a_held_block(x: Any) -> None:
    still, graph = x.clone(), torch.cuda.CUDAGraph()
    step(still)
    with guard("raise", hold_ms=20):
        with torch.cuda.graph(graph), guard("raise", hold_ms=20):
            out = step(still)
        graph.replay()
    torch.testing.assert_close(out, step(still))


def test_other_threads_raise_only_where_all_are_guarded(x: Any) -> None:
    raised: list[Exception] = []

    def read() -> None:
        try:
            x.sum().item()
        except SyncError as error:
            raised.append(error)

    for count, threads in enumerate(("own", "all")):
        with guard("raise", threads=threads):  # type: ignore[arg-type]
            thread = threading.Thread(target=read)
            thread.start()
            thread.join()
        assert len(raised) == count


def step(x: Any) -> Any:
    return torch.nn.functional.relu(x @ x).to(torch.float64).sin() + torch.ops.aten.relu(x)


@pytest.fixture
def counted() -> Iterator[Callable[[], int]]:
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    yield lambda: torch._dynamo.utils.counters["stats"]["unique_graphs"]
    torch._dynamo.reset()


@pytest.mark.parametrize("mode", ["default", "reduce-overhead", "max-autotune-no-cudagraphs"])
def test_what_is_compiled_inside_runs_and_is_compiled_once(x: Any, mode: str, counted: Callable[[], int]) -> None:
    compiled = torch.compile(step, fullgraph=True, mode=mode)
    expected = step(x)
    for number in range(1, 12):
        with WAYS[number % len(WAYS)]():
            found = compiled(x)
        torch.testing.assert_close(found, expected, atol=0.05, rtol=0.05)
    assert counted() == 1


def test_a_compiled_module_trains_inside(x: Any, counted: Callable[[], int]) -> None:
    net = torch.compile(torch.nn.Linear(64, 64, device="cuda"), mode="reduce-overhead")
    for number in range(1, 12):
        net.zero_grad()
        with WAYS[number % len(WAYS)]():
            net(x).sum().backward()
    assert counted() == 1


def test_a_graph_is_captured_and_replayed_inside(x: Any) -> None:
    still, graph = x.clone(), torch.cuda.CUDAGraph()
    pinned = torch.ones(64, 64).pin_memory()
    step(still)
    with guard("raise", threads="all"):
        with torch.cuda.graph(graph):
            still.copy_(pinned, non_blocking=True)
            out = step(still)
        graph.replay()
    torch.testing.assert_close(out, step(torch.ones_like(x)))
    layer, sample = torch.nn.Linear(64, 64, device="cuda"), x.clone().requires_grad_()
    with guard("raise"):
        torch.cuda.make_graphed_callables(layer, (sample,))(sample).sum().backward()


def test_fake_tensors_and_modes_do_not_wait(x: Any) -> None:
    from torch._subclasses.fake_tensor import FakeTensorMode

    with guard("raise"), FakeTensorMode():
        torch.ones(3).to("cuda").cpu()
    with guard("raise"), syncscope.expected("metrics"):
        x.sum().item()
        torch.cuda.synchronize()


AHEAD = """
import sys
import torch
from syncscope.collect.live.guard import guard

class Net(torch.nn.Module):
    def forward(self, x):
        return torch.nn.functional.relu(x @ x).sin()

x = torch.randn(64, 64, device="cuda")
with guard("raise"):
    program = torch.export.export(Net(), (x,))
loaded = torch._inductor.aoti_load_package(torch._inductor.aoti_compile_and_package(program, package_path=sys.argv[1]))
expected = loaded(x)
torch.cuda.synchronize()
print("runs alone", flush=True)
with guard("raise"):
    torch.testing.assert_close(loaded(x), expected)
print("runs inside")
"""


def test_a_model_compiled_ahead_runs_inside(tmp_path: Path) -> None:
    """In a process of its own: PyTorch 2.11's compiled code crashes without us on some machines."""
    command = [sys.executable, "-c", AHEAD, str(tmp_path / "net.pt2")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    if done.returncode < 0 and not done.stdout:
        pytest.skip(f"a model compiled ahead crashes here without the guard: {signal.Signals(-done.returncode).name}")
    assert (done.returncode, done.stdout.split("\n")[-2:]) == (0, ["runs inside", ""]), done.stderr
