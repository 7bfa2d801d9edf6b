from __future__ import annotations

import msgspec
import numpy as np
from msgspec.structs import replace

from syncscope.advice import DRAWN, DRAWN_ON_DEVICE, LAST_TO_HOST, MADE_ANEW, MADE_ON_DEVICE, MADE_ONCE, Advice
from syncscope.rules.base.ends import LAST, is_result
from syncscope.rules.base.groups import Group
from syncscope.rules.base.occurrences import between_host_and_device, of_copies
from syncscope.rules.base.question import Intervention
from syncscope.rules.base.rule import Hit, Inspection, RankRule, name_place
from syncscope.schema.findings import Severity
from syncscope.timeline.copy_overlap import (
    ENGINE,
    HOST,
    NOTHING,
    PAGEABLE,
    REQUIREMENTS,
    STREAM,
    WAIT,
    blocking_waits,
    first_lacking,
)
from syncscope.timeline.intervals import Bools, Ints
from syncscope.timeline.scalar_reads import VALUE_BYTES
from syncscope.timeline.tables import Copies

LEAST_EXPOSED = 0.1
"""Exposed share of the copies' own time below which they count as hidden."""

REASONS = {
    PAGEABLE: "the host side is pageable memory, which no copy can overlap from; it must be pinned first",
    HOST: "the host waits for the copy (a blocking copy), so nothing is launched that could run beside it",
    STREAM: "it runs on the same stream as the compute, so one waits for the other; it needs a stream of its own",
    ENGINE: "another copy holds the copy engine of this direction, and there is no free one",
    WAIT: "the host is in {wait} during the copy, and launches nothing that could run beside it",
    NOTHING: "it is free to overlap, but nothing was queued that the device could compute beside it",
}


