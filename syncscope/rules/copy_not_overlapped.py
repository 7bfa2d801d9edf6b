from __future__ import annotations

import numpy as np

from syncscope.findings import Severity
from syncscope.rules.grouping import Group, say_ms, to_ms
from syncscope.rules.pageable_copy import PART_OF_A_READ
from syncscope.rules.requirements import ENGINE, FIXES, HOST, MISSING, NOTHING, PAGEABLE, STREAM, missing
from syncscope.rules.rule import Case, Hit, Rule, copy_occurrences
from syncscope.timeline.timeline import HOST_COPIES

LEAST_SHARE = 0.01
"""Exposed copy time of a site, as a share of the step, below which it is not spoken of."""

LEAST_EXPOSED = 0.1
"""Exposed share of the copies' own time below which they count as hidden."""

LEAST_NS = 20_000
"""Exposed copy time of a site in ns per step below which it is not spoken of."""


class CopyNotOverlapped(Rule):
    """A copy between host and device runs while nothing computes.

    Why it costs: a device has copy engines beside its compute units, so a copy can be free. Three things are needed,
    and the finding names the first that is missing: pinned host memory; a stream of its own, with a host that does
    not wait; and a copy engine that no other copy in that direction holds. Where all three are there, nothing was
    computing that the copy could have run beside.

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
        occurrences = copy_occurrences(copies[crosses & ~small], case.timeline)
        return self.hits(case, occurrences.assign(stall=-1))

    def worth(self, group: Group) -> bool:
        span, steps = group.timeline.span, max(len(group.timeline.steps), 1)
        exposed = group.total("exposed")
        if exposed is None or span is None:
            return False
        copied = int(group.timeline.copies["dur"].loc[group.inside["copy"]].sum())
        step = (span[1] - span[0]) / steps
        return exposed / steps >= max(LEAST_NS, LEAST_SHARE * step) and exposed >= LEAST_EXPOSED * copied

    def severity_of(self, group: Group) -> Severity:
        return "note" if _requirement(group) == NOTHING else self.severity

    def message(self, group: Group) -> str:
        total = group.total("exposed") or 0
        steps = len(group.timeline.steps)
        time = say_ms(to_ms(total, max(steps, 1))) + (" ms a step" if steps else " ms in all")
        return f"{group.what} copies for {time} with no compute beside it: {MISSING[_requirement(group)]}"

    def fix(self, group: Group) -> str:
        return FIXES[_requirement(group)]


def _requirement(group: Group) -> str:
    """What most of the exposed time lacks."""
    rows = group.rows["copy"].to_numpy(np.int64)
    lacks = missing(group.timeline)[rows]
    exposed = group.rows["exposed"].to_numpy(np.int64)
    time = {name: int(exposed[lacks == name].sum()) for name in (PAGEABLE, HOST, STREAM, ENGINE, NOTHING)}
    return max(time, key=lambda name: time[name])
