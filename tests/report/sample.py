"""A report and its lanes, small enough to draw on paper: three steps of 6 ms, two waits, a pageable copy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np

from syncscope.report.picture.draw import find_series, pack_columns, pack_links
from syncscope.report.picture.lanes import (
    BARS,
    MEMORY,
    Lane,
    Lanes,
    Spot,
    StepMark,
)
from syncscope.report.picture.rows import KIND
from syncscope.schema.findings import Finding, Frame, Severity, Site, Sketch, SketchLane, Status, fingerprint
from syncscope.schema.hta import HTA, HTATable
from syncscope.schema.report import Coverage, NotChecked, Overlap, Replay, Report, Stale, Steps, Tool, TraceInfo
from syncscope.timeline.intervals import Ints

MS = 1_000_000
SCALAR_READ, PAGEABLE_COPY, NOT_OVERLAPPED = range(3)
"""Numbers of findings that the sample's bars name."""
HOSTILE = "</script><b>bold</b><img src=x onerror=alert(1)>&amp;\u202e\u2028"
"""Breaks out of a script, is markup for HTML and for plotly, an entity, and text direction."""


def finding(
    rule: str,
    name: str,
    line: int | None,
    expression: str | None,
    *,
    severity: Severity = "warning",
    status: Status = "unexpected",
    reason: str | None = None,
    stall: float | None = None,
    saving: float | None = None,
    op: str = "aten::item",
    rank: int | None = None,
    nbytes: int | None = None,
    per_step: float | None = 1.0,
    first_ns: int | None = None,
    after: Sketch | None = None,
    number: int | msgspec.UnsetType = msgspec.UNSET,
    message: str = "The host waits for everything queued before it.",
    fix: str = "Keep the value on the device and read it once an epoch.",
) -> Finding:
    site = None
    chain: tuple[Frame, ...] = ()
    if line is not None:
        site = Site(file="train.py", line=line, function="train_step", expression=expression)
        library = Frame(file="<site-packages>/lib/metrics.py", line=88, function="Meter.update")
        call = Frame(file="train.py", line=line, function="train_step")
        chain = (Frame(file="train.py", line=90, function="main"), call, library)
    return Finding(
        rule=rule, name=name, severity=severity, status=status, reason=reason, site=site,
        at=chain[-1] if chain else None, chain=chain, site_source="hook" if site else "op",
        annotation=None if site else "## solve ##", rank=rank,
        thread="MainThread", op=op, count=int(3 * (per_step or 1)), per_step=per_step, bytes=nbytes,
        stall_ms_per_step=stall, stall_ms=None if stall is None else stall * 3, saving_ms_per_step=saving,
        saving_low_ms_per_step=None if saving is None else saving * 0.8,
        saving_high_ms_per_step=None if saving is None else saving * 1.2,
        saving_null_why=None if saving is not None else "no bare step time was recorded",
        first_ns=first_ns, after=after, message=message, fix=fix,
        fingerprint=fingerprint(rule, "train.py", "train_step", expression or op, 0), number=number,
    )  # fmt: skip


def findings(rank: int | None = None) -> tuple[Finding, ...]:
    start = 1000 * MS
    return (
        finding("SYN102", "scalar-read", 42, "loss.item()", severity="error", stall=1.63, saving=0.19, rank=rank,
                first_ns=start + 3_250_000, nbytes=12, number=SCALAR_READ, after=sketch(4.9, "000000000", "999999999")),
        finding("CPY201", "pageable-copy", 31, "batch.to(device, non_blocking=True)", stall=0.42, op="aten::copy_",
                nbytes=3 * 4_194_304, rank=rank, first_ns=start + MS // 2, number=PAGEABLE_COPY,
                message="4.0 MiB a step are copied from pageable memory, so the host blocks inside the copy.",
                fix="Let the DataLoader pin in its own thread: DataLoader(..., pin_memory=True)."),
        finding("OVL301", "copy-not-overlapped", 31, "batch.to(device, non_blocking=True)", op="aten::copy_",
                severity="note", rank=rank, number=NOT_OVERLAPPED,
                message="Exposed 0.40 ms a step: the memory is pageable."),
        finding("SYN105", "explicit-sync", 58, "torch.cuda.synchronize()", status="expected", rank=rank, per_step=None,
                reason="timing of the epoch", op="cudaDeviceSynchronize", stall=0.02, saving=0.0),
        finding("SYN109", "library-sync", None, None, severity="note", status="baseline", op="aten::linalg_inv_ex",
                rank=rank, stall=0.01),
    )  # fmt: skip


