"""The whole run of a program, for reports that have one: 412 steps of training, an evaluation every hundred steps, and
the end of an epoch.

``python -m tests.report.sample_run FOLDER`` writes the report of a fixture with it, to be looked at.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from syncscope.analysis.analyze import analyze
from syncscope.report.html import render
from syncscope.report.text import to_text
from syncscope.schema.findings import Finding, Site
from syncscope.schema.report import Coverage, Report, Steps, TraceInfo
from syncscope.schema.run import Counted, Phase, Run, StepTime, Stretch
from tests.report import sample

START, TRAIN, EVALUATE, EPOCH_END = range(4)
RATES = (None, 2.1, 3.0, None)
ROUNDS = 4
SECONDS = 61.2


def phases(one_in: float = 1.0) -> tuple[Phase, ...]:
    return (
        Phase(name="start", kind="start", where=None, steps=0, counted_steps=0, one_in=1.0, times=1, share=0.034,
              step_ms=None, waits_per_step=None, recorded=False),
        Phase(name="train", kind="train", where="train.py:42 main", steps=412, counted_steps=int(412 / one_in),
              one_in=one_in, times=5, share=0.81, step_ms=StepTime(median=98.1, p95=140.0), waits_per_step=2.1,
              recorded=True, recorded_steps=(16, 38)),
        Phase(name="evaluate", kind="evaluate", where="train.py:77 estimate_loss", steps=80, counted_steps=80,
              one_in=1.0, times=4, share=0.12, step_ms=StepTime(median=88.5, p95=91.2), waits_per_step=3.0,
              recorded=False),
        Phase(name="epoch end", kind="epoch end", where="train.py:61 main", steps=0, counted_steps=0, one_in=1.0,
              times=4, share=0.036, step_ms=None, waits_per_step=None, recorded=False),
    )  # fmt: skip


def stretches() -> tuple[Stretch, ...]:
    found: list[Stretch] = []

    def add(phase: int, seconds: float, steps: int = 0, *, waits: float | None = None, windows: bool = False) -> None:
        start = found[-1].start_s + found[-1].seconds if found else 0.0
        rate = RATES[phase] if waits is None else waits
        found.append(
            Stretch(start_s=start, seconds=seconds, phase=phase, steps=steps, waits_per_step=rate, windows=windows)
        )

    add(START, 2.1)
    add(TRAIN, 0.9, 9, waits=3.0)
    for number in range(ROUNDS):
        if number == 0:
            add(TRAIN, 0.6, 3, windows=True)
            add(TRAIN, 0.4, 4)
            add(TRAIN, 3.4, 23, windows=True)
        for _ in range(10):
            add(TRAIN, 1.05 if number else 0.62, 10 if number else 7, waits=2.0 + 0.1 * (len(found) % 3))
        add(EVALUATE, 1.85, 20)
        add(EPOCH_END, 0.55)
    add(TRAIN, 0.2, 3)
    whole = found[-1].start_s + found[-1].seconds
    return tuple(
        msgspec.structs.replace(one, start_s=one.start_s * SECONDS / whole, seconds=one.seconds * SECONDS / whole)
        for one in found
    )


def run(**changes: Any) -> Run:
    one_in = changes.pop("one_in", 1.0)
    made = Run(
        id="a1", seconds=SECONDS, complete=True, stopped=False, steps=412,
        counted=Counted(one_in=one_in, overhead_share=0.004), phases=phases(one_in), stretches=stretches(),
    )  # fmt: skip
    return msgspec.structs.replace(made, **changes)


def rate(one: Finding, per_step: float | None, occurrences: int, **changes: Any) -> Finding:
    """The finding with its frequency in the run, in training unless the changes say otherwise."""
    known = {
        "phase": "train", "run_per_step": per_step, "run_per_step_low": per_step, "run_per_step_high": per_step,
        "occurrences": occurrences, "run_steps": (0, 411),
    }  # fmt: skip
    return msgspec.structs.replace(one, **(known | changes))


def counted_only() -> Finding:
    """A line of the evaluation that no window recorded."""
    made = sample.finding("SYN100", "unexplained-wait", 80, "losses.append(loss.cpu())", op="")
    site = Site(file="train.py", line=80, function="estimate_loss", expression="losses.append(loss.cpu())")
    made = msgspec.structs.replace(
        made, site=site, at=None, chain=(), site_source="count", op=None, count=0, per_step=None,
        message="losses.append(loss.cpu()) waits for the device: counted 240 times in 80 steps of evaluate; no window "
        "recorded it", saving_null_why="no window recorded it",
        fix="Keep the losses on the device and copy them once.",
    )  # fmt: skip
    return rate(made, 3.0, 240, phase="evaluate", run_steps=(0, 79), run_stall_ms_per_step=0.21)


def found() -> tuple[Finding, ...]:
    """The sample's findings, and one that only the count knows."""
    read, copy, overlap, sync, library = sample.findings()
    return (
        rate(read, 0.0995, 41, run_steps=(0, 410), run_stall_ms_per_step=0.163, run_saving_ms_per_step=0.019),
        rate(copy, 1.0, 412, run_stall_ms_per_step=0.42),
        overlap,
        counted_only(),
        rate(sync, None, 4, phase="epoch end", run_steps=None),
        rate(library, 1 / 412, 1, run_steps=(0, 0)),
    )


