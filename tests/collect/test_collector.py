"""One process becomes one trace file, with a profiler and a GPU that are made up."""

from __future__ import annotations

import contextlib
import gzip
import importlib
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from syncscope.collect import windows
from syncscope.collect.collector import Collector
from syncscope.collect.count.counter import Counter
from syncscope.collect.files import FileNames
from syncscope.collect.paths import Paths
from syncscope.collect.plan import Plan
from syncscope.collect.sites.sync_debug import sync_debug_mode
from syncscope.schema.recording import Recording
from tests.builders import TraceBuilder, epoch_ns

STANDIN = Path(__file__).parent / "life" / "standin"
WAIT = ("train.py", 7, "train", "loss.item()")
PLAN = Plan(warmup=0, bare=0, steps=2, attribution=1)


def trace(*, ops: bool) -> TraceBuilder:
    """One step of 100 µs that reads a value."""
    builder = TraceBuilder().warning(60, WAIT).copy("DtoH", call=(12, 3), runs=(20, 5), memory="pinned", bytes=4)
    builder.stream_sync(16, 40)
    return builder.op("aten::item", 10, 60) if ops else builder


class FakeWindow:
    """Stands where torch.profiler would."""

    broken = False
    ready_at = 0.0

    def __init__(self, torch: Any, *, cpu: bool, on_foreign: Callable[[], None]) -> None:
        self._cpu = cpu
        self._torch = torch

    def prepare(self) -> None:
        pass

    def start(self) -> None:
        pass

    def step(self, number: int) -> Any:
        return contextlib.nullcontext()

    def stop(self, *, detach: bool) -> bytes | None:
        if self._cpu and FakeWindow.broken:
            return b'{"traceEvents": 7}'
        document = trace(ops=self._cpu).document()
        del document["syncscope"]
        return msgspec.json.encode(document)


class FakeRecorder:
    missing: tuple[str, ...] = ()

    def __init__(self, torch: Any, stacks: Any, threads: Any, hears_copies: bool) -> None:
        self._stacks = stacks
        self._warm = False

    def open(self) -> None:
        self._stacks.take(sys._getframe())

    def close(self) -> None:
        pass

    def take(self) -> Any:
        if not self._warm:  # the step before the window: nothing waits in it
            self._warm = True
            return ()
        return trace(ops=True).recorded().sites