def sketch(step_ms: float, *busy: str) -> Sketch:
    """A step with the host's waits and one stream."""
    labels = ("host blocked", "stream 7")
    return Sketch(step_ms=step_ms, lanes=tuple(SketchLane(label=a, busy=b) for a, b in zip(labels, busy, strict=True)))


REPLAY = Replay(
    misfit=0.0012, host_scale=0.93, assumptions=("pinned copies are taken to run at 55 GB/s",),
    before=sketch(5.1, "0000099000", "0999999990"),
)  # fmt: skip


TABLES = HTA(
    release="traceinsight 0.6.1",
    last_step_left_out=True,
    rounded=True,
    tables=(
        HTATable(
            analysis="idle_time_breakdown",
            columns=("stream", "idle_category", "idle_time", "idle_time_ratio"),
            rows=((7, "host_wait", 18669, 0.98), (7, "other", 68, None)),
        ),
        HTATable(analysis="critical_path", why="needs CPU ops, which this trace does not hold"),
    ),
)


def trace_info(path: str = "runs/trace.json.gz", rank: int | None = None) -> TraceInfo:
    return TraceInfo(
        path=path, rank=rank, device="NVIDIA H200", torch="2.11.0+cu130",
        has=("runtime", "cpu_op", "cuda_sync", "sites", "steps"),
        steps=Steps(count=3, profiled_ms=6.0, bare_ms=5.1, source="optimizer"),
        coverage=Coverage(waits=9, with_line=6),
        overlap=Overlap(
            device_busy_ms=4.4, compute_ms=3.9, copy_ms=0.7, copy_exposed_ms=0.4, comm_ms=0.6, comm_exposed_ms=0.1,
            idle_ms=1.6, idle_by_cause={"wait": 0.9, "host work": 0.7},
        ),
        replay=REPLAY,
        hta=TABLES,
        warnings=("The file was cut short: read up to the last whole event.",),
    )  # fmt: skip


def report(infos: Sequence[TraceInfo] | None = None, found: Sequence[Finding] | None = None) -> Report:
    return Report(
        tool=Tool(name="syncscope", version="0.1.0"),
        traces=tuple(infos) if infos is not None else (trace_info(),),
        findings=tuple(found) if found is not None else findings(),
        saving_all_ms_per_step=0.4,
        not_checked=(NotChecked(rule="HAZ401", why="needs a recording with --hazards"),),
        stale=(Stale(rule="SYN103", where="pyproject.toml:41", reason="mask in the data loader"),),
    )


class _Draft:
    """Bars by lane. A link names the bar itself, since a bar's number is only known at the end."""

    def __init__(self, *lanes: str) -> None:
        self.lanes = lanes
        self.names: list[str] = []
        self.rows: list[dict[str, Any]] = []

    def add(
        self, lane: str, ts: float, dur: float, kind: str, name: str, memory: str = "", **more: Any
    ) -> dict[str, Any]:
        if name not in self.names:
            self.names.append(name)
        row = {
            "lane": self.lanes.index(lane), "kind": KIND[kind], "ts": int(ts * MS), "dur": int(dur * MS),
            "name": self.names.index(name), "memory": MEMORY.index(memory), "bytes": -1, "spot": -1, "merged": 1,
            "gaps": 0, "link": None, **more,
        }  # fmt: skip
        self.rows.append(row)
        return row

    def table(self) -> dict[str, Ints]:
        rows = sorted(self.rows, key=lambda row: (row["lane"], row["kind"], row["ts"]))
        number = {id(row): i for i, row in enumerate(rows)}
        linked = [{**row, "link": number.get(id(row["link"]), -1)} for row in rows]
        return {name: np.array([row[name] for row in linked], np.int64) for name in ("lane", "kind", "link", *BARS)}


