"""Random traces: every layout, odd names, fields that nobody knows, and the rows they must become."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from tests.builders import BASE_NS

TABLES = {
    "cpu_op": "ops",
    "Operator": "ops",
    "cuda_runtime": "runtime",
    "cuda_driver": "runtime",
    "Runtime": "runtime",
    "kernel": "device",
    "Kernel": "device",
    "gpu_memset": "device",
    "cuda_sync": "sync",
    "python_function": "frames",
    "user_annotation": "annotations",
}

names = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=30),
    st.sampled_from(
        ['say "x"', "a\\b", "]}, {", '"}, {"ph": "X"', "void k<(a)1>(b::c[2])", "\x00\x1f", "émoji 🎛", "NaN"]
    ),
)
unknown = st.dictionaries(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=8).map(lambda key: f"unknown {key}"),
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | names,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
        max_leaves=5,
    ),
    max_size=3,
)


@dataclass
class Made:
    """An event of a random form, and the row it must become."""

    events: list[dict[str, Any]]
    row: tuple[str, str, int, int]


@st.composite
def made(draw: st.DrawFn, tid: int) -> Made:
    category, name = draw(st.sampled_from(sorted(TABLES))), draw(names)
    start = draw(st.integers(0, 10**15))
    length = draw(st.one_of(st.none(), st.integers(-1000, 10**9), st.just(500)))
    event = {"cat": category, "name": name, "pid": 1, "tid": tid, "ts": start / 1000, **draw(unknown)}
    if draw(st.booleans()):
        event["args"] = {"correlation": tid, **draw(unknown)}
    row = (TABLES[category], name, start, max(length or 0, 0))
    if length is not None and length > 0 and draw(st.booleans()):
        end = {"ph": "E", "pid": 1, "tid": tid, "ts": (start + length) / 1000}
        return Made([{"ph": "B", **event}, end], row)
    if length is not None:
        event["dur"] = length / 1000
    return Made([{**event, "ph": "X"}], row)


@st.composite
def documents(draw: st.DrawFn) -> tuple[bytes, Counter[tuple[str, str, int, int]]]:
    rows = [draw(made(tid)) for tid in range(1, draw(st.integers(1, 8)))]
    wait = {
        "ph": "X",
        "cat": "cuda_runtime",
        "name": "cudaStreamSynchronize",
        "pid": 1,
        "tid": 1,
        "ts": 1.5,
        "dur": 0.5,
    }
    rows.append(Made([wait], ("runtime", "cudaStreamSynchronize", 1500, 500)))
    noise = [{"ph": "s", "id": 1, "cat": "ac2g", "name": "ac2g", "ts": 1, "pid": 1, "tid": 1}] * draw(st.integers(0, 2))
    events = draw(st.permutations([event for row in rows for event in row.events] + noise))
    before, after = draw(unknown), draw(unknown)
    base = {"baseTimeNanoseconds": BASE_NS}
    place = draw(st.sampled_from(["before", "after"]))
    document: Any = {
        **before,
        **(base if place == "before" else {}),
        "traceEvents": events,
        **(base if place == "after" else {}),
        **after,
    }
    if draw(st.booleans()):
        document = events
    text = json.dumps(
        document,
        indent=draw(st.sampled_from([None, 0, 2])),
        separators=draw(st.sampled_from([None, (",", ":"), (" , ", " : ")])),
        ensure_ascii=draw(st.booleans()),
    )
    if draw(st.booleans()):
        text = text.replace("\n", "\r\n")
    return text.encode(), Counter(row.row for row in rows)
