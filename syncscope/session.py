"""Record from Python: ``with syncscope.profile("out/") as prof: …``."""

from __future__ import annotations

import os
import warnings
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from syncscope.collect.annotations import begin, end
from syncscope.collect.children.announce import announced
from syncscope.collect.children.presence import wait_for_others
from syncscope.collect.children.request import Request
from syncscope.collect.files import find_files, the_only_writer
from syncscope.collect.naming import PATTERN, rank_in_environment
from syncscope.collect.paths import project_root
from syncscope.collect.plan import BARE_SECONDS, Mode, Plan

if TYPE_CHECKING:
    from syncscope.schema.report import Report

REPORT = "report.json"
PATIENCE = 20.0
"""Seconds that the reports wait for processes of the program that have not ended with it."""


class profile:
    """Record windows of the steps inside the block into ``folder``.

    ::

        with syncscope.profile("out/") as prof:
            for batch in loader:
                train(batch)
                prof.step()

    ``warmup``, ``bare``, ``steps``, ``attribution`` and ``hazards`` (a window that looks for races) are numbers of
    steps. ``seconds`` records by time instead. With ``children``, the processes that the block starts are recorded
    into the same folder; a variable in ``os.environ`` tells them, until the block ends.

    Leaving the block writes ``trace.json.gz``, ``report.json`` and ``report.html`` into ``folder``. Afterwards
    ``report`` is the report, or it is ``None`` because nothing was recorded, and ``notes`` says why. Without a GPU the
    block runs unrecorded.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str] = "syncscope-out",
        *,
        warmup: int = Plan.warmup,
        bare: int = Plan.bare,
        steps: int = Plan.steps,
        attribution: int = Plan.attribution,
        mode: Mode = Plan.mode,
        hazards: int = Plan.hazards,
        seconds: float | None = None,
        source: bool = True,
        own: tuple[str, ...] = (),
        children: bool = False,
    ) -> None:
        self.folder = Path(folder)
        self.report: Report | None = None
        plan = Plan(
            warmup=warmup, bare=bare, steps=steps, attribution=attribution, mode=mode, hazards=hazards,
            bare_seconds=BARE_SECONDS,
        )  # fmt: skip
        if seconds is not None:
            plan = plan_by_time(plan)
        self._request = Request(
            str(self.folder.absolute()), plan, str(project_root(Path.cwd())), own, seconds=seconds, source=source,
            inherited=rank_in_environment(),
        )  # fmt: skip
        self._announced = announced(self._request, children=children)
        self._collector = self._request.make_collector()

    @property
    def notes(self) -> tuple[str, ...]:
        """What could not be recorded, one sentence each."""
        return tuple(self._collector.notes)

    @property
    def path(self) -> Path | None:
        """The trace file, once written."""
        path = self._collector.path
        return self.folder / path.name if path is not None else None

    def step(self) -> None:
        """Say that a step ended."""
        self._collector.step()

    def __enter__(self) -> profile:
        self._announced.__enter__()
        begin(self._collector)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        end(self._collector)
        self._announced.__exit__(kind, error, trace)
        wait_for_others(self.folder, self._request.run, PATIENCE)
        if find_files(self.folder, self._request.run):
            with warnings.catch_warnings():  # what is imported for the reports adds filters
                self.report = write_reports(self.folder, self._request.run, self._request.inherited[1] or 1)


def plan_by_time(plan: Plan) -> Plan:
    """The plan where a step is a stretch of time: one step in each window, and no bare step to compare with."""
    races = min(plan.hazards, 1)
    return replace(plan, warmup=1, bare=0, steps=1, attribution=1, hazards=races)


def write_reports(folder: Path, run: str | None = None, ranks: int = 1) -> Report | None:
    """Analyse the traces of ``run`` in ``folder``, or all, and write ``report.json`` and ``report.html`` beside them.

    Where a launcher started several ``ranks``, the one that finishes last does it. The others return ``None``.
    """
    if run is None:
        return _write_reports(folder, sorted(folder.glob(PATTERN)))
    heads = find_files(folder, run)
    if ranks <= 1:
        return _write_reports(folder, list(heads))
    complete = {head.rank for head in heads.values() if head.complete and head.rank is not None}
    if len(complete) < ranks:
        return None
    with the_only_writer(folder / REPORT, run, heads) as alone:
        return _write_reports(folder, list(heads)) if alone else None


def _write_reports(folder: Path, traces: list[Path]) -> Report:
    from syncscope.analysis.analyze import analyze_files, choose_engine, find_traces
    from syncscope.policy.leniently import apply_leniently
    from syncscope.report import html
    from syncscope.trace.writing import write_atomically

    report, pictures = analyze_files(find_traces(traces), choose_engine(), pictures=True)
    report = apply_leniently(report, _working_folder(folder))
    write_atomically(folder / REPORT, [report.to_json().encode()])
    write_atomically(folder / "report.html", [html.render(report, pictures).encode()])
    return report


def _working_folder(otherwise: Path) -> Path:
    try:
        return Path.cwd()
    except FileNotFoundError:  # the program removed the folder that it ran in
        return otherwise
