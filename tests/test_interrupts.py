"""Ctrl-C ends our commands, but not in the midst of an import, whose lock it would leave taken."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from typing import Any

import pytest

from syncscope.interrupts import Terminated, as_python_does, heed, interrupt, terminate


@pytest.fixture(autouse=True)
def handler() -> Iterator[None]:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    heed()
    yield
    signal.signal(signal.SIGINT, before)


def interrupted_import() -> None:
    """Be interrupted as if in the code of Python's own import."""
    names: dict[str, Any] = {}
    source = "def load(interrupt, number):\n    interrupt(number)\n    for _ in range(1000):\n        pass"
    exec(compile(source, "<frozen importlib._bootstrap>", "exec"), names)
    names["load"](signal.raise_signal, signal.SIGINT)


def wait() -> None:
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        time.sleep(0.001)


def test_an_interrupt_in_an_import_comes_after_it() -> None:
    done: list[str] = []

    def imports_and_goes_on() -> None:
        interrupted_import()
        done.append("import")
        wait()

    with pytest.raises(KeyboardInterrupt):
        imports_and_goes_on()
    assert done == ["import"]


def test_an_interrupt_elsewhere_comes_at_once() -> None:
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)


def test_a_program_finds_pythons_own_handler() -> None:
    with as_python_does():
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert signal.getsignal(signal.SIGINT) is interrupt


@pytest.mark.parametrize("theirs", [signal.SIG_IGN, signal.SIG_DFL, print])
def test_what_somebody_set_stays(theirs: Any) -> None:
    with as_python_does():
        signal.signal(signal.SIGINT, theirs)
    heed()
    assert signal.getsignal(signal.SIGINT) is theirs


def test_sigterm_is_an_exception_that_lets_what_is_being_written_be_taken_back() -> None:
    before = signal.signal(signal.SIGTERM, terminate)
    try:
        with pytest.raises(Terminated):
            signal.raise_signal(signal.SIGTERM)
    finally:
        signal.signal(signal.SIGTERM, before)
