from __future__ import annotations

from msgspec.structs import replace

from syncscope.advice import Advice
from syncscope.rules.base.groups import Group
from syncscope.rules.base.occurrences import Occurrences, to_objects
from syncscope.rules.base.question import Intervention
from syncscope.rules.base.wait_rule import WaitRule
from syncscope.timeline import Timeline
from syncscope.timeline.intervals import Bools
from syncscope.timeline.prints import FORMATTER, strip_formatter
from syncscope.timeline.run import PlacedWait
from syncscope.timeline.tables import Waits


class TensorPrint(WaitRule):
    """A device tensor is printed or turned into text.

    Why it costs: the formatter reads the tensor value by value. It masks the finite values, compares the largest with
    the smallest, then fetches every value that it shows. One `print` takes seven waits or more, each behind all the
    work queued so far, and a dozen small kernels besides. One finding stands for one print, not for the waits inside.

    Bad:
        print(loss_per_class)            # in the training loop
        logger.debug(f"grad {p.grad}")   # formatted even when nobody reads it

    Good:
        print(loss_per_class.cpu())      # one wait
        logger.debug("grad %s", p.grad)  # formatted only when the level is on

    Fine:
        print(x.shape, x.dtype, x.device)  # nothing is read from the device

    Without Python frames a print is recognised by the ops that the formatter runs.
    """

    code = "SYN104"
    name = "tensor-print"
    severity = "error"
    needs = ("runtime", "cpu_op")
    gated = True
    counted = True
    waits_many_times = True
    question = Intervention.REMOVE_HOST_WORK
    brings_copy = True
    advice = (
        Advice(
            "",
            "Print a copy on the host (t.cpu(): one wait), print rarely, or print its shape and dtype only.",
            before="print(loss, norms)",
            after="""
            if step % 100 == 0:
                print(torch.stack([loss, norm]).cpu())
            """,
        ),
    )

    def claims(self, waits: Waits, timeline: Timeline) -> Bools:
        printed: Bools = timeline.prints[waits.row] >= 0
        return printed

    def claims_counted(self, counted: PlacedWait) -> bool:
        return counted.place.runs_through(FORMATTER)

    def occurrences(self, waits: Waits, timeline: Timeline) -> Occurrences:
        occurrences = super().occurrences(waits, timeline)
        prints = timeline.prints[waits.row]
        # All waits of a print are in its one place, with the ops of the first, whatever op each was in, and whatever
        # memory the values went to.
        first: dict[int, object] = {}
        for number, ops in zip(prints.tolist(), occurrences.ops, strict=True):
            first.setdefault(number, ops)
        return occurrences.replace(
            place=to_objects(replace(strip_formatter(place), entry="print") for place in occurrences.place),
            ops=to_objects(first[number] for number in prints.tolist()),
            sort=to_objects("print" for _ in prints),
            unit=prints,
        )

    def message(self, group: Group) -> str:
        prints, waits = len(set(group.rows.unit.tolist())), len(group.rows)
        return f"{group.subject} formats a tensor on the device: {waits / prints:.3g} waits a print"