def info(path: str = "runs/trace.json.gz", rank: int | None = None, **changes: Any) -> TraceInfo:
    known = {"phase": "train", "run": run()} | changes
    return msgspec.structs.replace(sample.trace_info(path, rank), **known)


def report(infos: Sequence[TraceInfo] | None = None, findings: Sequence[Finding] | None = None) -> Report:
    """The sample's report with its run."""
    made = sample.report([info()] if infos is None else infos, found() if findings is None else findings)
    return msgspec.structs.replace(made, saving_all_ms_per_step=None)


def only_counted() -> TraceInfo:
    """A process in which no window was recorded."""
    return msgspec.structs.replace(
        info(), phase=None, has=(), steps=Steps(count=0, profiled_ms=None, bare_ms=None, source="none"),
        coverage=Coverage(waits=0, with_line=0), overlap=None, replay=None, hta=None, warnings=(),
    )  # fmt: skip


def ranks(number: int = 4, odd: int | None = 2) -> Report:
    """Ranks with a trace for training and one for evaluation each; the run of ``odd`` looks different."""
    infos, findings = [], []
    for rank in range(number):
        mine = run(processes=number)
        if rank == odd:
            train = msgspec.structs.replace(mine.phases[TRAIN], steps=380, waits_per_step=3.1)
            mine = msgspec.structs.replace(mine, phases=(mine.phases[START], train, *mine.phases[EVALUATE:]))
        findings += [msgspec.structs.replace(one, trace=2 * rank, rank=rank) for one in found()]
        other = msgspec.structs.replace(mine, main=False)
        infos.append(info(f"out/trace.rank{rank}.json.gz", rank, run=mine))
        infos.append(info(f"out/trace.rank{rank}.evaluate.json.gz", rank, run=other, phase="evaluate"))
    return report(infos, findings)


def of_fixture() -> Report:
    """The report of a real recording, as if the run above had been its."""
    made = analyze("fixtures/traces/item_logging/trace.json.gz")
    traces = tuple(msgspec.structs.replace(one, phase="train", run=run()) for one in made.traces)
    findings = [rate(made.findings[0], 0.0995, 41, run_steps=(0, 410), run_stall_ms_per_step=1.28), counted_only()]
    return msgspec.structs.replace(made, traces=traces, findings=tuple(findings))


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name, made in (("one", report()), ("ranks", ranks()), ("fixture", of_fixture())):
        pictures = [sample.lanes(one.path, one.rank) for one in made.traces] if name != "fixture" else []
        (folder / f"{name}.html").write_text(render(made, pictures), encoding="utf-8", newline="\n")
        (folder / f"{name}.txt").write_text(to_text(made), encoding="utf-8")
        (folder / f"{name}.json").write_text(made.to_json(), encoding="utf-8")
