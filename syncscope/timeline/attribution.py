"""Find the ops around the waits and copies of a window that was recorded without ops.

They come from the attribution window, or else from the expression that ran there.
"""

from __future__ import annotations

import numpy as np

from syncscope.schema.expressions import called_name, ops_of_expression
from syncscope.schema.recording import Attributed, Recording
from syncscope.timeline.intervals import Bools, Ints
from syncscope.timeline.places import Place
from syncscope.timeline.row_groups import number_groups, number_in_group
from syncscope.timeline.tables import Copies, Objects, Table, Waits, objects

Chain = tuple[str, ...]

OF_MASK: Chain = ("aten::nonzero",)
"""The op that waits where a mask takes a part of a tensor."""
OF_INDEX: Chain = ("aten::copy_",)
"""The op that waits where an index of the host, or a value that is written there, takes a part of a tensor."""
COUNT_BYTES = 4
"""Bytes of the number of values that are not zero."""


class StackedEvents(Table):
    """Waits, and copies that no wait completes, that have a recorded stack, in order of ``ts``. Two windows that do the
    same number them alike."""

    ts: Ints
    step: Ints
    """Row in ``steps``, −1 outside."""
    stack: Ints
    """Number of the recorded stack."""
    ordinal: Ints
    """How many events of the same stack lie before it in its step."""
    wait: Ints
    """Row in ``waits``, −1 for a copy."""
    copy: Ints
    """Row in ``copies``, −1 for a wait."""
    ops: Objects
    place: Ints


def brings_count(copies: Copies) -> Bools:
    """Which copies (n,) bring how many values are not zero, as ``nonzero`` does: an integer of 32 bits to pinned
    memory. Other reads of one integer bring 64 bits, and ``.cpu()`` goes to pageable memory."""
    counts: Bools = (copies.direction == "DtoH") & (copies.memory == "pinned") & (copies.bytes == COUNT_BYTES)
    return counts


def find_stacked(waits: Waits, copies: Copies, places: tuple[Place, ...]) -> StackedEvents:
    """The waits and copies that have a recorded stack."""
    alone = copies.take((copies.wait < 0) & (copies.launch >= 0))
    ts = np.append(waits.ts, alone.launch_ts)
    place = np.append(waits.place, alone.place)
    stack = np.array([one.stack for one in places], dtype=np.int64)[place]
    order = np.argsort(ts, kind="stable")
    order = order[stack[order] >= 0]
    step = np.append(waits.step, alone.step)[order]
    return StackedEvents(
        row=np.arange(len(order), dtype=np.int64), ts=ts[order], step=step, stack=stack[order],
        ordinal=number_in_group(number_groups(step, stack[order])),
        wait=np.append(waits.row, np.full(len(alone), -1))[order],
        copy=np.append(np.full(len(waits), -1), alone.row)[order],
        ops=np.append(waits.ops, alone.ops)[order], place=place[order],
    )  # fmt: skip


def tabulate_ops(events: StackedEvents) -> list[Attributed]:
    """The table of an attribution window: the ops of each stack and ordinal in the first step that got that far."""
    known: dict[tuple[int, int], Chain] = {}
    columns = (events.step.tolist(), events.stack.tolist(), events.ordinal.tolist(), events.ops)
    for step, stack, ordinal, ops in zip(*columns, strict=True):
        if step >= 0 and ops:
            known.setdefault((stack, ordinal), ops)
    return [Attributed(stack=stack, ordinal=ordinal, ops=ops) for (stack, ordinal), ops in known.items()]


def fill_ops(
    waits: Waits, copies: Copies, places: tuple[Place, ...], recording: Recording | None
) -> tuple[Waits, Copies]:
    """Fill in the ops of waits and copies that the trace lacks, where they are known from elsewhere.

    The attribution window has the ops by stack and ordinal in the step. A step that took another path gets the first
    chain of its stack. A stack that the window never saw gets the ops of its expression; a part of a tensor (``x[m]``)
    that brings a count to the host takes what a mask selects, and one that copies to the device brings its index.
    """
    table = recording.attribution if recording and recording.attribution else ()
    exact = {(seen.stack, seen.ordinal): seen.ops for seen in table}
    anywhere = {seen.stack: seen.ops for seen in reversed(table)}
    to_device = copies.wait[copies.direction == "HtoD"].tolist()
    parts = {**dict.fromkeys(to_device, OF_INDEX), **dict.fromkeys(copies.wait[brings_count(copies)].tolist(), OF_MASK)}
    parts.pop(-1, None)
    wait_ops, copy_ops, known = waits.ops.tolist(), copies.ops.tolist(), waits.ops_known.copy()
    events = find_stacked(waits, copies, places)
    columns = (column.tolist() for column in (events.wait, events.copy, events.stack, events.ordinal, events.place))
    for wait, copy, stack, ordinal, place in zip(*columns, strict=True):
        if (wait_ops[wait] or known[wait]) if wait >= 0 else copy_ops[copy]:
            continue
        ops = exact.get((stack, ordinal)) or anywhere.get(stack) or ops_of_expression(places[place].running)
        if not ops and wait in parts and called_name(places[place].running) == "[]":
            ops = parts[wait]
        if ops and wait >= 0:
            wait_ops[wait], known[wait] = ops, True
        elif ops:
            copy_ops[copy] = ops
    for copy, wait in enumerate(copies.wait.tolist()):
        if wait >= 0 and not copy_ops[copy]:
            copy_ops[copy] = wait_ops[wait]  # both are of one op
    return waits.replace(ops=objects(wait_ops), ops_known=known), copies.replace(ops=objects(copy_ops))