@pytest.fixture
def torch(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The PyTorch that the programs of ``tests/collect/life`` run with."""
    for name in loaded():
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.syspath_prepend(str(STANDIN))
    yield importlib.import_module("torch")
    for name in loaded():
        del sys.modules[name]


def loaded() -> list[str]:
    return [name for name in sys.modules if name.partition(".")[0] == "torch"]


@pytest.fixture
def collect(tmp_path: Path, torch: Any, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Collector]:
    """Record a program of ``steps`` steps."""
    monkeypatch.setattr(windows, "KinetoWindow", FakeWindow)
    monkeypatch.setattr(windows, "SiteRecorder", FakeRecorder)
    # Of either window: ready, begin, the ends of its steps, and the device is idle.
    clock = iter((0, 0, 100, 200, 200, 0, 0, 100, 100))
    fake_time = SimpleNamespace(
        time_ns=lambda: epoch_ns(next(clock)), sleep=lambda seconds: None, monotonic=lambda: 1.0,
        perf_counter_ns=lambda: 0,
    )  # fmt: skip
    monkeypatch.setattr("syncscope.collect.windows.time", fake_time)
    monkeypatch.setattr(FakeWindow, "broken", False)

    def run(plan: Plan, steps: int, use: Callable[[Any], object] = lambda torch: torch.cuda.init()) -> Collector:
        collector = Collector(FileNames(tmp_path), plan, Paths(tmp_path))
        collector.step()
        collector.open()
        use(torch)
        for _ in range(steps):
            collector.step()
        collector.close()
        assert not torch.HOOKS and not set(sync_debug_mode.filters) & set(warnings.filters)
        return collector

    return run


def written(collector: Collector) -> Recording:
    assert collector.path is not None
    document = msgspec.json.decode(gzip.decompress(collector.path.read_bytes()))
    return msgspec.convert(document["syncscope"], Recording)


def test_the_ops_of_the_attribution_window_become_a_table(collect: Callable[..., Collector]) -> None:
    collector = collect(PLAN, 9)
    assert collector.notes == []
    recording = written(collector)
    assert (recording.mode, recording.steps.source, len(recording.steps.boundaries_ns)) == ("windows", "user", 3)
    assert recording.attribution is not None
    assert [(row.stack, row.ordinal, row.ops) for row in recording.attribution] == [(0, 0, ("aten::item",))]


def test_a_program_that_ends_before_the_attribution_window_says_so(collect: Callable[..., Collector]) -> None:
    recording = written(collect(PLAN, 4))
    assert recording.attribution is None
    assert recording.notes[0] == "The program ended before its windows were over."
    assert recording.notes[1].startswith("The program ended before its ops were recorded")


def test_an_attribution_window_that_cannot_be_read_is_a_note(
    collect: Callable[..., Collector], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(FakeWindow, "broken", True)
    recording = written(collect(PLAN, 9))
    assert recording.attribution is None
    assert [note.partition(" (")[0] for note in recording.notes] == [
        "The window that recorded the ops could not be read"
    ]


def slowly(
    folder: Path, torch: Any, monkeypatch: pytest.MonkeyPatch, plan: Plan, steps: int, seconds: float
) -> Recording:
    """The recording of a program whose steps last for so long by the real clock."""
    monkeypatch.setattr(windows, "KinetoWindow", FakeWindow)
    monkeypatch.setattr(windows, "SiteRecorder", FakeRecorder)
    monkeypatch.setattr(FakeWindow, "broken", False)
    collector = Collector(FileNames(folder), plan, Paths(folder))
    collector.open()
    torch.cuda.init()
    for _ in range(steps):
        time.sleep(seconds)
        collector.step()
    collector.close()
    return written(collector)


def test_bare_steps_timed_after_the_windows_replace_those_before_them(
    tmp_path: Path, torch: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    plan = replace(PLAN, bare=2, settle=0, bare_seconds=5.0)
    recording = slowly(tmp_path, torch, monkeypatch, plan, 300, 0.001)
    assert recording.bare is not None and len(recording.bare.steps_ns) > 2
    assert recording.gpu is not None and "syncscope[nvml]" in (recording.gpu.missing or "")


def test_the_host_is_sampled_in_the_timed_window_of_long_steps(
    tmp_path: Path, torch: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    recording = slowly(tmp_path, torch, monkeypatch, replace(PLAN, warmup=0, bare=2, settle=0), 12, 0.03)
    assert recording.samples
    assert all(one.at_ns >= recording.steps.boundaries_ns[0] for one in recording.samples)
    for one in recording.samples:
        functions = {recording.frames[number].function for number in recording.stacks[one.stack]}
        assert "slowly" in functions


def test_a_program_with_too_few_steps_for_a_window_leaves_its_count(collect: Callable[..., Collector]) -> None:
    collector = collect(PLAN, 2)
    recording = written(collector)
    assert (recording.phase, recording.steps.boundaries_ns, recording.sites) == (None, (), ())
    assert recording.run is not None and recording.run.complete and recording.run.counted and recording.run.main
    assert [(phase.kind, phase.steps, phase.recorded) for phase in recording.run.phases] == [
        ("start", 0, False),
        ("other", 2, False),
    ]
    assert collector.notes == ["The program ended before its windows were over."]


def test_the_whole_run_is_counted_beside_the_windows(collect: Callable[..., Collector]) -> None:
    run = written(collect(PLAN, 9)).run
    assert run is not None and run.counted
    phase = run.phases[1]
    assert (phase.kind, phase.source, phase.steps, phase.counted_steps, phase.recorded) == ("other", "user", 9, 9, True)
    assert [(wait.phase, wait.stack, wait.count) for wait in run.waits] == [(1, 0, 2)]  # one in each window


def test_without_the_count_phases_are_told_apart_all_the_same(collect: Callable[..., Collector]) -> None:
    run = written(collect(replace(PLAN, count=False), 9)).run
    assert run is not None and not run.counted and run.waits == ()
    assert [(phase.kind, phase.steps) for phase in run.phases] == [("start", 0), ("other", 9)]


def test_a_program_that_uses_the_gpu_only_in_passing_leaves_no_file(
    collect: Callable[..., Collector], tmp_path: Path
) -> None:
    collector = collect(PLAN, 0)
    assert collector.path is None and list(tmp_path.iterdir()) == []
    assert [note.partition(",")[0] for note in collector.notes] == ["No step was seen"]


def test_a_program_that_never_uses_cuda_leaves_no_file(collect: Callable[..., Collector], tmp_path: Path) -> None:
    collector = collect(PLAN, 9, use=lambda torch: None)
    assert collector.path is None and list(tmp_path.iterdir()) == []
    assert collector.notes == ["The program never used CUDA."]


def test_a_program_that_waits_in_no_step_leaves_its_count(collect: Callable[..., Collector]) -> None:
    def wait(torch: Any) -> None:
        torch.cuda.init()
        torch.cuda.synchronize()

    recording = written(collect(PLAN, 0, use=wait))
    assert recording.run is not None
    assert [(wait.phase, wait.name, wait.count) for wait in recording.run.waits] == [(0, "torch.cuda.synchronize", 1)]


def test_a_run_that_waits_and_has_no_steps_says_why(
    collect: Callable[..., Collector], monkeypatch: pytest.MonkeyPatch
) -> None:
    def wait(torch: Any) -> None:
        torch.cuda.init()
        torch.cuda.synchronize()

    assert not collect(PLAN, 0, use=wait).notes  # it was short
    monkeypatch.setattr("syncscope.collect.counting.LONG_NS", 0)
    (note,) = collect(PLAN, 0, use=wait).notes
    assert note.startswith("No steps were seen: ") and "syncscope.step()" in note
    assert ("from Python 3.12 on" in note) == (sys.version_info < (3, 12))


def test_a_recording_that_cannot_be_written_says_so_and_nothing_else(
    collect: Callable[..., Collector], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.replace", lambda *given: (_ for _ in ()).throw(OSError("disk full")))
    collector = collect(PLAN, 9)
    assert collector.path is None and list(tmp_path.iterdir()) == []
    assert [note.partition(" (")[0] for note in collector.notes] == [
        "The recording of other could not be written",
        f"{tmp_path}: the recording could not be written",
    ]


def test_a_process_that_can_have_no_more_threads_goes_on(
    collect: Callable[..., Collector], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr("syncscope.collect.background._thread.start_new_thread", refuse)
    collector = collect(PLAN, 9)
    assert collector.path is not None
    assert "Nothing was written before the end of the program (can't start new thread)." in collector.notes


def test_one_part_that_does_not_end_keeps_no_other_from_ending(
    collect: Callable[..., Collector], monkeypatch: pytest.MonkeyPatch
) -> None:
    close = Counter.close

    def fail(counter: Counter) -> None:
        close(counter)
        raise ValueError("ours")

    monkeypatch.setattr(Counter, "close", fail)
    collector = collect(PLAN, 9)
    assert "Not all could be ended as planned (ValueError: ours)." in collector.notes
    assert collector.path is not None and collector._count.signals is not None
    assert not collector._count.signals._watching


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_two_that_overlap_in_a_program_that_uses_cuda_already_both_count_and_leave_nothing(
    torch: Any, tmp_path: Path, order: tuple[int, int]
) -> None:
    torch.cuda.init()
    owners = (torch.Tensor, torch.nn.Module, torch._C, torch, torch.cuda.Event)
    before = [dict(vars(owner)) for owner in owners]
    plan = Plan(warmup=99)
    collectors = [Collector(FileNames(tmp_path / str(number)), plan, Paths(tmp_path)) for number in range(2)]
    for collector in collectors:
        collector.open()
    for collector in (collectors[number] for number in order):
        for each in collectors:
            each.step()
        collector.close()
    assert [sum(phase.steps for phase in counted(one).phases) for one in collectors] == [
        order.index(0) + 1,
        order.index(1) + 1,
    ]
    assert [dict(vars(owner)) for owner in owners] == before
    assert not torch.HOOKS and not set(sync_debug_mode.filters) & set(warnings.filters)


def counted(collector: Collector) -> Any:
    return written(collector).run
