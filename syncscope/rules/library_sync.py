from __future__ import annotations

from syncscope.advice import BY_OP, LIBRARIES, Advice
from syncscope.rules.base.groups import Group
from syncscope.rules.base.question import Intervention
from syncscope.rules.base.wait_rule import WaitRule
from syncscope.timeline import Timeline
from syncscope.timeline.intervals import Bools
from syncscope.timeline.op_chains import is_foreign, only_copies, ops_of
from syncscope.timeline.run import PlacedWait
from syncscope.timeline.tables import Waits
from syncscope.timeline.waits import is_wait

ENTRIES = ("torch.linalg.", "torch.unique", "Tensor.coalesce")
"""How the names begin under which the collector records functions that wait without PyTorch's knowledge."""


class LibrarySync(WaitRule):
    """A wait inside an op that no other rule explains.

    Why it costs: the op stops the host until the device has caught up, in code that the program does not see: custom
    operators (`torchvision::nms`), sorting in thrust (`unique(dim=...)`, `mode`, sparse `coalesce`), solvers
    (`linalg.eig`, `ldl_solve`), extensions. The finding names the outermost op.

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
    severity = "error"
    needs = ("runtime", "cpu_op")
    gated = True
    counted = True
    question = Intervention.REMOVE_WAIT
    brings_copy = True
    advice = (
        *BY_OP,
        *LIBRARIES,
        Advice(
            "",
            "Call {op} less often (batched, or outside the loop), or look for a form of it that does not wait; if it "
            "must wait, expect it with a reason.",
            before="""
            for part in parts:
                found.append(op(part))
            """,
            after="found = op(torch.cat(parts))   # once for all",
        ),
    )

    def claims(self, waits: Waits, timeline: Timeline) -> Bools:
        return is_wait(waits.kind)

    def claims_counted(self, counted: PlacedWait) -> bool:
        explained = bool(counted.ops) and not only_copies(counted.ops)
        return explained or counted.wait.name.startswith(ENTRIES)

    def ops_for_advice(self, group: Group) -> tuple[str, ...]:
        """Down to another library's operator: what that does inside is not the program's choice."""
        dispatched = set(ops_of(group.ops))
        end = next((n for n, op in enumerate(group.ops, 1) if op in dispatched and is_foreign(op)), None)
        return group.ops[:end]

    def message(self, group: Group) -> str:
        outermost = next(iter(ops_of(group.ops)), group.op or "a library")
        where = f" inside {outermost}" if outermost != group.subject else ""
        return f"{group.subject} waits for the device{where}, in code of its own"
