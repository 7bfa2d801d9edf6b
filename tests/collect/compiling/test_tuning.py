"""The first run of a kernel that tunes it is part of what was compiled; Inductor's module is a stand-in."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import pytest

from syncscope.collect.compiling.tuning import KERNELS
from tests.collect.compiling.test_watch import Watched, compiled, programs, torch, watched  # noqa: F401


class CachingAutotuner:
    def __init__(self, look: Any) -> None:
        self._look = look

    def autotune_to_one_config(self, *args: Any, stream: Any) -> str:
        self._look()
        return f"tuned for {args}, {stream}"


@pytest.fixture
def tuner(monkeypatch: pytest.MonkeyPatch) -> type[CachingAutotuner]:
    class Tuner(CachingAutotuner):
        pass

    Tuner.autotune_to_one_config = CachingAutotuner.autotune_to_one_config  # type: ignore[method-assign]
    module = ModuleType(KERNELS)
    module.CachingAutotuner = Tuner  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, KERNELS, module)
    return Tuner


def test_tuning_is_compiling_and_in_its_time(tuner: Any, watched: Watched, programs: Any) -> None:  # noqa: F811
    at_work: list[bool] = []
    compiled(programs.whole)(torch.ones(4))
    (event,) = watched.events("compile")
    before, times = event.time_ns or 0, watched.watch.log.compilations
    kernel = tuner(lambda: at_work.append(watched.watch.is_at_work()))
    assert kernel.autotune_to_one_config(1, stream=0) == "tuned for (1,), 0"
    assert (at_work, watched.watch.is_at_work()) == ([True], False)
    (event,) = watched.events("compile")
    assert (event.time_ns or 0) > before
    assert watched.watch.log.compilations == times + 1


def test_what_fails_while_it_is_tuned_fails_as_it_does_alone(tuner: Any, watched: Watched) -> None:  # noqa: F811
    def fail() -> None:
        raise RuntimeError("out of resources")

    with pytest.raises(RuntimeError, match="out of resources"):
        tuner(fail).autotune_to_one_config(1, stream=0)
    assert not watched.watch.is_at_work()


def test_nothing_stays_behind(tuner: Any, watched: Watched) -> None:  # noqa: F811
    replaced = vars(tuner)["autotune_to_one_config"]
    watched.watch.close()
    assert vars(tuner)["autotune_to_one_config"] is not replaced
