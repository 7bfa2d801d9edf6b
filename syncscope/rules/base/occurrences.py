"""The occurrences that a rule finds in one rank: a row for each wait, copy or call that has the problem."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from syncscope.timeline import Place, Timeline
from syncscope.timeline.intervals import Bools, Ints
from syncscope.timeline.places import NOWHERE
from syncscope.timeline.steps import step_of
from syncscope.timeline.tables import Copies, Objects, Table, Waits


class Occurrences(Table):
    """One row an occurrence. A number that is unknown or does not apply is −1, a text ``""``."""

    ts: Ints
    """ns since the trace's base."""
    tid: Ints
    step: Ints
    """Row in ``steps``, −1 outside."""
    place: Objects
    """``timeline.Place``."""
    ops: Objects
    """Chain of ops, outermost first."""
    call: Objects
    """The runtime call, named where there is no op."""
    sort: Objects
    """What tells occurrences of unknown lines apart: direction and memory of the copy, else the runtime call."""
    warm_up: Objects
    """The kind of the warm-up that it is part of (``warm_up.KINDS``)."""
    wait: Ints
    """Row in ``waits``."""
    copy: Ints
    """Row in ``copies``."""
    collective: Ints
    """Row in ``collectives``."""
    unit: Ints
    """Occurrences of one unit count once."""
    stall: Ints
    """ns that the host is blocked."""
    bytes: Ints
    ran: Ints
    """ns on the device."""
    exposed: Ints
    """ns on the device with no compute beside it."""
    cause: Objects
    """What keeps it from running beside compute."""
    blocker: Ints
    """Row in ``waits`` of the wait that does."""

    @classmethod
    def at(cls, places: Sequence[Place], **columns: Any) -> Occurrences:
        """Rows at ``places`` (n,). A column is an array (n,), or one value for all rows. A column that is left out does
        not apply."""
        size = len(places)
        unset: dict[str, Any] = {"row": np.arange(size), "ops": (), "call": "", "sort": "", "cause": "", "warm_up": ""}
        given = unset | columns
        objects = {"ops", "call", "sort", "cause", "warm_up"}
        arrays: dict[str, Any] = {"place": to_objects(places)}
        for name in (name for name in cls.columns if name != "place"):
            value = given.get(name, -1)
            if name in objects:
                arrays[name] = to_objects([value] * size if isinstance(value, str | tuple) else value)
            else:
                column = np.asarray(value, dtype=np.int64)
                arrays[name] = column if column.ndim else np.full(size, column)
        return cls(**arrays)

    @classmethod
    def joined(cls, parts: Sequence[Occurrences]) -> Occurrences:
        """The rows of all parts, one part after the other, numbered from 0."""
        columns = {name: np.concatenate([getattr(part, name) for part in parts]) for name in cls.columns}
        return cls(**columns | {"row": np.arange(sum(len(part) for part in parts))})


def to_objects(values: Iterable[Any]) -> Objects:
    """An array (n,) of objects, also where each is a tuple."""
    return np.fromiter(values, dtype=object)


NONE = Occurrences.at(())
"""As most rules find."""


def places_of(timeline: Timeline, numbers: Ints) -> list[Place]:
    """The places with these indices."""
    places = timeline.places
    return [places[number] for number in numbers.tolist()]


def between_host_and_device(copies: Copies) -> Bools:
    """Which copies go from the host to a device or back."""
    crosses: Bools = (copies.direction == "HtoD") | (copies.direction == "DtoH")
    return crosses


def of_waits(waits: Waits, timeline: Timeline) -> Occurrences:
    """One occurrence a wait, with the bytes of the copy that it completes."""
    if not len(waits):
        return NONE
    return Occurrences.at(
        places_of(timeline, waits.place),
        ts=waits.ts, tid=waits.tid, step=waits.step, ops=waits.ops, call=waits.name,
        sort=_sorts(waits.copy, waits.name, timeline), wait=waits.row, copy=waits.copy, unit=waits.row,
        warm_up=timeline.warming_up(waits.ts, waits.end, waits.tid),
        stall=waits.stall, bytes=np.append(timeline.copies.bytes, -1)[waits.copy],
    )  # fmt: skip


def of_copies(copies: Copies, timeline: Timeline) -> Occurrences:
    """One occurrence a copy. Where a wait completes the copy, the stall is the wait's."""
    if not len(copies):
        return NONE
    launched = copies.launch >= 0
    # Where the ops around waits alone are known, those of the wait that completes a copy are the copy's.
    of_wait = [*timeline.waits.ops, ()]
    ops = [known or of_wait[wait] for known, wait in zip(copies.ops, copies.wait.tolist(), strict=True)]
    return Occurrences.at(
        places_of(timeline, copies.place),
        ts=np.where(launched, copies.launch_ts, copies.ts), tid=copies.tid, step=copies.step, ops=ops,
        call=np.append(timeline.calls.name, "")[copies.launch],
        sort=_sorts(copies.row, None, timeline), copy=copies.row, unit=copies.row,
        warm_up=timeline.warming_up(copies.launch_ts, copies.launch_end, copies.tid),
        stall=np.where(launched & (copies.wait < 0), copies.launch_dur, -1),
        bytes=copies.bytes, ran=copies.dur, exposed=copies.exposed,
    )  # fmt: skip


def of_calls(rows: Ints, timeline: Timeline) -> Occurrences:
    """One occurrence for each of ``rows`` of ``calls``, all without a place, because no single line causes them."""
    calls = timeline.calls.take(rows)
    return Occurrences.at(
        [NOWHERE] * len(rows),
        ts=calls.ts, tid=calls.tid, step=step_of(timeline.steps, calls.ts), call=calls.name, unit=calls.row,
        stall=calls.dur, warm_up=timeline.warming_up(calls.ts, calls.end, calls.tid),
    )  # fmt: skip


def _sorts(copy: Ints, calls: Objects | None, timeline: Timeline) -> list[str]:
    direction, memory = timeline.copies.direction, timeline.copies.memory
    others = [""] * len(copy) if calls is None else calls
    pairs = zip(copy.tolist(), others, strict=True)
    return [f"{direction[row]} {memory[row]}" if row >= 0 else str(call) for row, call in pairs]
