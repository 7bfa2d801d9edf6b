from __future__ import annotations

import numpy as np
import pandas as pd

from syncscope.rules.grouping import Group, say_ms, to_ms
from syncscope.rules.requirements import worth_saying
from syncscope.rules.rule import Case, Hit, Rule
from syncscope.schema.findings import Severity
from syncscope.timeline import Timeline
from syncscope.timeline.collectives import HELD, SAME_STREAM, UNQUEUED, trimmed

LEAST_EXPOSED = 0.1
"""Exposed share of the collectives' own time below which they count as hidden."""

MOSTLY_HIDDEN, SMALL_SHARE = 0.5, 0.05
"""A collective exposed for less of its time and of the step is what cannot be helped: a last bucket."""


class CommNotOverlapped(Rule):
    """A collective runs while nothing computes.

    Why it costs: a collective needs few of a device's multiprocessors and can run beside compute that does not wait
    for it. Where nothing does, the whole step waits for the network. DistributedDataParallel reduces a bucket of
    gradients while the backward computes the next; the last bucket has nothing left to hide behind, and is a note.

    Bad:
        loss.backward()
        for p in model.parameters():
            dist.all_reduce(p.grad)                  # everything is computed, and each waits for the one before

    Good:
        model = DistributedDataParallel(model)       # reduces while it computes
        work = dist.all_reduce(x, async_op=True)     # by hand: start early,
        y = model(z)                                 # compute something that does not need x,
        work.wait()                                  # wait late

    Fine:
        with model.no_sync():                        # gradient accumulation: nothing is reduced
            loss.backward()

    A rank that comes late looks the same from the others: their collectives wait for it. That shows only with the
    traces of several ranks (see DST601). Profilers start apart, so the first of three steps and more counts for no more
    than a later one.
    """

    code = "OVL302"
    name = "comm-not-overlapped"
    severity = "warning"
    needs = ("runtime", "device")
    intervention = "none"

    def run(self, case: Case) -> list[Hit]:
        timeline = case.timeline
        table = timeline.collectives[(timeline.collectives["device"] == timeline.device).to_numpy(bool)]
        table = trimmed(table, len(timeline.steps))
        occurrences = pd.DataFrame({
            "ts": np.where(table["launch"] >= 0, table["launch_ts"], table["ts"]), "tid": table["tid"],
            "step": table["step"],
            "place": pd.Series([timeline.places[i] for i in table["place"]], index=table.index, dtype=object),
            "ops": table["ops"], "call": table["name"], "stall": -1, "bytes": table["bytes"],
            "exposed": table["exposed"], "sort": table["name"], "wait": -1, "copy": -1, "unit": table.index,
            "dur": table["dur"], "beside": table["beside"],
        })  # fmt: skip
        return self.hits(case, occurrences)

    def unseen(self, timeline: Timeline) -> str | None:
        if len(timeline.collectives) and (timeline.collectives["bytes"] < 0).all():
            return "the trace does not say how large its collectives are, nor of which group"
        return None

    def worth(self, group: Group) -> bool:
        exposed, whole = group.total("exposed") or 0, int(group.inside["dur"].sum())
        return worth_saying(exposed, group.timeline) and exposed >= LEAST_EXPOSED * whole

    def severity_of(self, group: Group) -> Severity:
        exposed, whole = group.total("exposed") or 0, int(group.inside["dur"].sum())
        hidden = exposed < MOSTLY_HIDDEN * whole and not worth_saying(exposed, group.timeline, share=SMALL_SHARE)
        return "note" if hidden else self.severity

    def message(self, group: Group) -> str:
        steps = len(group.timeline.steps)
        time, per = to_ms(group.total("exposed") or 0, max(steps, 1)), "a step" if steps else "in all"
        names = group.rows["call"].value_counts() / max(steps, 1)
        what = ", ".join(f"{name} × {many:.3g}" for name, many in names.items())
        size = group.total("bytes")
        moved = "" if size is None else f" ({size / max(steps, 1) / 1e6:.3g} MB)"
        why = group.rows.groupby("beside")["exposed"].sum().idxmax()
        return (
            f"{group.what} starts {what} {per}{moved}, {say_ms(time)} ms of it with no compute beside it: "
            f"{WHY[str(why)]}; whether another rank comes late cannot be seen from one"
        )

    def fix(self, group: Group) -> str:
        if set(group.rows["call"]) <= {"allgather", "reduce_scatter"}:
            return SHARDED
        backward = group.place.entry == "backward" or any(op.startswith("autograd::engine") for op in group.ops)
        return BUCKETS if backward else BY_HAND


WHY = {
    SAME_STREAM: "they are on the stream that computes",
    HELD: "what computes next waits for them, and nothing else is left to compute",
    UNQUEUED: "the host launched nothing else to compute until they were over",
}
BUCKETS = (
    "Reduce sooner and in smaller pieces: DistributedDataParallel's bucket_cap_mb (25 by default), with "
    "gradient_as_bucket_view=True; when gradients are accumulated, no_sync() for all but the last part."
)
SHARDED = (
    "Fetch ahead: FSDP's forward_prefetch and backward_prefetch, or set_modules_to_forward_prefetch of fully_shard; "
    "larger units hide more."
)
BY_HAND = (
    "Start it with async_op=True as soon as its input is there, compute what does not need it, and call wait() on the "
    "result just before it is used; for gradients let DistributedDataParallel do that."
)
