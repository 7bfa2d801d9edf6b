from __future__ import annotations

import numpy as np

from syncscope.advice import Advice
from syncscope.rules.base.groups import Group
from syncscope.rules.base.occurrences import Occurrences, of_copies
from syncscope.rules.base.question import Intervention
from syncscope.rules.base.rule import Hit, Inspection, RankRule
from syncscope.timeline import Timeline
from syncscope.timeline.copies import find_trips
from syncscope.trace.sets import different

REGULAR = 0.5
"""Share of the steps that must make a trip: by chance two copies are of one size now and then."""


class RoundTrip(RankRule):
    """A tensor leaves the device, and as many bytes come back within the same step.

    Why it costs: two copies and two waits for something that the device could have done where the data was. Between
    them the device has nothing to do, since what comes next needs the result.

    Bad:
        row = scores.cpu().numpy()
        row = np.clip(row, 0, 1)
        scores = torch.from_numpy(row).to("cuda")

    Good:
        scores = scores.clamp(0, 1)

    Fine:
        results.append(output.cpu())      # leaves and stays
        batch = next(loader).to("cuda")   # of the same size by chance

    A trace does not say which tensor a copy moves. Two copies count as a round trip where the first goes to the host
    and the host waits for it, the second comes from ordinary memory, has exactly as many bytes (1 KiB or more) and is
    made by the same thread further down in the program, and this happens in more than half of the steps. The finding
    is at the line where the data leaves.
    """

    code = "CPY204"
    name = "round-trip"
    severity = "warning"
    needs = ("runtime", "device")
    gated = False
    question = Intervention.KEEP_ON_DEVICE
    advice = (
        Advice(
            "",
            "Do on the device what is done to it on the host (torch has the counterparts of most numpy calls), or "
            "keep it on the host altogether.",
            before="y = torch.from_numpy(np.clip(x.cpu().numpy(), 0, 1)).cuda()",
            after="y = x.clamp(0, 1)",
        ),
    )

    def find(self, inspection: Inspection) -> list[Hit]:
        timeline, copies = inspection.timeline, inspection.timeline.copies
        own = copies.take(~inspection.part_of_read(copies.wait))
        trips = find_trips(own, timeline.waits, timeline.places)
        there, back = (of_copies(copies.take([trip[end] for trip in trips]), timeline) for end in (0, 1))
        # Both copies are one occurrence, in the place where the data leaves.
        back = back.replace(place=there.place, sort=there.sort, unit=there.row)
        both = Occurrences.joined([there.replace(unit=there.row), back])
        return self.hits(timeline, both.replace(stall=np.full(len(both), -1)))

    def reports(self, group: Group) -> bool:
        return len(different(group.inside.step)) > REGULAR * group.steps

    def why_unchecked(self, timeline: Timeline) -> str | None:
        if "sites" not in timeline.has:
            return "the trace holds no exact lines, so data that comes back cannot be told from other data of that size"
        return super().why_unchecked(timeline)

    def is_needless(self, timeline: Timeline) -> bool:
        return timeline.device is not None and not {"HtoD", "DtoH"} <= set(timeline.copies.direction.tolist())

    def message(self, group: Group) -> str:
        copies = group.timeline.copies.take(group.rows.copy)
        back = group.timeline.places[int(copies.place[-1])].site
        where = f"{back.expression or 'a copy'} ({back.file}:{back.line})" if back else "another copy"
        size = int(copies.bytes[0])
        return f"{group.subject} brings {size:,} bytes to the host, and {where} takes as many back to the device"
