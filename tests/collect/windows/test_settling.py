"""Steps that pass until the program is as it was, and the GPU's sensors meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from syncscope.collect import windows
from syncscope.collect.plan import Plan
from syncscope.collect.ready_ranks import ReadyRanks
from syncscope.collect.settling import steps_together
from syncscope.collect.windows import Windows
from syncscope.schema.recording import RecordedGpu
from tests.collect.windows.doubles import LOG, FakeWindow, Notes, Torch


def test_steps_that_live_on_what_a_loader_prepared_meanwhile_are_not_recorded(
    drive_at: Callable[..., Windows],
) -> None:
    one = drive_at(Plan(warmup=0, bare=6, steps=3, attribution=0), 3.6, 3.6, 3.6, 7.5, 10.0)
    timed = one.recorded.timed
    assert timed is not None
    lengths = [end - begin for begin, end in zip(timed.boundaries_ns, timed.boundaries_ns[1:], strict=False)]
    assert lengths == [10_000_000] * 3 and one.recorded.notes == []


def test_where_steps_stay_too_short_the_recording_says_so(drive_at: Callable[..., Windows]) -> None:
    one = drive_at(Plan(warmup=0, bare=6, steps=3, attribution=0, settle=4), *[3.6] * 20)
    assert one.recorded.timed is not None
    assert one.recorded.notes == [
        "The recorded steps may be too short: the one before took 3.6 ms, the median bare step 10 ms. A loader may have"
        " had batches ready from a pause of ours."
    ]


def test_steps_that_pass_before_the_window_are_counted_each(
    make: Any, drive_at: Callable[..., Windows], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(windows, "NoCensus", Notes)
    drive_at(Plan(warmup=0, bare=6, steps=3, attribution=0), 3.6, 3.6, 10.0)
    assert "add 6 steps" in LOG


def test_several_ranks_let_the_same_number_of_steps_pass(
    drive_at: Callable[..., Windows], monkeypatch: pytest.MonkeyPatch
) -> None:
    ranks = SimpleNamespace(is_available=lambda: True, is_initialized=lambda: True, get_world_size=lambda: 2)
    monkeypatch.setattr(Torch, "distributed", ranks, raising=False)
    starts = []
    for first in (3.6, 10.0):
        LOG.clear()
        one = drive_at(Plan(warmup=0, bare=6, steps=3, attribution=0), first)
        assert one.recorded.timed is not None
        starts.append(one.recorded.timed.first_step)
    assert starts[0] == starts[1]


def test_several_ranks_go_on_at_the_same_step_once_the_profiler_has_detached(
    drive_at: Callable[..., Windows], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It had detached from one of them a step later than from the others. Steps take 10 ms, after six bare ones."""
    ranks = SimpleNamespace(is_available=lambda: True, is_initialized=lambda: True, get_world_size=lambda: 4)
    monkeypatch.setattr(Torch, "distributed", ranks, raising=False)
    starts = []
    for ready_s in (0.095, 0.105):
        LOG.clear()
        monkeypatch.setattr(FakeWindow, "ready_at", ready_s)
        one = drive_at(Plan(warmup=0, bare=6, steps=3, attribution=0))
        assert one.recorded.timed is not None
        starts.append(one.recorded.timed.first_step)
    assert starts[0] == starts[1] > 16


def test_a_rank_that_has_to_wait_for_nothing_says_that_it_has_gone_on(
    drive_at: Callable[..., Windows], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Else another one, whose first window was one of an evaluation, would wait for it for seconds."""
    ranks = SimpleNamespace(is_available=lambda: True, is_initialized=lambda: True, get_world_size=lambda: 2)
    monkeypatch.setattr(Torch, "distributed", ranks, raising=False)
    ready = ReadyRanks(SimpleNamespace(distributed=ranks), tmp_path, "r1")
    drive_at(Plan(warmup=0, bare=6, steps=3, attribution=0), ready_ranks=ready)
    assert [path.name.rpartition(".train")[2] for path in tmp_path.iterdir()] == ["1.1@7"]


@pytest.mark.parametrize(("step_ms", "together"), [(0.5, 256), (2.6, 32), (60, 2), (900, 1), (0, 1)])
def test_the_step_at_which_ranks_go_on_comes_about_ten_times_a_second(step_ms: float, together: int) -> None:
    assert steps_together(step_ms * 1e6) == together


def lengths_ms(one: Windows) -> list[float]:
    timed = one.recorded.timed
    assert timed is not None
    return [(end - begin) / 1e6 for begin, end in zip(timed.boundaries_ns, timed.boundaries_ns[1:], strict=False)]


PLAN = Plan(warmup=0, bare=6, steps=4, attribution=0)


def test_a_window_with_a_step_that_is_far_longer_than_others_is_recorded_again_after_the_next_such(
    drive_at: Callable[..., Windows],
) -> None:
    one = drive_at(PLAN, *[10.0] * 4, 160.0, *[10.0] * 9, 160.0)
    assert lengths_ms(one) == [10.0] * 4
    assert one.recorded.timed is not None
    assert one.recorded.timed.first_step == 22  # right after the second long one
    assert LOG.count("start timed") == 2


def test_where_no_other_long_step_comes_the_window_is_recorded_again_all_the_same(
    drive_at: Callable[..., Windows],
) -> None:
    assert lengths_ms(drive_at(PLAN, *[10.0] * 4, 160.0)) == [10.0] * 4


@pytest.mark.parametrize("after", [[10.0, 10.0, *[40.0] * 4], [10.0, 10.0, 10.0, 25.0], [3.0, 3.0, 3.0, 15.0, 3.0]])
def test_steps_that_a_profiler_makes_longer_or_that_differ_a_little_are_recorded_once(
    after: list[float], drive_at: Callable[..., Windows]
) -> None:
    drive_at(PLAN, *after)
    assert LOG.count("start timed") == 1


def test_a_window_keeps_a_long_step_where_there_may_be_few_steps(drive_at: Callable[..., Windows]) -> None:
    one = drive_at(Plan(warmup=0, bare=6, steps=4, attribution=0, settle=0), *[10.0] * 2, 160.0)
    assert 160.0 in lengths_ms(one) and LOG.count("start timed") == 1


def test_several_ranks_record_what_comes(drive_at: Callable[..., Windows], monkeypatch: pytest.MonkeyPatch) -> None:
    ranks = SimpleNamespace(is_available=lambda: True, is_initialized=lambda: True, get_world_size=lambda: 2)
    monkeypatch.setattr(Torch, "distributed", ranks, raising=False)
    one = drive_at(PLAN, *[10.0] * 10, 160.0)
    assert 160.0 in lengths_ms(one) and LOG.count("start timed") == 1


class Clocks:
    """Takes notes where the GPU's sensors would be."""

    limited = sampling = False

    def open(self, torch: object) -> None:
        LOG.append("watch")

    def about(self, *spans: tuple[int, int] | None) -> RecordedGpu:
        return RecordedGpu(missing=repr(spans))


def test_the_gpu_is_watched_from_the_warm_up_on_and_both_windows_have_their_share(
    drive_at: Callable[..., Windows],
) -> None:
    one = drive_at(Plan(warmup=2, bare=6, steps=3, attribution=0), 5.0, 5.0, clocks=Clocks())
    assert LOG[0] == "watch"
    bare, timed = (30_000_000, 90_000_000), (95_000_000, 140_000_000)  # with the steps that pass before it
    assert one.recorded.gpu is not None and one.recorded.gpu.missing == repr((bare, timed))
