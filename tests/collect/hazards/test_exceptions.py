"""The exceptions of a program are its own: during a window that looks for races and after it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="races are looked for in PyTorch programs")

import syncscope  # noqa: E402
from tests.collect.hazards.exceptions import CASES, outcome  # noqa: E402
from tests.collect.hazards.fake import Bench  # noqa: E402


def make() -> Any:
    return torch.ones(8)


def in_words(found: Any) -> str:
    return json.dumps(found, indent=1, default=str)


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Bench:
    """A window for which every tensor is on the device, and is freed like one."""
    bench = Bench()
    monkeypatch.setattr(bench.runtime, "side", lambda tensor: "device")
    return bench


@pytest.mark.parametrize("thread", [False, True], ids=["main", "other"])
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_an_exception_arrives_as_it_does_without_us(bench: Bench, case: Callable[..., Any], thread: bool) -> None:
    plain = outcome(case, make, thread=thread)
    with bench:
        during = outcome(case, make, thread=thread)
    after = outcome(case, make, thread=thread)
    assert in_words(during) == in_words(plain)
    assert in_words(after) == in_words(plain)
    assert bench.hazards.notes == []


def test_an_exception_that_leaves_the_window_arrives_too(bench: Bench) -> None:
    for name, case in CASES.items():
        plain = outcome(case, make)

        def inside(make: Callable[[], Any], case: Callable[..., Any] = case) -> Any:
            with Bench():
                return case(make)

        assert in_words(outcome(inside, make)) == in_words(plain), name


def test_pytorchs_gpu_trace_is_never_used() -> None:
    """It calls Python where an exception may be on its way, which replaces the exception, and it stays on for ever.
    Importing ``torch.cuda._sanitizer`` switches it on as well."""
    root = Path(syncscope.__file__).parent
    for file in root.rglob("*.py"):
        text = file.read_text()
        assert "_activate_gpu_trace" not in text, file
        assert not [line for line in text.splitlines() if "import" in line and "_sanitizer" in line], file
        assert "import _gpu_trace" not in text, file
