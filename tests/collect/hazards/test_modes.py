"""What is put in place is taken away again, and the program never notices."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import warnings
from collections.abc import Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="races are looked for in PyTorch programs")

from torch.overrides import TorchFunctionMode, _get_current_function_mode_stack  # noqa: E402
from torch.utils._python_dispatch import TorchDispatchMode, _get_current_dispatch_mode_stack  # noqa: E402

from syncscope.collect.sites.sync_debug import sync_debug_mode  # noqa: E402
from tests.collect.hazards.fake import Bench  # noqa: E402
from tests.collect.hazards.test_copies import arriving, leaving  # noqa: E402

CLASSES = (torch.cuda.Event, torch.cuda.Stream, torch.Event, torch.Stream, torch._C.Future)
FUNCTIONS = ("_cuda_synchronize", "_accelerator_synchronizeDevice", "_cuda_setStream", "_cuda_set_sync_debug_mode")


def state() -> tuple[Any, ...]:
    """All that we may have changed in the process."""
    attributes = [dict(vars(owner)) for owner in CLASSES]
    if torch.distributed.is_available():
        attributes.append(dict(vars(torch._C._distributed_c10d.Work)))
    functions = [getattr(torch._C, name, None) for name in FUNCTIONS]
    functions += [torch.Tensor._reduce_ex_internal, torch.autograd.Variable._execution_engine]
    functions += [warnings._showwarnmsg, warnings._filters_mutated]  # type: ignore[attr-defined]
    mode = torch.cuda.get_sync_debug_mode() if torch.cuda.is_available() else 0
    filters = [entry for entry in warnings.filters if entry in sync_debug_mode.filters]
    return (
        _get_current_function_mode_stack(),
        _get_current_dispatch_mode_stack(),
        attributes,
        functions,
        mode,
        filters,
    )


class Mine(TorchDispatchMode):  # type: ignore[misc]
    seen = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.seen += 1
        return func(*args, **(kwargs or {}))


class MyFunctions(TorchFunctionMode):  # type: ignore[misc]
    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))


@pytest.fixture(autouse=True)
def _nothing_left_behind() -> Iterator[None]:
    before = state()
    yield
    assert state() == before


def test_nothing_is_left_behind() -> None:
    before = state()
    with Bench():
        assert state() != before
    assert state() == before


def test_the_program_may_leave_its_own_mode_inside_the_window() -> None:
    bench = Bench()
    with Mine() as mine, MyFunctions():
        bench.hazards.open()
        arriving(bench).sum()
        seen = mine.seen
    assert seen > 0
    torch.ones(1)
    assert mine.seen == seen  # it is off, and ours is still on
    arriving(bench).mean()
    assert bench.rules() == ["HAZ401", "HAZ401"]


def test_the_program_may_enter_a_mode_inside_the_window_and_leave_it_after() -> None:
    bench = Bench()
    bench.hazards.open()
    with Mine() as mine, MyFunctions():
        bench.hazards.close()
        torch.ones(1)
        assert mine.seen > 0
        assert _get_current_dispatch_mode_stack() == [mine]


def test_a_device_block_around_the_begin_of_the_window_can_be_left() -> None:
    bench = Bench()
    with torch.device("cpu"):
        bench.hazards.open()
        arriving(bench).sum()
    arriving(bench).sum()
    assert len(bench.rules()) == 2


def test_a_device_block_around_the_end_of_the_window_can_be_left() -> None:
    bench = Bench()
    bench.hazards.open()
    with torch.device("cpu"):
        bench.hazards.close()
        torch.ones(1)


@pytest.mark.parametrize("at", ["before", "inside", "after"])
def test_a_default_device_may_be_set_and_taken_back(at: str) -> None:
    bench = Bench()
    if at == "before":
        torch.set_default_device("cpu")
    bench.hazards.open()
    if at != "before":
        torch.set_default_device("cpu")
    arriving(bench).tolist()
    if at != "after":
        torch.set_default_device(None)
    arriving(bench).tolist()
    bench.hazards.close()
    torch.set_default_device(None)
    assert len(bench.rules()) == 2


def test_closing_from_another_thread_blinds_it() -> None:
    bench = Bench()
    bench.hazards.open()
    host = arriving(bench)
    thread = threading.Thread(target=bench.hazards.close)
    thread.start()
    thread.join()
    host.sum()
    assert bench.hazards.take() == ()
    bench.hazards.close()  # and from the right one takes it away


def test_other_threads_are_not_followed() -> None:
    with Bench() as bench:
        host = arriving(bench)
        thread = threading.Thread(target=host.sum)
        thread.start()
        thread.join()
        assert bench.rules() == []


@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
def test_a_forked_child_is_left_alone() -> None:
    with Bench() as bench:
        host = arriving(bench)
        pid = os.fork()
        if pid == 0:
            host.sum()
            os._exit(len(bench.hazards.take()))
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def test_an_error_of_the_program_passes_through() -> None:
    with Bench() as bench:
        with pytest.raises(RuntimeError, match="size"):
            torch.ones(2) + torch.ones(3)
        with pytest.raises(ValueError, match="format"):
            f"{torch.ones(()):%%%}"
        arriving(bench).sum()
        assert bench.rules() == ["HAZ401"]


def test_a_fault_of_ours_is_noted_once_and_hidden_from_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    with Bench() as bench:

        def fail(tensor: Any) -> Any:
            raise RuntimeError("no such memory")

        monkeypatch.setattr(bench.runtime, "side", fail)
        assert torch.ones(2).sum().item() == 2
        assert torch.ones(2).sum().item() == 2
        notes = bench.hazards.notes
    assert sum("aten.sum" in note for note in notes) == 1
    assert all("no such memory" in note for note in notes)


def test_operators_inside_a_tensor_subclass_are_seen() -> None:
    class Wrapped(torch.Tensor):  # type: ignore[misc, name-defined]
        inner: Any

        @staticmethod
        def __new__(cls, inner: Any) -> Any:
            made = torch.Tensor._make_wrapper_subclass(cls, inner.shape)
            made.inner = inner
            return made

        @classmethod
        def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return func(*(arg.inner if isinstance(arg, Wrapped) else arg for arg in args), **(kwargs or {}))

    with Bench() as bench:
        Wrapped(arriving(bench)).sum()
        assert bench.rules() == ["HAZ401"]


def test_gradients_are_followed_like_anything_else() -> None:
    with Bench() as bench:
        source, _ = leaving(bench)
        weight = torch.ones(8, requires_grad=True)
        (weight * 2).sum().backward()
        weight.grad.copy_(source)
        source.add_(weight.grad)
        assert bench.rules() == ["HAZ402"]


def test_the_compiler_is_not_imported() -> None:
    """Looking for races in a program that does not compile must not cost it the import of the compiler."""
    code = (
        "import sys, torch\n"
        "from tests.collect.hazards.fake import Bench\n"
        "before = 'torch._dynamo' in sys.modules\n"
        "with Bench() as bench:\n"
        "    torch.ones(3).sum().item()\n"
        "assert before or 'torch._dynamo' not in sys.modules\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_window_that_opens_inside_a_compiled_function_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def set_stance(stance: str) -> None:
        raise RuntimeError("attempted to set_stance in a torch.compile region")

    monkeypatch.setitem(sys.modules, "torch._dynamo", sys.modules.get("torch._dynamo", torch))
    monkeypatch.setattr(torch.compiler, "set_stance", set_stance)
    with Bench() as bench:
        notes = bench.hazards.notes
    assert len(notes) == 1
    assert notes[0].startswith("torch.compile was not followed")


def test_compiled_functions_run_as_written_and_stay_compiled() -> None:
    compiled: list[int] = []

    def backend(graph: Any, inputs: Any) -> Any:
        compiled.append(1)
        return graph.forward

    @torch.compile(backend=backend)
    def double(x: Any) -> Any:
        return x * 2

    double(torch.ones(3))
    assert len(compiled) == 1
    with Bench() as bench:
        host = arriving(bench)
        double(host)
        assert bench.rules() == ["HAZ401"]
    double(torch.ones(3))
    assert len(compiled) == 1  # neither again nor forgotten


def test_operators_run_past_what_wraps_their_calls_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """The count wraps those, and switches off the warnings that tell of waits."""
    called = []

    def wrapper(operator: Any, *args: Any, **kwargs: Any) -> Any:
        called.append(operator)
        return operator._op(*args, **kwargs)

    monkeypatch.setattr(torch._ops.OpOverload, "__call__", wrapper)
    with Bench():
        assert torch.ones(4).sum().item() == 4
    assert not called
