"""A trace of any size, made by repeating a real one: ``python -m benchmarks.repeat OUT --mb 1000 --steps 200``.

What lies inside the recorded steps is repeated, each time later and with ids of its own (correlation, External id,
Python id, …), in the very bytes that the profiler writes. The step rows are written anew, so that ``--steps`` of them
cover it all: as many as were recorded, or fewer and longer ones. OUT is gzipped when it ends so.
"""

from __future__ import annotations

import argparse
import gzip
import itertools
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, cast

import numpy as np
from isal import igzip

HERE = Path(__file__).parent
STACKED = HERE / "stacked.json.gz"
BASE = STACKED if STACKED.exists() else HERE.parent / "fixtures" / "traces" / "generate" / "full.json.gz"

_BETWEEN = re.compile(r"\n  \},\s*\n  \{")  # two events, in the profiler's layout
_KINDS = {
    "ts": "ts",
    "correlation": "correlation",
    "wait_on_cuda_event_record_corr_id": "correlation",
    "id": "correlation",
    "External id": "external",
    "Ev Idx": "index",
    "Record function id": "function",
    "Sequence number": "sequence",
    "Python id": "python",
    "Python parent id": "python",
}
_NUMBER = re.compile(rf'"({"|".join(_KINDS)})": (\d+(?:\.\d+)?)')
_STEP = re.compile(r"ProfilerStep#\d+")
_TIMED = {"cpu_op", "cuda_runtime", "cuda_driver", "kernel", "gpu_memcpy", "gpu_memset", "cuda_sync"}


@dataclass
class Base:
    """A recorded trace, ready to be repeated."""

    head: str  # up to the first event
    metadata: str  # events written once
    literals: list[str]  # of the events repeated; a number between each two of them
    kinds: np.ndarray[Any, Any]
    numbers: np.ndarray[Any, Any]  # int64; times in ns
    events: int
    starts: list[int]  # of the steps, ns
    first: int
    span: int  # ns from one copy to the next
    thread: tuple[Any, Any]  # pid and tid that step
    recording: dict[str, Any] | None
    base_ns: int

    def size(self) -> int:
        """Bytes of one copy."""
        return sum(map(len, self.literals)) + sum(len(str(number)) for number in self.numbers.tolist())


def read(path: Path) -> Base:
    """The recorded trace at ``path``. Raises ``SystemExit`` for a file of another layout, and for one without steps."""
    raw = path.read_bytes()
    text = (gzip.decompress(raw) if raw.startswith(b"\x1f\x8b") else raw).decode()
    document = json.loads(text)
    head, list_start, rest = text.partition('"traceEvents": [')
    texts = _BETWEEN.split(rest)
    texts[0] = texts[0].lstrip().removeprefix("{")
    events = document["traceEvents"]
    if len(texts) != len(events):
        raise SystemExit(f"{path}: not in the profiler's own layout")
    end = re.search(r"\n  \}", texts[-1])
    texts[-1] = texts[-1][: end.start() if end else None]
    steps = [e for e in events if e.get("cat") == "user_annotation" and _STEP.fullmatch(e["name"])]
    if not steps:
        raise SystemExit(f"{path}: holds no steps")
    kept = _inside(events, steps)
    body = "".join(f"\n  {{{texts[row]}\n  }}," for row in kept)
    pieces = _NUMBER.split(body)
    kinds = np.array([_KINDS[key] for key in pieces[1::3]])
    numbers = np.array([_ns(n) if k == "ts" else int(n) for k, n in zip(kinds, pieces[2::3], strict=True)], np.int64)
    literals = [literal + f'"{key}": ' for literal, key in zip(pieces[0::3], pieces[1::3], strict=False)]
    complete = [events[row] for row in kept if events[row]["ph"] == "X"]
    first = min(_ns(e["ts"]) for e in complete)
    return Base(
        head=head + list_start,
        metadata="".join(f"\n  {{{t}\n  }}," for t, e in zip(texts, events, strict=True) if e["ph"] == "M"),
        literals=[*literals, pieces[-1]],
        kinds=kinds,
        numbers=numbers,
        events=len(kept),
        starts=sorted(_ns(e["ts"]) for e in steps),
        first=first,
        span=max(_ns(e["ts"]) + _ns(e.get("dur", 0)) for e in complete) - first + 10_000,
        thread=(steps[0]["pid"], steps[0]["tid"]),
        recording=document.get("syncscope"),
        base_ns=int(document.get("baseTimeNanoseconds", 0)),
    )


def _ns(us: Any) -> int:
    whole, _, fraction = str(us).partition(".")
    return int(whole) * 1000 + int(f"{fraction:0<3}"[:3])


