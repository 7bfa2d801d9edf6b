"""Hold every finding on a trace against what its raw events allow: ``python -m benchmarks.foreign.critic TRACE...``.

The events are read here, as plain JSON, and not by syncscope's reader. What is told here need not be wrong, but a
careful reader would stop at it: each line is to be looked at by hand. Prints a line for each, and exits with 1 when
there is any. Judgements (``score.py``) say what is right about some traces; these say what cannot be right about any.
"""

from __future__ import annotations

import gzip
import json
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import syncscope
from syncscope.schema.findings import Finding
from syncscope.schema.report import Report, TraceInfo

WAITS = ("SYN101", "SYN102", "SYN103", "SYN105", "SYN106", "SYN109", "SYN110")
KERNELS, COPIES = ("kernel",), ("gpu_memcpy", "memcpy", "gpu_memset", "memset")
HOST = ("cuda_runtime", "cuda_driver", "hip_runtime", "runtime", "cpu_op", "operator", "python_function")
COLLECTIVES = re.compile(
    r"nccl|rccl|all_?reduce|all_?gather|reduce_?scatter|sendrecv|cross_device|deep_ep::", re.IGNORECASE
)
PASSING_ON = re.compile(r"threading\.py|contextlib\.py|runpy\.py|importlib|torch/utils/_device|torch/overrides")
"""In the names of files whose functions only call others."""

CALL_MS = 0.04
"""Milliseconds that the call of a copy takes, at most: it goes with the wait for it."""

SLACK, LEAST_MS = 1.03, 0.01
LITTLE = 0.01
"""Share of the step that an error saves at least."""

LEFT_BEHIND = 500.0
"""Microseconds before the first row of the host, by which the device ended what an earlier recording left over."""

AHEAD = 1.5
"""A finding that likely gains this many times what the first one does belongs before it."""


@dataclass(frozen=True)
class Raw:
    """What the events of a trace say by themselves; lengths in ms, of the device with the most rows."""

    busy_ms: float
    compute_ms: float
    span_ms: float
    """From its first row to the end of its last."""
    devices: int
    prefix: str
    """``cuda`` or ``hip``, as runtime calls begin, ``""`` where there are none."""
    compiled: float
    """Share of the kernels that Triton made for ``torch.compile``."""


def read_raw(path: Path) -> Raw:
    data = path.read_bytes()
    document = json.loads(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data, strict=False)
    events = document["traceEvents"] if isinstance(document, dict) else document
    complete = [event for event in events if event.get("ph") == "X" and "ts" in event]
    kinds = [str(event.get("cat", "")).lower() for event in complete]
    ran = [event for event, kind in zip(complete, kinds, strict=True) if kind in KERNELS + COPIES]
    ran = list(_of_this_recording(ran, [e for e, kind in zip(complete, kinds, strict=True) if kind in HOST]))
    devices = [_device(event) for event in ran]
    main = max(set(devices), key=devices.count, default="")
    ran = [event for event, device in zip(ran, devices, strict=True) if device == main]
    kernels = [event for event in ran if str(event["cat"]).lower() in KERNELS]
    busy, computing = _length(ran), _length(event for event in kernels if not COLLECTIVES.search(event["name"]))
    span = max(map(_end, ran), default=0.0) - min((float(event["ts"]) for event in ran), default=0.0)
    calls = [event["name"] for event, kind in zip(complete, kinds, strict=True) if "runtime" in kind]
    prefix = next((text for text in ("hip", "cuda") if any(name.startswith(text) for name in calls)), "")
    made = sum(event["name"].startswith("triton_") for event in kernels)
    return Raw(busy / 1e3, computing / 1e3, span / 1e3, len(set(devices)), prefix, made / max(len(kernels), 1))


