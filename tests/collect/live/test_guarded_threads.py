"""Whose waits a guard catches: of which threads, tasks and engines."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import syncscope
from syncscope.collect.live.guard import ALL, SyncError, guard
from tests.collect.live.conftest import Device


@pytest.fixture
def others() -> Callable[[Callable[[], Any]], Exception | None]:
    """Runs something on another thread, and returns what it raised."""

    def run(target: Callable[[], Any]) -> Exception | None:
        raised: list[Exception] = []

        def body() -> None:
            try:
                target()
            except Exception as error:
                raised.append(error)

        thread = threading.Thread(target=body)
        thread.start()
        thread.join()
        return raised[0] if raised else None

    return run


def test_other_threads_pass_unless_all_are_guarded(device: Device, others: Callable[..., Any]) -> None:
    with guard("raise"):
        assert others(lambda: device.wait()) is None
        assert others(device.torch.cuda.synchronize) is None
    with guard("raise", threads="all"):
        assert isinstance(others(lambda: device.wait()), SyncError)
        assert isinstance(others(device.torch.cuda.synchronize), SyncError)

        def allowed() -> None:
            with guard("raise", allow=ALL):
                device.wait()

        assert others(allowed) is None
        with guard("raise", allow=ALL):
            device.wait()
    assert others(lambda: device.wait()) is None


def test_a_hook_that_waits_in_backward_is_one_of_the_thread_that_called_it(device: Device) -> None:
    x = device.torch.ones(2, requires_grad=True)
    y = (x * 2).sum()
    y.register_hook(lambda gradient: device.wait())
    with guard("raise"), pytest.raises(SyncError):
        y.backward()


def test_a_wait_on_a_thread_of_the_engine_is_the_backwards(device: Device) -> None:
    from _thread import start_new_thread

    from syncscope.collect.live.watching import watch

    raised, over = [], threading.Event()

    def on_a_thread_that_python_did_not_start() -> None:
        try:
            device.wait()
        except SyncError as error:
            raised.append(error)
        over.set()

    def run() -> None:
        over.clear()
        start_new_thread(on_a_thread_that_python_did_not_start, ())
        assert over.wait(10)

    with guard("raise"):
        run()
        assert raised == []
        watch.backward(run)
    assert len(raised) == 1


def test_collectives_and_ddp_run_inside(device: Device) -> None:
    torch = device.torch
    torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)

    class Half(torch.nn.Module):  # type: ignore[misc,name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.used, self.unused = torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)

        def forward(self, x: Any) -> Any:
            return self.used(x)

    try:
        with guard("raise", threads="all"):
            net = torch.nn.parallel.DistributedDataParallel(Half(), find_unused_parameters=True)
            for _ in range(3):
                net(torch.ones(1, 2)).sum().backward()
            torch.distributed.barrier()
            torch.distributed.all_reduce(torch.ones(1), async_op=True).wait()
    finally:
        torch.distributed.destroy_process_group()


def run_apart(coroutine: Coroutine[Any, Any, None]) -> None:
    """``asyncio.run`` on a thread of its own: on this one the browser of other tests may have a loop that runs."""
    with ThreadPoolExecutor(1) as other:
        other.submit(asyncio.run, coroutine).result()


def test_each_task_of_asyncio_has_its_own(device: Device) -> None:
    async def guarded(entered: asyncio.Event, go_on: asyncio.Event) -> None:
        with guard("raise"):
            entered.set()
            await go_on.wait()
            with pytest.raises(SyncError):
                device.wait()

    async def run() -> None:
        entered, go_on = asyncio.Event(), asyncio.Event()
        task = asyncio.create_task(guarded(entered, go_on))
        await entered.wait()
        device.wait()  # of another task
        go_on.set()
        await task

    run_apart(run())


def test_what_a_task_expects_is_not_expected_of_others(device: Device) -> None:
    async def main() -> None:
        inside = asyncio.Event()

        async def expects() -> None:
            with syncscope.expected("the tokens go out"):
                inside.set()
                await asyncio.sleep(0.01)
                device.wait()

        task = asyncio.create_task(expects())
        await inside.wait()
        with pytest.raises(SyncError):
            device.wait()
        await task

    with guard("raise", threads="all"):
        run_apart(main())


def test_a_task_that_outlives_its_guard_is_guarded_no_more(device: Device) -> None:
    async def main() -> None:
        done = asyncio.Event()

        async def goes_on() -> None:
            await done.wait()
            device.wait()

        with guard("raise"):
            task = asyncio.create_task(goes_on())
        done.set()
        with guard("log"):  # somebody's, so that waits are still heard
            await task

    run_apart(main())


def test_a_guard_may_end_in_another_task_than_it_began(device: Device) -> None:
    async def main() -> None:
        async def begin() -> guard:
            return guard("raise").__enter__()

        opened = await asyncio.create_task(begin())
        opened.__exit__(None, None, None)
        with guard("log"):
            device.wait()

    run_apart(main())
    assert device.mode == 0


def test_coroutines_are_guarded_and_generators_refused(device: Device) -> None:
    @guard("raise")
    async def step() -> None:
        await asyncio.sleep(0)
        device.wait()

    with pytest.raises(SyncError):
        run_apart(step())
    with pytest.raises(TypeError, match="a generator cannot be guarded"):

        @guard("raise")
        def batches() -> Iterator[int]:
            yield 1
