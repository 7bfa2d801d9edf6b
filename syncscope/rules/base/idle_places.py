"""Find the function in which the host is while the device is idle."""

from __future__ import annotations

from collections import Counter
from functools import lru_cache

import numpy as np
from msgspec.structs import replace

from syncscope.patterns import compile_later
from syncscope.rules.base.idle_place import COMMON, EVERYWHERE, MAIN_SHARE, IdlePlace
from syncscope.rules.base.sampled_places import find_sampled_place
from syncscope.schema.findings import Frame, Site
from syncscope.timeline import Place, Timeline
from syncscope.timeline.intervals import Ints
from syncscope.timeline.places import NOWHERE
from syncscope.timeline.python_stacks import is_generated, is_user
from syncscope.trace.sets import different

MOST_BUBBLES, LONGEST = 10_000, 1_000
"""Bubbles that are looked at, the longest first, and those of them in most of which a function is too."""

PASSES_ON = compile_later(
    r"(?:^|[. ])(?:wrapper|wrapped|inner|_?wrapped_call|new_forward)$|transformers/modeling_layers\.py .*__call__$"
    r"|vllm/compilation/(?:caching|decorators)\.py .*__call__$|vllm/model_executor/custom_op\.py .*forward$"
)
"""Files and functions of libraries that only pass a call on to what is asked for, whatever that is."""

HOST_WORK = "host work"
"""The cause of idle time in which the host does something else than launch, which an op may be."""

ONCE = "warm-up"
"""The cause of idle time of which later steps have none."""

LOCAL = 0.01
"""Functions that take less of the trace at a time are not added up."""


def find_idle_place(timeline: Timeline, *causes: str) -> IdlePlace | None:
    """Where the host is while the device is idle for ``causes``; ``None`` where that is not known, or everywhere."""
    known = timeline.idle_places
    if causes not in known:
        known[causes] = _find_idle_place(timeline, causes)
    found: IdlePlace | None = known[causes]
    return found


def _find_idle_place(timeline: Timeline, causes: tuple[str, ...]) -> IdlePlace | None:
    if not len(timeline.stacks.ts) and (sampled := find_sampled_place(timeline, causes)):
        return sampled
    bubbles, calls = timeline.bubbles, timeline.calls
    due = np.sum([bubbles.due_to(cause) for cause in causes], axis=0)
    rows = np.flatnonzero(due > 0)
    rows = rows[np.argsort(-due[rows], kind="stable")[:MOST_BUBBLES]]
    if not len(rows):
        return None
    launch = bubbles.launch[rows]
    threads, many = np.unique(calls.tid[bubbles.launch[bubbles.launch >= 0]], return_counts=True)
    main = int(threads[many.argmax()]) if len(threads) else -1
    ended = np.where(launch >= 0, np.append(calls.ts, 0)[launch], bubbles.end[rows])
    ts, tid = bubbles.ts[rows], np.where(launch >= 0, np.append(calls.tid, -1)[launch], main)
    ended = np.maximum(ended, ts)
    unknown = timeline.bubble_places[rows] < 0
    asked = timeline.busiest_places(ts[unknown], ended[unknown], tid[unknown]) if unknown.any() else rows[:0]
    timeline.bubble_places[rows[unknown]] = asked
    number = _or_backward(timeline, timeline.bubble_places[rows], ended)
    numbers, first, which = np.unique(number, return_index=True, return_inverse=True)
    order = np.argsort(first)  # as they come, the longest bubbles first
    weights, longest = np.zeros(len(numbers), dtype=due.dtype), np.zeros(len(numbers), dtype=due.dtype)
    np.add.at(weights, which, due[rows])
    np.add.at(longest, which[:LONGEST], due[rows[:LONGEST]])
    every = timeline.places
    places, weights, longest = [every[place] for place in numbers[order].tolist()], weights[order], longest[order]
    if any(place.source == "hook" for place in places):
        return _most(places, weights)
    found = _innermost(places, weights, longest, _shares(timeline, main))
    if found is not None or any(place.chain for place in places):
        return found
    if ONCE in causes:  # a launch that loads its kernel takes the time itself
        ended = bubbles.end[rows]
    in_op = _of_op(timeline, ts, ended, tid, due[rows]) if {HOST_WORK, ONCE} & {*causes} else None
    return in_op or _of_marks_around(timeline, ts, ended, tid, due[rows])


