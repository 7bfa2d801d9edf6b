"""Find which waits belong to a collective, and to which call of it."""

from __future__ import annotations

import numpy as np
from msgspec.structs import replace

from syncscope.timeline.calls import last_before
from syncscope.timeline.intervals import Bools, Ints
from syncscope.timeline.places import BACKWARD, Place
from syncscope.timeline.python_stacks import is_user
from syncscope.timeline.tables import Ops, Waits

FILE = "torch/distributed/distributed_c10d.py"
"""Where PyTorch's collectives are written."""

WRAPPED = (FILE, "torch/distributed/c10d_logger.py")
"""That file, and the one that wraps its functions."""

BARRIER = "c10d::barrier"
NAMESPACE = "c10d::"

ENTRIES = ("ProcessGroup.",)
"""How the names begin under which the collector records collectives."""

ENTRY = "backward"
"""The name under which the collector records backward, in programs of several ranks."""

UNUSED = "torch.distributed.ddp.reducer::search_unused_parameters"
"""What DDP runs in forward to find the parameters that this rank leaves out."""

CALLBACK = ("aten::copy_",)
"""The ops by which DDP finds out whether another rank used those parameters: a copy when backward is over, outside of
its functions, on autograd's thread for the device."""


def in_collectives(waits: Waits, places: tuple[Place, ...], ops: Ops) -> Bools:
    """Which waits (n,) are inside a collective.

    The Python frames show it, or the ops around the wait, or the op just before it, because older versions of PyTorch
    wait for a barrier after its op.
    """
    searching = set(ops.tid[ops.named(lambda name: name == UNUSED)].tolist())
    inside: Bools = np.array(
        [
            is_collective(place, chain)
            or asks_for_unused(chain, place)
            or (chain == CALLBACK and bool(searching) and tid not in searching)
            for place, chain, tid in zip((places[i] for i in waits.place), waits.ops, waits.tid.tolist(), strict=True)
        ],
        dtype=bool,
    )
    bare = np.flatnonzero((waits.kind == "stream") & (waits.op < 0))
    before = last_before(waits.ts[bare], waits.tid[bare], ops.row, ops.ts, ops.tid)
    inside[bare] |= np.array([BARRIER in ops.chain(int(row)) for row in before], dtype=bool)
    return inside


def is_collective(place: Place, ops: tuple[str, ...]) -> bool:
    """Whether the place, or an op, is one of a collective."""
    named = place.entry.startswith(ENTRIES) or any(op.startswith(NAMESPACE) for op in ops)
    return named or _find_entry(place) >= 0


def _find_entry(place: Place) -> int:
    """Position in the chain where the program, or a library it uses, enters PyTorch's collectives; −1 nowhere."""
    users = [number for number, frame in enumerate(place.chain) if is_user(frame.file)]
    below = range(users[-1] + 1 if users else 0, len(place.chain))
    if not any(place.chain[number].file.endswith(FILE) for number in below):
        return -1
    return next(number for number in below if place.chain[number].file.endswith(WRAPPED))


def asks_for_unused(ops: tuple[str, ...], place: Place) -> bool:
    """Whether DDP finds out there if another rank used a parameter.

    It does so in the copy that backward makes outside of its functions. Where ops are unknown, it is a wait that
    PyTorch did not warn of: then only the recorded call of backward says where it is.
    """
    at = place.at
    in_backward = place.entry == ENTRY
    warned = at is not None and at.function in BACKWARD and "torch/autograd/" in at.file
    return (ops == CALLBACK and (in_backward or warned)) or (not ops and in_backward)


def strip_collective(place: Place) -> Place:
    """The place of a collective seen from outside, with the collective's name as its entry."""
    number = _find_entry(place)
    if number < 1:
        return place
    name = next(frame.function for frame in place.chain[number:] if frame.file.endswith(FILE))
    chain = place.chain[:number]
    return replace(place, chain=chain, at=chain[-1], entry=name, running=None, stack=-1)


def cut_at_collective(ops: tuple[str, ...], place: Place) -> tuple[str, ...]:
    """A chain of ops down to the collective in it, without the ops that the collective runs."""
    if ops == CALLBACK or asks_for_unused(ops, place):
        return (UNUSED,)
    inside = [number for number, op in enumerate(ops) if op.startswith(NAMESPACE)]
    return ops[: inside[0] + 1] if inside else ops


def number_calls(places: list[Place]) -> Ints:
    """Number the calls of collectives that the waits (n,) of one thread belong to, in order of time.

    The lines of a call go down its function. So a line further up, the same line again, or another place begins the
    next call."""
    calls = np.zeros(len(places), dtype=np.int64)
    before: tuple[Place, list[int]] | None = None
    number = -1
    for row, place in enumerate(places):
        caller, lines = strip_collective(place), [f.line or 0 for f in place.chain if f.file.endswith(FILE)]
        same = before is not None and caller == before[0] and lines != before[1] and lines[:1] >= before[1][:1]
        number += not same
        calls[row], before = number, (caller, lines)
    return calls
