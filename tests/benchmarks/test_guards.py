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
