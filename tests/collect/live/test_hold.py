"""A device that is held while a block runs, with stand-ins of streams; ``test_guard_gpu.py`` has real ones."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator
from typing import Any

import pytest

import syncscope
from syncscope.collect.live import hold
from syncscope.collect.live.guard import SyncError, SyncWarning, guard
from syncscope.pytest_plugin import Syncscope
from tests.collect.live.conftest import Device

CYCLES_PER_MS = 1000.0


class Held:
    """Streams whose kernels end when they are told to."""

    def __init__(self) -> None:
        self.slept: list[tuple[str, int]] = []
        """The stream and the cycles of each kernel."""
        self.current = "side"
        self.released = False
        self.capturing = False
        self.broken = False
        self.lasted_ms = 50.0

    def wait(self) -> None:
        """Waits, and PyTorch does not know of it."""
        self.released = True

    def fail(self) -> None:
        self.wait()
        raise KeyError("the program's")

    def sleep(self, cycles: int) -> None:
        self.slept.append((self.current, cycles))

    @contextlib.contextmanager
    def stream(self, stream: str) -> Iterator[None]:
        outer, self.current = self.current, stream
        yield
        self.current = outer


@pytest.fixture
def held(device: Device, monkeypatch: pytest.MonkeyPatch) -> Held:
    cuda, held = device.torch.cuda, Held()

    class Event(cuda.Event):  # type: ignore[misc,name-defined]
        def __init__(self, enable_timing: bool = False) -> None: ...
        def record(self) -> None: ...

        def query(self) -> bool:
            if held.broken:
                raise RuntimeError("CUDA error: an illegal memory access was encountered")
            return held.released

        def elapsed_time(self, end: Any) -> float:
            return held.lasted_ms

    monkeypatch.setattr(cuda, "Event", Event)
    monkeypatch.setattr(cuda, "_sleep", held.sleep)
    monkeypatch.setattr(cuda, "stream", held.stream)
    monkeypatch.setattr(cuda, "current_stream", lambda: held.current)
    monkeypatch.setattr(cuda, "default_stream", lambda: "default")
    monkeypatch.setattr(cuda, "current_device", lambda: 0)
    monkeypatch.setattr(cuda, "is_current_stream_capturing", lambda: held.capturing)
    monkeypatch.setattr(hold, "_cycles_per_ms", {0: CYCLES_PER_MS})
    return held


@pytest.mark.parametrize("wrong", [0, -1, float("nan"), float("inf")])
def test_a_time_that_is_none_is_refused(wrong: float) -> None:
    with pytest.raises(ValueError, match="hold_ms is a number of milliseconds above 0"):
        guard(hold_ms=wrong)


@pytest.mark.parametrize("wrong", ["50", True, [50]])
def test_what_is_no_number_is_refused(wrong: Any) -> None:
    with pytest.raises(TypeError, match="hold_ms is a number of milliseconds, not"):
        guard(hold_ms=wrong)


def test_directions_that_let_such_waits_pass_are_refused() -> None:
    with pytest.raises(ValueError, match='waits of the direction "unknown", which allow lets pass'):
        guard(allow=["unknown"], hold_ms=50)


def test_a_block_that_lasts_as_long_as_the_device_is_held_raises_at_its_end(held: Held) -> None:
    with pytest.raises(SyncError) as raised, guard("raise", hold_ms=50):
        held.wait()
    assert f"{__file__}:" in str(raised.value)
    assert "the device was held for 50.0 ms" in str(raised.value) and "dump_traceback_later(0.025)" in str(raised.value)


def test_the_current_stream_and_the_default_one_are_held_for_that_long(held: Held) -> None:
    with guard("raise", hold_ms=50):
        assert held.slept == [("side", 50_000), ("default", 50_000)]
    held.slept.clear()
    held.current = "default"
    with guard("raise", hold_ms=0.5):
        assert held.slept == [("default", 500)]


def test_a_block_that_ends_before_passes(held: Held) -> None:
    with guard("raise", hold_ms=50):
        pass


def test_the_other_actions_tell_it_too(held: Held, caplog: pytest.LogCaptureFixture) -> None:
    with pytest.warns(SyncWarning, match="the device was held"), guard("warn", hold_ms=50):
        held.wait()
    with guard("log", hold_ms=50):
        held.wait()
    assert "the device was held" in caplog.text


def test_an_exception_that_leaves_the_block_is_the_programs(held: Held, device: Device) -> None:
    with pytest.raises(KeyError), guard("raise", hold_ms=50):
        held.fail()
    assert device.mode == 0


def test_a_wait_that_was_seen_explains_the_time(held: Held, device: Device) -> None:
    with guard("raise", hold_ms=50), contextlib.suppress(SyncError):
        held.wait()
        device.wait()
    with guard("raise", hold_ms=50), syncscope.expected("metrics"):
        held.wait()
        device.torch.cuda.synchronize()
    with syncscope.expected("a slow block"), guard("raise", hold_ms=50):
        held.wait()


def test_a_wait_is_told_by_the_innermost_block_once(held: Held) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with guard("warn", hold_ms=50), guard("warn", hold_ms=50):
            held.wait()
    assert len(caught) == 1


def test_nothing_is_held_while_a_graph_is_captured(held: Held) -> None:
    held.capturing = True
    with guard("raise", hold_ms=50):
        held.wait()
    assert held.slept == []


def test_an_error_of_the_device_is_left_to_the_program(held: Held) -> None:
    with guard("raise", hold_ms=50):
        held.broken = True


def test_a_decorated_function_is_held_at_each_call(held: Held) -> None:
    @guard("raise", hold_ms=50)
    def step(waits: bool) -> None:
        if waits:
            held.wait()

    step(False)
    with pytest.raises(SyncError, match="the device was held"):
        step(True)
    held.released = False
    step(False)
    assert len(held.slept) == 6


def test_a_test_may_hold_the_device_too(held: Held, device: Device, pytestconfig: pytest.Config) -> None:
    fixture = Syncscope(pytestconfig)
    with fixture.max_syncs(0, hold_ms=50):
        assert held.slept == [("side", 50_000), ("default", 50_000)]
    with pytest.raises(KeyError), fixture.max_syncs(0, hold_ms=50):
        held.fail()
    with pytest.raises(pytest.fail.Exception, match="the device was held"), fixture.max_syncs(0, hold_ms=50):
        held.wait()
    with fixture.max_syncs(1, hold_ms=50):
        device.wait()
    with pytest.raises(ValueError, match="hold_ms is a number"), fixture.max_syncs(0, hold_ms=0):
        raise AssertionError("entered")
    assert device.mode == 0


def test_without_the_kernel_the_block_is_not_entered(
    held: Held, device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(device.torch.cuda, "_sleep")
    with pytest.raises(RuntimeError, match=r"hold_ms needs torch\.cuda\._sleep"), guard("raise", hold_ms=50):
        raise AssertionError("entered")
    assert device.mode == 0


def test_the_clock_is_measured_once_a_device(held: Held, device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hold, "_cycles_per_ms", {})
    monkeypatch.setattr(device.torch.cuda, "Stream", lambda: "calibration")
    held.lasted_ms = hold.CALIBRATION_CYCLES / CYCLES_PER_MS
    held.released = True
    for _ in range(2):
        with contextlib.suppress(SyncError), guard("raise", hold_ms=50):
            pass
    assert hold._cycles_per_ms == {0: CYCLES_PER_MS}
    assert [stream for stream, _ in held.slept].count("calibration") == hold.CALIBRATIONS
    assert ("default", 50_000) in held.slept


def test_without_a_gpu_nothing_is_held() -> None:
    pytest.importorskip("torch", reason="the guard listens to PyTorch")
    with guard("raise", hold_ms=50):
        pass
