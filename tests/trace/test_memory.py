"""What is asked of the C library, and that another one is left alone."""

from __future__ import annotations

import ctypes
from types import SimpleNamespace

import pytest

from syncscope.trace.memory import give_back_freed, keep_freed


def test_glibc_is_asked_to_keep_large_arrays_in_one_pool(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: dict[int, int] = {}
    monkeypatch.setattr(ctypes, "CDLL", lambda _: SimpleNamespace(mallopt=asked.__setitem__))
    keep_freed()
    assert asked == {-3: 1 << 30, -1: 1 << 30, -8: 1}


@pytest.mark.parametrize("work", [give_back_freed, keep_freed])
def test_another_c_library_is_left_alone(work, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ctypes, "CDLL", lambda _: SimpleNamespace())
    work()

    def fail(_: object) -> object:
        raise OSError("no library of the process")

    monkeypatch.setattr(ctypes, "CDLL", fail)
    work()
