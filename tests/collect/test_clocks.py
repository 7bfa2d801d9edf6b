"""Power, clocks and throttling of the GPU, by a stand-in for NVML."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from syncscope.collect import clocks
from syncscope.collect.clocks import ClockWatch, Sample, reason, summarise
from syncscope.schema.recording import GpuWindow, RecordedGpu

UUID = "5b64d4d1-0000-0000-0000-000000000000"
TORCH = SimpleNamespace(
    cuda=SimpleNamespace(
        is_initialized=lambda: True,
        current_device=lambda: 0,
        get_device_properties=lambda device: SimpleNamespace(uuid=UUID),
    )
)
MS = 1_000_000


class NVML:
    """As much of ``pynvml`` as is asked for."""

    class NVMLError(Exception):
        pass

    def __init__(self) -> None:
        self.opened = 0
        self.mig = [0, 0]
        self.threads: list[list[threading.Thread]] = []

    def nvmlInit(self) -> None:
        self.opened += 1

    def nvmlShutdown(self) -> None:
        self.opened -= 1

    def nvmlDeviceGetHandleByUUID(self, uuid: str) -> str:
        return uuid

    def nvmlDeviceGetMigMode(self, handle: str) -> list[int]:
        return self.mig

    def nvmlDeviceGetVirtualizationMode(self, handle: str) -> int:
        return 0

    def nvmlDeviceGetEnforcedPowerLimit(self, handle: str) -> int:
        return 700_000

    def nvmlDeviceGetMaxClockInfo(self, handle: str, kind: int) -> int:
        return 1980

    def nvmlDeviceGetTotalEnergyConsumption(self, handle: str) -> int:
        self.threads.append(threading.enumerate())
        return time.time_ns() // MS

    def nvmlDeviceGetFieldValues(self, handle: str, fields: list[int]) -> list[Any]:
        assert fields == [186]
        return [SimpleNamespace(nvmlReturn=0, value=SimpleNamespace(uiVal=691_000))]

    def nvmlDeviceGetClockInfo(self, handle: str, kind: int) -> int:
        return {1: 1755, 2: 3201}[kind]

    def nvmlDeviceGetTemperature(self, handle: str, sensor: int) -> int:
        return 61

    def nvmlDeviceGetCurrentClocksEventReasons(self, handle: str) -> int:
        return 0x4


def test_sensors_that_answer_slowly_are_asked_seldom(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]

    class Slow(NVML):
        def nvmlDeviceGetTemperature(self, handle: str, sensor: int) -> int:
            now[0] += 0.06
            return 61

    monkeypatch.setitem(sys.modules, "pynvml", Slow())
    monkeypatch.setattr(clocks, "time", SimpleNamespace(monotonic=lambda: now[0], time_ns=time.time_ns))
    one = ClockWatch()
    one._torch, one._device = TORCH, 0
    while now[0] < 12:
        one._work()
        now[0] += clocks.PERIOD_S
    assert 0.9 * clocks.MOST_SHARE < 0.06 * len(one._samples) / now[0] < 1.1 * clocks.MOST_SHARE


@pytest.fixture
def watch(monkeypatch: pytest.MonkeyPatch) -> Callable[[Any], ClockWatch]:
    """A watch that has sampled a while, or has found that it cannot."""
    monkeypatch.setattr(clocks, "PERIOD_S", 0.001)

    def run(fake: Any) -> ClockWatch:
        monkeypatch.setitem(sys.modules, "pynvml", fake)
        one = ClockWatch()
        one.open(TORCH)
        until = time.monotonic() + 60
        while len(one._samples) < 3 and one._missing is None and time.monotonic() < until:
            time.sleep(0.01)
        return one

    return run


def test_power_limit_clocks_and_reasons_are_sampled_beside_the_program(watch: Callable[[Any], ClockWatch]) -> None:
    fake, before, began = NVML(), threading.enumerate(), time.time_ns()
    one = watch(fake)
    assert one.sampling and one.limited
    one.close()
    told = one.about((began, time.time_ns()), None)
    assert (told.power_limit_w, told.max_sm_clock_mhz, told.missing, told.timed) == (700, 1980, None, None)
    assert told.bare is not None and told.bare.samples >= 3
    assert (told.bare.sm_clock_mhz, told.bare.memory_clock_mhz, told.bare.temperature_c) == (1755, 3201, 61)
    assert told.bare.throttled == {"power cap": 1.0}
    assert fake.threads[0] == before == threading.enumerate() and fake.opened == 0


def test_it_begins_again_after_a_rest_and_keeps_its_samples(watch: Callable[[Any], ClockWatch]) -> None:
    one = watch(NVML())
    one.close()
    kept = len(one._samples)
    assert not one.sampling
    one.open(TORCH)
    one.open(TORCH)
    until = time.monotonic() + 60
    while len(one._samples) <= kept and time.monotonic() < until:
        time.sleep(0.01)
    assert one.sampling
    one.close()


def test_without_the_binding_the_recording_says_how_to_install_it(watch: Callable[[Any], ClockWatch]) -> None:
    one = watch(None)  # None in sys.modules: the import fails
    one.close()
    told = one.about((0, 1), (0, 1))
    assert told == RecordedGpu(missing=told.missing)
    assert told.missing is not None and "pip install 'syncscope[nvml]'" in told.missing


def test_a_part_of_a_gpu_and_a_driver_that_refuses_are_named(
    watch: Callable[[Any], ClockWatch], monkeypatch: pytest.MonkeyPatch
) -> None:
    cut, refusing = NVML(), NVML()
    cut.mig = [1, 1]
    one = watch(cut)
    assert "MIG" in (one.about(None, None).missing or "")

    def refuse() -> None:
        raise NVML.NVMLError("Driver Not Loaded")

    monkeypatch.setattr(refusing, "nvmlInit", refuse)
    assert watch(refusing).about(None, None).missing == "NVML refused: Driver Not Loaded."


def test_what_one_gpu_does_not_tell_is_none_and_not_asked_again(
    watch: Callable[[Any], ClockWatch], monkeypatch: pytest.MonkeyPatch
) -> None:
    fake, asked = NVML(), []

    def refuse(handle: str, *arguments: Any) -> None:
        asked.append(arguments)
        raise NVML.NVMLError("Not Supported")

    for name in ("nvmlDeviceGetTotalEnergyConsumption", "nvmlDeviceGetFieldValues", "nvmlDeviceGetTemperature"):
        monkeypatch.setattr(fake, name, refuse)
    monkeypatch.setattr(fake, "nvmlDeviceGetCurrentClocksEventReasons", refuse)
    monkeypatch.setattr(fake, "nvmlDeviceGetCurrentClocksThrottleReasons", lambda handle: 0x20, raising=False)
    one = watch(fake)
    one.close()
    told = one.about((0, time.time_ns()), None).bare
    assert told is not None and (told.power_w, told.temperature_c) == (None, None)
    assert told.throttled == {"thermal": 1.0}
    assert len(asked) == 4


def test_a_driver_that_hangs_holds_nothing_up(watch: Callable[[Any], ClockWatch], monkeypatch: Any) -> None:
    fake, release = NVML(), threading.Event()
    monkeypatch.setattr(fake, "nvmlInit", lambda: release.wait(60))
    monkeypatch.setattr(clocks, "PATIENCE_S", 0.05)
    monkeypatch.setitem(sys.modules, "pynvml", fake)
    one = ClockWatch()
    one.open(TORCH)
    time.sleep(0.05)
    began = time.monotonic()
    one.close()
    assert time.monotonic() - began < 30 and one.about(None, None).missing == "NVML did not answer."
    release.set()


def test_cuda_is_never_initialised_for_it() -> None:
    one = ClockWatch()
    one.open(SimpleNamespace(cuda=SimpleNamespace(is_initialized=lambda: False)))
    assert not one.sampling
    one.close()


def sample(at_ms: float, energy: int | None = None, **other: Any) -> Sample:
    usual = {"power": None, "sm": None, "memory": None, "temperature": None, "reasons": None}
    return Sample(at_ns=int(at_ms * MS), energy=energy, **{**usual, **other})


def test_a_short_bare_stretch_takes_the_samples_before_it_and_a_recorded_one_does_not() -> None:
    watched = ClockWatch()
    watched._samples.extend(sample(at, power=600_000, sm=1500) for at in (0, 1700, 1800, 1900, 2000, 2090))
    about = watched.about((2010 * MS, 2050 * MS), (2010 * MS, 2050 * MS))
    assert about.bare is not None and about.bare.samples == 3
    assert about.bare.power_w == 600 and about.bare.length_ns == 40 * MS
    assert about.timed is None


def test_power_is_the_energy_between_two_advances_of_the_counter() -> None:
    counted = [sample(30 * number, energy=1000 + 63_000 * (number // 3)) for number in range(40)]  # 63 J in 90 ms
    told = summarise(counted, 1200 * MS)
    assert told is not None and told.power_w == 700


def test_in_a_short_stretch_power_is_the_mean_of_the_readings() -> None:
    told = summarise([sample(0, 1000, power=600_000), sample(30, 1040, power=700_000)], 40 * MS)
    assert told is not None and told.power_w == 650


def test_a_stretch_without_samples_is_unknown_and_one_without_answers_is_none() -> None:
    assert summarise([], 10) is None
    assert summarise([sample(0)], 10) == GpuWindow(length_ns=10, samples=1)


def test_the_clock_is_the_median_between_its_lowest_and_highest() -> None:
    told = summarise(
        [sample(at, sm=clock, reasons=bits) for at, clock, bits in ((0, 1500, 4), (1, 1980, 0), (2, 1600, 4))], 3
    )
    assert told is not None
    assert (told.sm_clock_low_mhz, told.sm_clock_mhz, told.sm_clock_high_mhz) == (1500, 1600, 1980)
    assert told.throttled == {"power cap": 0.6667}


@pytest.mark.parametrize(
    ("bits", "names"),
    [
        (0x0, ()), (0x1, ()), (None, ()), (0x4, ("power cap",)), (0x20, ("thermal",)), (0x48, ("thermal",)),
        (0x8, ("hardware slowdown",)), (0x88, ("power brake",)), (0x10, ("sync boost",)),
        (0x102, ("clocks set by the user",)), (0x24, ("power cap", "thermal")),
    ],
)  # fmt: skip
def test_reasons_have_names(bits: int | None, names: tuple[str, ...]) -> None:
    assert reason(bits) == names
