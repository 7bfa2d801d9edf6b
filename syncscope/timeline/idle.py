"""Bubbles: when the device had nothing to run, and why.

A bubble ends when the device begins its next row, so the question is why that row was launched so late. If a wait
had emptied the queue, the host could only start again when the wait returned: without it, the host would have been
ahead by as long as it was blocked, so the wait answers for at most that much. The rest is what the host did instead
of launching: something that has a name, one launch right after the other, or work of its own.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pandas as pd

from syncscope.timeline.calls import COMMANDS, last_before
from syncscope.timeline.intervals import Bools, Ints, Union
from syncscope.trace.names import MEMORY_ROLES, SYNC_ROLES

CAUSES = (
    "wait", "data loading", "allocation", "pageable copy", "collective", "launching", "host work",
    "launch latency", "queued on device", "unknown",
)  # fmt: skip
"""Causes, as the report names them. *collective*: the host is inside the call of one, or the device hands over between
one and compute. *launching*: the host launches one thing right after the other, and the device is done sooner.
*launch latency*: from the return of the launching call to the device's begin. *queued on device*: launched well before,
held by the device itself (another stream's event, or its own pace). *unknown*: the trace holds no runtime calls."""

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

PACE = 200_000
"""Nanoseconds between two launches of a host that does nothing but launch: an op of PyTorch takes it 5 to 20 µs, a
module or a node of backward in Python several times that, and a profiler adds half."""


def find_idle(
    device: pd.DataFrame,
    launch: Ints,
    calls: pd.DataFrame,
    span: tuple[int, int],
    waits: pd.DataFrame,
    host: dict[str, Union],
) -> pd.DataFrame:
    """The gaps of the rows of one device. ``launch`` names each row's call (−1 none); ``waits`` the waits that had
    work to wait for; ``host`` is when the host loaded data, allocated, sat in a pageable copy, or was inside the call
    of a collective, by cause."""
    ts = device["ts"].to_numpy(np.int64)
    begin, end = Union(ts, device["end"].to_numpy(np.int64)).gaps(*span)
    following = np.searchsorted(ts, end, side="left")
    last = following >= len(ts)  # the gap behind everything: the span ends it, no launch does
    row = np.where(last, -1, np.append(launch, -1)[np.minimum(following, len(ts))])
    known = len(calls) > 0
    returned = np.append(_launched(device, launch, calls, end.max(initial=0)), end.max(initial=0))[following]
    asked = np.clip(returned, begin, end) if known else begin
    held = end - asked if known else np.zeros_like(end)
    just_launched = (np.append(calls["ts"].to_numpy(np.int64), 0)[row] >= begin - LATENCY) & (row >= 0)
    latency = np.where(just_launched, np.minimum(held, LATENCY), 0)
    wait, by_wait = _emptied(begin, asked, waits)
    handed_over = _beside_collective(device, begin, following)
    parts = {
        "wait": by_wait,
        "launch latency": latency,
        "queued on device": np.where(handed_over, 0, held - latency),
        "unknown": np.zeros_like(end) if known else end - begin,
    }
    # What is left between the wait's share and the launch is the host's; the named activities come first.
    left = asked - begin - parts["wait"]
    from_ = asked - left
    for cause, union in host.items():
        parts[cause] = np.minimum(union.within(from_, asked), left)
        left = left - parts[cause]
    parts["collective"] = parts["collective"] + np.where(handed_over, held - latency, 0)
    paced = _paced(row, calls)
    parts["launching"], parts["host work"] = np.where(paced, left, 0), np.where(paced, 0, left)
    table: pd.DataFrame = pd.DataFrame({
        "ts": begin, "end": end, "dur": end - begin, "launch": row,
        "emptied_by": np.where(parts["wait"] > 0, wait, -1), "cause": _greatest(parts, len(begin)),
        **{cause: parts[cause] for cause in CAUSES},
    })  # fmt: skip
    return table


def _launched(device: pd.DataFrame, launch: Ints, calls: pd.DataFrame, never: int) -> Ints:
    """For each device row when its launch returned. Where the trace lost the launch, correlations tell its place, since
    they count up: before the call with the next one (``never`` where there is none), or before the trace began (0)."""
    # A copy that blocks returns after it ran, so there its begin counts.
    blocks = (calls["role"] == "copy-sync").to_numpy(bool)
    returned = np.where(blocks, calls["ts"], calls["end"]).astype(np.int64)
    numbered = calls[(calls["correlation"] >= 0).to_numpy(bool)].sort_values("correlation", kind="stable")
    wanted = device["correlation"].to_numpy(np.int64)
    slot = np.searchsorted(numbered["correlation"].to_numpy(np.int64), wanted, side="right")
    later = np.append(numbered["ts"].to_numpy(np.int64), never)[slot]
    lost = np.where(wanted < 0, never, np.where(slot == 0, 0, later))
    return np.where(launch >= 0, np.append(returned, 0)[launch], lost)


def _paced(row: Ints, calls: pd.DataFrame) -> Bools:
    """Which of these launches (rows of ``calls``, −1 none) came right after another command: little time passed, and
    no wait or allocation of its thread lies between."""
    role, ts, end, tid = (calls[column].to_numpy() for column in ("role", "ts", "end", "tid"))
    commands = np.flatnonzero(np.isin(role, list(COMMANDS)))
    found = np.zeros(len(row), dtype=bool)
    mine = np.flatnonzero(row >= 0)
    slot = np.searchsorted(commands, row[mine], side="left") - 1
    mine, before = mine[slot >= 0], commands[np.maximum(slot, 0)][slot >= 0]
    found[mine] = ts[row[mine]] - end[before] <= PACE
    pauses = np.flatnonzero(np.isin(role, list(SYNC_ROLES | MEMORY_ROLES)))
    last = last_before(ts[row[mine]], tid[row[mine]], pauses, ts, tid)
    found[mine] &= (last < 0) | (end[last] <= ts[before])
    return found


def _beside_collective(device: pd.DataFrame, begin: Ints, following: Ints) -> Bools:
    """Which gaps lie between a collective and something else: right before one, or right after the last to end."""
    is_one = (device["collective"] != "").to_numpy(bool)
    order = np.argsort(device["end"].to_numpy(np.int64), kind="stable")
    slot = np.searchsorted(device["end"].to_numpy(np.int64)[order], begin, side="right") - 1
    before = np.where(slot >= 0, np.append(is_one[order], False)[slot], False)
    found: Bools = before | np.append(is_one, False)[following]
    return found


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
