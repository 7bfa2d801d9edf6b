"""The GPU's power, clocks and throttling while steps run, by NVML (the module ``pynvml`` of nvidia-ml-py).

Names and numbers are those of NVML's API reference. ``nvmlDeviceGetPowerUsage`` is an average over a second on recent
GPUs, so power comes from the energy counter (``nvmlDeviceGetTotalEnergyConsumption``, mJ), or from the field
``NVML_FI_DEV_POWER_INSTANT`` (mW) where the stretch is short. What NVML cannot tell is ``None``, never 0.
"""

from __future__ import annotations

import collections
import importlib
import itertools
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from syncscope.collect.background import Background
from syncscope.collect.nvml import PATIENCE_S, ask_in_time, current_device, find_device
from syncscope.schema.recording import GpuWindow, RecordedGpu

PERIOD_S = 0.03
MOST_SHARE = 0.05
"""Of one processor that sampling may take, and of the time: while NVML is asked, it may hold what the program needs of
the driver."""

KEPT = 4096
"""Samples kept: two minutes."""

LATELY = 8
"""Samples: a quarter of a second."""

COUNTED_S = 0.25
"""The energy counter is advanced every 20 to 100 ms: in a shorter stretch the instantaneous readings are better."""

FEWEST, REACH_S = 6, 0.25
"""A bare stretch with fewer samples takes those of this many seconds before it, too: the same steps ran there. One or
two readings of a GPU at its limit are off by up to a sixth, and a stretch of 40 ms may have none."""

SM, MEMORY, GPU_TEMPERATURE = 1, 2, 0
POWER_INSTANT = 186

SLOWED, THERMAL_HW, BRAKE = 0x8, 0x40, 0x80
REASONS = (
    (0x4, "power cap"),
    (0x20 | THERMAL_HW, "thermal"),
    (SLOWED, "hardware slowdown"),
    (BRAKE, "power brake"),
    (0x10, "sync boost"),
    (0x2 | 0x100, "clocks set by the user"),
)

NOT_INSTALLED = "NVML's binding for Python is not installed (pip install 'syncscope[nvml]')."
IN_PARTS = "The program has a part of the GPU only (MIG, or a virtual GPU): NVML does not tell its power and clock."
SILENT = "NVML did not answer."


class Sample(NamedTuple):
    """``at_ns`` is Unix time. Energy in mJ since the driver was loaded, power in mW, clocks in MHz,
    temperature in °C."""

    at_ns: int
    energy: int | None
    power: int | None
    sm: int | None
    memory: int | None
    temperature: int | None
    reasons: int | None


class ClockWatch:
    """Samples the GPU that is current in PyTorch, from ``open`` to ``close``, in a thread that no list of Python's has.

    NVML is asked in that thread only. Nothing is raised or printed.
    """

    def __init__(self) -> None:
        self._samples: collections.deque[Sample] = collections.deque(maxlen=KEPT)
        self._torch: Any = None
        self._device: int | None = None
        self._gpu: _Gpu | None = None
        self._limits: tuple[int | None, int | None] = None, None
        self._missing: str | None = None
        self._background: Background | None = None
        self._not_before = 0.0
        """When NVML may be asked again, by ``time.monotonic``."""

    @property
    def sampling(self) -> bool:
        """Whether NVML answers."""
        return self._background is not None and bool(self._samples)

    @property
    def limited(self) -> bool:
        """Whether something held the clock back lately."""
        last = list(self._samples)[-LATELY:]
        return any(reason(sample.reasons) for sample in last)

    def open(self, torch: Any) -> None:
        """Begin, or go on. CUDA is initialised. Does nothing while open, or where NVML is known to be missing."""
        if self._background is not None or self._missing is not None:
            return
        self._torch, self._device = torch, current_device(torch)
        if self._device is None:
            return
        self._background = Background(PERIOD_S, self._work, MOST_SHARE)
        try:
            self._background.open()
        except RuntimeError:  # no more threads
            self._background = None

    def close(self) -> None:
        """Stop sampling, and leave NVML. The samples stay."""
        background, self._background = self._background, None
        if background is None:
            return
        background.close(patience=PATIENCE_S)
        gpu, self._gpu = self._gpu, None
        if gpu is not None:
            ask_in_time(gpu.leave, PATIENCE_S)

    def about(self, bare: tuple[int, int] | None, timed: tuple[int, int] | None) -> RecordedGpu:
        """What is known of the GPU, and of it between these times, Unix time in ns."""
        if not self._samples:
            return RecordedGpu(missing=self._missing or SILENT)
        power_limit_w, max_sm_clock_mhz = self._limits
        return RecordedGpu(
            power_limit_w=power_limit_w,
            max_sm_clock_mhz=max_sm_clock_mhz,
            bare=self._between(bare, REACH_S),
            timed=self._between(timed),
        )

    def _between(self, span: tuple[int, int] | None, reach_s: float = 0.0) -> GpuWindow | None:
        """What was sampled in a stretch, and in ``reach_s`` before where that is little."""
        if span is None:
            return None
        begin, end = span
        samples = [one for one in list(self._samples) if begin - reach_s * 1e9 <= one.at_ns <= end]
        inside = sum(one.at_ns >= begin for one in samples)
        return summarise(samples[-max(inside, FEWEST) :] if reach_s else samples, end - begin)

    def _work(self) -> None:
        background = self._background
        if time.monotonic() < self._not_before:
            return
        if self._gpu is None:
            try:
                self._gpu = _Gpu(self._torch, self._device)
            except ImportError:
                self._missing = NOT_INSTALLED
            except _Refused as error:
                self._missing = str(error)
            if self._gpu is None:
                if background is not None:
                    background.end()
                return
            self._limits = self._gpu.limits
        began = time.monotonic()
        self._samples.append(self._gpu.sample())
        ended = time.monotonic()
        self._not_before = ended + (ended - began) / MOST_SHARE


