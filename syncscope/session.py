"""Record from Python: ``with syncscope.profile("out/") as prof: …``."""

from __future__ import annotations

import os
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from msgspec import structs

from syncscope.collect.annotations import begin, end
from syncscope.collect.collector import Collector
from syncscope.collect.paths import Paths, project_root
from syncscope.collect.windows import Mode, Plan

if TYPE_CHECKING:
    from syncscope.schema.report import Report


class profile:
    """Record windows of the steps inside the block into ``folder``.

    ::

        with syncscope.profile("out/") as prof:
            for batch in loader:
                train(batch)
                prof.step()

    ``warmup``, ``bare``, ``steps``, ``attribution`` and ``hazards`` (a window that looks for races) are numbers of
    steps. ``seconds`` records by time instead. ``begin_at`` is the step before which nothing is recorded.

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
        begin_at: int = Plan.begin_at,
        source: bool = True,
        own: tuple[str, ...] = (),
    ) -> None:
        self.folder = Path(folder)
        self.report: Report | None = None
        plan = Plan(
            warmup=warmup,
            bare=bare,
            steps=steps,
            attribution=attribution,
            mode=mode,
            hazards=hazards,
            begin_at=begin_at,
        )
        if seconds is not None:
            plan = plan_by_time(plan)
        paths = Paths(project_root(Path.cwd()), own)
        self._collector = Collector(self.folder, plan, paths, seconds=seconds, source=source)

    @property
    def notes(self) -> tuple[str, ...]:
        """What could not be recorded, one sentence each."""
        return tuple(self._collector.notes)

    @property
    def path(self) -> Path | None:
        """The trace file, once written."""
        return self._collector.path

    def step(self) -> None:
        """Say that a step ended."""
        self._collector.step()

    def __enter__(self) -> profile:
        begin(self._collector)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        end(self._collector)
        if self._collector.path is not None:
            self.report = write_reports(self.folder)


def plan_by_time(plan: Plan) -> Plan:
    """The plan where a step is a stretch of time: one step in each window, and no bare step to compare with."""
    races = min(plan.hazards, 1)
    return Plan(
        warmup=1, bare=0, steps=1, attribution=1, mode=plan.mode, hazards=races, stop=plan.stop, begin_at=plan.begin_at
    )  # fmt: skip


def write_reports(folder: Path) -> Report | None:
    """Analyse every rank's trace in ``folder`` and write ``report.json`` and ``report.html`` beside them.

    The rank that finishes last does it. The others return ``None``.
    """
    from syncscope.analysis.analyze import analyze_files, choose_engine, find_traces
    from syncscope.report import html
    from syncscope.trace.writing import write_atomically

    ranks = int(os.environ.get("WORLD_SIZE", "1"))
    traces = sorted(folder.glob("trace*.json.gz"))
    if len(traces) < ranks:
        return None
    report, pictures = analyze_files(find_traces(traces), choose_engine(), pictures=True)
    report = with_policy(report, folder)
    write_atomically(folder / "report.json", [report.to_json().encode()])
    write_atomically(folder / "report.html", [html.render(report, pictures).encode()])
    return report


def with_policy(report: Report, folder: Path) -> Report:
    """The report with the policy of the working folder applied. ``folder`` is where the recording is."""
    from syncscope.policy import ConfigError, apply, load_policy

    try:
        return apply(report, load_policy(_working_folder(folder)))
    except ConfigError as error:  # a recording gets its report despite a mistake in a comment
        return with_warning(report, f"No expectation was applied: {error}")


def _working_folder(otherwise: Path) -> Path:
    try:
        return Path.cwd()
    except FileNotFoundError:  # the program removed the folder that it ran in
        return otherwise


def with_warning(report: Report, warning: str, trace: int = 0) -> Report:
    """The report with one more warning about a trace."""
    traces = list(report.traces)
    traces[trace] = structs.replace(traces[trace], warnings=(*traces[trace].warnings, warning))
    return structs.replace(report, traces=tuple(traces))