def _or_backward(timeline: Timeline, number: Ints, end: Ints) -> Ints:
    """The numbers of places, where nothing of the program is in one that of the backward that runs when the bubble
    ends: what a thread of autograd launches is its caller's."""
    backward = timeline.backward_places(end)
    if not backward.any():
        return number
    every = timeline.places
    alone = {one for one in set(number.tolist()) if every[one].source != "hook" and _is_of_nobody(every[one])}
    replaced: Ints = np.where(np.isin(number, list(alone)) & (backward > 0), backward, number)
    return replaced


def _is_of_nobody(place: Place) -> bool:
    """Whether no function but PyTorch's and Python's own is around a place."""
    return all(frame.file.startswith(COMMON) for frame in place.chain)


def _of_op(timeline: Timeline, ts: Ints, end: Ints, tid: Ints, due: Ints) -> IdlePlace | None:
    """The outermost op in which the host is for most of what is ``due`` (ns) of some intervals of its threads. The rest
    of an interval has other causes, such as memory that an op asks for, so an op has at least what does not fit
    there."""
    outer = timeline.ops.take(timeline.ops.nesting.parent < 0)
    inside: Counter[str] = Counter()
    for thread in different(tid).tolist():
        ops = outer.take(outer.tid == thread)
        mine = tid == thread
        for begin, until, own in zip(ts[mine].tolist(), end[mine].tolist(), due[mine].tolist(), strict=True):
            rows = slice(int(np.searchsorted(ops.end, begin)), int(np.searchsorted(ops.ts, until)))
            taken = np.minimum(ops.end[rows], until) - np.maximum(ops.ts[rows], begin)
            by_name: Counter[str] = Counter()
            for name, ns in zip(ops.name[rows].tolist(), taken.tolist(), strict=True):
                by_name[name] += ns
            others = max(until - begin - own, 0)
            inside.update({name: ns - others for name, ns in by_name.items() if ns > others})
    if not inside:
        return None
    (name, ns), whole = inside.most_common(1)[0], int(due.sum())
    return IdlePlace(NOWHERE, ns / whole, name) if ns >= MAIN_SHARE * whole else None


def _of_marks_around(timeline: Timeline, ts: Ints, end: Ints, tid: Ints, due: Ints) -> IdlePlace | None:
    """The innermost annotation that has, with those inside of it, most of what is ``due`` (ns) of some intervals. One
    that is open nearly all the time says nothing."""
    behind: Counter[str] = Counter()
    depth: dict[str, int] = {}
    for chain, ns in zip(timeline.annotations_around(ts, end, tid), due.tolist(), strict=True):
        for level, name in enumerate(chain):
            if name not in chain[:level]:
                behind[name] += ns
                depth[name] = max(level, depth.get(name, 0))
    begin, until = timeline.span or (0, 0)
    whole = int(due.sum())
    common = sorted((one for one, ns in behind.items() if ns >= MAIN_SHARE * whole), key=lambda one: -depth[one])
    for name in common:
        if timeline.annotated(name).clipped(begin, until).length < EVERYWHERE * (until - begin):
            return IdlePlace(Place(annotation=name), behind[name] / whole, spread=True)
    return None


