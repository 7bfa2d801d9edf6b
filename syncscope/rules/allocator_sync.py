from __future__ import annotations

import numpy as np
import pandas as pd

from syncscope.rules.grouping import Group
from syncscope.rules.rule import WaitRule
from syncscope.schema.findings import Severity
from syncscope.timeline import Timeline
from syncscope.timeline.intervals import Bools
from syncscope.timeline.memory import asking, emptying, owners, runs
from syncscope.timeline.places import NOWHERE

REGULAR = 0.5
"""Share of the steps that ask the driver for memory from which on it is the program's habit, no late warming up."""


class AllocatorSync(WaitRule):
    """Memory is got from the driver or given back to it in a step that is warm.

    Why it costs: PyTorch keeps the memory it has and hands it out again, so that a warm step asks the driver for
    none. `cudaFree` waits until the device has finished everything, and `cudaMalloc` takes 0.1 ms and more. Both
    come back every step after `torch.cuda.empty_cache()`, when memory is short (the allocator then gives back all it
    holds and tries again), and when shapes keep growing.

    Bad:
        for batch in loader:
            train(batch)
            torch.cuda.empty_cache()       # waits, and the next step asks for the memory again

    Good:
        for batch in loader:
            train(batch)                   # shapes padded to a few sizes
        torch.cuda.empty_cache()           # once, before something else needs the memory

    Fine:
        the first steps, while the allocator warms up

    What a step asks for again is counted with the line that gave it away; where nothing was given away, one finding a
    trace. Less often than in every other step it is a note. Without steps a warm one cannot be told: not checked.
    """

    code = "SYN106"
    name = "allocator-sync"
    severity = "warning"
    needs = ("runtime",)

    def takes(self, waits: pd.DataFrame, timeline: Timeline) -> Bools:
        found: Bools = asking(waits, timeline.places) | emptying(waits, timeline.places)
        return found

    def occurrences(self, waits: pd.DataFrame, timeline: Timeline) -> pd.DataFrame:
        found = super().occurrences(waits, timeline)
        emptied = emptying(waits, timeline.places)
        owner, unit = owners(emptied), runs(waits, timeline.calls)
        place = [found["place"].iloc[row] if row >= 0 else NOWHERE for row in owner]
        result: pd.DataFrame = found.assign(
            place=pd.Series(place, index=found.index, dtype=object),
            ops=pd.Series([()] * len(waits), index=found.index, dtype=object),
            unit=np.where(owner >= 0, np.append(unit, -1)[owner], unit),
            sort="",
        )
        # What was given away comes first: it names the finding.
        return result.iloc[np.argsort(~emptied, kind="stable")]

    def worth(self, group: Group) -> bool:
        return len(group.timeline.steps) > 0 and len(group.inside) > 0

    def severity_of(self, group: Group) -> Severity:
        steps = len(group.timeline.steps)
        regular = steps > 1 and group.inside["step"].nunique() >= REGULAR * steps
        return self.severity if regular else "note"

    def blind(self, timeline: Timeline) -> str | None:
        if not len(timeline.steps) and timeline.waits["kind"].isin(["alloc", "free"]).any():
            return "the trace has no steps, so a warm one cannot be told from the first"
        return super().blind(timeline)

    def message(self, group: Group) -> str:
        calls = group.rows["call"].value_counts()
        told = ", ".join(f"{count} × {name}" for name, count in calls.items())
        gives = group.place.site is not None
        who = f"{group.what} gives memory back to the driver" if gives else "memory is asked of the driver"
        return f"{who} in warm steps ({told}), which may wait for the device"
