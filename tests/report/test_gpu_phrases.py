"""What is said of the GPU's power and clock, and of the loader."""

from __future__ import annotations

import msgspec
import pytest

from syncscope.analysis.analyze import analyze_timelines
from syncscope.report.gpu_phrases import describe_gpu
from syncscope.report.html_page import write_details
from syncscope.report.text import to_text
from syncscope.schema.gpu import Gpu
from syncscope.schema.recording import GpuWindow, RecordedGpu
from syncscope.schema.report import Asked, Replay, Report
from syncscope.timeline import Timeline
from tests.builders import TraceBuilder

AT_LIMIT = Gpu(power_limit_w=700, power_w=692, sm_clock_mhz=1755, max_sm_clock_mhz=1980, at_limit=True)


def test_the_limit_is_told_with_what_it_means_for_savings() -> None:
    assert describe_gpu(AT_LIMIT) == (
        "The GPU is at its 700 W limit (1,755 of 1,980 MHz): idle time that is filled comes back only in part.",
    )


def test_a_limit_of_unknown_power_is_told_all_the_same() -> None:
    assert describe_gpu(Gpu(at_limit=True)) == (
        "The GPU is at its power limit: idle time that is filled comes back only in part.",
    )


@pytest.mark.parametrize("gpu", [None, Gpu(), Gpu(power_w=300, at_limit=False), Gpu(throttled={"thermal": 0.02})])
def test_nothing_is_said_of_a_gpu_that_nothing_holds_back(gpu: Gpu | None) -> None:
    assert describe_gpu(gpu) == ()


def test_heat_is_named_with_how_hot_and_how_often() -> None:
    hot = Gpu(sm_clock_mhz=1200, max_sm_clock_mhz=1980, temperature_c=87, throttled={"thermal": 0.4})
    assert describe_gpu(hot) == (
        "The GPU's clock is held down for 40 % of the time (1,200 of 1,980 MHz) because it is hot (87 °C): "
        "kernels take longer than they could.",
    )


def test_clocks_set_by_hand_are_named() -> None:
    (sentence,) = describe_gpu(Gpu(throttled={"clocks set by the user": 1.0}))
    assert "because its clocks were set by hand" in sentence


def report() -> Report:
    window = GpuWindow(power_w=692, sm_clock_mhz=1755, throttled={"power cap": 1.0}, samples=12, temperature_c=60)
    gpu = RecordedGpu(power_limit_w=700, max_sm_clock_mhz=1980, bare=window)
    builder = TraceBuilder().launch("gemm", call=(5, 5), runs=(12, 900)).stream_sync(20, 895)
    return analyze_timelines([Timeline(builder.recording(0, 1000, drained=1000, gpu=gpu).trace())])


def test_report_text_and_page_say_it() -> None:
    found = report()
    (info,) = found.traces
    assert info.gpu is not None and info.gpu.at_limit and info.gpu.power_w == 692
    assert "The GPU is at its 700 W limit" in to_text(found)
    assert any("The GPU is at its 700 W limit" in text for text in write_details(found, 0))


def test_what_a_change_of_the_loader_saves_is_said_where_it_is_something() -> None:
    found = report()
    asked = Asked(
        question="two more workers",
        saving_ms_per_step=0.4,
        saving_low_ms_per_step=0.3,
        saving_high_ms_per_step=0.5,
    )
    little = Asked(question="pinned and prefetched batches", saving_ms_per_step=0.001)
    wide = msgspec.structs.replace(asked, question="four more workers", saving_low_ms_per_step=0.0)
    (info,) = found.traces
    steps = msgspec.structs.replace(info.steps, bare_ms=1.0)
    info = msgspec.structs.replace(info, steps=steps, replay=Replay(misfit=0.0, asked=(asked, little, wide)))
    found = msgspec.structs.replace(found, traces=(info,))
    details = write_details(found, 0)
    assert "Four more workers would save about 0.4 ms, 0 to 0.5 ms, a step (40 %)." in details
    assert "Two more workers would save 0.4 ms a step (40 %)." in details
    assert not any("prefetched" in text for text in details)
    assert "Two more workers would save 0.4 ms a step (40 %)." in " ".join(to_text(found).split())
