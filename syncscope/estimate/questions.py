"""What fixing a finding changes: the rule's intervention as edits of the program."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from syncscope.estimate.edits import Edit, Question
from syncscope.estimate.overlap import over_backward
from syncscope.estimate.program import Program
from syncscope.estimate.rates import Rate, pinned_rate
from syncscope.rules import BY_CODE, Hit
from syncscope.rules.base.question import Intervention, NoQuestion
from syncscope.timeline import Timeline
from syncscope.timeline.copies import HOST_COPIES
from syncscope.timeline.intervals import Floats

FORMATTER_LAUNCHES = 7
"""Kernels that the printing of a tensor launches before its first wait, at most."""

SMALL_READ = 65_536
"""Bytes up to which the copy behind a read is part of the read."""

STACKED = 400.0
"""Nanoseconds of host work to put one small tensor beside the others, instead of copying it by itself."""

GRAPH_NODE = 150.0
"""Nanoseconds of host work by which a node makes the launch of a graph longer."""

GRAPH_GAP = 250.0
"""Nanoseconds between two nodes of a graph on the device, its beginning and end shared out among them."""

PEERS = "the other ranks gain what this one does, so a collective lasts as long as it did"


@dataclass(frozen=True)
class Study:
    """One trace, and what questions about it share."""

    timeline: Timeline
    program: Program
    _rates: dict[str, Rate] = field(default_factory=dict)

    def rate(self, direction: str) -> Rate:
        """Of pinned copies in a direction (``HtoD``, ``DtoH``)."""
        if direction not in self._rates:
            self._rates[direction] = pinned_rate(self.timeline, direction)
        return self._rates[direction]

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What questions took for granted so far."""
        peers = (PEERS,) if len(self.timeline.collectives) else ()
        return tuple(dict.fromkeys(rate.assumed for rate in self._rates.values() if rate.assumed)) + peers

    def items(self, calls: Iterable[int]) -> list[int]:
        """Items of rows of ``Timeline.calls``, those inside the steps."""
        return self.program.rows(np.array(sorted(calls), dtype=np.int64))

    def waits(self, hit: Hit) -> list[int]:
        """Items of the waits that a finding speaks of."""
        return self.items(int(call) for call in self.timeline.waits.loc[sorted(hit.waits), "call"])

    def copies(self, hit: Hit) -> pd.DataFrame:
        """The copies that a finding speaks of, those of its waits too, with the ``item`` that launched each."""
        waits = self.timeline.waits.loc[sorted(hit.waits), "copy"]
        rows = sorted({*hit.copies, *(int(row) for row in waits if row >= 0)})
        found = self.timeline.copies.loc[rows]
        found = found[(found["launch"] >= 0).to_numpy(bool)]
        found = found.assign(item=self.program.item_of[found["launch"].to_numpy(np.int64)])
        inside: pd.DataFrame = found[(found["item"] >= 0).to_numpy(bool)]
        return inside

    def completing(self, copies: pd.DataFrame) -> list[int]:
        """Items of the waits that complete some copies."""
        rows = copies["wait"][copies["wait"] >= 0]
        return self.items(int(call) for call in self.timeline.waits.loc[rows, "call"])


def question(study: Study, hit: Hit) -> Question:
    """What fixing a finding changes; nothing where there is nothing to try, or nothing of it inside the steps."""
    intervention = BY_CODE[hit.finding.rule].question
    return {} if isinstance(intervention, NoQuestion) else QUESTIONS[intervention](study, hit)


def without_wait(study: Study, hit: Hit) -> Question:
    """The host goes on. What it launches after waiting for a stream or an event then waits for that on the device."""
    waits = study.timeline.waits.loc[sorted(hit.waits)]
    read = {item: Edit(free=True) for item in study.items(waits["call"][waits["copy"] >= 0])}
    return read | {item: Edit(free=True, joins=True) for item in study.items(waits["call"][waits["copy"] < 0])}


def without_read(study: Study, hit: Hit) -> Question:
    """Neither the wait nor the small copy that it reads."""
    copies = study.copies(hit)
    small = copies[(copies["bytes"] <= SMALL_READ).to_numpy(bool)]
    found = {item: Edit(free=True) for item in study.waits(hit)}
    return found | {int(item): Edit(own=0.0, gone=True, free=True) for item in small["item"]}


