"""The loader as an actor of its own, and what changing it would save."""

from __future__ import annotations

import msgspec
import pytest

from syncscope import rules
from syncscope.estimate import Estimate, estimate_savings, prepare
from syncscope.estimate.answers import explain_handed_over
from syncscope.estimate.loader_questions import SHARED
from syncscope.schema.recording import Bare, RecordedLoader
from syncscope.schema.report import Asked
from syncscope.timeline import Timeline
from tests.builders import FrameSpec, TraceBuilder
from tests.report import sample
from tests.rules.scenes import line

STEPS, STEP, PACE = 4, 1000, 2500
"""A recorded step (µs) that lives on what its loader had ready, and the loader's own pace."""


def recorded(
    loader: RecordedLoader | None, length: int, loading: int = 3, copies: bool | tuple[FrameSpec, ...] = False,
    pins: bool = False, batches: int = 1,
) -> Timeline:  # fmt: skip
    """Each step gets a batch in ``loading`` µs, at whose end it may pin it, runs a kernel of 600 µs, and waits for
    it, or does so for several ``batches``; bare steps take ``length``."""
    builder, at, marks = TraceBuilder(), 0, [0]
    step = STEP + loading
    for _ in range(STEPS):
        begin = at + loading
        builder.entry("DataLoader", at + 1, begin)
        if pins:
            builder.call("cudaHostAlloc", begin - 40, 10)
        if copies:
            builder.copy("HtoD", call=(begin + 1, 95), runs=(begin + 6, 89), memory="pageable", bytes=1_000_000)
            if not isinstance(copies, bool):
                builder.entry("Tensor.to", begin + 0.5, begin + 96.5, *copies)
        builder.launch("gemm", call=(begin + 100, 5), runs=(begin + 107, 600))
        builder.entry("torch.cuda.synchronize", begin + 110, begin + 712, line(7, "torch.cuda.synchronize()"))
        builder.stream_sync(begin + 111, 600, record=True)
        at += step
        marks.append(at)
    bare = Bare(steps_ns=(length * 1000,) * 8, drain_ns=1000, loader=loader)
    return Timeline(builder.recording(*marks[::batches], drained=at, bare=bare).trace())


def estimated(timeline: Timeline) -> Estimate:
    return estimate_savings(prepare(timeline, rules.find(timeline)[0]))


def asked(estimate: Estimate) -> dict[str, Asked]:
    assert estimate.replay is not None
    return {one.question: one for one in estimate.replay.asked}


def paced(workers: int = 2, pinned: bool = True) -> RecordedLoader:
    return RecordedLoader(workers=workers, pinned=pinned, ready=0, interval_ns=PACE * 1000)


def test_behind_a_loader_that_sets_the_pace_a_wait_saves_nothing() -> None:
    found = estimated(recorded(paced(), PACE))
    assert found.replay is not None and found.replay.doubt is None, "the bare step is met"
    saving = next(one for one in found.findings if one.rule == "SYN105").saving_ms_per_step
    assert saving is not None and saving < 0.02


def test_two_more_workers_make_batches_at_twice_the_pace_of_two() -> None:
    answer = asked(estimated(recorded(paced(), PACE)))["two more workers"]
    assert answer.saving_ms_per_step == pytest.approx((PACE - PACE / 2) / 1000, abs=0.05)
    low, likely, high = answer.saving_low_ms_per_step, answer.saving_ms_per_step, answer.saving_high_ms_per_step
    assert low is not None and likely is not None and high is not None
    assert low < likely < high


def test_workers_that_share_the_host_may_each_be_slower() -> None:
    answer = asked(estimated(recorded(paced(), PACE)))["two more workers"]
    low, likely, high = answer.saving_low_ms_per_step, answer.saving_ms_per_step, answer.saving_high_ms_per_step
    assert low is not None and likely is not None and high is not None
    slower = (1 + 3 * SHARED) / (1 + SHARED)
    assert low < (PACE - PACE / 2 * slower) / 1000 < likely, "four hold up each other more than two"
    assert high - likely < likely - low, "and hardly more than all of it"


def test_more_workers_save_nothing_beyond_what_the_step_takes() -> None:
    answer = asked(estimated(recorded(paced(workers=1), PACE)))["two more workers"]
    assert answer.saving_ms_per_step == pytest.approx((PACE - STEP) / 1000, abs=0.1)


def test_without_workers_two_take_the_loading_off_the_host() -> None:
    loader = RecordedLoader(workers=0, pinned=True)
    answer = asked(estimated(recorded(loader, STEP + 800, loading=800)))["two workers"]
    assert answer.saving_ms_per_step == pytest.approx(0.8, abs=0.1)


def test_two_workers_take_all_of_the_loading_where_the_host_pins_the_batch_too() -> None:
    loader = RecordedLoader(workers=0, pinned=True)
    answer = asked(estimated(recorded(loader, STEP + 800, loading=800, pins=True)))["two workers"]
    assert answer.saving_ms_per_step == pytest.approx(0.76, abs=0.1)


def test_pinned_and_prefetched_batches_take_their_copies_out_of_the_way() -> None:
    loader = RecordedLoader(workers=2, pinned=False, ready=2)
    answers = asked(estimated(recorded(loader, STEP, copies=True)))
    saving = answers["pinned and prefetched batches"].saving_ms_per_step
    assert saving is not None and 0.02 < saving < 0.15


MODULE: FrameSpec = ("<site-packages>/torch/nn/modules/module.py", 1775, "_call_impl", "forward_call(*args)")
SCATTER: FrameSpec = ("<site-packages>/torch/nn/parallel/scatter_gather.py", 30, "scatter", "Scatter.apply(x)")


