"""The host's line is sampled from a thread that the program does not see, while it makes long steps."""

from __future__ import annotations

import sys
import threading
import time
from pathlib import Path

import pytest

from syncscope.collect.background import Background
from syncscope.collect.paths import Paths
from syncscope.collect.sites.sampler import LEAST_STEP_NS, HostSampler
from syncscope.collect.sites.stacks import Stacks
from syncscope.schema.recording import HostSample

LONG_NS, PATIENCE = 200e6, 20.0


def work(sampler: HostSampler, samples: int) -> None:
    until = time.monotonic() + PATIENCE
    while len(sampler._taken) < samples and time.monotonic() < until:
        sum(range(1000))


def sleep(sampler: HostSampler, samples: int) -> None:
    until = time.monotonic() + PATIENCE
    while len(sampler._taken) < samples and time.monotonic() < until:
        time.sleep(0.001)


def sample(stacks: Stacks, run: object = work, step_ns: float = LONG_NS) -> tuple[HostSample, ...]:
    sampler = HostSampler(stacks)
    with sampler.sampling(threading.get_ident(), step_ns):
        assert callable(run)
        run(sampler, 3)
    return sampler.take()


@pytest.mark.parametrize("run", [work, sleep])
def test_samples_have_the_lines_at_which_the_thread_is(run: object) -> None:
    stacks = Stacks(Paths(Path(__file__).parent))
    samples = sample(stacks, run)
    assert len(samples) >= 3 and [one.at_ns for one in samples] == sorted(one.at_ns for one in samples)
    frames, known = stacks.resolve()
    inner = [[frames[number] for number in known[one.stack]] for one in samples]
    assert all(any(frame.function == getattr(run, "__name__", "") and frame.user for frame in one) for one in inner)


def test_short_steps_are_not_sampled() -> None:
    sampler = HostSampler(Stacks(Paths(Path(__file__).parent)))
    with sampler.sampling(threading.get_ident(), LEAST_STEP_NS - 1):
        time.sleep(0.05)
    assert sampler.take() == ()


def test_the_program_does_not_see_the_thread_and_it_ends() -> None:
    before = threading.enumerate()
    sampler = HostSampler(Stacks(Paths(Path(__file__).parent)))
    with sampler.sampling(threading.get_ident(), LONG_NS):
        work(sampler, 2)
        assert threading.enumerate() == before
    sampler.take()
    time.sleep(0.05)
    assert sampler.take() == ()


def test_nothing_is_sampled_where_there_can_be_no_more_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    def none_left(self: object) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(Background, "open", none_left)
    sampler = HostSampler(Stacks(Paths(Path(__file__).parent)))
    with sampler.sampling(threading.get_ident(), LONG_NS):
        pass
    assert sampler.take() == ()


def test_a_sampled_stack_is_never_taken_for_one_of_a_wait() -> None:
    """It may be read while its thread runs on, so that its frames need not have been there together."""
    stacks = Stacks(Paths(Path(__file__).parent))
    sampled = {one.stack for one in sample(stacks)}
    frame = sys._getframe()
    assert stacks.find(frame) == -1 and stacks.take(frame) not in sampled
