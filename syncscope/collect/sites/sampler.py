"""Sample the lines at which a thread of the program is, while another thing is recorded."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator

from syncscope.collect.background import Background
from syncscope.collect.sites.stacks import Stacks
from syncscope.collect.sites.threads import current_frames
from syncscope.schema.recording import HostSample

LEAST_STEP_NS = 20_000_000
"""Shorter steps are not sampled: what the host does in them is launching, mostly, and a sample is dear."""

LEAST_PERIOD_NS = 10_000_000
SAMPLES_A_STEP = 20

MOST_SHARE = 0.02
"""Of the time that the sampling thread may run. On a busy host a sample takes 0.1 ms and more of a processor, and five
steps of 25 ms are over in an eighth of a second. How long steps take is told by those that are not recorded."""


class HostSampler:
    """Samples the stack of the thread ``ident``.

    A sample comes when Python lets another thread run: at once where the host is in code that lets it, else up to 5 ms
    later, or once such code returns. Then the line is still the one that called it.
    """

    def __init__(self, stacks: Stacks) -> None:
        self._stacks = stacks
        self._ident = 0
        self._taken: list[tuple[int, int]] = []

    @contextlib.contextmanager
    def sampling(self, ident: int, step_ns: float) -> Iterator[None]:
        """Sample meanwhile, a few times in each step that takes ``step_ns``; not at all where that is short, or no
        thread can be started."""
        background = None
        if step_ns >= LEAST_STEP_NS:
            self._ident = ident
            seconds = max(step_ns / SAMPLES_A_STEP, LEAST_PERIOD_NS) / 1e9
            background = Background(seconds, self._sample, MOST_SHARE)
            try:
                background.open()
            except RuntimeError:
                background = None
        try:
            yield
        finally:
            if background is not None:
                background.close()

    def take(self) -> tuple[HostSample, ...]:
        """The samples since the last ``take``."""
        taken, self._taken = self._taken, []
        return tuple(HostSample(at_ns=at, stack=stack) for at, stack in taken)

    def _sample(self) -> None:
        frame = current_frames().get(self._ident)
        if frame is not None:
            self._taken.append((time.time_ns(), self._stacks.take_of_another_thread(frame)))
