"""Stand where the profiler, PyTorch, the count and the clock would be, and take notes."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from syncscope.collect.plan import Plan
from syncscope.collect.windows import Windows

LOG: list[str] = []


class FakeWindow:
    """Stands where torch.profiler would."""

    broken = False
    ready_at = 0.0

    def __init__(self, torch: Any, *, cpu: bool, on_foreign: Callable[[], None]) -> None:
        self.name = "attribution" if cpu else "timed"
        self.on_foreign = on_foreign
        self.started = False
        FakeWindow.current = self

    current: FakeWindow

    def prepare(self) -> None:
        LOG.append(f"prepare {self.name}")
        if FakeWindow.broken:
            raise RuntimeError("no CUPTI")

    def start(self) -> None:
        LOG.append(f"start {self.name}")
        self.started = True

    @contextlib.contextmanager
    def step(self, number: int) -> Iterator[None]:
        LOG.append(f"step {number}")
        yield

    def stop(self, *, detach: bool) -> bytes | None:
        LOG.append(f"stop {self.name}{' and detach' if detach else ''}")
        return b"{}" if self.started else None


class FakeRecorder:
    missing: tuple[str, ...] = ()

    def __init__(self, *parts: object, hears_copies: bool) -> None:
        pass

    def open(self) -> None:
        LOG.append("listen")

    def close(self) -> None:
        LOG.append("unlisten")

    def take(self) -> tuple[()]:
        return ()


class Torch:
    """As much of torch as the schedule needs."""

    def __init__(self) -> None:
        self.ready = True
        self.cuda = type("cuda", (), {"is_initialized": staticmethod(lambda: self.ready)})
        autograd = type("_autograd", (), {"_profiler_enabled": staticmethod(lambda: False)})
        sync = staticmethod(lambda: LOG.append("sync"))
        debug_mode = {
            "_cuda_get_sync_debug_mode": staticmethod(lambda: 0),
            "_cuda_set_sync_debug_mode": staticmethod(lambda mode: None),
        }
        self._C = type("_C", (), {"_autograd": autograd, "_cuda_synchronize": sync, **debug_mode})


class Notes:
    """Takes notes where the counter would be."""

    def suspend(self) -> None:
        LOG.append("suspend")

    def resume(self) -> None:
        LOG.append("resume")

    def add_window(self, events: Any, boundaries_ns: Any) -> None:
        LOG.append(f"add {len(boundaries_ns) - 1} steps")


class Clock:
    """Steps take as long as they are told to; nothing else takes time."""

    def __init__(self) -> None:
        self.now = 0

    def perf_counter_ns(self) -> int:
        return self.now

    time_ns = perf_counter_ns

    def monotonic(self) -> float:
        return self.now / 1e9

    def sleep(self, seconds: float) -> None: ...


SMALL = Plan(warmup=1, bare=2, steps=2, attribution=1, settle=0)


def drive(one: Windows, most: int = 50) -> int:
    """Steps until the windows are over."""
    for count in range(1, most):
        one.boundary()
        if one.finished:
            return count
    raise AssertionError("the windows never ended")
