"""A trace with its findings as additional tracks, for Perfetto: https://perfetto.dev/docs.

The new events form a process of their own and stand before the trace's, whose bytes stay as they are. Written in the
trace event format that the trace itself has, so that every other viewer and reader of it takes them too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import count

import msgspec

from syncscope.patterns import compile_later
from syncscope.report.escape import terminal
from syncscope.report.perfetto_tracks import Slice, Track, make_tracks
from syncscope.rules import Hit
from syncscope.schema.findings import Finding
from syncscope.timeline import Timeline
from syncscope.timeline.tables import Activities

PROCESS = "syncscope"
PID = (1 << 22) + 1
"""Above every process that Linux numbers, and every device."""
FIRST = -1_000_000
"""Sorts before all other processes."""
ARROWS = 1 << 40
"""Arrows are numbered from here: viewers join those of one number, and Kineto's have the number of the call."""

_TOKEN = compile_later(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[\[\]{}]', re.DOTALL)
_SPACE = compile_later(rb"\s*")
_NAMED_STREAM = compile_later(rb'"tid"\s*:\s*"stream \d')
"""Kineto of 2021 puts a stream's work on a thread named after it; later ones on a thread of its number."""


def annotated(
    data: bytes | bytearray, timeline: Timeline, findings: Sequence[Finding], hits: Sequence[Hit]
) -> Iterator[bytes | memoryview]:
    """The pieces of the new file. ``data`` is the trace's JSON, ``findings`` those of its report, with their numbers;
    ``hits`` is what all rules found in it.

    Raises ``ValueError`` where ``data`` has no list of events to add to.
    """
    at, empty = _place(data)
    view = memoryview(data)
    yield view[:at]
    stream = "stream {}" if _NAMED_STREAM.search(data) else "{}"
    for number, event in enumerate(_events(timeline, make_tracks(timeline, findings, hits), stream)):
        yield (b",\n" if number else b"\n") + msgspec.json.encode(event)
    yield b"\n" if empty else b","
    yield view[at:]


def _place(data: bytes | bytearray) -> tuple[int, bool]:
    """The offset after the bracket that opens the list of events, and whether the list is empty."""
    depth, key = 0, b""
    for token in _TOKEN.finditer(data):
        text = token.group()
        if text in (b"{", b"["):
            if text == b"[" and (depth == 0 or (depth == 1 and key == b'"traceEvents"')):
                space = _SPACE.match(data, token.end())
                behind = space.end() if space else token.end()
                return token.end(), data[behind : behind + 1] == b"]"
            depth += 1
        elif text in (b"}", b"]"):
            depth -= 1
        elif depth == 1:
            key = bytes(text)
    raise ValueError("has no list of traceEvents")


def _events(timeline: Timeline, tracks: Sequence[Track], stream: str) -> Iterator[dict[str, object]]:
    yield _metadata("process_name", 0, name=PROCESS)
    yield _metadata("process_sort_index", 0, sort_index=FIRST)
    numbers = count(ARROWS)
    for tid, track in enumerate(tracks, 1):
        yield _metadata("thread_name", tid, name=terminal(track.label))
        yield _metadata("thread_sort_index", tid, sort_index=tid)
        for one in track.slices:
            yield _slice(one, tid)
            yield from _arrow(one, tid, timeline.activities, numbers, stream)


def _metadata(what: str, tid: int, **args: str | int) -> dict[str, object]:
    return {"ph": "M", "name": what, "pid": PID, "tid": tid, "args": args}


def _slice(one: Slice, tid: int) -> dict[str, object]:
    args = {name: terminal(value) if isinstance(value, str) else value for name, value in one.args.items()}
    times = {"ts": _us(one.ts), "dur": _us(one.end - one.ts)}
    return {"ph": "X", "cat": PROCESS, "name": terminal(one.name), "pid": PID, "tid": tid, **times, "args": args}


def _arrow(one: Slice, tid: int, work: Activities, numbers: Iterator[int], thread: str) -> Iterator[dict[str, object]]:
    """From a wait to the row of ``work`` that it waited for, which is on a ``thread`` of the process that has the
    device's number."""
    if one.waited_for < 0:
        return
    ts, end, device, stream = (int(column[one.waited_for]) for column in (work.ts, work.end, work.device, work.stream))
    met = max(one.ts, ts)  # inside both, and not before the arrow begins
    if min(device, stream) < 0 or not met < min(end, one.end):
        return
    arrow = {"cat": PROCESS, "name": "waited for", "id": next(numbers)}
    name = thread.format(stream)
    yield {"ph": "s", **arrow, "pid": PID, "tid": tid, "ts": _us(one.ts)}
    yield {"ph": "f", "bp": "e", **arrow, "pid": device, "tid": int(name) if name.isdecimal() else name, "ts": _us(met)}


def _us(ns: int) -> msgspec.Raw:
    """Microseconds with every nanosecond in them."""
    sign, ns = ("-", -ns) if ns < 0 else ("", ns)
    return msgspec.Raw(f"{sign}{ns // 1000}.{ns % 1000:03d}".encode())