def asynchronous(study: Study, hit: Hit) -> Question:
    """Copies from and to pinned memory that the host does not wait for."""
    copies = study.copies(hit)
    found = {item: Edit(free=True) for item in (*study.waits(hit), *study.completing(copies))}
    for item, direction, memory, size in zip(
        copies["item"], copies["direction"], copies["memory"], copies["bytes"], strict=True
    ):
        faster = study.rate(direction).ns(size) if memory == "pageable" and direction in HOST_COPIES else np.inf
        found[int(item)] = Edit(free=True, dur=faster)
    return found


def prefetched(study: Study, hit: Hit) -> Question:
    """Asynchronous copies on a stream of their own, to the device a step early."""
    found = asynchronous(study, hit)
    return found | {int(item): found[int(item)].also(Edit(early=True)) for item in study.copies(hit)["item"]}


def on_two_streams(study: Study, hit: Hit) -> Question:
    """Copies in one direction have another stream than those in the other."""
    return {int(item): Edit(beside=True) for item in study.copies(hit)["item"]}


def without_host_work(study: Study, hit: Hit) -> Question:
    """Everything that a print or a pinning does, its copy to the device left out."""
    pins = study.timeline.pins
    mine = pins[pins["copy"].isin(hit.copies).to_numpy(bool)] if not hit.waits else pins[:0]
    found = _without_spans(study, mine["ts"].to_numpy(float), mine["end"].to_numpy(float))
    prints = study.timeline.prints[np.array(sorted(hit.waits), dtype=np.int64)] if hit.waits else np.empty(0)
    for number in np.unique(prints):
        waits = np.flatnonzero(study.timeline.prints == number)
        found |= _without_print(study, study.items(study.timeline.waits.loc[waits, "call"]))
    return found


def _without_spans(study: Study, begin: Floats, end: Floats) -> Question:
    """No host work, call or activity inside some spans of time (ns since the trace's base)."""
    base = int(study.timeline.steps["ts"].min())
    items = study.program.items
    starts, ends = items["begin"].to_numpy() - items["pre"].to_numpy(), items["end"].to_numpy()
    begins = items["begin"].to_numpy()
    found: Question = {}
    for first, last in zip(begin - base, end - base, strict=True):
        for item in np.flatnonzero((starts < last) & (ends > first) & (items["chain"] == 0).to_numpy(bool)).tolist():
            pre, inside = items["pre"].iloc[item], first <= begins[item] and ends[item] <= last
            cut = max(0.0, min(begins[item], last) - max(starts[item], first))
            left = 1 - cut / pre if pre > 0 else 1.0
            found[item] = Edit(pre=left, own=0.0, free=True, gone=True) if inside else Edit(pre=left)
    return found


def _without_print(study: Study, waits: list[int]) -> Question:
    """From the formatter's first kernel to its last wait. Its first kernels come before any wait: the host's longest
    pause among as many launches as it makes shows where it began."""
    if not waits:
        return {}
    items = study.program.items
    chain = items["chain"].to_numpy(np.int64)
    mine = np.flatnonzero((chain == chain[waits[0]]) & (items["step"] == items["step"].iloc[waits[0]]).to_numpy(bool))
    first = int(np.searchsorted(mine, waits[0]))
    launched = items["stream"].to_numpy(np.int64)[mine[:first]] >= 0
    launches = np.flatnonzero(launched)[-FORMATTER_LAUNCHES - 2 :]
    began = launches[np.argmax(items["pre"].to_numpy()[mine[launches]])] if len(launches) else first
    inside = mine[began : int(np.searchsorted(mine, waits[-1])) + 1].tolist()
    return {int(item): Edit(pre=0.0, own=0.0, free=True, gone=True) for item in inside}


