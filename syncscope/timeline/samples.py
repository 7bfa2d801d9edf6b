"""The samples that a recording of ours has of its timed steps: at which line the host was, every so often."""

from __future__ import annotations

import numpy as np

from syncscope.schema.recording import Recording
from syncscope.timeline.intervals import Ints
from syncscope.timeline.tables import Bubbles


class Samples:
    """Arrays (n,) of samples in the order of time."""

    def __init__(self, recording: Recording | None, base_ns: int) -> None:
        taken = recording.samples if recording is not None else ()
        self.at: Ints = np.array([one.at_ns - base_ns for one in taken], dtype=np.int64)
        """ns since ``base_ns``."""
        self.stack: Ints = np.array([one.stack for one in taken], dtype=np.int64)
        """Numbers of stacks of the recording."""
        since = np.diff(self.at)
        usual = np.median(since) if len(since) else 0
        self.weight: Ints = np.concatenate(([usual], since))[: len(taken)].astype(np.int64)
        """ns for which each stands: those since the one before."""

    def __len__(self) -> int:
        return len(self.at)

    def due_to(self, bubbles: Bubbles, causes: tuple[str, ...]) -> Ints:
        """ns (n,) for which each sample stands while the device is idle for ``causes``."""
        due = np.sum([bubbles.due_to(cause) for cause in causes], axis=0)
        if not len(bubbles) or not len(self):
            return np.zeros(len(self), dtype=np.int64)
        order = np.argsort(bubbles.ts, kind="stable")
        bubble = order[np.maximum(np.searchsorted(bubbles.ts[order], self.at, side="right") - 1, 0)]
        inside = (bubbles.ts[bubble] <= self.at) & (self.at < bubbles.end[bubble])
        share = due[bubble] / np.maximum(bubbles.dur[bubble], 1)
        since = np.minimum(self.weight, self.at - bubbles.ts[bubble])
        return np.where(inside, share * since, 0).astype(np.int64)
