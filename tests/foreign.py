"""Traces that others recorded, where ``SYNCSCOPE_EXTRA_TRACES`` names their folder, and what one holds by plain reading
of its JSON: nothing here uses the code that is tested."""

from __future__ import annotations

import csv
import gzip
import json
import os
import re
from collections import Counter
from functools import cached_property
from itertools import pairwise
from math import inf
from pathlib import Path

EXTRA = os.environ.get("SYNCSCOPE_EXTRA_TRACES") or None

Span = tuple[float, float]
"""Begin and end, µs."""

RUNTIME = {"cuda_runtime", "cuda_driver", "runtime"}
OLD = {"operator": "cpu_op", "kernel": "kernel", "memcpy": "gpu_memcpy", "memset": "gpu_memset"}
BLOCKS = re.compile(r"(?:cuda|hip)(?:Stream|Device|Event)Synchronize|(?:cuda|hip)Memcpy|hipMemcpyWithStream")
READS = {"aten::_local_scalar_dense", "aten::item", "aten::is_nonzero", "aten::equal"}
COUNTS = {"aten::nonzero", "aten::masked_select", "aten::_unique2", "aten::repeat_interleave"}
TALKS = re.compile(r"nccl|multimem_all_reduce|::ep::internode", re.IGNORECASE)
HIP_KINDS = {"0": "HtoH", "1": "HtoD", "2": "DtoH", "3": "DtoD"}