def _inside(events: list[dict[str, Any]], steps: list[dict[str, Any]]) -> list[int]:
    """The events of the steps: what the profiler itself did before and after would otherwise lie between them."""
    begin = min(e["ts"] for e in steps)
    end = max(e["ts"] + e["dur"] for e in steps)
    on_time = [begin <= e.get("ts", 0) <= end for e in events]
    launched = {
        e["args"].get("correlation")
        for e, inside in zip(events, on_time, strict=True)
        if inside and e.get("cat") in ("cuda_runtime", "cuda_driver")
    }
    kept = []
    for row, (event, inside) in enumerate(zip(events, on_time, strict=True)):
        category = event.get("cat")
        joined = event.get("args", {}).get("correlation") in launched
        timed = (joined if category in ("kernel", "gpu_memcpy", "gpu_memset") else inside) or category not in _TIMED
        if event["ph"] in "Xsf" and category not in ("Trace", "overhead") and not _STEP.match(event["name"]) and timed:
            kept.append(row)
    return kept


def copies(base: Base, count: int) -> Iterator[str]:
    """The text of each copy."""
    order = {kind: np.flatnonzero(base.kinds == kind) for kind in set(_KINDS.values())}
    stride = {kind: int(base.numbers[rows].max(initial=0)) + 1 for kind, rows in order.items()} | {"ts": base.span}
    step = np.array([stride[kind] for kind in base.kinds.tolist()], dtype=np.int64)
    step[(base.numbers == 0) & (base.kinds != "index")] = 0  # no id
    is_time = base.kinds == "ts"
    text: list[str] = [""] * (2 * len(base.literals) - 1)
    text[0::2] = base.literals
    for copy in range(count):
        shifted = (base.numbers + copy * step).tolist()
        text[1::2] = [
            f"{n // 1000}.{n % 1000:03d}" if time else str(n) for n, time in zip(shifted, is_time, strict=True)
        ]
        yield "".join(text)


def step_bounds(base: Base, count: int, steps: int) -> list[int]:
    """Where the steps begin, ns, and the end of the last."""
    units = [start + copy * base.span for copy in range(count) for start in base.starts]
    if not 0 < steps <= len(units):
        raise SystemExit(f"{len(units)} steps are in it at most, not {steps}")
    return [units[step * len(units) // steps] for step in range(steps)] + [base.first + count * base.span]


def write(path: Path, *, base: Path = BASE, mb: float = 0, events: int = 0, steps: int = 0) -> int:
    """Write a trace of about ``mb`` MB (inflated) or ``events`` events in ``steps``; how many events it has."""
    recorded = read(base)
    count = max(1, round(mb * 1e6 / recorded.size()) if mb else round(events / recorded.events))
    bounds = step_bounds(recorded, count, steps or count * len(recorded.starts))
    opened = igzip.IGzipFile(path, "wb", compresslevel=3) if path.name.endswith(".gz") else path.open("wb")
    with cast("IO[bytes]", opened) as file:
        file.write((recorded.head + recorded.metadata).encode())
        for text in copies(recorded, count):
            file.write(text.encode())
        file.write(_step_rows(recorded, bounds).encode())
        if recorded.recording is not None:
            file.write(f',\n  "syncscope": {json.dumps(_recording(recorded, count, bounds))}'.encode())
        file.write(b"\n}\n")
    return count * recorded.events + len(bounds) - 1


def _step_rows(base: Base, bounds: list[int]) -> str:
    """The rows of the steps, the list's end, and the keys that some versions write after it."""
    pid, tid = (json.dumps(part) for part in base.thread)
    rows = [
        f'\n  {{\n    "ph": "X", "cat": "user_annotation", "name": "ProfilerStep#{number}", "pid": {pid}, "tid": {tid},'
        f'\n    "ts": {start // 1000}.{start % 1000:03d}, "dur": {(end - start - 1000) // 1000}.000,'
        f'\n    "args": {{\n      "External id": 0\n    }}\n  }}'
        for number, (start, end) in enumerate(itertools.pairwise(bounds))
    ]
    after = "" if "baseTimeNanoseconds" in base.head else f',\n  "baseTimeNanoseconds": {base.base_ns}'
    return ",".join(rows) + "\n  ]" + after


def _recording(base: Base, count: int, bounds: list[int]) -> dict[str, Any]:
    """Our own key, its sites repeated with the events; a bare step is of the recorded length only."""
    recording = dict(base.recording or {})
    if len(bounds) - 1 != count * len(base.starts):
        recording["bare"] = None
    recording["steps"] = {**recording["steps"], "boundaries_ns": [base.base_ns + bound for bound in bounds]}
    recording["sites"] = [
        {**site, "start_ns": site["start_ns"] + copy * base.span, "end_ns": site["end_ns"] + copy * base.span}
        for copy in range(count)
        for site in recording["sites"]
    ]
    return recording


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--trace", type=Path, default=BASE, help="what is repeated")
    size = parser.add_mutually_exclusive_group(required=True)
    size.add_argument("--mb", type=float, default=0)
    size.add_argument("--events", type=int, default=0)
    parser.add_argument("--steps", type=int, default=0, help="default: as many as were recorded")
    args = parser.parse_args()
    events = write(args.out, base=args.trace, mb=args.mb, events=args.events, steps=args.steps)
    print(f"{args.out}: {events:,} events, {args.out.stat().st_size / 1e6:,.0f} MB on disk")


if __name__ == "__main__":
    main()