def _of_this_recording(ran: list[dict[str, Any]], host: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Rows of the device without those that an earlier recording left over: all that no call of this one launched, and
    that had ended before the host's first row."""
    first = min((float(event["ts"]) for event in host), default=float("-inf"))
    known = {(event.get("args") or {}).get("correlation") for event in host} - {None}
    before = [event for event in ran if float(event["ts"]) < first]
    last = max(map(_end, before), default=float("inf"))
    launched = any((event.get("args") or {}).get("correlation") in known for event in before)
    left_over = len(before) < len(ran) and not launched and first - last > LEFT_BEHIND
    return (event for event in ran if not left_over or float(event["ts"]) >= first)


def criticise(report: Report, raw: Raw) -> Iterator[str]:
    """What cannot be right, a sentence each, of the report on one trace."""
    info = report.traces[0]
    yield from _of_trace(report, info, raw)
    for finding in report.findings:
        for said in (*_of_amounts(finding, info, raw), *_of_words(finding, raw), *_of_place(finding)):
            yield f"{finding.rule} {finding.op or ''} × {finding.count}: {said}"


def _of_trace(report: Report, info: TraceInfo, raw: Raw) -> Iterator[str]:
    overlap = info.overlap
    if (
        overlap is not None
        and raw.devices == 1
        and not info.steps.count
        and _exceeds(abs(overlap.device_busy_ms - raw.busy_ms), 0.0)
    ):
        yield f"the device is busy for {raw.busy_ms:.3f} ms, not {overlap.device_busy_ms:.3f}"
    if overlap is not None:
        exposed = sum(one.exposed_ms_per_step or 0.0 for one in report.findings if one.rule == "OVL302")
        if info.steps.count and _exceeds(exposed, overlap.comm_exposed_ms):
            yield f"collectives are exposed for {exposed:.3f} ms in all, of {overlap.comm_exposed_ms:.3f}"
    needless = {entry.rule for entry in report.not_checked if entry.needless}
    if raw.compiled and any(rule.startswith("CMP") for rule in needless):
        yield "something is compiled, and the rules about that are said to have nothing to look for"
    if not report.findings:
        return
    first, best = report.findings[0], max(report.findings, key=lambda one: one.likely_saving_ms_per_step or 0.0)
    likely, most = best.likely_saving_ms_per_step or 0.0, first.saving_high_ms_per_step
    told = most is not None and first.severity != "note" and not best.saving_below_drift and best.severity != "note"
    if told and most is not None and likely > AHEAD * most and not first.rule.startswith("HAZ"):
        yield f"{first.rule} comes first and gains {most:.3f} ms at most, {best.rule} likely {likely:.3f}"


def _of_amounts(finding: Finding, info: TraceInfo, raw: Raw) -> Iterator[str]:
    steps = max(info.steps.count, 1)
    high, likely, low = (
        finding.saving_high_ms_per_step, finding.likely_saving_ms_per_step, finding.saving_low_ms_per_step
    )  # fmt: skip
    left = max(raw.span_ms, (info.steps.profiled_ms or 0.0) * steps) - raw.compute_ms
    if high is not None and raw.devices == 1 and _exceeds(high * steps, left):
        yield f"saves {high * steps:.3f} ms, and the device is without compute for {left:.3f}"
    blocked = finding.stall_ms if finding.rule in WAITS else None
    if blocked is not None and _exceeds((likely or 0.0) * steps, blocked + finding.count * CALL_MS):
        yield f"likely saves {(likely or 0.0) * steps:.3f} ms, and blocks for {blocked:.3f}"
    if likely is not None and high is not None and low is not None and not low - 1e-6 <= likely <= high + 1e-6:
        yield f"the likely saving {likely} is not within {low} to {high}"
    step_ms = info.replay.step_ms if info.replay else None
    if finding.severity == "error" and likely is not None and step_ms and likely < LITTLE * step_ms:
        yield f"an error likely saves {likely:.4f} of {step_ms:.3f} ms"
    if finding.causes and finding.idle_ms_per_step is not None:
        summed = sum(cause.ms_per_step for cause in finding.causes)
        if _exceeds(summed, finding.idle_ms_per_step):
            yield f"causes are idle for {summed:.3f} ms, of {finding.idle_ms_per_step:.3f}"


def _of_words(finding: Finding, raw: Raw) -> Iterator[str]:
    text = f"{finding.message} {finding.fix}"
    other = {"cuda": "hip", "hip": "cuda"}.get(raw.prefix)
    if other and (call := re.search(rf"\b{other}[A-Z]\w+", text)):
        yield f"names {call[0]}, and the calls of the trace begin with {raw.prefix}"
    if raw.compiled >= 0.5 and "larger kernels: torch.compile" in finding.fix:
        yield "advises torch.compile, which made most kernels"
    if left := re.search(r"\{\w+\}|\bnan\b|\bNone\b", text):
        yield f"has {left[0]} in it"


def _of_place(finding: Finding) -> Iterator[str]:
    site, at = finding.site, finding.at
    if site is not None and re.match(r"<python>|<site-packages>/torch/", site.file):
        yield f"is placed in {site.file}"
    if at is not None and PASSING_ON.search(at.file):
        yield f"is inside of {at.file}"


def _exceeds(ms: float, most: float) -> bool:
    return ms > SLACK * most + LEAST_MS


def _device(event: dict[str, Any]) -> str:
    return str((event.get("args") or {}).get("device", event.get("pid")))


def _end(event: dict[str, Any]) -> float:
    return float(event["ts"]) + float(event.get("dur") or 0)


def _length(events: Iterable[dict[str, Any]]) -> float:
    """Microseconds in which any of the events runs."""
    length, until = 0.0, float("-inf")
    for begin, end in sorted((float(event["ts"]), _end(event)) for event in events):
        length += max(end - max(begin, until), 0.0)
        until = max(until, end)
    return length


def main(paths: list[str]) -> int:
    wrong = 0
    for path in map(Path, paths):
        try:
            report, raw = syncscope.analyze(path), read_raw(path)
        except (syncscope.TraceError, json.JSONDecodeError) as error:
            print(f"{path}: not read: {error}")
            continue
        for said in criticise(report, raw):
            wrong += 1
            print(f"{path}: {said}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
