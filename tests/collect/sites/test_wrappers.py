"""Wrapped entry points record what they should, change nothing else, and go without a trace."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from types import FrameType
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="the wrappers are around PyTorch's entry points")

from syncscope.collect.sites.wrappers import COLLECTIVES, MOST_OPERATORS, CallWrappers, OperatorFilter  # noqa: E402

Tensor: Any = torch.Tensor
DataLoaderIter: Any = torch.utils.data.dataloader._BaseDataLoaderIter

NAMES = ("to", "cuda", "cpu", "copy_", "pin_memory", "coalesce")


class Log:
    def __init__(self) -> None:
        self.calls: list[tuple[str, str]] = []
        self.modes: list[str] = []
        self.may_suspend = True
        self.wrappers = CallWrappers(torch, self.record, self)  # type: ignore[arg-type]

    def suspend(self) -> None:
        self.modes.append("suspend")

    def resume(self) -> None:
        self.modes.append("resume")

    def suspend_if_unnoticed(self) -> bool:
        self.modes.extend(["suspend if unnoticed"] * self.may_suspend)
        return self.may_suspend

    def record(self, name: str, start_ns: int, frame: FrameType) -> None:
        self.calls.append((name, frame.f_code.co_name))


def state() -> list[Any]:
    owners = [torch._ops.OpOverload, torch._ops.OpOverloadPacket, torch._C.ScriptFunction, torch._C.ScriptMethod]
    return [
        *((name in vars(torch.Tensor), getattr(torch.Tensor, name)) for name in NAMES),
        *(owner.__call__ for owner in owners),
        torch.cuda.Event.synchronize,
        ("unique_dim" in vars(torch._VF), torch._VF.unique_dim),
        torch.linalg.eigh,
        torch.autograd._engine_run_backward,
        DataLoaderIter.__next__,
        *(getattr(torch.distributed.ProcessGroup, name, None) for name in COLLECTIVES),
    ]


@pytest.fixture
def log() -> Iterator[Log]:
    before = state()
    log = Log()
    log.wrappers.open()
    yield log
    log.wrappers.close()
    assert state() == before


def run_in_other_libraries() -> None:
    square = torch.eye(2)
    torch.linalg.eigh(square)
    torch.linalg.eigvals(input=square)
    square.unique(dim=0)
    twice = torch.sparse_coo_tensor(torch.tensor([[0, 0]]), torch.ones(2), check_invariants=True)
    twice.coalesce().coalesce()


def test_functions_that_wait_in_other_libraries_are_recorded_at_their_line(
    log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Tensor, "is_cuda", property(lambda one: True), raising=False)
    run_in_other_libraries()
    names = [name for name, function in log.calls]
    assert names == ["torch.linalg.eigh", "torch.linalg.eigvals", "torch.unique", "Tensor.coalesce"]


def test_functions_of_other_libraries_wait_for_nothing_on_the_host(log: Log) -> None:
    run_in_other_libraries()
    assert log.calls == []


def test_a_function_that_fails_is_recorded_too(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Tensor, "is_cuda", property(lambda one: True), raising=False)
    with pytest.raises(RuntimeError):
        torch.linalg.eigh(torch.ones(2, 3))
    assert [name for name, function in log.calls] == ["torch.linalg.eigh"]


def test_copies_of_nothing_are_not_recorded(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    """Labels of a dataset without classes have no columns."""
    monkeypatch.setattr(Tensor, "is_cuda", property(lambda one: one.dtype == torch.float64), raising=False)
    for size in (0, 3):
        labels = torch.zeros(4, size)
        labels.to(torch.float64)
        labels.copy_(torch.zeros(4, size, dtype=torch.float64))
    assert [name for name, function in log.calls] == ["Tensor.to", "Tensor.copy_"]


class NotLoaded:
    """Stands in for a tensor until it is used, as those of a file that is read lazily do. It says nothing of itself."""

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*(torch.ones(3) if isinstance(arg, cls) else arg for arg in args), **kwargs or {})


def test_what_only_stands_in_for_a_tensor_is_copied_as_without_us(log: Log) -> None:
    assert torch.zeros(3).copy_(NotLoaded()).tolist() == [1.0, 1.0, 1.0]
    assert log.calls == []


def test_copies_on_one_side_of_the_bus_are_not_recorded(log: Log) -> None:
    x = torch.ones(3)
    assert x.to(torch.float64).dtype == torch.float64
    assert x.to("cpu") is x and x.cpu() is x
    torch.zeros(3).copy_(x)
    assert log.calls == []


def test_copies_run_without_their_warning_where_nobody_could_miss_it(log: Log) -> None:
    torch.ones(3).to(torch.float64)
    with pytest.raises(RuntimeError):
        torch.ones(3).to("no device")
    assert log.modes == ["suspend if unnoticed", "resume"] * 2
    log.may_suspend = False
    torch.ones(3).to(torch.float64)
    assert log.modes == ["suspend if unnoticed", "resume"] * 2


def test_copies_keep_their_warnings_where_they_are_to_be_heard() -> None:
    log = Log()
    log.wrappers = CallWrappers(torch, log.record, log, hears_copies=True)  # type: ignore[arg-type]
    log.wrappers.open()
    torch.ones(3).to(torch.float64)
    log.wrappers.close()
    assert log.modes == []


def test_copies_of_a_subclass_keep_their_warnings(log: Log) -> None:
    class Mine(Tensor):  # type: ignore[misc]
        pass

    torch.ones(3).as_subclass(Mine).to(torch.float64)
    assert log.modes == []


def test_operators_called_through_torch_ops_are_recorded_with_the_mode_off(log: Log) -> None:
    torch.ops.aten.relu(torch.ones(3))
    torch.ops.aten.relu.default(torch.ones(3))
    here = "test_operators_called_through_torch_ops_are_recorded_with_the_mode_off"
    assert log.calls == [("torch.ops", here)] * 2
    assert log.modes == ["suspend", "resume"] * 2


def test_the_profilers_operators_and_those_written_in_python_are_left_alone() -> None:
    @torch.library.custom_op("syncscope_test::double", mutates_args=())
    def double(x: Tensor) -> Tensor:
        return x * 2

    log = Log()
    log.wrappers.open()
    try:
        with torch.profiler.record_function("region"):
            torch.ops.syncscope_test.double(torch.ones(1))
    finally:
        log.wrappers.close()
    assert (log.calls, log.modes) == ([], [])


def test_an_exception_passes_and_the_mode_is_resumed(log: Log) -> None:
    with pytest.raises((RuntimeError, TypeError)):
        torch.ops.aten.relu("no tensor")
    assert log.modes == ["suspend", "resume"]


def test_scripted_functions_are_recorded(log: Log) -> None:
    with (
        pytest.warns((DeprecationWarning, FutureWarning)) if hasattr(torch.jit, "script") else pytest.raises(Exception)
    ):
        scripted = torch.jit.script(_twice)
        scripted(torch.ones(2))
    assert ("torch.ops", "test_scripted_functions_are_recorded") in log.calls


def _twice(x: Tensor) -> Tensor:
    return x * 2


def test_the_start_and_the_next_batch_of_a_loader_are_recorded(log: Log) -> None:
    for _ in torch.utils.data.DataLoader(torch.arange(4).tolist(), batch_size=2):
        pass
    here = "test_the_start_and_the_next_batch_of_a_loader_are_recorded"
    assert log.calls == [("DataLoader.__iter__", here), *[("DataLoader", here)] * 3]


def test_backward_alone_is_not_recorded(log: Log) -> None:
    torch.ones(1, requires_grad=True).sum().backward()
    assert log.calls == []


def test_collectives_and_backward_are_recorded_where_there_are_ranks() -> None:
    distributed = torch.distributed
    before = state()
    distributed.init_process_group("gloo", store=distributed.HashStore(), rank=0, world_size=1)
    log = Log()
    log.wrappers.open()
    try:
        x = torch.ones(2, requires_grad=True)
        x.sum().backward()
        distributed.all_reduce(x.grad)
    finally:
        log.wrappers.close()
        distributed.destroy_process_group()
    assert log.calls == [("backward", "backward"), ("ProcessGroup.allreduce", "all_reduce")]
    assert list(log.wrappers.groups.values()) == ["0", "0"]
    assert log.modes == ["suspend", "resume"]
    assert state() == before


@pytest.mark.slow
def test_compiled_code_that_copies_still_compiles_whole(log: Log) -> None:
    def work(x: Any) -> Any:
        y = x.to(torch.float64).cpu()
        torch.zeros_like(y).copy_(y)
        return torch.ops.aten.relu(y) + y

    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    compiled = torch.compile(work, backend="eager", fullgraph=True)
    for _ in range(3):
        compiled(torch.ones(3))
    log.wrappers.close()
    for _ in range(3):
        compiled(torch.ones(3))
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] == 1


@pytest.mark.slow
def test_compiled_code_that_calls_linalg_still_compiles_whole(log: Log) -> None:
    torch._dynamo.reset()
    compiled = torch.compile(lambda x: torch.linalg.eigh(x).eigenvalues, backend="eager", fullgraph=True)
    assert compiled(torch.eye(3)).sum() == 3


def test_only_the_calls_that_wait_can_be_wrapped_alone() -> None:
    log = Log()
    before = {name: getattr(torch.Tensor, name) for name in NAMES}
    log.wrappers.open_waits()
    try:
        assert {name: getattr(torch.Tensor, name) for name in NAMES} == before
        torch.ops.aten.relu(torch.ones(3))
    finally:
        log.wrappers.close()
    assert [name for name, _ in log.calls] == ["torch.ops"]
    assert log.modes == ["suspend", "resume"]


class Compiled:
    """A function of TorchScript."""

    _name = "own::compiled"


def test_operators_that_a_program_makes_anew_are_not_kept_for_ever() -> None:
    operators = OperatorFilter(torch)
    made = [Compiled() for _ in range(MOST_OPERATORS + 5)]
    gone = weakref.ref(made[0])
    assert not any(operators.look_up(operator) for operator in made)
    assert len(operators.known) <= MOST_OPERATORS
    made.clear()
    assert gone() is None