class _Refused(Exception):
    """NVML tells nothing of this GPU; ``str`` says why, in a sentence."""


class _Gpu:
    """One GPU, as NVML knows it. Raises ``ImportError`` or ``_Refused``."""

    def __init__(self, torch: Any, device: int | None) -> None:
        nvml = sys.modules.get("pynvml") or importlib.import_module("pynvml")
        self._nvml = nvml
        self._refused: set[str] = set()
        try:
            nvml.nvmlInit()
            self._handle = find_device(nvml, torch, device or 0)
        except nvml.NVMLError as error:
            raise _Refused(f"NVML refused: {error}.") from error
        if self._handle is None:
            raise _Refused(IN_PARTS)
        limit = self._ask("nvmlDeviceGetEnforcedPowerLimit")
        self.limits = round(limit / 1000) if limit is not None else None, self._ask("nvmlDeviceGetMaxClockInfo", SM)
        """Watts, and the highest clock of the SMs in MHz."""

    def leave(self) -> None:
        self._nvml.nvmlShutdown()

    def sample(self) -> Sample:
        now = time.time_ns()
        energy, power = self._ask("nvmlDeviceGetTotalEnergyConsumption"), self._power()
        return Sample(
            at_ns=now,
            energy=energy,
            power=power,
            sm=self._ask("nvmlDeviceGetClockInfo", SM),
            memory=self._ask("nvmlDeviceGetClockInfo", MEMORY),
            temperature=self._ask("nvmlDeviceGetTemperature", GPU_TEMPERATURE),
            reasons=self._first("nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons"),
        )

    def _power(self) -> int | None:
        fields = self._ask("nvmlDeviceGetFieldValues", [POWER_INSTANT])
        if not fields or fields[0].nvmlReturn != 0:
            self._refused.add("nvmlDeviceGetFieldValues")
            return None
        return int(fields[0].value.uiVal)

    def _first(self, *names: str) -> Any:
        """The answer of the first of these functions that has one: newer versions of NVML rename them."""
        for name in names:
            if (answer := self._ask(name)) is not None:
                return answer
        return None

    def _ask(self, name: str, *arguments: Any) -> Any:
        """``None`` where this GPU, driver or binding has no answer. It is not asked again then."""
        function: Callable[..., Any] | None = getattr(self._nvml, name, None)
        key = f"{name}{arguments}"
        if function is None or key in self._refused or name in self._refused:
            return None
        try:
            return function(self._handle, *arguments)
        except self._nvml.NVMLError:
            self._refused.add(key)
            return None


def summarise(samples: Sequence[Sample], length_ns: int) -> GpuWindow | None:
    """``samples`` taken in a stretch of ``length_ns``; ``None`` where there is none."""
    if not samples:
        return None
    clocks = [one.sm for one in samples if one.sm is not None]
    known = [one.reasons for one in samples if one.reasons is not None]
    named = [name for reasons in known for name in reason(reasons)]
    return GpuWindow(
        power_w=_power_w(samples),
        sm_clock_mhz=_median(clocks),
        sm_clock_low_mhz=min(clocks, default=None),
        sm_clock_high_mhz=max(clocks, default=None),
        memory_clock_mhz=_median([one.memory for one in samples if one.memory is not None]),
        temperature_c=_median([one.temperature for one in samples if one.temperature is not None]),
        throttled={name: round(named.count(name) / len(known), 4) for name in dict.fromkeys(named)},
        length_ns=length_ns,
        samples=len(samples),
    )


def reason(bits: int | None) -> tuple[str, ...]:
    """What holds the clock back, by NVML's bits. Heat and the power brake set the bit of a slowdown as well."""
    if not bits:
        return ()
    if bits & (THERMAL_HW | BRAKE):
        bits &= ~SLOWED
    return tuple(name for mask, name in REASONS if bits & mask)


def _power_w(samples: Sequence[Sample]) -> int | None:
    """Watts on average: from the energy counter between two moments at which it advanced, else of the readings."""
    counted = [(one.at_ns, one.energy) for one in samples if one.energy is not None]
    advanced = [here for before, here in itertools.pairwise(counted) if here[1] != before[1]]
    if len(advanced) >= 2:
        (begin, first), (end, last) = advanced[0], advanced[-1]
        if end - begin >= COUNTED_S * 1e9:
            return round((last - first) / (end - begin) * 1e6)
    readings = [one.power / 1000 for one in samples if one.power is not None]
    return round(statistics.mean(readings)) if readings else None


def _median(values: Sequence[int]) -> int | None:
    return round(statistics.median(values)) if values else None
