"""Recordings as they are kept: without what no analysis reads, so that they are small."""

from __future__ import annotations

import gzip
from pathlib import Path

import msgspec

FLOWS = ("s", "t", "f")
"""Phases of the arrows between rows: correlation ids tell the same."""

UNREAD = frozenset({
    "Ev Idx", "Record function id", "cbid", "queued", "context", "registers per thread", "shared memory", "block",
    "blocks per SM", "warps per SM", "grid", "est. achieved occupancy %",
})  # fmt: skip
"""Arguments of rows."""


def keep(trace: Path, target: Path) -> None:
    """Write a trace of the collector to ``target``, slimmed. The same trace gives the same bytes."""
    document = msgspec.json.decode(gzip.decompress(trace.read_bytes()))
    events = [event for event in document["traceEvents"] if event.get("ph") not in FLOWS]
    for event in events:
        if "args" in event:
            event["args"] = {name: value for name, value in event["args"].items() if name not in UNREAD}
    slimmed = msgspec.json.encode({**document, "traceEvents": events})
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(gzip.compress(slimmed, 9, mtime=0))