@pytest.mark.parametrize(
    ("frames", "batch"),
    [
        ((line(9, "x.to(device)"),), True),
        ((line(9, "torch.ones(n).to(device)"),), False),
        ((line(8, "model(x)"), MODULE, line(9, "targets.cuda()")), False),
        ((line(8, "model(x)"), MODULE, SCATTER), True),
    ],
)
def test_what_the_model_makes_and_moves_is_no_batch(frames: tuple[FrameSpec, ...], *, batch: bool) -> None:
    loader = RecordedLoader(workers=2, pinned=False, ready=2)
    assert ("pinned and prefetched batches" in asked(estimated(recorded(loader, STEP, copies=frames)))) == batch


def test_a_pinning_thread_takes_no_batch_for_what_the_model_makes_and_moves() -> None:
    def saved(*frames: FrameSpec, pinned: bool | None) -> float:
        found = estimated(recorded(ahead(ready=3, pinned=pinned), STEP + 400, loading=400, copies=frames))
        return next(one for one in found.findings if one.rule == "CPY201").saving_ms_per_step or 0.0

    inside = (line(8, "model(x)"), MODULE, line(9, "iden.cuda()"))
    assert saved(*inside, pinned=False) == pytest.approx(saved(*inside, pinned=None), abs=0.01)
    batch = line(9, "x.to(device)")
    assert saved(batch, pinned=False) > saved(batch, pinned=None) + 0.2


def ahead(ready: int, pinned: bool | None = True) -> RecordedLoader:
    return RecordedLoader(workers=2, prefetch=2, pinned=pinned, ready=ready)


def test_a_loader_with_batches_ready_leaves_what_other_fixes_save() -> None:
    """Getting a batch that is there takes the host 200 µs: no pace of the workers."""
    found = estimated(recorded(ahead(ready=3), STEP + 200, loading=200))
    saving = next(one for one in found.findings if one.rule == "SYN105").saving_ms_per_step
    assert saving is not None and saving > 0.25
    assert asked(found)["two more workers"].saving_ms_per_step == pytest.approx(0, abs=0.02)


def test_a_loader_that_has_hardly_a_batch_ready_becomes_the_bound() -> None:
    """One of four is ready, so three are in the making: two workers can hardly go faster."""
    found = estimated(recorded(ahead(ready=1), STEP + 200, loading=200))
    saving = next(one for one in found.findings if one.rule == "SYN105").saving_ms_per_step
    assert saving == pytest.approx(0, abs=0.02)


def test_a_loader_that_is_ahead_of_steps_of_two_batches_is_no_bound() -> None:
    """Where gradients are accumulated, the workers made two batches in each bare step."""
    found = estimated(recorded(ahead(ready=3), 2 * (STEP + 200), loading=200, batches=2))
    saving = next(one for one in found.findings if one.rule == "SYN105").saving_ms_per_step
    assert saving is not None and saving > 0.5
    assert asked(found)["two more workers"].saving_ms_per_step == pytest.approx(0, abs=0.04)


def test_a_pinning_thread_takes_the_batches_out_of_the_workers_memory() -> None:
    savings = []
    for pinned in (False, None):
        found = estimated(recorded(ahead(ready=3, pinned=pinned), STEP + 400, loading=400, copies=True))
        saving = next(one for one in found.findings if one.rule == "CPY201").saving_ms_per_step
        assert saving is not None
        savings.append(saving)
    assert savings[0] - savings[1] == pytest.approx(0.8 * 0.4, abs=0.06)


def test_a_copy_that_saves_more_than_it_holds_the_host_says_what_else_its_fix_takes_away() -> None:
    def message(pinned: bool | None, *frames: FrameSpec) -> str:
        found = estimated(recorded(ahead(ready=3, pinned=pinned), STEP + 400, loading=400, copies=frames))
        return next(one for one in found.findings if one.rule == "CPY201").message

    batch, inside = line(9, "x.to(device)"), (line(8, "model(x)"), MODULE, line(9, "iden.cuda()"))
    taken = "; a loader that pins also takes the batch from its workers in another thread, which saves this one about "
    assert f"{taken}0.31" in message(False, batch)
    assert "workers" not in message(None, batch) and "workers" not in message(False, *inside)


def test_what_else_its_fix_takes_away_is_what_the_fix_begins_with() -> None:
    copied = sample.finding("CPY201", "pageable-copy", 9, "next(batches)", stall=0.1, fix="Stack them.")
    found = msgspec.structs.replace(copied, likely_saving_ms_per_step=1.0)
    told = explain_handed_over(found, handed_ms=0.8, step_ms=10.0)
    pins = "Let the loader pin its batches (DataLoader(pin_memory=True)), and pass non_blocking=True."
    assert told.fix == f"{pins} Stack them."
    again = explain_handed_over(told, handed_ms=0.8, step_ms=10.0)
    assert again.fix == told.fix, "a fix that says so stays"
    assert explain_handed_over(found, handed_ms=0.05, step_ms=10.0) == found


@pytest.mark.parametrize(("workers", "interval_ns"), [(-2, 5), (2, -5), (1 << 62, 1 << 62)])
def test_a_loader_of_no_sense_breaks_nothing(workers: int, interval_ns: int) -> None:
    found = estimated(recorded(RecordedLoader(workers=workers, interval_ns=interval_ns), STEP))
    assert found.replay is not None


def test_nothing_is_asked_where_no_loader_was_recorded() -> None:
    assert asked(estimated(recorded(None, STEP))) == {}
