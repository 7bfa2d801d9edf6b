from __future__ import annotations

import numpy as np
import pandas as pd

from syncscope.rules.grouping import Group
from syncscope.rules.pageable_copy import PART_OF_A_READ
from syncscope.rules.rule import Case, Hit, Rule, copy_occurrences
from syncscope.timeline import Timeline
from syncscope.timeline.copies import find_trips

REGULAR = 0.5
"""Share of the steps that must make a trip: by chance two copies are of one size now and then."""


class RoundTrip(Rule):
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

    What is the same tensor a trace does not say. Taken as one: a copy to the host that the host waited for, then one
    from ordinary memory of exactly as many bytes (1 KiB or more) by the same thread, further down in the program, in
    more than half of the steps. The finding is at the line where the data leaves.
    """

    code = "CPY204"
    name = "round-trip"
    severity = "warning"
    needs = ("runtime", "device")
    intervention = "none"

    def run(self, case: Case) -> list[Hit]:
        timeline = case.timeline
        copies = timeline.copies
        inside = case.taken_by(copies["wait"].to_numpy(np.int64), PART_OF_A_READ)
        trips = find_trips(copies[~inside], timeline.waits, timeline.places)
        there = copy_occurrences(copies.loc[[trip[0] for trip in trips]], timeline).assign(unit=range(len(trips)))
        back = copy_occurrences(copies.loc[[trip[1] for trip in trips]], timeline).assign(unit=range(len(trips)))
        # Both copies are one occurrence, in the place where the data leaves.
        back["place"], back["sort"] = there["place"].tolist(), there["sort"].tolist()
        return self.hits(case, pd.concat([there, back]).assign(stall=-1))

    def worth(self, group: Group) -> bool:
        return group.inside["step"].nunique() > REGULAR * len(group.timeline.steps)

    def blind(self, timeline: Timeline) -> str | None:
        if "sites" not in timeline.has:
            return "the trace holds no exact lines, so data that comes back cannot be told from other data of that size"
        return super().blind(timeline)

    def message(self, group: Group) -> str:
        copies = group.timeline.copies.loc[group.rows["copy"]]
        back = group.timeline.places[int(copies["place"].iloc[-1])].site
        where = f"{back.expression or 'a copy'} ({back.file}:{back.line})" if back else "another copy"
        size = int(copies["bytes"].iloc[0])
        return f"{group.what} brings {size:,} bytes to the host, and {where} takes as many back to the device"
