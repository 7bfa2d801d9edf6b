"""Windows that fail leave the program as it was."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from syncscope.collect.paths import Paths
from syncscope.collect.plan import Plan
from syncscope.collect.sites.stacks import Stacks
from syncscope.collect.sites.threads import Threads
from syncscope.collect.windows import Windows
from tests.collect.windows.doubles import LOG, SMALL, FakeWindow, Torch, drive


def test_a_profiler_that_fails_does_not_fail_the_program(
    make: Callable[[Plan], Windows], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(FakeWindow, "broken", True)
    one = make(SMALL)
    drive(one)
    assert one.recorded.failure == "Recording failed and was given up (RuntimeError: no CUPTI)."
    assert LOG[-1] == "done"


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


def test_nothing_is_begun_or_ended_while_the_program_captures_a_graph(make: Callable[..., Windows]) -> None:
    """A wait of ours would end the capture, and with it the program."""
    torch, capturing = Torch(), [False]
    torch.cuda.is_current_stream_capturing = staticmethod(lambda: capturing[0])  # type: ignore[attr-defined]
    one = make(Plan(warmup=0, settle=0, bare=2, steps=2, attribution=0), torch=torch)
    for number in range(1, 30):
        before, capturing[0] = list(LOG), number % 2 == 0
        one.boundary()
        one.interrupt()
        assert not capturing[0] or before == LOG
    assert one.finished and one.recorded.timed is not None and one.recorded.bare is not None
