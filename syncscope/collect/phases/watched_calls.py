"""Hear of some calls of PyTorch's on the thread whose phases are told: what all who do have in common."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from syncscope.collect.patching import Patches
from syncscope.collect.phases.thread import FollowedThread
from syncscope.collect.phases.tracker import PhaseTracker


class WatchedCalls:
    """Tells ``tracker`` of calls on the thread that is ``followed``, and ``failed`` of errors of ours."""

    def __init__(self, tracker: PhaseTracker, followed: FollowedThread, failed: Callable[[Exception], object]) -> None:
        self._tracker = tracker
        self._followed = followed
        self._failed = failed
        self._watching = False
        self._patches = Patches()

    def open(self, torch: Any) -> None:
        self._watching = True
        self._patches = Patches(torch)

    def close(self) -> None:
        """Does nothing the second time."""
        self.forget()
        self._patches.restore()

    def forget(self) -> None:
        """Stop telling the tracker, in a forked child for instance."""
        self._watching = False