def gathered(study: Study, hit: Hit) -> Question:
    """One copy a step instead of many: the last, with the bytes of all. What the host did from one copy to the next
    goes with it, where it launched nothing else."""
    found: Question = {}
    items = study.program.items
    launches = (items["stream"] >= 0).to_numpy(bool)
    chain, work = items["chain"].to_numpy(np.int64), (items["pre"] + items["own"]).to_numpy()
    for _, copies in study.copies(hit).sort_values("launch").groupby("step"):
        last = copies.iloc[-1]
        for place, following in itertools.pairwise(copies["item"].tolist()):
            between = np.flatnonzero(chain[place:following] == chain[place])[1:] + place
            between = between[:0] if launches[between].any() else between
            left = _share(STACKED, float(work[between].sum() + work[place]))
            found |= {int(item): Edit(pre=left, own=left, free=True) for item in between}
            found[place] = Edit(pre=left, own=left, free=True, gone=True)
        found |= {item: Edit(own=0.0, free=True) for item in study.completing(copies.iloc[:-1]) if item not in found}
        if len(copies) > 1 and last["direction"] in HOST_COPIES:
            whole = study.rate(str(last["direction"])).ns(int(copies["bytes"].sum()))
            found[int(last["item"])] = Edit(pre=left, dur=whole)
    return found


def _share(of: float, whole: float) -> float:
    """What share of the whole a part is, at most all of it; rounded, so that many items are changed alike."""
    return round(of / max(whole, of), 3)


def on_device(study: Study, hit: Hit) -> Question:
    """Neither the copies nor their waits."""
    copies = study.copies(hit)
    found = {item: Edit(own=0.0, free=True) for item in (*study.waits(hit), *study.completing(copies))}
    return found | {int(item): Edit(own=0.0, free=True, gone=True) for item in copies["item"]}


def without_allocation(study: Study, hit: Hit) -> Question:
    """The calls are not made, so nothing waits in them."""
    return {item: Edit(own=0.0, free=True) for item in study.waits(hit)}


def as_graphs(study: Study, hit: Hit) -> Question:
    """Each stretch of launches that all steps repeat is launched as one graph."""
    launching, items = study.timeline.launching, study.program.items
    work, chain = (items["pre"] + items["own"]).to_numpy(), items["chain"].to_numpy(np.int64)
    found: Question = {}
    shares: dict[float, Edit] = {}
    for graph in launching.graphs or () if launching else ():
        launches = study.items(graph.tolist())
        for item in range(launches[0] + 1, launches[-1] + 1) if launches else ():
            if chain[item] == chain[launches[0]]:
                share = _share(GRAPH_NODE, float(work[item]))
                if share not in shares:
                    shares[share] = Edit(pre=share, own=share, gap=GRAPH_GAP)
                found[item] = shares[share]
    return found


def overlapped(study: Study, hit: Hit) -> Question:
    """The collectives that a finding speaks of run beside compute: those that reduce gradients beside the backward that
    makes them, others beside what follows them, until the step ends."""
    table, places, one = study.timeline.collectives, study.timeline.places, hit.finding
    mine = [places[place].site == one.site and places[place].at == one.at for place in table["place"]]
    own = table[np.array(mine, dtype=bool) & (table["launch"] >= 0).to_numpy(bool)]
    item = study.program.item_of[own["launch"].to_numpy(np.int64)]
    size = {int(number): float(count) for number, count in zip(item, own["bytes"], strict=True) if number >= 0}
    gradients = over_backward(study.timeline, study.program, size)
    if gradients or not size:
        return gradients
    marks = np.flatnonzero(study.program.items["mark"].to_numpy(bool)).tolist()
    return {number: Edit(early=True) for number in size} | {number: Edit(joins=True) for number in marks}


def asynchronous_launches(study: Study, hit: Hit) -> Question:
    """Every launch returns at once."""
    items = study.program.items
    launches = (items["blocks"] & ~items["pageable"]).to_numpy(bool)
    return {int(item): Edit(free=True) for item in np.flatnonzero(launches)}


Ask = Callable[[Study, Hit], Question]

QUESTIONS: dict[Intervention, Ask] = {
    Intervention.REMOVE_WAIT: without_wait,
    Intervention.REMOVE_READ: without_read,
    Intervention.REMOVE_HOST_WORK: without_host_work,
    Intervention.REMOVE_ALLOCATION: without_allocation,
    Intervention.COPY_ASYNCHRONOUSLY: asynchronous,
    Intervention.PREFETCH: prefetched,
    Intervention.SEPARATE_DIRECTIONS: on_two_streams,
    Intervention.GATHER_COPIES: gathered,
    Intervention.KEEP_ON_DEVICE: on_device,
    Intervention.OVERLAP_COLLECTIVES: overlapped,
    Intervention.LAUNCH_ASYNCHRONOUSLY: asynchronous_launches,
    Intervention.REPLAY_GRAPHS: as_graphs,
}
"""What each intervention changes."""
