"""What the table of guards says of a check, and where it is written."""

from __future__ import annotations

import contextlib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

torch: Any = pytest.importorskip("torch", reason="the benchmark guards PyTorch programs")

from benchmarks import guards  # noqa: E402
from fixtures import waits  # noqa: E402


@pytest.fixture
def pending(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether the kernel in front of a wait has ended."""
    ended = [False]
    cuda = torch.cuda
    monkeypatch.setattr(cuda, "synchronize", lambda: ended.__setitem__(0, True))
    monkeypatch.setattr(cuda, "_sleep", lambda cycles: ended.__setitem__(0, False))
    monkeypatch.setattr(cuda, "current_stream", lambda: SimpleNamespace(query=lambda: ended[0]))
    return ended


def check(armed: Any) -> guards.Check:
    return guards.Check("theirs", armed, None)


def raises() -> None:
    raise RuntimeError("a wait")


@pytest.mark.usefixtures("pending")
def test_a_check_that_raises_before_the_wait_is_told_from_one_that_does_after(pending: list[bool]) -> None:
    def after() -> None:
        torch.cuda.synchronize()
        raises()

    armed = check(contextlib.nullcontext)
    assert (guards.look(armed, raises).before, guards.look(armed, after).before) == (True, False)
    assert guards.look(armed, lambda: None) == guards.Outcome(False)


@pytest.mark.usefixtures("pending")
def test_the_line_is_that_of_the_function_that_waits_also_on_another_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waits, "__file__", __file__)
    run = lambda: waits.on_another_thread(lambda: raises())  # noqa: E731
    found = guards.look(check(contextlib.nullcontext), run)
    assert found.raised and found.line == raises.__code__.co_firstlineno + 1
    assert guards.line_of(run) == run.__code__.co_firstlineno


@pytest.mark.parametrize(
    ("outcome", "text"),
    [
        (guards.Outcome(False), "**missed**"),
        (guards.Outcome(True, True, 7), "before"),
        (guards.Outcome(True, False, 9), "after, line 9"),
        (guards.Outcome(True, False, None), "after, at the caller's line"),
        (guards.Outcome(True, asserted=True), "at the end of the block"),
    ],
)
def test_an_outcome_is_a_few_words(outcome: guards.Outcome, text: str) -> None:
    assert outcome.text(7) == text


def test_tables_are_written_between_their_marks(tmp_path: Path) -> None:
    page = tmp_path / "guard.md"
    page.write_text("before\n<a>\nold\n<b>\nafter\n")
    for _ in range(2):
        guards.write(page, ("<a>", "<b>"), ["| new |"])
    assert page.read_text() == "before\n<a>\n| new |\n<b>\nafter\n"


THEIRS = """
import faulthandler
from contextlib import contextmanager
from dataclasses import dataclass

import a_module_that_is_not_here

LOADED = a_module_that_is_not_here.load()


@dataclass(kw_only=True)
class DeviceSleepCtl:
    cancelled: bool = False


@hostfunc
def device_sleep(duration_s, *, ctl, spin_s=0.1): ...


@contextmanager
def assert_no_cuda_sync(sync_timeout_s=5):
    faulthandler.dump_traceback_later(sync_timeout_s)
    device_sleep(2 * sync_timeout_s, ctl=DeviceSleepCtl())
    yield None
    assert not torch.cuda.current_stream().query(), "sync code should return quickly"
    faulthandler.cancel_dump_traceback_later()
"""


def test_a_check_by_time_runs_without_what_its_file_imports(
    pending: list[bool], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guards, "kernel_cycles_per_s", lambda: 1e9)
    (tmp_path / "util.py").write_text(THEIRS)
    theirs = guards.load_tensorrt_llm(tmp_path / "util.py")
    assert guards.look(theirs, lambda: torch.cuda.synchronize()).text(0) == "at the end of the block"
    assert guards.look(theirs, raises).text(raises.__code__.co_firstlineno + 1).startswith("before")
    assert guards.look(theirs, lambda: None) == guards.Outcome(False)


def test_a_check_that_always_raises_has_no_table(pending: list[bool], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waits, "make_kinds", lambda torch: {"a read": raises})
    monkeypatch.setattr(waits, "make_harmless", lambda torch: {"a kernel": lambda: None})
    assert any("a read" in line for line in guards.table([check(contextlib.nullcontext)]))
    always = guards.Check("jumpy", contextlib.nullcontext, None)
    monkeypatch.setattr(waits, "make_harmless", lambda torch: {"a kernel": raises})
    with pytest.raises(SystemExit, match="jumpy: a kernel"):
        guards.table([always])
