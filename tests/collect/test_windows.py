"""The schedule of the windows, with a profiler that only takes notes."""

from __future__ import annotations

import contextlib
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from syncscope.collect import windows
from syncscope.collect.paths import Paths
from syncscope.collect.plan import Plan
from syncscope.collect.sites.stacks import Stacks
from syncscope.collect.sites.threads import Threads
from syncscope.collect.windows import PATIENT, TOLERANT, Windows
from syncscope.schema.recording import RecordedGpu

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

    def __init__(self, *parts: object) -> None:
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


@pytest.fixture
def make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Plan], Windows]]:
    LOG.clear()
    monkeypatch.setattr(windows, "KinetoWindow", FakeWindow)
    monkeypatch.setattr(windows, "SiteRecorder", FakeRecorder)
    monkeypatch.setattr(FakeWindow, "broken", False)
    made: list[Windows] = []

    def build(
        plan: Plan, torch: Torch | None = None, census: Any = None, compilations: Callable[[], int] = lambda: 0
    ) -> Windows:
        stacks = Stacks(Paths(tmp_path))
        finished = lambda windows: LOG.append("done")  # noqa: E731
        given = {"census": census, "compilations": compilations}
        made.append(Windows(plan, torch or Torch(), stacks, Threads(), finished, **given))
        return made[-1]

    yield build
    for one in made:
        one.close("the test is over")


SMALL = Plan(warmup=1, bare=2, steps=2, attribution=1, settle=0)


def drive(one: Windows, most: int = 50) -> int:
    """Steps until the windows are over."""
    for count in range(1, most):
        one.boundary()
        if one.finished:
            return count
    raise AssertionError("the windows never ended")


def test_the_windows_come_in_order_and_each_from_an_idle_device(make: Callable[[Plan], Windows]) -> None:
    one = make(SMALL)
    assert drive(one) == 1 + 1 + 2 + (1 + 2) + (1 + 1)
    assert LOG == [
        "sync", "sync",
        "prepare timed", "listen", "sync", "start timed", "step 5", "step 6", "sync", "unlisten", "stop timed",
        "prepare attribution", "listen", "sync", "start attribution", "step 8", "sync", "unlisten",
        "stop attribution and detach", "done",
    ]  # fmt: skip
    recorded = one.recorded
    assert recorded.bare is not None and len(recorded.bare.steps_ns) == 2
    assert recorded.timed is not None and len(recorded.timed.boundaries_ns) == 3
    assert recorded.attribution is not None and len(recorded.attribution.boundaries_ns) == 2


def test_nothing_begins_before_the_program_uses_cuda(make: Any) -> None:
    torch = Torch()
    torch.ready = False
    one = make(SMALL, torch)
    for _ in range(10):
        one.boundary()
    assert LOG == []
    torch.ready = True
    drive(one)
    assert LOG[-1] == "done"


def test_full_mode_is_one_window(make: Callable[[Plan], Windows]) -> None:
    one = make(Plan(warmup=0, bare=0, steps=2, mode="full"))
    drive(one)
    assert [entry for entry in LOG if entry.startswith("prepare")] == ["prepare attribution"]
    assert one.recorded.timed is not None and one.recorded.attribution is None


def test_a_program_that_ends_early_keeps_its_whole_steps(make: Callable[[Plan], Windows]) -> None:
    one = make(Plan(warmup=0, bare=0, steps=9))
    for _ in range(5):
        one.boundary()
    one.close("The program ended.")
    assert one.recorded.timed is not None and len(one.recorded.timed.boundaries_ns) == 4
    assert one.recorded.notes == ["The program ended."]
    assert LOG[-3:] == ["unlisten", "stop timed", "done"]


def test_a_window_without_a_whole_step_is_no_window(make: Callable[[Plan], Windows]) -> None:
    one = make(Plan(warmup=0, bare=0, steps=9))
    one.boundary()
    one.boundary()
    one.close("The program ended.")
    assert one.recorded.timed is None
    assert "stop timed" in LOG


def test_the_programs_own_profiler_ends_the_window(make: Callable[[Plan], Windows]) -> None:
    one = make(Plan(warmup=0, bare=0, steps=9))
    for _ in range(4):
        one.boundary()
    FakeWindow.current.on_foreign()
    assert one.finished
    assert "profiler of its own" in one.recorded.notes[0]
    assert one.recorded.timed is not None


