"""Bubbles: when the device had nothing to run, and why.

A bubble ends when the device begins its next row, so the question is why that row was launched so late. If a wait
had emptied the queue, the host could only start again when the wait returned: without it, the host would have been
ahead by as long as it was blocked, so the wait answers for at most that much. The rest is what the host did instead
of launching.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pandas as pd

from syncscope.timeline.intervals import Ints, Union

CAUSES = (
    "wait", "data loading", "allocation", "pageable copy", "host work", "launch latency", "queued on device", "unknown"
)  # fmt: skip
"""Causes, as the report names them. *launch latency*: from the return of the launching call to the device's begin.
*queued on device*: launched well before, held by the device itself (another stream's event, or its own pace).
*unknown*: the trace does not hold the launch."""

IDLE = {
    "ts": "int64", "end": "int64", "dur": "int64",  # ns
    "launch": "int64",  # row in Timeline.calls of the call that ended it, −1 none
    "emptied_by": "int64",  # row in Timeline.waits of the wait that emptied the queue, −1 none
    "cause": "object",  # the greatest part of it
    **dict.fromkeys(CAUSES, "int64"),  # ns of it by cause; they sum to dur
}  # fmt: skip
"""One row a gap in the device's activity inside the span of the steps, in order of ``ts``."""

CLOCK_SLACK = 5_000
"""Nanoseconds by which host and device times may disagree."""

LATENCY = 20_000
"""Nanoseconds before a gap within which its launch still counts as just made, and the most that launching explains."""


def find_idle(
    device: pd.DataFrame,
    launch: Ints,
    calls: pd.DataFrame,
    span: tuple[int, int],
    waits: pd.DataFrame,
    host: dict[str, Union],
) -> pd.DataFrame:
    """The gaps of the rows of one device. ``launch`` names each row's call (−1 none); ``waits`` the waits that had
    work to wait for; ``host`` is when the host loaded data, allocated, or sat in a pageable copy, by cause."""
    ts = device["ts"].to_numpy(np.int64)
    begin, end = Union(ts, device["end"].to_numpy(np.int64)).gaps(*span)
    following = np.searchsorted(ts, end, side="left")
    last = following >= len(ts)  # the gap behind everything: the span ends it, no launch does
    row = np.where(last, -1, np.append(launch, -1)[np.minimum(following, len(ts))])
    known = (row >= 0) | last
    # Launched is when the call returned; a copy that blocks returns after it ran, so there its begin counts.
    blocks = (calls["role"] == "copy-sync").to_numpy(bool)
    returned = np.where(blocks, calls["ts"], calls["end"]).astype(np.int64)
    asked = np.clip(np.where(row >= 0, np.append(returned, 0)[row], end), begin, end)
    held = end - asked
    just_launched = (np.append(calls["ts"].to_numpy(np.int64), 0)[row] >= begin - LATENCY) & (row >= 0)
    latency = np.where(just_launched, np.minimum(held, LATENCY), 0)
    wait, by_wait = _emptied(begin, asked, waits)
    parts = {
        "wait": np.where(known, by_wait, 0),
        "launch latency": latency,
        "queued on device": np.where(known, held - latency, 0),
        "unknown": np.where(known, 0, end - begin),
    }
    # What is left between the wait's share and the launch is the host's; the named activities come first.
    left = np.where(known, asked - begin, 0) - parts["wait"]
    from_ = asked - left
    for cause, union in host.items():
        parts[cause] = np.minimum(union.within(from_, asked), left)
        left = left - parts[cause]
    parts["host work"] = left
    table: pd.DataFrame = pd.DataFrame({
        "ts": begin, "end": end, "dur": end - begin, "launch": row,
        "emptied_by": np.where(parts["wait"] > 0, wait, -1), "cause": _greatest(parts, len(begin)),
        **{cause: parts[cause] for cause in CAUSES},
    })  # fmt: skip
    return table


def _greatest(parts: dict[str, Ints], many: int) -> npt.NDArray[np.object_]:
    table = np.stack([parts[cause] for cause in CAUSES])
    return np.array(CAUSES, dtype=object)[np.argmax(table, axis=0)] if many else np.empty(0, dtype=object)


def _emptied(begin: Ints, asked: Ints, waits: pd.DataFrame) -> tuple[Ints, Ints]:
    """For each gap the wait that emptied the queue (its index in ``waits``, −1 none) and its share of the gap."""
    none = np.full(len(begin), -1, dtype=np.int64)
    if not len(waits):
        return none, np.zeros(len(begin), dtype=np.int64)
    waits = waits.sort_values("end", kind="stable")
    start, end = waits["ts"].to_numpy(np.int64), waits["end"].to_numpy(np.int64)
    slot = np.searchsorted(end, asked, side="right") - 1
    at = np.maximum(slot, 0)
    drained = (slot >= 0) & (end[at] >= begin - CLOCK_SLACK) & (start[at] <= begin + CLOCK_SLACK)
    returned = np.maximum(end[at], begin)
    share = (returned - begin) + np.minimum(asked - returned, end[at] - start[at])
    return np.where(drained, waits.index.to_numpy(np.int64)[at], -1), np.where(drained, share, 0)


def by_cause(idle: pd.DataFrame, steps: int) -> dict[str, float]:
    """Idle milliseconds per step (``steps`` 0: in all) of each cause that has any, the greatest first."""
    total = {cause: round(float(idle[cause].sum()) * 1e-6 / max(steps, 1), 6) for cause in CAUSES}
    return {cause: total[cause] for cause in sorted(total, key=lambda c: -total[c]) if total[cause] > 0}
