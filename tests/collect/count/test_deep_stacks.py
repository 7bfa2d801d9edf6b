"""What a wait costs far from the user's line is no price of other waits."""

from __future__ import annotations

import ctypes
import functools
import os
import sysconfig
from collections.abc import Callable
from typing import Any

from syncscope.collect.count.prices import measure
from syncscope.collect.sites.sync_debug import MESSAGE
from tests.collect.count.program import MODE, MS, Run, running, wait

DEPTH = 60


def deep_in_a_library(call: Callable[[], Any], depth: int = DEPTH) -> Any:
    """The result of ``call`` below so many frames of a library."""
    library: dict[str, Any] = {}
    source = "def below(call, depth):\n    return below(call, depth - 1) if depth else call()"
    exec(compile(source, os.path.join(sysconfig.get_path("purelib"), "library.py"), "exec"), library)
    return library["below"](call, depth)


def seen_ns(run: Run, depth: int) -> float:
    counter = run.counter
    measured = functools.partial(measure, counter._scratch(), counter._switch.set_mode)
    return min(deep_in_a_library(measured, depth).seen for _ in range(5))


def test_prices_are_the_same_deep_in_a_library() -> None:
    with running() as run:
        assert seen_ns(run, DEPTH) < 3 * seen_ns(run, 0)


def read() -> None:
    """A wait in a line of the user's."""
    if MODE[0]:
        ctypes.pythonapi.PyErr_WarnEx(ctypes.py_object(UserWarning), MESSAGE.encode(), 1)


def coldness(far: int) -> float:
    """After waits in a line of the user's, and so many below a library's frames each."""
    with running(prices=None) as run:
        run.now += 10_000 * MS
        for _ in range(100):
            read()
            for _ in range(far):
                deep_in_a_library(wait)
        run.step()
        assert sum(each.count for each in run.counter.waits()) == 100 * (1 + far)
        return run.counter.coldness


def test_waits_far_from_the_users_line_do_not_make_others_look_dear() -> None:
    near, far = (min(coldness(number) for _ in range(3)) for number in (0, 3))
    assert far < 2.5 * near
