"""The wrappers of a whole run: what they tell, and that they come and go without a trace."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="the wrappers are around PyTorch's entry points")

from torch._subclasses.fake_tensor import FakeTensorMode  # noqa: E402
from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402

from syncscope.collect.count.wrappers import FIND_UNUSED, CountingWrappers  # noqa: E402
from syncscope.collect.sites.sync_debug import SyncDebugMode  # noqa: E402
from syncscope.collect.sites.wrappers import CallWrappers  # noqa: E402

NAMES = ("to", "cuda", "cpu", "copy_", "coalesce", "pin_memory")


class Log:
    """Counts, and stands in for the sync debug mode."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.modes: list[str] = []
        self.passes = 0
        self.on = True
        self.wrappers = CountingWrappers(torch, self, self, self)  # type: ignore[arg-type]

    def waited(self, name: str, start_ns: int, frame: Any) -> None:
        self.calls.append(name)

    may_have_waited = waited

    def copied(self, name: str, start_ns: int, frame: Any, source: Any, target: Any, warned: bool) -> None:
        self.calls.append(name)

    def passed(self) -> None:
        self.passes += 1

    def suspend(self) -> None:
        self.modes.append("suspend")

    def resume(self) -> None:
        self.modes.append("resume")


class NotLoaded:
    """Stands in for a tensor until it is used, as those of a file that is read lazily do. It says nothing of itself."""

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*(torch.ones(3) if isinstance(arg, cls) else arg for arg in args), **kwargs or {})


def state() -> list[Any]:
    owners = [torch._ops.OpOverload, torch._ops.OpOverloadPacket, torch._C.ScriptFunction, torch._C.ScriptMethod]
    return [
        *((name in vars(torch.Tensor), getattr(torch.Tensor, name)) for name in NAMES),
        *(owner.__call__ for owner in owners),
        torch.cuda.Event.synchronize,
        torch.linalg.eigh,
        torch.autograd._engine_run_backward,
        torch._C._distributed_c10d.Reducer.prepare_for_backward,
        torch.distributed.ProcessGroup.allreduce,
        torch.distributed._broadcast_coalesced,
        torch._C._distributed_c10d.Work.wait,
    ]


@pytest.fixture
def log() -> Iterator[Log]:
    before = state()
    log = Log()
    log.wrappers.open()
    yield log
    log.wrappers.close()
    assert [a == b for a, b in zip(state(), before, strict=True)] == [True] * len(before)


def test_calls_on_the_host_only_pass(log: Log) -> None:
    x = torch.ones(3)
    x.to(torch.float64).cpu().copy_(x)
    torch.linalg.eigh(torch.eye(2))
    assert (log.calls, log.passes) == ([], 4)


def test_what_only_stands_in_for_a_tensor_is_copied_as_without_us(log: Log) -> None:
    assert torch.zeros(3).copy_(NotLoaded()).tolist() == [1.0, 1.0, 1.0]
    assert (log.calls, log.passes) == ([], 1)


def test_pinning_and_the_next_batch_are_left_alone(log: Log) -> None:
    pin = torch.Tensor.pin_memory
    log.wrappers.take_out()
    assert torch.Tensor.pin_memory is pin


def test_operators_run_with_the_mode_off_and_may_have_waited(log: Log) -> None:
    torch.ops.aten.relu(torch.ones(3))
    assert log.calls == ["torch.ops"] and log.modes == ["suspend", "resume"]


def test_of_an_operator_in_a_mode_of_dispatch_what_really_runs_counts_once(log: Log) -> None:
    class Mode(TorchDispatchMode):  # type: ignore[misc]
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return func(*args, **(kwargs or {}))

    with Mode():
        torch.ops.aten.relu(torch.ones(3))
    assert log.calls.count("torch.ops") == 2  # ``ones``, too, is an operator to the mode


def test_operators_on_the_stand_ins_of_a_compiler_are_passed_on(log: Log) -> None:
    with FakeTensorMode() as mode:
        x = mode.from_tensor(torch.ones(3))
        log.calls.clear()
        torch.ops.aten.add(torch.ops.aten.relu(x), 1)
    assert log.calls == []


def test_while_nobody_counts_calls_are_passed_on(log: Log) -> None:
    log.on = False
    x = torch.ones(3).to(torch.float64).cpu()
    torch.zeros(3).copy_(x)
    torch.ops.aten.relu(x)
    torch.linalg.eigh(torch.eye(2))
    assert (log.calls, log.passes, log.modes) == ([], 0, [])


def test_taken_out_nothing_is_in_the_way_and_put_in_everything_is_back(log: Log) -> None:
    log.wrappers.take_out()
    torch.ones(1).to(torch.float64)
    torch.ops.aten.relu(torch.ones(1))
    assert "to" not in vars(torch.Tensor) and (log.calls, log.passes) == ([], 0)
    log.wrappers.put_in()
    torch.ones(1).to(torch.float64)
    assert log.passes == 1


def test_what_the_program_replaced_meanwhile_stays(log: Log) -> None:
    log.wrappers.take_out()
    try:
        torch.Tensor.to = mine = lambda self, *args: "mine"  # the program's own
        log.wrappers.put_in()
        assert torch.ones(1).to("cpu") == "mine"
        log.wrappers.close()
        assert vars(torch.Tensor)["to"] is mine
    finally:
        del torch.Tensor.to


def test_a_wrapper_that_the_program_wrapped_still_works_when_all_is_over(log: Log) -> None:
    ours = torch.Tensor.to
    try:
        torch.Tensor.to = theirs = lambda self, *args: ours(self, *args)
        log.wrappers.close()
        assert vars(torch.Tensor)["to"] is theirs
        assert torch.ones(1).to(torch.float64).dtype == torch.float64
    finally:
        del torch.Tensor.to