def _most(places: list[Place], weights: Ints) -> IdlePlace | None:
    """The place of the user's line that has most of the weight, and the function below it that has most of that."""
    sites: Counter[tuple[Site | None, str]] = Counter()
    functions: Counter[tuple[Site | None, str, Frame | None]] = Counter()
    for place, weight in zip(places, weights.tolist(), strict=True):
        sites[place.site, place.annotation] += weight
        functions[place.site, place.annotation, _named(place)] += weight
    (best, weight), whole = sites.most_common(1)[0], int(weights.sum())
    if best == (None, "") or weight < MAIN_SHARE * whole:
        return None
    (_, _, at), below = next((key, ns) for key, ns in functions.most_common() if key[:2] == best)
    place = next(one for one in places if (one.site, one.annotation, _named(one)) == (*best, at))
    if below < MAIN_SHARE * weight:
        at = next((frame for frame in place.chain if _same(frame, place.site)), None)
    chain = place.chain[: place.chain.index(at) + 1] if at in place.chain else ()
    return IdlePlace(replace(place, at=at, chain=chain), weight / whole)


def _innermost(places: list[Place], weights: Ints, longest: Ints, shares: dict[Frame, float]) -> IdlePlace | None:
    """The innermost function that is behind most of the weight, and of that of the ``longest`` bubbles, called from the
    program's own innermost one, unless that is everywhere, and the function is not; where there are no functions, the
    annotation. ``shares`` are those of the trace that functions take."""
    behind: Counter[Frame] = Counter()
    behind_longest: Counter[Frame] = Counter()
    depth: dict[Frame, int] = {}
    marks: Counter[str] = Counter()
    for place, weight, of_longest in zip(places, weights.tolist(), longest.tolist(), strict=True):
        marks[place.annotation] += weight
        for inside, frame in enumerate(place.chain):
            if frame not in place.chain[:inside] and not _passes_on(frame):
                behind[frame] += weight
                behind_longest[frame] += of_longest
                depth[frame] = max(inside, depth.get(frame, 0))
    whole = int(weights.sum())
    least = MAIN_SHARE * int(longest.sum())
    common = [one for one, ns in behind.items() if ns >= MAIN_SHARE * whole and behind_longest[one] >= least]
    if not common:
        mark, weight = marks.most_common(1)[0]
        return IdlePlace(Place(annotation=mark), weight / whole) if mark and weight >= MAIN_SHARE * whole else None
    at = max(common, key=lambda one: depth[one])
    place = next(one for one in places if at in one.chain)
    chain = place.chain[: place.chain.index(at) + 1]
    of_user = [frame for frame in chain if is_user(frame.file)]
    everywhere = bool(of_user) and shares.get(of_user[-1], 0.0) >= EVERYWHERE and shares.get(at, 0.0) < EVERYWHERE / 2
    named = of_user[-1] if of_user and not everywhere else at
    site = Site(file=named.file, line=named.line, function=named.function)
    return IdlePlace(replace(place, site=site, at=at, chain=chain), behind[at] / whole)


@lru_cache(maxsize=4096)
def _passes_on(frame: Frame) -> bool:
    """Whether a function is behind every step, or only calls others for its callers, or is in no file to look at."""
    if frame.file.startswith(COMMON) or is_generated(frame.file):
        return True
    return not is_user(frame.file) and bool(PASSES_ON.search(f"{frame.file} {frame.function}"))


def _shares(timeline: Timeline, tid: int) -> dict[Frame, float]:
    """The share of the trace that functions take which a thread runs for much of it; some take more by recursion."""
    stacks, span = timeline.stacks, timeline.span
    shares: Counter[Frame] = Counter()
    if span is None:
        return {}
    rows = stacks.nesting.rows(tid)
    inside = np.minimum(stacks.end[rows], span[1]) - np.maximum(stacks.ts[rows], span[0])
    inside = inside / max(span[1] - span[0], 1)
    for row, share in zip(rows[inside > LOCAL].tolist(), inside[inside > LOCAL].tolist(), strict=True):
        for frame in stacks.chain(row)[-1:]:
            shares[frame] += share
    return dict(shares)


def _named(place: Place) -> Frame | None:
    """The innermost frame that is not PyTorch's or Python's: what its modules run is what a step is made of."""
    return next((frame for frame in reversed(place.chain) if not frame.file.startswith(COMMON)), place.at)


def _same(frame: Frame, site: Frame | None) -> bool:
    return site is not None and (frame.file, frame.line, frame.function) == (site.file, site.line, site.function)
