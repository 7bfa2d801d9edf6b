from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator

import pytest

from syncscope.collect.watch.on_signal import OnSignal, signal_number

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX signals")


@pytest.fixture(autouse=True)
def untouched() -> Iterator[None]:
    yield
    signal.signal(signal.SIGUSR1, signal.SIG_DFL)


def test_the_signal_calls() -> None:
    calls: list[int] = []
    asked = OnSignal(signal.SIGUSR1, lambda: calls.append(1))
    assert asked.open() is None
    os.kill(os.getpid(), signal.SIGUSR1)
    assert calls == [1]
    asked.close()
    assert signal.getsignal(signal.SIGUSR1) is signal.SIG_DFL


def test_a_handler_of_the_program_is_not_replaced() -> None:
    def own(number: int, frame: object) -> None:
        pass

    signal.signal(signal.SIGUSR1, own)
    asked = OnSignal(signal.SIGUSR1, lambda: None)
    assert asked.open() == "SIGUSR1 asks for no report: the program has a handler for it"
    asked.close()
    assert signal.getsignal(signal.SIGUSR1) is own


def test_a_handler_that_the_program_sets_later_takes_the_place_of_ours() -> None:
    asked = OnSignal(signal.SIGUSR1, lambda: None)
    asked.open()
    assert not asked.given_way
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    assert asked.given_way
    asked.close()
    assert signal.getsignal(signal.SIGUSR1) is signal.SIG_IGN


@pytest.mark.parametrize("name", ["USR1", "usr1", "SIGUSR1"])
def test_a_signal_goes_by_its_name(name: str) -> None:
    assert signal_number(name) == signal.SIGUSR1


@pytest.mark.parametrize("name", ["KILL", "SIGTERM", "INT", "PIPE", "TSTP", "nonsense", "", "_IGN"])
def test_signals_with_a_meaning_of_their_own_are_refused(name: str) -> None:
    with pytest.raises(ValueError):
        signal_number(name)
