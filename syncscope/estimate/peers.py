"""Find when the other ranks came to a collective, from their traces.

All ranks are done with a collective at one moment, whatever their clocks say, so of two ranks the one that was in it
for a shorter time came later, by the difference. Not so in a broadcast: who sends need not wait for those who receive.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec
import numpy as np
from msgspec.structs import replace

from syncscope.estimate.program import Program
from syncscope.timeline import Timeline
from syncscope.timeline.intervals import Ints
from syncscope.trace.names import ONE_SIDED

MOST_PEERS = 64
"""The most ranks that are compared."""


Identity = tuple[int, str, int, int, int]
"""What ranks share of a collective: the number of its step, its kind (name and group), its place among the collectives
of that kind in the step, how many of those there are, and its bytes."""


class Peer(msgspec.Struct, frozen=True, kw_only=True):
    """What the other ranks need to know of one."""

    rank: int
    findings: tuple[str, ...]
    """Fingerprints of the findings whose savings are estimated."""
    collectives: tuple[tuple[Identity, int], ...]
    """The collectives in its steps, each with its length in ns."""
    phase: str | None = None
    """The phase that was recorded. Ranks are compared in the same phase."""
    fits: bool = True
    """Whether the model fits its trace without knowing the other ranks."""


def peers_to_compare(peers: Sequence[Peer]) -> tuple[Peer, ...]:
    """The ranks that should be compared: all of them if one has a finding that another lacks, or if the model of one
    does not fit its own trace.

    Otherwise none, because ranks with the same findings gain the same. Also none for one rank alone, for two traces of
    the same rank, and for more ranks than ``MOST_PEERS``. Each phase is looked at on its own.
    """
    phases = {peer.phase: [one for one in peers if one.phase == peer.phase] for peer in peers}
    return tuple(peer for same in phases.values() for peer in _worth_comparing(same))


def _worth_comparing(peers: Sequence[Peer]) -> tuple[Peer, ...]:
    if not 1 < len({peer.rank for peer in peers}) == len(peers) <= MOST_PEERS:
        return ()
    differ = len({frozenset(peer.findings) for peer in peers}) > 1 or not all(peer.fits for peer in peers)
    return tuple(peers) if differ else ()


class SharedCollectives(msgspec.Struct, frozen=True):
    """A rank's collectives inside the steps that all ranks take part in, in order of launch; one element each."""

    step: Ints
    """Number of the step."""
    kind: tuple[str, ...]
    """Name and process group."""
    order: Ints
    """Place among the collectives of one kind in the step."""
    many: Ints
    """How many of the kind there are in the step."""
    bytes: Ints
    dur: Ints
    """Length, ns."""
    launch: Ints
    """Row in ``Timeline.calls``."""

    def __len__(self) -> int:
        return len(self.dur)

    def identities(self) -> Iterator[Identity]:
        columns = (self.step, self.kind, self.order, self.many, self.bytes)
        return zip(*(c if isinstance(c, tuple) else c.tolist() for c in columns), strict=True)

    def with_lengths(self) -> tuple[tuple[Identity, int], ...]:
        """As in ``Peer.collectives``."""
        return tuple(zip(self.identities(), self.dur.tolist(), strict=True))


def find_shared_collectives(timeline: Timeline) -> SharedCollectives:
    """The collectives inside the steps, without those that ranks may leave at different times."""
    table = timeline.collectives
    table = table.take((table.launch >= 0) & (table.step >= 0) & ~np.isin(table.name, ONE_SIDED))
    table = table.take(np.argsort(table.launch_ts, kind="stable"))
    step = timeline.steps.number[table.step]
    kind = tuple(f"{name} {group}" for name, group in zip(table.name, table.group, strict=True))
    order, many = _counted(list(zip(step.tolist(), kind, strict=True)))
    return SharedCollectives(step, kind, order, many, table.bytes, table.dur, table.launch)


def _counted(keys: list[tuple[int, str]]) -> tuple[Ints, Ints]:
    """For each key how many equal ones come before it, and how many there are in all."""
    counts: dict[tuple[int, str], int] = {}
    before = []
    for key in keys:
        before.append(counts.get(key, 0))
        counts[key] = before[-1] + 1
    return np.array(before, dtype=np.int64), np.array([counts[key] for key in keys], dtype=np.int64)


def with_peers(program: Program, mine: SharedCollectives, others: Sequence[Peer]) -> tuple[Program, bool]:
    """The program with ``later`` of each of its collectives that some ``others`` have too, and whether there are any.

    Ranks that did not do the same in a step are not compared in it.
    """
    shortest = np.full(len(mine), np.inf)
    identities = list(mine.identities())
    for other in others:
        theirs = dict(other.collectives)
        shortest = np.minimum(shortest, np.array([theirs.get(one, np.inf) for one in identities], dtype=np.float64))
    item = program.items_of(mine.launch)
    known = np.isfinite(shortest) & (item >= 0)
    if not known.any():
        return program, False
    later = np.full(len(program.items), np.nan)
    later[item[known]] = (mine.dur - shortest)[known]
    return replace(program, items=program.items.replace(later=later)), True


def without_late_peers(program: Program) -> Program:
    """The program, as if no other rank came later to a collective than this one."""
    items = program.items
    waited = np.nan_to_num(np.maximum(items.later, 0.0))
    return replace(program, items=items.replace(dur=items.dur - waited, later=np.minimum(items.later, 0.0)))
