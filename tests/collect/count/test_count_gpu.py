"""Counting on a real GPU: the same lines as PyTorch's own warnings, and nothing on standard error."""

from __future__ import annotations

import random
import subprocess
import sys
import time
import warnings
from collections import Counter as Tally
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest

from syncscope.collect.count.counter import Counter
from syncscope.collect.count.sampling import Draw
from syncscope.collect.paths import Paths
from syncscope.collect.sites.stacks import Stacks
from syncscope.collect.sites.sync_debug import MESSAGE
from syncscope.collect.sites.threads import Threads
from syncscope.schema.counting import CountedSource, CountedWait, PhaseKind

torch = pytest.importorskip("torch", reason="counts the waits of PyTorch programs")
pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU: there is none here"),
]


@dataclass
class Loop:
    number: int = 0
    kind: PhaseKind = "train"
    steps: int = 0
    times: int = 1
    source: CountedSource = "optimizer"
    followed_ns: float = 0.0
    unheard: int = 0
    begins_late: bool = False

    @property
    def current(self) -> Loop:
        return self

    def at(self, frame: FrameType) -> Loop:
        return self

    def is_in_loop(self, number: int, code: CodeType, lasti: int) -> bool:
        return False

    def tell_next(self) -> None: ...

    def watch_end(self, over: Callable[[FrameType], None], most_ns: float) -> float:
        return 0.0

    def stop_watching(self) -> None: ...

    def leave_training(self) -> None: ...


class Counted:
    def __init__(self) -> None:
        torch.cuda.init()
        self.loop = Loop()
        self.stacks = Stacks(Paths(Path(__file__).parent))
        self.counter = Counter(torch, self.stacks, Threads(), self.loop, draw=Draw(random.Random(3).random))

    def step(self) -> None:
        self.loop.steps += 1
        self.counter.stepped(self.loop)

    def lines(self) -> dict[int, list[CountedWait]]:
        """What was counted, by the line of this file."""
        frames, stacks = self.stacks.resolve()
        found: dict[int, list[CountedWait]] = {}
        for wait in self.counter.waits():
            line = next(frames[each].line for each in reversed(stacks[wait.stack]) if frames[each].user)
            found.setdefault(line or 0, []).append(wait)
        return found


@contextmanager
def counting() -> Iterator[Counted]:
    counted = Counted()
    counted.counter.open()
    try:
        yield counted
    finally:
        counted.counter.close()