def lanes(path: str = "runs/trace.json.gz", rank: int | None = None, kernel: str = "ampere_sgemm_128x64_tn") -> Lanes:
    draft = _Draft("main", "loader", "idle", "s7", "s20")
    spots = (
        Spot(file="train.py", line=42, findings=(SCALAR_READ,)),
        Spot(file="train.py", line=31, findings=(PAGEABLE_COPY, NOT_OVERLAPPED)),
    )
    for step in range(3):
        t = step * 6.0
        draft.add("main", t, 5.9, "annotation", f"Optimizer.step#SGD.step {step}")
        copy = draft.add("s7", t + 0.52, 0.4, "HtoD", "Memcpy HtoD (Pageable -> Device)", bytes=4_194_304,
                         memory="pageable", spot=1)  # fmt: skip
        draft.add("main", t + 0.3, 0.65, "op", "aten::to")
        draft.add("main", t + 0.5, 0.42, "wait", "cudaMemcpyAsync", bytes=4_194_304, spot=1, link=copy)
        draft.add("s7", t + 0.52, 0.4, "exposed", "exposed")
        for i in range(12):
            k = draft.add("s7", t + 1.2 + i * 0.3, 0.26, "compute", kernel if i % 3 else "elementwise_kernel<4, Add>")
            draft.add("main", t + 1.0 + i * 0.12, 0.11, "op", "aten::linear")
            draft.add("main", t + 1.03 + i * 0.12, 0.02, "launch", "cudaLaunchKernel", link=k)
        draft.add("s20", t + 3.2, 0.6, "collective", "ncclDevKernel_AllReduce_Sum_f32_RING_LL")
        read = draft.add("s7", t + 4.9, 0.003, "DtoH", "Memcpy DtoH (Device -> Pinned)", bytes=4, memory="pinned",
                         spot=0)  # fmt: skip
        draft.add("main", t + 3.2, 1.75, "op", "aten::item")
        wait = draft.add("main", t + 3.25, 1.66, "wait", "cudaStreamSynchronize", spot=0, link=read)
        draft.add("loader", t + 0.1, 3.0, "op", "enumerate(DataLoader)", merged=40)
        draft.add("idle", t, 0.52, "idle", "host work")
        draft.add("idle", t + 4.903, 1.097, "idle", "wait", link=wait)
    table = draft.table()
    return Lanes(
        path=path, rank=rank, start_ns=1000 * MS, dur=18 * MS,
        steps=tuple(StepMark(number=100 + i, ts=i * 6 * MS, dur=6 * MS, until=(i + 1) * 6 * MS) for i in range(3)),
        names=tuple(draft.names), spots=spots,
        lanes=(
            Lane(label="MainThread", place="host", tid=1),
            Lane(label="pt_data_worker", place="host", tid=2),
            Lane(label="idle", place="idle", device=0),
            Lane(label="stream 7", place="stream", device=0, stream=7),
            Lane(label="stream 20", place="stream", device=0, stream=20),
        ),
        series=find_series(table["lane"], table["kind"]), bars=pack_columns(table), links=pack_links(table["link"]),
        blocked_ms_per_step=2.08,
        events=int(table["merged"].sum()), events_merged=3 * 40,
        sources={"train.py": {"40": "    out = model(batch)", "41": "    loss = criterion(out, y)",
                              "42": "    running += loss.item()", "43": "    loss.backward()"}},
    )  # fmt: skip
