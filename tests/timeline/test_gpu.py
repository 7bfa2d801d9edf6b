"""What a recording says of the GPU."""

from __future__ import annotations

import pytest

from syncscope.schema.recording import GpuWindow, RecordedGpu
from syncscope.timeline.gpu import describe_gpu, is_capped, settled_window

BARE = GpuWindow(power_w=690, sm_clock_mhz=1700, throttled={"power cap": 0.9}, samples=8)
TIMED = GpuWindow(power_w=500, sm_clock_mhz=1980, samples=3)


def test_a_recording_that_did_not_ask_has_none() -> None:
    assert describe_gpu(None) is None


def test_why_nothing_is_known_is_kept() -> None:
    found = describe_gpu(RecordedGpu(missing="no nvidia-ml-py"))
    assert found is not None and found.missing == "no nvidia-ml-py" and found.at_limit is None


def test_the_steps_without_a_profiler_count_before_the_recorded_ones() -> None:
    assert settled_window(RecordedGpu(bare=BARE, timed=TIMED)) is BARE
    assert settled_window(RecordedGpu(bare=GpuWindow(), timed=TIMED)) is TIMED
    assert settled_window(RecordedGpu(bare=GpuWindow())) is None


def test_of_a_few_samples_those_that_met_the_limit_count() -> None:
    early, held = GpuWindow(power_w=300, samples=2), GpuWindow(throttled={"power cap": 0.5}, samples=2)
    assert settled_window(RecordedGpu(bare=early, timed=held)) is held
    assert settled_window(RecordedGpu(bare=early, timed=TIMED)) is early
    assert settled_window(RecordedGpu(bare=GpuWindow(power_w=300, samples=6), timed=held)) is not held


@pytest.mark.parametrize(
    ("window", "capped"),
    [
        (BARE, True),
        (GpuWindow(throttled={"power cap": 0.2}), False),
        (GpuWindow(power_w=690, sm_clock_mhz=1700, samples=6), True),
        (GpuWindow(power_w=690, sm_clock_mhz=1980, samples=6), False),
        (GpuWindow(power_w=690, samples=6), None),
        (GpuWindow(power_w=300, samples=6), False),
        (GpuWindow(sm_clock_mhz=1700, samples=6), None),
        (GpuWindow(power_w=300, samples=5), None),
    ],
)
def test_the_limit_shows_in_reasons_or_in_power_and_clock(window: GpuWindow, capped: bool | None) -> None:
    assert is_capped(RecordedGpu(power_limit_w=700, max_sm_clock_mhz=1980), window) is capped