def warned(run: Callable[[], Any]) -> Tally[int]:
    """PyTorch's own warnings by line, as it gives them without us."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        torch.cuda.set_sync_debug_mode("warn")
        try:
            run()
        finally:
            torch.cuda.set_sync_debug_mode("default")
    return Tally(each.lineno for each in caught if str(each.message).startswith(MESSAGE))


def operations() -> None:
    x = torch.ones(64, device="cuda")
    x.sum().item()
    x.nonzero()
    x[x > 0]
    bool(x.any())
    x.cpu()
    torch.ones(4).to("cuda")
    torch.ones(4).cuda()
    torch.empty(64).copy_(x)
    for _ in range(3):
        x.tolist()


def test_every_wait_is_counted_at_the_line_of_pytorchs_own_warning() -> None:
    operations()
    expected = warned(operations)
    assert len(expected) == 9
    with counting() as counted:
        for _ in range(20):
            operations()
            counted.step()
        steps = counted.counter.counted_steps(counted.loop)
        found = counted.lines()
    per_step = {line: sum(wait.count for wait in waits) / steps for line, waits in found.items()}
    assert per_step == dict(expected)
    assert all(wait.kind == "warning" for waits in found.values() for wait in waits)


def here() -> int:
    return sys._getframe(1).f_lineno


def test_what_pytorch_does_not_warn_of_is_counted() -> None:
    pageable, pinned = torch.ones(1 << 16), torch.ones(1 << 16).pin_memory()
    event = torch.cuda.Event()
    with counting() as counted:
        device = pageable.to("cuda", non_blocking=True)
        pinned.to("cuda", non_blocking=True)
        pinned.copy_(device, non_blocking=True)
        torch.cuda.synchronize()
        event.record()
        event.synchronize()
        torch.cuda.empty_cache()
        torch.cuda.current_stream().synchronize()
        last = here()
    found = {line - last: waits[0] for line, waits in counted.lines().items()}
    assert set(found) == {-8, -5, -3, -2, -1}  # those of pinned memory do not wait
    copy = found[-8]
    assert (copy.direction, copy.pageable, copy.non_blocking, copy.bytes) == ("HtoD", True, True, 1 << 18)
    names = [(found[line].kind, found[line].name) for line in (-5, -3, -2, -1)]
    assert names == [
        ("call", "torch.cuda.synchronize"),
        ("call", "Event.synchronize"),
        ("call", "torch.cuda.empty_cache"),
        ("warning", ""),
    ]


def test_copies_that_wait_have_their_direction_and_bytes() -> None:
    with counting() as counted:
        device = torch.ones(1 << 16).to("cuda")
        device.cpu()
        last = here()
    found = {line - last: waits for line, waits in counted.lines().items()}
    (there,), (back,) = found[-2], found[-1]
    assert (there.kind, there.direction, there.bytes, there.pageable, there.count) == (
        "warning", "HtoD", 1 << 18, True, 1,
    )  # fmt: skip
    assert (back.kind, back.direction, back.bytes) == ("warning", "DtoH", 1 << 18)
    assert there.blocked_ns is not None and there.blocked_ns > 0


def test_sampled_frequencies_are_inside_their_interval() -> None:
    x = torch.ones(8, device="cuda")
    with counting() as counted:
        begin = time.perf_counter()
        for step in range(4000):
            x.tolist()
            if step % 10 == 0:
                x.cpu()
            for _ in range(3):
                x.tolist()
            counted.step()
        steps, one_in = counted.loop.steps, counted.counter.one_in(counted.loop)
        found = [wait for waits in counted.lines().values() for wait in waits]
        share, length = counted.counter.overhead_share, time.perf_counter() - begin
    assert one_in > 2
    for wait, true in zip(sorted(found, key=lambda wait: wait.count), (0.1, 1, 3), strict=True):
        assert wait.estimate is not None
        assert abs(wait.estimate / steps - true) <= (4 * wait.variance**0.5 + 2) / steps
    assert share is not None and share * length < 0.01 * length + 0.012  # and the grace of the begin


def scripted(x):
    return x.nonzero() + int(x.sum().item())


class Reads(torch.autograd.Function):  # type: ignore[misc,name-defined]
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x * 2

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        gradient.sum().item()
        return gradient * 2


def test_nothing_is_printed_by_operators_torchscript_and_backward(capfd: pytest.CaptureFixture[str]) -> None:
    x = torch.ones(64, device="cuda", requires_grad=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        script = torch.jit.script(scripted)
    with counting() as counted:
        for _ in range(4):
            torch.ops.aten.nonzero(x)
            torch.ops.aten._local_scalar_dense.default(x.sum())
            script(x)
            Reads.apply(x).sum().backward()
            x[x > 0].sum().backward()
            counted.step()
    captured = capfd.readouterr()
    assert (captured.out, captured.err) == ("", "")
    texts = {wait.kind for waits in counted.lines().values() for wait in waits}
    assert "warning" in texts


def test_a_wait_of_an_operator_may_be_one() -> None:
    x = torch.randn(8192, 8192, device="cuda")
    with counting() as counted:
        for _ in range(4):
            y = x @ x
            torch.ops.aten._local_scalar_dense.default(y[0, 0])
            counted.step()
    waits = [wait for waits in counted.lines().values() for wait in waits]
    assert [(wait.name, wait.may_wait, wait.count) for wait in waits] == [("torch.ops", True, 3)]


DDP = """
import os, sys, torch
sys.path.insert(0, {root!r})
from tests.collect.count.test_count_gpu import counting
torch.distributed.init_process_group("nccl", store=torch.distributed.HashStore(), rank=0, world_size=1)
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.used, self.unused = torch.nn.Linear(8, 8), torch.nn.Linear(8, 8)
    def forward(self, x):
        return self.used(x)
x = torch.ones(4, 8, device="cuda")
with counting() as counted:
    net = torch.nn.parallel.DistributedDataParallel({made})
    for _ in range(5):
        loss = net(x).sum()
        loss.backward()
        loss.item()
        counted.step()
    torch.distributed.barrier()
    lines = counted.lines()
print(max((w.count for waits in lines.values() for w in waits if w.kind == "warning")))
torch.distributed.destroy_process_group()
"""


@pytest.mark.parametrize("made", ["Net().cuda(), find_unused_parameters=True", "Net().used.cuda()"])
def test_ddp_prints_nothing(tmp_path: Path, made: str) -> None:
    program = tmp_path / "program.py"
    program.write_text(DDP.format(root=str(Path(__file__).parents[3]), made=made))
    done = subprocess.run([sys.executable, str(program)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "synchronizing" not in done.stderr
    assert done.stdout.strip() == "5"