class Half(torch.nn.Module):  # type: ignore[misc,name-defined]
    """Uses one of its two layers."""

    def __init__(self) -> None:
        super().__init__()
        self.used, self.unused = torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)

    def forward(self, x: Any) -> Any:
        return self.used(x)


@pytest.fixture
def ranks() -> Iterator[None]:
    torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)
    yield
    torch.distributed.destroy_process_group()


@pytest.mark.usefixtures("ranks")
def test_ddp_reads_what_others_used_with_the_mode_off(log: Log) -> None:
    net = torch.nn.parallel.DistributedDataParallel(Half(), find_unused_parameters=True)
    log.modes.clear()
    at_callbacks: list[list[str]] = []
    engine = torch.autograd.Variable._execution_engine
    net.module.used.weight.register_hook(
        lambda gradient: engine.queue_callback(lambda: at_callbacks.append([*log.modes]))
    )
    for _ in range(2):
        loss = net(torch.ones(1, 2)).sum()
        log.modes.clear()
        loss.backward()
        assert log.modes == ["suspend", "resume"]
    assert at_callbacks == [["suspend"]] * 2
    assert log.calls == [FIND_UNUSED] * 2


@pytest.mark.usefixtures("ranks")
def test_ddp_is_made_with_the_mode_off(log: Log) -> None:
    net = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 2))
    assert log.modes == ["suspend", "resume"] * 2  # its shapes compared, its parameters sent
    log.modes.clear()
    net(torch.ones(1, 2)).sum().backward()
    net(torch.ones(1, 2))
    assert log.modes == ["suspend", "resume"] * 3  # buckets before each forward, and one backward


@pytest.mark.usefixtures("ranks")
def test_the_wait_for_a_collective_may_be_one_for_the_device(log: Log) -> None:
    torch.distributed.barrier()
    assert log.calls == ["Work.wait"] and log.modes == ["suspend", "resume"] * 2


@pytest.mark.usefixtures("ranks")
def test_ddp_that_does_not_search_has_nothing_to_count(log: Log) -> None:
    net = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 2))
    loss = net(torch.ones(1, 2)).sum()
    log.modes.clear()
    loss.backward()
    assert (log.modes, log.calls) == (["suspend", "resume"], [])


def test_a_backward_without_ddp_is_left_alone(log: Log) -> None:
    torch.ones(2, requires_grad=True).sum().backward()
    assert (log.modes, log.calls) == ([], [])


@pytest.mark.usefixtures("ranks")
def test_an_error_in_such_a_backward_leaves_the_mode_as_it_was(log: Log) -> None:
    def fail(gradient: Any) -> None:
        raise ValueError("in a hook")

    net = torch.nn.parallel.DistributedDataParallel(Half(), find_unused_parameters=True)
    log.modes.clear()
    net.module.used.weight.register_hook(fail)
    with pytest.raises(ValueError, match="in a hook"):
        net(torch.ones(1, 2)).sum().backward()
    assert log.modes.count("suspend") == log.modes.count("resume")


@pytest.mark.slow
def test_compiled_code_is_not_compiled_again_when_wrappers_come_and_go(log: Log) -> None:
    def work(x: Any) -> Any:
        y = x.to(torch.float64).cpu()
        torch.zeros_like(y).copy_(y)
        return torch.ops.aten.relu(y) + y

    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    compiled = torch.compile(work, backend="eager", fullgraph=True)
    for turn in range(12):
        (log.wrappers.take_out, log.wrappers.put_in)[turn % 2]()
        log.on = turn % 4 < 2
        assert compiled(torch.ones(3)).tolist() == [2.0] * 3
    log.wrappers.put_in()
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] == 1
    assert not torch._dynamo.utils.counters["graph_break"]


@pytest.mark.slow
def test_code_compiled_without_wrappers_is_not_compiled_again_with_them() -> None:
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    compiled = torch.compile(lambda x: x.to(torch.float64).cpu() * 2, backend="eager", fullgraph=True)
    compiled(torch.ones(3))
    log = Log()
    log.wrappers.open()
    try:
        compiled(torch.ones(3))
    finally:
        log.wrappers.close()
    compiled(torch.ones(3))
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] == 1


def look_at_tensors() -> list[str]:
    """What a mode of functions and a subclass hear of a program that copies and converts."""
    heard: list[str] = []

    class Mode(torch.overrides.TorchFunctionMode):  # type: ignore[misc,name-defined]
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            heard.append(func.__name__)
            return func(*args, **(kwargs or {}))

    class Sub(torch.Tensor):  # type: ignore[misc,name-defined]
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            heard.append(func.__name__)
            return super().__torch_function__(func, types, args, kwargs or {})

    with Mode():
        y = torch.ones(3).to(torch.float64).cpu()
        torch.zeros(3).copy_(y)
        torch.ones(3).to_sparse().coalesce()
    z = torch.ones(3).as_subclass(Sub)
    z.to(torch.float64)
    z.copy_(torch.ones(3))
    torch.ones(3).copy_(z)
    return heard


def test_modes_and_subclasses_of_the_program_hear_only_its_own_calls() -> None:
    alone = look_at_tensors()
    log = Log()
    for wrappers in (log.wrappers, CallWrappers(torch, lambda name, start_ns, frame: None, SyncDebugMode())):
        wrappers.open()
        try:
            assert look_at_tensors() == alone
        finally:
            wrappers.close()
    assert log.calls == [] and log.passes >= 6
