"""One process becomes one trace file, with a profiler and a GPU that are made up."""

from __future__ import annotations

import gzip
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from syncscope.collect import windows
from syncscope.collect.collector import Collector
from syncscope.collect.files import FileNames
from syncscope.collect.paths import Paths
from syncscope.collect.plan import Plan
from syncscope.schema.recording import Recording
from tests.builders import TraceBuilder, epoch_ns

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

    def __init__(self, torch: Any, *, cpu: bool, on_foreign: Callable[[], None], last: bool = True) -> None:
        self._cpu = cpu
        self._torch = torch

    def prepare(self) -> None:
        pass

    def start(self) -> None:
        pass

    def step(self, number: int) -> Any:
        return self._torch.nothing

    def stop(self) -> bytes | None:
        if self._cpu and FakeWindow.broken:
            return b'{"traceEvents": 7}'
        document = trace(ops=self._cpu).document()
        del document["syncscope"]
        return msgspec.json.encode(document)


class FakeRecorder:
    missing: tuple[str, ...] = ()

    def __init__(self, torch: Any, stacks: Any, threads: Any) -> None:
        self._stacks = stacks

    def open(self) -> None:
        self._stacks.take(sys._getframe())

    def close(self) -> None:
        pass

    def take(self) -> Any:
        return trace(ops=True).recorded().sites


class Nothing:
    def __enter__(self) -> None:
        pass

    def __exit__(self, *error: object) -> None:
        pass


def fake_torch() -> Any:
    cuda = SimpleNamespace(is_initialized=lambda: True, get_device_name=lambda: "H200", current_device=lambda: 0)
    native = SimpleNamespace(_autograd=SimpleNamespace(_profiler_enabled=lambda: False), _cuda_synchronize=lambda: None)
    return SimpleNamespace(__version__="2.11", cuda=cuda, _C=native, nothing=Nothing())


@pytest.fixture
def collect(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Collector]:
    """Record a program of ``steps`` steps."""
    monkeypatch.setattr(windows, "KinetoWindow", FakeWindow)
    monkeypatch.setattr(windows, "SiteRecorder", FakeRecorder)
    clock = iter((0, 100, 200, 200, 0, 100, 100))  # begin, ends of steps and idle device, of either window
    fake_time = SimpleNamespace(time_ns=lambda: epoch_ns(next(clock)), sleep=lambda seconds: None)
    monkeypatch.setattr("syncscope.collect.windows.time", fake_time)
    monkeypatch.setattr(FakeWindow, "broken", False)
    monkeypatch.setitem(sys.modules, "torch", fake_torch())

    def run(plan: Plan, steps: int) -> Collector:
        collector = Collector(FileNames(tmp_path), plan, Paths(tmp_path))
        collector.step()
        collector.open()
        for _ in range(steps):
            collector.step()
        collector.close()
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


def test_a_program_with_too_few_steps_leaves_no_file(collect: Callable[..., Collector]) -> None:
    collector = collect(PLAN, 2)
    assert collector.path is None
    assert [note.partition(":")[0] for note in collector.notes] == ["The program made too few steps"]