def test_a_profiler_that_fails_does_not_fail_the_program(
    make: Callable[[Plan], Windows], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(FakeWindow, "broken", True)
    one = make(SMALL)
    drive(one)
    assert one.recorded.failure == "Recording failed and was given up (RuntimeError: no CUPTI)."
    assert LOG[-1] == "done"


class Notes:
    """Takes notes where the counter would be."""

    def suspend(self) -> None:
        LOG.append("suspend")

    def resume(self) -> None:
        LOG.append("resume")

    def add_window(self, events: Any, boundaries_ns: Any) -> None:
        LOG.append(f"add {len(boundaries_ns) - 1} steps")


def test_counting_rests_while_a_window_is_open_and_takes_over_its_steps(make: Any) -> None:
    one = make(Plan(warmup=0, settle=0, bare=1, steps=2, attribution=0), census=Notes())
    drive(one)
    told = [entry for entry in LOG if entry in ("prepare timed", "suspend", "resume", "done") or "add" in entry]
    assert told == ["suspend", "prepare timed", "add 3 steps", "resume", "done"]  # with the step that warms up


def test_steps_in_which_something_intruded_are_not_bare_steps(make: Callable[[Plan], Windows]) -> None:
    one = make(Plan(warmup=0, settle=0, bare=3, steps=1, attribution=0))
    one.boundary()
    for intruder in (None, "evaluate", "checkpoint", None):
        one.boundary(intruder=intruder)
        assert one.recorded.bare is None
    one.boundary(intruder=None)
    assert one.recorded.bare is not None and len(one.recorded.bare.steps_ns) == 3
    assert LOG.count("sync") == 2


def test_a_bare_window_of_nothing_but_intruded_steps_ends(make: Callable[[Plan], Windows]) -> None:
    one = make(Plan(warmup=0, settle=0, bare=2, steps=1, attribution=0))
    for _ in range(9):
        assert one.recorded.bare is None
        one.boundary(intruder="epoch end")
    assert one.recorded.bare is not None and len(one.recorded.bare.steps_ns) == 8


def test_steps_in_which_something_is_compiled_are_not_bare_steps(make: Any) -> None:
    compiled = [0]
    one = make(SMALL, compilations=lambda: compiled[0])
    for number in range(1, 12):
        compiled[0] += number == 3  # in the second bare step
        one.boundary()
    bare = one.recorded.bare
    assert bare is not None
    assert [step.reason for step in bare.set_aside] == ["compilation"]
    assert len(bare.steps_ns) == 2


def test_a_window_in_which_something_is_compiled_is_recorded_again_but_not_for_ever(make: Any) -> None:
    steps = [0]
    one = make(Plan(warmup=0, bare=0, steps=2, attribution=1, settle=0), compilations=lambda: steps[0])
    while not one.finished:
        steps[0] += 1  # in each step
        one.boundary()
    assert LOG.count("start timed") == 1 + windows.COMPILED_ANEW
    assert LOG.count("start attribution") == 1
    assert one.recorded.timed is not None


def test_a_window_in_which_nothing_is_compiled_takes_the_place_of_the_one_before(make: Any) -> None:
    compiled = [0]
    one = make(Plan(warmup=0, bare=0, steps=2, attribution=1, settle=0), compilations=lambda: compiled[0])
    first = None
    while not one.finished:
        compiled[0] += LOG.count("start timed") == 1 and one.recorded.timed is None
        one.boundary()
        first = first or one.recorded.timed
    assert LOG.count("start timed") == 2
    assert first is not None
    assert one.recorded.timed is not first


def test_an_interrupted_window_begins_again_with_its_warm_up(make: Callable[[Plan], Windows]) -> None:
    one = make(Plan(warmup=0, bare=0, steps=4, attribution=0))
    for _ in range(3):
        one.boundary()
    assert one.recording
    one.interrupt()  # after one of four steps
    assert not one.recording and not one.finished
    LOG.clear()
    for _ in range(6):
        one.boundary()
    assert LOG[:4] == ["prepare timed", "listen", "sync", "start timed"]
    assert one.finished and one.recorded.timed is not None and len(one.recorded.timed.boundaries_ns) == 5


def test_an_interrupted_window_with_most_of_its_steps_is_enough(make: Callable[[Plan], Windows]) -> None:
    one = make(Plan(warmup=0, bare=0, steps=4, attribution=0))
    for _ in range(5):
        one.boundary()
    one.interrupt()
    assert one.finished and LOG[-2:] == ["stop timed and detach", "done"]
    assert one.recorded.timed is not None and len(one.recorded.timed.boundaries_ns) == 4


def test_a_window_that_is_always_interrupted_is_content_with_less_and_less(make: Callable[[Plan], Windows]) -> None:
    one = make(Plan(warmup=0, bare=0, steps=4, attribution=0))
    for number in range(PATIENT - 1):
        for _ in range(3):
            one.boundary()
        one.interrupt()
        assert not one.finished, number
    for _ in range(3):
        one.boundary()
    one.interrupt()
    assert one.finished and one.recorded.timed is not None and len(one.recorded.timed.boundaries_ns) == 2


def test_where_no_step_comes_without_an_interruption_windows_go_on_through_them(make: Any) -> None:
    one = make(Plan(warmup=0, bare=0, steps=2, attribution=0))
    for _ in range(TOLERANT):
        one.boundary()
        assert one.recording
        one.interrupt()
    for _ in range(4):
        one.boundary()
        one.interrupt()
    assert one.finished and one.recorded.timed is not None and len(one.recorded.timed.boundaries_ns) == 3


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


@pytest.fixture
def drive_at(make: Callable[[Plan], Windows], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Windows]:
    """Windows after steps of 10 ms, which are of ``after`` once the profiler is there, and then of 10 again."""

    def run(plan: Plan, *after: float, clocks: Any = None) -> Windows:
        clock, left = Clock(), list(after)
        for module in ("windows", "settling", "bare.window"):
            monkeypatch.setattr(f"syncscope.collect.{module}.time", clock)
        one = make(plan)
        one._clocks = clocks
        for _ in range(100):
            length = left.pop(0) if "prepare timed" in LOG and left else 10.0
            clock.now += int(length * 1e6)
            one.boundary()
            if one.finished:
                return one
        raise AssertionError("the windows never ended")

    return run


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


def test_several_ranks_let_the_same_number_of_steps_pass(
    drive_at: Callable[..., Windows], monkeypatch: pytest.MonkeyPatch
) -> None:
    ranks = SimpleNamespace(is_available=lambda: True, is_initialized=lambda: True)
    monkeypatch.setattr(Torch, "distributed", ranks, raising=False)
    starts = []
    for first in (3.6, 10.0):
        LOG.clear()
        one = drive_at(Plan(warmup=0, bare=6, steps=3, attribution=0), first)
        assert one.recorded.timed is not None
        starts.append(one.recorded.timed.first_step)
    assert starts[0] == starts[1]


def test_bare_steps_alone_are_timed_after_the_windows(drive_at: Callable[..., Windows]) -> None:
    one = drive_at(Plan(warmup=0, bare=6, bare_seconds=3.0).again())
    assert one.recorded.timed is None and one.recorded.bare is not None
    assert one.recorded.bare.steps_ns == (10_000_000,) * 6
    assert LOG == ["sync", "sync", "done"]


def test_a_window_waits_until_the_profiler_before_it_has_detached(
    make: Callable[[Plan], Windows], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(FakeWindow, "ready_at", float("inf"))
    one = make(Plan(warmup=0, bare=0, steps=1, attribution=0))
    for _ in range(5):
        one.boundary()
    assert not one.recording and LOG == []
    monkeypatch.setattr(FakeWindow, "ready_at", 0.0)
    drive(one)


def test_discarded_windows_leave_nothing(make: Callable[[Plan], Windows]) -> None:
    one = make(Plan(warmup=0, bare=0, steps=4))
    for _ in range(4):
        one.boundary()
    one.discard()
    assert one.finished and LOG[-1] == "stop timed"


class RealProfile:
    """``torch.profiler.profile`` without CUPTI."""

    def __init__(self, **options: Any) -> None:
        pass

    def prepare_trace(self) -> None:
        raise RuntimeError("no CUPTI")


def test_a_window_that_never_opened_says_why_and_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def enable(*args: object) -> None:
        pass

    torch = Torch()
    theirs: Any = type("profiler", (), {"_prepare_profiler": enable, "_enable_profiler": enable})
    torch.autograd = type("autograd", (), {"profiler": theirs})  # type: ignore[attr-defined]
    torch.version = type("version", (), {"cuda": "13.0"})  # type: ignore[attr-defined]
    torch.compiler = type("compiler", (), {"is_compiling": staticmethod(lambda: False)})  # type: ignore[attr-defined]
    torch.Tensor = type("Tensor", (), {"is_cuda": False})  # type: ignore[attr-defined]
    torch._library = torch.library = type("library", (), {"_impls": ()})  # type: ignore[attr-defined]
    activities = type("ProfilerActivity", (), {"CUDA": 0, "CPU": 1})
    monkeypatch.setitem(
        sys.modules, "torch.profiler", SimpleNamespace(profile=RealProfile, ProfilerActivity=activities)
    )
    one = Windows(Plan(warmup=0, bare=0, steps=2), torch, Stacks(Paths(tmp_path)), Threads(), lambda _: None)
    before = list(warnings.filters)
    drive(one)
    assert one.recorded.failure == "Recording failed and was given up (RuntimeError: no CUPTI)."
    assert theirs._prepare_profiler is enable and theirs._enable_profiler is enable
    assert list(warnings.filters) == before


def test_a_signal_that_ends_the_windows_while_ours_are_at_work_leaves_no_failure(
    make: Callable[..., Windows], monkeypatch: pytest.MonkeyPatch
) -> None:
    one = make(replace(SMALL, warmup=0, bare=0))
    monkeypatch.setattr(FakeWindow, "prepare", lambda window: one.close("The program was told to end."))
    for _ in range(3):
        one.boundary()
    assert one.finished and one.recorded.failure is None
    assert one.recorded.notes == ["The program was told to end."]
    assert LOG.count("done") == 1


def test_windows_that_look_for_races_leave_no_room_for_those_of_another_phase(
    make: Callable[..., Windows], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Races:
        notes: tuple[str, ...] = ()

        def __init__(self, *parts: object) -> None:
            pass

        def open(self) -> None: ...
        def close(self) -> None: ...
        def take(self) -> tuple[()]:
            return ()

    monkeypatch.setattr(windows, "HazardWindow", Races)
    one = make(Plan(warmup=0, bare=0, steps=1, attribution=0, hazards=2))
    seen = []
    while not one.finished:
        one.boundary()
        seen.append((one.recording, one.occupied))
    assert seen[-3:] == [(False, True), (False, True), (False, False)]
    one.interrupt()
    assert one.recorded.hazard_steps == 2