class CopyNotOverlapped(RankRule):
    """A copy between host and device runs while nothing computes.

    Why it costs: a device has copy engines beside its compute units, so a copy can be free. It needs three things, and
    the finding names the first that is missing: pinned host memory; a stream of its own, with a host that does not
    wait; and a copy engine that no other copy in that direction holds. Where all three are there, either the host was
    in a wait meanwhile, which the finding names, or nothing was queued that the copy could have run beside.

    Bad:
        x = x.to("cuda", non_blocking=True)          # pinned, but on the stream that computes
        y = model(x)

    Good:
        with torch.cuda.stream(copy_stream):         # the next batch, while this one computes
            nxt = nxt.to("cuda", non_blocking=True)
        y = model(x)
        torch.cuda.current_stream().wait_stream(copy_stream)
        nxt.record_stream(torch.cuda.current_stream())

    Fine:
        nxt.to("cuda", non_blocking=True)            # nine tenths hidden, or under 1 % of the step

    From pageable memory a stream of its own does not help. A copy can give back at most its exposed time.
    """

    code = "OVL301"
    name = "copy-not-overlapped"
    severity = "warning"
    needs = ("runtime", "device")
    gated = False
    question = Intervention.PREFETCH
    needs_async_launches = True
    advice = (
        LAST_TO_HOST,
        DRAWN_ON_DEVICE,
        MADE_ON_DEVICE,
        MADE_ONCE,
        Advice(
            f"{PAGEABLE} DtoH",
            "Copy into pinned memory (.to('cpu', non_blocking=True), or a buffer pinned once) on a stream of its own, "
            "and wait on an event just before the values are read.",
            before="kept = y.cpu()",
            after="""
            copy_stream.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(copy_stream):
                kept = y.to('cpu', non_blocking=True)   # pinned
            y.record_stream(copy_stream)
            """,
        ),
        Advice(
            PAGEABLE,
            "Pin the host memory (DataLoader(pin_memory=True), or a buffer pinned once); then copy with "
            "non_blocking=True on a stream of its own.",
            before="loader = DataLoader(data)\nx = batch.to('cuda')",
            after="""
            loader = DataLoader(data, pin_memory=True)
            with torch.cuda.stream(copy_stream):
                x = batch.to('cuda', non_blocking=True)
            """,
        ),
        Advice(
            f"{HOST} DtoH",
            "Pass non_blocking=True, put the copy on a stream of its own, and wait on an event just before the values "
            "are read.",
            before="pinned.copy_(y)",
            after="""
            copy_stream.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(copy_stream):
                pinned.copy_(y, non_blocking=True)
            """,
        ),
        Advice(
            HOST,
            "Pass non_blocking=True, and put the copy on a stream of its own.",
            before="x = pinned.to('cuda')",
            after="""
            with torch.cuda.stream(copy_stream):
                x = pinned.to('cuda', non_blocking=True)
            """,
        ),
        Advice(
            f"{STREAM} DtoH",
            "Copy on a stream of its own (with torch.cuda.stream(copy_stream)) that waits for the result, while the "
            "next batch computes.",
            before="kept = y.to('cpu', non_blocking=True)",
            after="""
            copy_stream.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(copy_stream):
                kept = y.to('cpu', non_blocking=True)
            y.record_stream(copy_stream)
            """,
        ),
        Advice(
            STREAM,
            "Copy the next batch on a stream of its own (with torch.cuda.stream(copy_stream)) while this one computes, "
            "and let the compute stream wait for it (wait_stream).",
            before="x = pinned.to('cuda', non_blocking=True)\ny = model(x)",
            after="""
            with torch.cuda.stream(copy_stream):
                following = pinned.to('cuda', non_blocking=True)
            y = model(x)                                             # meanwhile
            torch.cuda.current_stream().wait_stream(copy_stream)
            following.record_stream(torch.cuda.current_stream())
            """,
        ),
        Advice(
            ENGINE,
            "Copy in one direction from one stream at a time, or gather the copies into one.",
            before="""
            for part, stream in zip(parts, streams):
                with torch.cuda.stream(stream):
                    on_device.append(part.to('cuda', non_blocking=True))
            """,
            after="""
            with torch.cuda.stream(copy_stream):
                on_device = pinned.to('cuda', non_blocking=True).unbind()   # the parts, stacked
            """,
        ),
        Advice(
            WAIT,
            "Launch the compute before the host waits, or leave the wait to the device (stream.wait_event).",
            before="following = pinned.to('cuda', non_blocking=True)\nprint(loss.item())\ny = model(x)",
            after="following = pinned.to('cuda', non_blocking=True)\ny = model(x)\nprint(loss.item())",
        ),
        Advice(
            f"{NOTHING} DtoH",
            "Give it work to hide behind: launch the next batch's work before the host reads the values.",
            before="""
            kept = y.to('cpu', non_blocking=True)
            ready.record()
            ready.synchronize()
            y = model(following)
            """,
            after="""
            kept = y.to('cpu', non_blocking=True)
            ready.record()
            y = model(following)        # meanwhile
            ready.synchronize()
            """,
        ),
        Advice(
            NOTHING,
            "Start the copy earlier, while the previous step still computes, or give it work to hide behind.",
            before="""
            with torch.cuda.stream(copy_stream):
                x = pinned.to('cuda', non_blocking=True)
            torch.cuda.current_stream().wait_stream(copy_stream)
            y = model(x)
            """,
            after="""
            with torch.cuda.stream(copy_stream):
                following = pinned.to('cuda', non_blocking=True)
            y = model(x)                # the batch before, meanwhile
            torch.cuda.current_stream().wait_stream(copy_stream)
            """,
        ),
    )

    def find(self, inspection: Inspection) -> list[Hit]:
        timeline, copies = inspection.timeline, inspection.timeline.copies
        blockers = blocking_waits(timeline)
        lacks = first_lacking(timeline, blockers)
        blockers = np.where(lacks == WAIT, blockers, -1)
        mine = between_host_and_device(copies) & ~inspection.part_of_read(copies.wait) & ~_reads_value(copies)
        occurrences = of_copies(copies.take(mine), timeline)
        occurrences = occurrences.replace(
            stall=np.full(len(occurrences), -1), cause=lacks[mine], blocker=blockers[mine]
        )
        return [_related_to_waits(inspection, hit, blockers) for hit in self.hits(timeline, occurrences)]

    def reports(self, group: Group) -> bool:
        return group.is_exposed() and (group.total("exposed") or 0) >= LEAST_EXPOSED * int(group.inside.ran.sum())

    def severity_of(self, group: Group) -> Severity:
        ends = is_result(group)
        return "note" if ends or group.longest("cause", REQUIREMENTS) == NOTHING else self.severity

    def message(self, group: Group) -> str:
        lacks = group.longest("cause", REQUIREMENTS)
        why = REASONS[lacks].format(wait=_blocking_wait(group)) if lacks == WAIT else REASONS[lacks]
        return f"{group.subject} copies for {group.in_words('exposed')} with no compute beside it: {why}"

    def fix(self, group: Group) -> str:
        directions = set(group.timeline.copies.direction[group.rows.copy])
        last = (LAST,) if is_result(group) else ()
        made = [name for name in name_place(group.place) if name in (MADE_ANEW, DRAWN)]
        return self.advise(*made, *group.longest("cause", REQUIREMENTS).split(), *directions, *last)


def _reads_value(copies: Copies) -> Bools:
    """Which copies (n,) bring the host one value that it waits for: nothing can run beside them."""
    one = (copies.bytes >= 0) & (copies.bytes <= VALUE_BYTES)
    reads: Bools = (copies.direction == "DtoH") & (copies.wait >= 0) & one
    return reads


def _blocking_wait(group: Group) -> str:
    """The first wait that keeps the group's copies from overlapping, and its line where it is known."""
    timeline, blockers = group.timeline, group.rows.blocker
    first = blockers[blockers >= 0][0]
    waits = timeline.waits
    place = timeline.places[waits.place[first]]
    if place.site is None or place.source != "hook":
        return str(waits.name[first])
    return f"{place.site.expression or place.entry} ({place.site.file}:{place.site.line})"


def _related_to_waits(inspection: Inspection, hit: Hit, blockers: Ints) -> Hit:
    """The hit, related to the findings of the waits that keep its copies from overlapping."""
    waits = blockers[sorted(hit.copies)].tolist()
    others = [other.finding.fingerprint for other in inspection.hits if not other.waits.isdisjoint(waits)]
    return replace(hit, finding=msgspec.structs.replace(hit.finding, related=tuple(dict.fromkeys(others))))