def index() -> list[dict[str, str]]:
    """The rows of the folder's INDEX.csv, which says what each file is; none without a folder."""
    if EXTRA is None:
        return []
    with (Path(EXTRA) / "INDEX.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def raw_events(path: Path) -> list[dict]:
    """The complete events of a chrome trace."""
    data = path.read_bytes()
    text = (gzip.decompress(data) if data.startswith(b"\x1f\x8b") else data).decode("utf-8", "replace")
    document = json.loads(text, strict=False)
    events = document if isinstance(document, list) else document["traceEvents"]
    return [event for event in events if event.get("ph") == "X"]


class Plain:
    """What a foreign trace holds, counted event by event."""

    def __init__(self, path: Path) -> None:
        self.events: dict[str, list[dict]] = {}
        for event in raw_events(path):
            category = str(event.get("cat")).lower()
            category = "runtime" if category in RUNTIME else OLD.get(category, category)
            self.events.setdefault(category, []).append(event)
        self.calls = self.events.get("runtime", [])
        marks = self._all("user_annotation", "cpu_op")
        self.steps = [span(e) for e in marks if e["name"].startswith("ProfilerStep#")]
        if len(self.steps) > 1 and not self._does_anything(max(self.steps)):
            self.steps.remove(max(self.steps))  # from the last step() to the profiler's end
        self.source = "profiler" if self.steps else "none"
        ends = sorted(span(e)[1] for e in marks if e["name"].startswith("Optimizer.step#"))
        if not self.steps and len(ends) > 2:  # of one optimizer
            self.steps, self.source = list(pairwise(ends)), "optimizer"

    @property
    def step_ms(self) -> float:
        """Milliseconds a step takes: of a single one, until the device has done what it launched, where that alone
        takes the device longer."""
        length = sum(end - begin for begin, end in self.steps) / len(self.steps)
        done = self._outlasts()
        return (length if done is None else done - self.steps[0][0]) / 1000

    def _outlasts(self) -> float | None:
        """When the device has done what a single step launched, where that alone, without collectives, takes it longer
        than the step takes on the host."""
        if len(self.steps) != 1:
            return None
        own = []
        for row in self._all("kernel", "gpu_memcpy", "gpu_memset"):
            call = self._launch(row)
            if call is not None and self._counts(call):
                own.append(row)
        work = [span(row) for row in own if not TALKS.search(row["name"])]
        begin, end = self.steps[0]
        outlasts = covered(work, (begin, inf)) > end - begin
        return max(span(row)[1] for row in own) if outlasts else None

    @cached_property
    def waits(self) -> list[dict]:
        """Blocking calls inside the steps (anywhere where there are none), in order.

        The last device sync that no op encloses is the profiler's own.
        """
        blocking = [call for call in self.calls if BLOCKS.fullmatch(call["name"])]
        device = [c for c in blocking if c["name"].endswith("DeviceSynchronize") and not self._ops_around(c)]
        own = max(device, key=lambda call: call["ts"], default=None)
        mine = [call for call in blocking if call is not own and self._counts(call)]
        return sorted(mine, key=lambda call: call["ts"])

    @property
    def waits_by_rule(self) -> Counter[str]:
        """The waits by the rule that the ops around them ask for."""
        return Counter(self._rule(call) for call in self.waits)

    @cached_property
    def pageable_copies(self) -> Counter[str]:
        """Copies from or to pageable memory inside the steps, by direction, but for those that bring one value or a
        size."""
        found: Counter[str] = Counter()
        for copy in self._all("gpu_memcpy"):
            launch = self._launch(copy)
            if "Pageable" in copy["name"] and self._counts(launch or copy):
                wanted = launch is None or self._rule(launch) not in ("SYN102", "SYN103", "SYN109")
                found[copy["name"].split()[1]] += wanted
        return found

    @cached_property
    def device_ms(self) -> dict[str, float]:
        """Milliseconds a step in which the busiest device did anything, computed, copied to or from the host, and
        communicated."""
        rows = self._all("kernel", "gpu_memcpy", "gpu_memset")
        where = Counter(row["args"].get("device", row["pid"]) for row in rows)
        busiest = max(where, key=lambda device: where[device], default=None)
        mine = [row for row in rows if row["args"].get("device", row["pid"]) == busiest]
        window = self._window(mine)
        kernels = [row for row in mine if row["cat"].lower() == "kernel"]
        talks = [row for row in kernels if TALKS.search(row["name"])]
        computes = [row for row in kernels if not TALKS.search(row["name"])]
        copies = [row for row in mine if row["cat"].lower().endswith("memcpy") and self._direction(row) != "DtoD"]
        parts = {"device_busy_ms": mine, "compute_ms": computes, "copy_ms": copies, "comm_ms": talks}
        steps = max(len(self.steps), 1)
        return {name: covered([span(e) for e in events], window) / 1000 / steps for name, events in parts.items()}

    def _window(self, rows: list[dict]) -> Span:
        """What is counted of a device: from the first step's begin to the last's end, but where it is a tenth of a step
        or more behind the host at both, from the end of what was launched before to that of what the steps launched."""
        whole = self.steps or [span(row) for row in rows]
        begin, end = (min(s[0] for s in whole), max(s[1] for s in whole)) if whole else (0.0, 0.0)
        calls = [self._launch(row) for row in rows]
        own = [row for row, call in zip(rows, calls, strict=True) if call is not None and self._counts(call)]
        if len(self.steps) < 2 or not own:
            return begin, self._outlasts() or end
        first: dict[object, float] = {}
        for row in own:
            stream = row["args"].get("stream", row["tid"])
            first[stream] = min(first.get(stream, inf), row["ts"])
        before = [
            span(row)[1]
            for row, call in zip(rows, calls, strict=True)
            if (
                row["ts"] < first.get(row["args"].get("stream", row["tid"]), begin)
                if call is None
                else call["ts"] < begin
            )
        ]
        least = 0.1 * (end - begin) / len(self.steps)
        shifted = max([begin, *before]), max(span(row)[1] for row in own)
        lags = min(shifted[0] - begin, shifted[1] - end) >= least and shifted[0] < shifted[1]
        return shifted if lags else (begin, end)

    def _does_anything(self, step: Span) -> bool:
        """Whether an op or a call begins in a step, where the trace holds any."""
        rows = self._all("cpu_op", "runtime")
        return not rows or any(step[0] <= row["ts"] < step[1] for row in rows)

    def _all(self, *categories: str) -> list[dict]:
        return [event for category in categories for event in self.events.get(category, [])]

    def _counts(self, event: dict) -> bool:
        return not self.steps or any(begin <= event["ts"] < end for begin, end in self.steps)

    def _launch(self, row: dict) -> dict | None:
        return self._launches.get(row["args"].get("correlation"))

    @cached_property
    def _launches(self) -> dict[object, dict]:
        return {call["args"].get("correlation"): call for call in self.calls if "args" in call}

    def _direction(self, copy: dict) -> str:
        """As the launching HIP call says, else by the name."""
        launch = self._launch(copy)
        kind = (launch or {"args": {}})["args"].get("kind")
        return HIP_KINDS.get(str(kind), copy["name"].split()[1])

    def _ops_around(self, call: dict) -> list[str]:
        begin, end = span(call)
        around = [
            op["name"]
            for op in self.events.get("cpu_op", [])
            if op["tid"] == call["tid"] and op["ts"] <= begin and op["ts"] + op.get("dur", 0) >= end
        ]
        return [name for name in around if "::" in name and not name.startswith(("autograd::", "torch::autograd"))]

    def _rule(self, call: dict) -> str:
        ops = self._ops_around(call)
        if not ops:
            return "SYN105"
        if any(not name.startswith("aten::") for name in ops):
            return "SYN109"
        if COUNTS.intersection(ops):
            return "SYN103"
        return "SYN102" if READS.intersection(ops) else "SYN101" if "aten::copy_" in ops else "SYN109"


def span(event: dict) -> Span:
    return event["ts"], event["ts"] + event.get("dur", 0)


def covered(spans: list[Span], window: Span) -> float:
    """Length of the union of ``spans`` inside ``window``."""
    total, reached = 0.0, window[0]
    for begin, end in sorted(spans):
        begin, end = max(begin, reached), min(end, window[1])
        total += max(end - begin, 0)
        reached = max(reached, end)
    return total
