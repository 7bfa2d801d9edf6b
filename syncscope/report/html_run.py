"""What the HTML page shows of the whole run: its sentences, the rows of its phases, and its figure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from syncscope.report.compiling_phrases import describe_compiling
from syncscope.report.figures.colours import on_page
from syncscope.report.numbers import milliseconds
from syncscope.report.phase_lines import describe_lines
from syncscope.report.run_phrases import (
    describe_caveats,
    describe_difference,
    describe_frequency,
    describe_recorded,
    describe_run,
    describe_share,
    describe_waits,
    spell_waits,
)
from syncscope.report.runs import group_processes
from syncscope.report.trace_phrases import label_processes
from syncscope.schema.report import Report
from syncscope.schema.run import Run

MOST_PHASES = 16
"""Phases that have a row; the JSON report has all."""
MOST_FIGURES = 16
"""Processes whose run is drawn; the table is there for all."""


class PhaseRow(msgspec.Struct, frozen=True, kw_only=True):
    """One phase in the table, which is the figure's legend too."""

    name: str
    where: str | None
    colour: str
    share: str
    steps: int
    step: str | None
    p95: str | None
    waits: str
    spelled: str | None
    """The waits in words, for the figure's description."""
    recorded: str


class RunView(msgspec.Struct, frozen=True, kw_only=True):
    """The run of one process."""

    lead: str
    lines: tuple[str, ...]
    """Where the time of phases goes that no window recorded, and what waits only while it compiles, a sentence each."""
    caveats: tuple[str, ...]
    differences: tuple[str, ...]
    """By what the other processes of the run differ from the first, a sentence each."""
    phases: tuple[PhaseRow, ...]
    figure: dict[str, Any] | None
    """For plotly. Its colours are names of the page's style, as ``var(--name)``."""


class Runs(msgspec.Struct, frozen=True, kw_only=True):
    views: tuple[RunView, ...] = ()
    of: tuple[int | None, ...] = ()
    """For each trace the index of its process in ``views``."""
    often: tuple[str | None, ...] = ()
    """How often each finding occurs in its run."""


def make_runs(report: Report) -> Runs:
    """The runs of a report's traces; empty where none was looked at."""
    processes = group_processes(report.traces)
    if not processes:
        return Runs()
    of: list[int | None] = [None] * len(report.traces)
    labels = label_processes(processes, report.traces)
    first: dict[str, Run] = {}
    differences: dict[str, list[str]] = {}
    for number, (process, label) in enumerate(zip(processes, labels, strict=True)):
        reference = first.setdefault(process.run.id, process.run)
        said = describe_difference(process.run, reference)
        if said:
            differences.setdefault(process.run.id, []).append(f"{label} differs: {'; '.join(said)}.")
        for trace in process.traces:
            of[trace] = number
    views = tuple(
        _view(process.run, tuple(differences.get(process.run.id, ())), drawn=number < MOST_FIGURES)
        for number, process in enumerate(processes)
    )
    often = tuple(describe_frequency(finding, report.traces, brief=True) for finding in report.findings)
    return Runs(views=views, of=tuple(of), often=often)


def _view(run: Run, differences: tuple[str, ...], *, drawn: bool) -> RunView:
    from syncscope.report.figures.run import draw_run, name_colours

    colours = name_colours(run)
    order = sorted(range(len(run.phases)), key=lambda number: -run.phases[number].share)
    figure = draw_run(run, on_page).to_plotly_json() if drawn and run.stretches and run.seconds > 0 else None
    return RunView(
        lead=f"{describe_run(run)}.",
        lines=tuple(f"{said}." for said in (*describe_lines(run), *describe_compiling(run))),
        caveats=tuple(describe_caveats(run)),
        differences=differences,
        phases=(
            *(_row(run, number, colours[number]) for number in order[:MOST_PHASES]),
            *_rest(run, order[MOST_PHASES:]),
        ),
        figure=figure,
    )


def _rest(run: Run, numbers: Sequence[int]) -> list[PhaseRow]:
    """One row for the phases that have none of their own."""
    if not numbers:
        return []
    share = describe_share(sum(run.phases[number].share for number in numbers))
    return [
        PhaseRow(
            name=f"{len(numbers)} more", where=None, colour="phase-rest", share=share, steps=0, step=None, p95=None,
            waits="–", spelled=None, recorded="–",
        )
    ]  # fmt: skip


def _row(run: Run, number: int, colour: str) -> PhaseRow:
    phase = run.phases[number]
    return PhaseRow(
        name=phase.name,
        where=phase.where,
        colour=colour,
        share=describe_share(phase.share),
        steps=phase.steps,
        step=None if phase.step_ms is None else milliseconds(phase.step_ms.typical),
        p95=None if phase.step_ms is None else milliseconds(phase.step_ms.p95),
        waits=describe_waits(phase),
        spelled=spell_waits(phase),
        recorded=describe_recorded(run, number),
    )
