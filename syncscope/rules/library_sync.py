from __future__ import annotations

import pandas as pd

from syncscope.rules.chains import ops_of
from syncscope.rules.grouping import Group
from syncscope.rules.rule import WaitRule
from syncscope.timeline import Timeline
from syncscope.timeline.intervals import Bools
from syncscope.timeline.waits import is_wait


class LibrarySync(WaitRule):
    """A wait inside an op that no other rule explains.

    Why it costs: the op stops the host until the device has caught up, in code that the program does not see: custom
    operators (`torchvision::nms`), sorting in thrust (`unique(dim=...)`, `mode`, sparse `coalesce`), solvers
    (`linalg.eig`, `ldl_solve`), extensions. The op named in the finding is the outermost one.

    Bad:
        keep = torchvision.ops.nms(boxes, scores, 0.5)     # each image, each class

    Good:
        keep = torchvision.ops.batched_nms(boxes, scores, classes, 0.5)   # once for all
        adj = adj.coalesce()                               # once, outside the loop

    Fine:
        torch.linalg.eig(a)                                # outside the loop
    """

    code = "SYN109"
    name = "library-sync"
    needs = ("runtime", "cpu_op")

    def takes(self, waits: pd.DataFrame, timeline: Timeline) -> Bools:
        return is_wait(waits["kind"])

    def message(self, group: Group) -> str:
        where = f" inside {_outermost(group)}" if _outermost(group) != group.what else ""
        return f"{group.what} waits for the device{where}, in code of its own"


def _outermost(group: Group) -> str:
    ops = ops_of(group.ops)
    return ops[0] if ops else group.op or "a library"
