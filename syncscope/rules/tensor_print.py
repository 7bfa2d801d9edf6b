from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import pandas as pd

from syncscope.rules.grouping import Group
from syncscope.rules.rule import Intervention, WaitRule
from syncscope.timeline import Timeline
from syncscope.timeline.intervals import Bools
from syncscope.timeline.prints import printed


class TensorPrint(WaitRule):
    """A device tensor is printed or turned into text.

    Why it costs: the formatter reads the tensor value by value. It masks the finite values, compares the largest and
    the smallest, then fetches every value that it shows: seven waits and more for one `print`, each behind all the
    work queued so far, and a dozen small kernels besides. One finding stands for one print, not for the waits inside.

    Bad:
        print(loss_per_class)            # in the training loop
        logger.debug(f"grad {p.grad}")   # formatted even when nobody reads it

    Good:
        print(loss_per_class.cpu())      # one wait
        logger.debug("grad %s", p.grad)  # formatted only when the level is on

    Fine:
        print(x.shape, x.dtype, x.device)  # nothing is read from the device

    Without Python frames a print is known by the ops that the formatter runs.
    """

    code = "SYN104"
    name = "tensor-print"
    needs = ("runtime", "cpu_op")
    intervention: ClassVar[Intervention] = "remove the host work"

    def takes(self, waits: pd.DataFrame, timeline: Timeline) -> Bools:
        found: Bools = timeline.prints >= 0
        return found

    def occurrences(self, waits: pd.DataFrame, timeline: Timeline) -> pd.DataFrame:
        found = super().occurrences(waits, timeline)
        prints = timeline.prints[waits.index]
        # All waits of a print are at its one place, whatever op each was in.
        seen = [printed(place) for place in found["place"]]
        place = pd.Series([replace(p, entry="print") for p in seen], index=found.index, dtype=object)
        ops = found["ops"].groupby(prints).transform("first")
        result: pd.DataFrame = found.assign(place=place, unit=prints, ops=ops)
        return result

    def message(self, group: Group) -> str:
        prints, waits = group.rows["unit"].nunique(), len(group.rows)
        return f"{group.what} formats a tensor on the device: {waits / prints:.3g} waits a print"
