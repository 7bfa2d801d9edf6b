"""Which processes belong to this run: real ones, asked of Linux."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest

from syncscope.collect.process_age import since_boot
from syncscope.collect.relatives import count_children, is_of_this_run, several_ranks

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="only Linux has /proc")

RENDEZVOUS = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29511", "WORLD_SIZE": "2"}

SLEEPER = [sys.executable, "-c", "import sys; print(flush=True); sys.stdin.read()"]

ORPHAN = """
import subprocess, sys
program = "import sys; print(flush=True); sys.stdin.read()"
child = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE)
child.stdout.readline()
print(child.pid, flush=True)
"""
"""Begins a process and ends, so that nobody's child goes on."""


@contextmanager
def stranger(**variables: str) -> Iterator[int]:
    """A process that is no child of this one, with these variables besides those of here."""
    ours = {name: value for name, value in os.environ.items() if name not in RENDEZVOUS}
    with subprocess.Popen(
        [sys.executable, "-c", ORPHAN], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        env={**ours, **variables},
    ) as parent:  # fmt: skip
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        parent.wait()
        yield pid
        # Closing the pipe that it reads from ends it.


def test_children_and_parents_are_of_this_run() -> None:
    before = count_children()
    with subprocess.Popen(SLEEPER, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as child:
        assert is_of_this_run(child.pid)
        assert count_children() == before + 1
        assert child.stdin is not None
        child.stdin.close()
    assert is_of_this_run(os.getpid())
    assert is_of_this_run(os.getppid())


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_copy_made_since_then_is_no_child_that_may_use_the_gpu() -> None:
    before, now = count_children(), since_boot()
    copy = multiprocessing.get_context("fork").Process(target=time.sleep, args=(60,))
    copy.start()
    try:
        with subprocess.Popen(SLEEPER, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as child:
            assert count_children() == before + 2
            assert count_children(now - 0.1) == before + 1  # the copy is left out: the clock ticks every 10 ms
            assert count_children(since_boot() + 60) == before + 2  # it was made before
            assert child.stdin is not None
            child.stdin.close()
    finally:
        copy.kill()
        copy.join()


def test_others_are_not() -> None:
    with stranger() as pid:
        assert not is_of_this_run(pid)
        assert not is_of_this_run(2**22 + 1)  # more than there are


def test_ranks_that_meet_at_the_same_place_are(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in RENDEZVOUS.items():
        monkeypatch.setenv(name, value)
    with stranger(**RENDEZVOUS) as pid:
        assert is_of_this_run(pid)
    with stranger(**{**RENDEZVOUS, "MASTER_PORT": "29512"}) as pid:
        assert not is_of_this_run(pid)


def test_a_variable_of_the_run_tells_it_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("THE_RUN", "a7")
    with stranger(THE_RUN="a7") as pid:
        assert is_of_this_run(pid, ("THE_RUN",))
        assert not is_of_this_run(pid)
    with stranger(THE_RUN="b8") as pid:
        assert not is_of_this_run(pid, ("THE_RUN",))


def test_variables_that_nobody_set_are_equal_to_nothing() -> None:
    with stranger() as pid:
        assert not is_of_this_run(pid, ("NOBODY_SET_THIS",))


@pytest.mark.parametrize(("begun", "size", "several"), [(True, 2, True), (True, 1, False), (False, 0, False)])
def test_a_rank_that_was_launched_alone_is_none_of_several(begun: bool, size: int, several: bool) -> None:
    group = SimpleNamespace(is_available=lambda: True, is_initialized=lambda: begun, get_world_size=lambda: size)
    assert several_ranks(SimpleNamespace(distributed=group)) is several
