from __future__ import annotations

from collections.abc import Iterator

from syncscope.advice import NO_BATCH, Advice
from syncscope.rules.base.groups import Group
from syncscope.rules.base.occurrences import Occurrences, places_of
from syncscope.rules.base.program import name_copied
from syncscope.rules.base.question import Intervention
from syncscope.rules.base.rule import Hit, Inspection, RankRule
from syncscope.timeline import Timeline

IN_LOADER = "in-loader"
"""The name for pinning inside the fetch of a batch: a ``DataLoader`` without workers does it in its caller's thread."""


class PinThenCopy(RankRule):
    """Host memory is pinned just to be copied to the device: `x.pin_memory().to(device)`.

    Why it costs: `pin_memory` allocates page-locked memory and copies the tensor into it on the host, in the thread
    that should be launching. For small tensors that takes longer than the plain copy would have (4 MB on an H200:
    0.55 ms against 0.35 ms). For large ones whose pinned block is reused it is quicker (128 MiB: 5.6 ms against 13.3),
    but still the host copies instead of launching, every time.

    Bad:
        x = x.pin_memory().to("cuda", non_blocking=True)     # in the training loop

    Good:
        loader = DataLoader(data, pin_memory=True)           # pinned in a thread of the loader
        staging = torch.empty(shape, pin_memory=True)        # or pinned once, filled by the loading code

    Fine:
        table = table.pin_memory()                           # once, copied from many times
    """

    code = "CPY202"
    name = "pin-then-copy"
    severity = "warning"
    needs = ("runtime", "device")
    gated = False
    question = Intervention.REMOVE_HOST_WORK
    advice = (
        Advice(
            IN_LOADER,
            "DataLoader(pin_memory=True) without workers pins in the thread that launches: with num_workers=1 or more "
            "a thread of the loader does it. Else leave pin_memory out.",
            before="loader = DataLoader(data, pin_memory=True)",
            after="loader = DataLoader(data, num_workers=2, pin_memory=True)",
        ),
        Advice(
            NO_BATCH,
            "Make the values in memory that is pinned already, a buffer pinned once and used again, or leave the "
            "pinning out: a few bytes from pageable memory hold the host for no longer than a call.",
            before="x = torch.tensor(values).pin_memory().to('cuda', non_blocking=True)",
            after="""
            buffer[:len(values)] = torch.tensor(values)   # made once with pin_memory=True
            x = buffer[:len(values)].to('cuda', non_blocking=True)
            """,
        ),
        Advice(
            "",
            "Leave the pinning out, or move it off this thread: DataLoader(pin_memory=True), or a buffer pinned once "
            "that the loading code fills.",
            before="x = batch.pin_memory().to('cuda', non_blocking=True)",
            after="loader = DataLoader(data, pin_memory=True)\nx = batch.to('cuda', non_blocking=True)",
        ),
    )

    def find(self, inspection: Inspection) -> list[Hit]:
        timeline, tables = inspection.timeline, inspection.timeline
        pins = tables.pins.take(tables.pins.copy >= 0)
        occurrences = Occurrences.at(
            places_of(timeline, pins.place),
            ts=pins.ts, tid=pins.tid, step=pins.step, ops=pins.ops, copy=pins.copy, unit=pins.row, stall=pins.dur,
            bytes=tables.copies.bytes[pins.copy],
        )  # fmt: skip
        return self.hits(timeline, occurrences)

    def why_unchecked(self, timeline: Timeline) -> str | None:
        if not {"cpu_op", "sites"} & set(timeline.has):
            return "the trace holds neither PyTorch ops nor recorded calls, so pinning cannot be seen"
        return super().why_unchecked(timeline)

    def message(self, group: Group) -> str:
        return f"{group.subject} pins memory in the thread that launches, only to copy it to the device at once"

    def names(self, group: Group) -> Iterator[str]:
        if _in_loader(group):
            yield IN_LOADER
        yield from name_copied(group)
        yield from super().names(group)


def _in_loader(group: Group) -> bool:
    """Whether all of a group's memory is pinned while its thread fetches a batch."""
    loads, rows = group.timeline.loads, group.rows
    inside = (loads.tid == rows.tid[:, None]) & (loads.ts <= rows.ts[:, None]) & (rows.ts[:, None] < loads.end)
    return bool(inside.any(axis=1).all())
