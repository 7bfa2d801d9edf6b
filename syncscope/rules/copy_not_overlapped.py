from __future__ import annotations

from dataclasses import replace

import msgspec
import numpy as np

from syncscope.rules.grouping import Group, say_ms, to_ms
from syncscope.rules.pageable_copy import PART_OF_A_READ
from syncscope.rules.requirements import (
    FIXES,
    MISSING,
    NOTHING,
    REQUIREMENTS,
    WAIT,
    missing,
    prevented_by,
    worth_saying,
)
from syncscope.rules.rule import Case, Hit, Rule, copy_occurrences
from syncscope.schema.findings import Severity
from syncscope.timeline.copies import HOST_COPIES
from syncscope.timeline.intervals import Ints

LEAST_EXPOSED = 0.1
"""Exposed share of the copies' own time below which they count as hidden."""


class CopyNotOverlapped(Rule):
    """A copy between host and device runs while nothing computes.

    Why it costs: a device has copy engines beside its compute units, so a copy can be free. Three things are needed,
    and the finding names the first that is missing: pinned host memory; a stream of its own, with a host that does
    not wait; and a copy engine that no other copy in that direction holds. Where all three are there, either the host
    sat in a wait meanwhile, which the finding names, or nothing was computing that the copy could have run beside.

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

    From pageable memory a stream of its own does not help. What a copy could give back at most is its exposed time.
    """

    code = "OVL301"
    name = "copy-not-overlapped"
    severity = "warning"
    needs = ("runtime", "device")
    intervention = "change the copy"

    def run(self, case: Case) -> list[Hit]:
        copies = case.timeline.copies
        crosses = copies["direction"].isin(HOST_COPIES).to_numpy(bool)
        small = case.taken_by(copies["wait"].to_numpy(np.int64), PART_OF_A_READ)
        prevented = prevented_by(case.timeline)
        lacks = missing(case.timeline, prevented)
        prevented = np.where(lacks == WAIT, prevented, -1)
        mine = crosses & ~small
        occurrences = copy_occurrences(copies[mine], case.timeline)
        hits = self.hits(case, occurrences.assign(stall=-1, lacks=lacks[mine], prevented=prevented[mine]))
        return [_with_the_waits(case, hit, prevented[sorted(hit.copies)]) for hit in hits]

    def worth(self, group: Group) -> bool:
        exposed, copies = group.total("exposed") or 0, group.timeline.copies
        copied = int(copies["dur"].loc[group.inside["copy"]].sum())
        return worth_saying(exposed, group.timeline) and exposed >= LEAST_EXPOSED * copied

    def severity_of(self, group: Group) -> Severity:
        return "note" if _requirement(group) == NOTHING else self.severity

    def message(self, group: Group) -> str:
        total = group.total("exposed") or 0
        steps = len(group.timeline.steps)
        time = say_ms(to_ms(total, max(steps, 1))) + (" ms a step" if steps else " ms in all")
        lacks = _requirement(group)
        why = MISSING[lacks].replace("a wait", _wait(group)) if lacks == WAIT else MISSING[lacks]
        return f"{group.what} copies for {time} with no compute beside it: {why}"

    def fix(self, group: Group) -> str:
        return FIXES[_requirement(group)]


def _requirement(group: Group) -> str:
    """What most of the exposed time lacks."""
    time = group.rows.groupby("lacks")["exposed"].sum()
    return max(REQUIREMENTS, key=lambda name: int(time.get(name, 0)))


def _wait(group: Group) -> str:
    """The first wait that keeps the group's copies from overlapping, and its line where it is known."""
    timeline, rows = group.timeline, group.rows
    first = timeline.waits.loc[rows["prevented"][(rows["prevented"] >= 0).to_numpy(bool)].iloc[0]]
    place = timeline.places[first["place"]]
    if place.site is None or place.source != "hook":
        return str(first["name"])
    return f"{place.site.expression or place.entry} ({place.site.file}:{place.site.line})"


def _with_the_waits(case: Case, hit: Hit, waits: Ints) -> Hit:
    """The finding, related to those of the waits that keep its copies from overlapping."""
    others = [other.finding.fingerprint for other in case.hits if not other.waits.isdisjoint(waits.tolist())]
    return replace(hit, finding=msgspec.structs.replace(hit.finding, related=tuple(dict.fromkeys(others))))
