"""From trace files to one report: the public functions of the analysis."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import msgspec

from syncscope import policy as policies
from syncscope import rules
from syncscope.analysis.engine import Engine, Progress
from syncscope.analysis.finish import finished
from syncscope.analysis.finish import only as only
from syncscope.analysis.local import Local
from syncscope.analysis.merge import merge
from syncscope.analysis.rank import TOOL, Job, begin_report, estimate_together
from syncscope.report.forms import Report
from syncscope.report.notable import notable
from syncscope.report.picture.lanes import MOST_ITEMS, Lanes
from syncscope.schema.findings import Finding, numbered
from syncscope.schema.report import HTAReport
from syncscope.timeline import Timeline
from syncscope.trace import TraceError, load, source
from syncscope.trace.extras import require
from syncscope.trace.files import find_traces
from syncscope.trace.reader import load_rank, read_bytes
from syncscope.trace.remote import shown
from syncscope.trace.source import MAX_BYTES, Reading

__all__ = [
    "Progress", "analyze", "analyze_files", "analyze_timelines", "annotated", "choose_engine", "draw_beside",
    "find_traces", "load",
]  # fmt: skip

DEFAULT_READING = Reading()
MOST_PICTURES = 8
"""The most traces that are drawn. Of more traces, the notable ones are."""


def analyze(
    *paths: str | os.PathLike[str],
    select: Sequence[str] = (),
    ignore: Sequence[str] = (),
    policy: policies.Policy | None = None,
    bare_ms: float | None = None,
    hta: bool = False,
    jobs: int = 1,
    scheduler: str | None = None,
    max_bytes: int = MAX_BYTES,
    cache: bool = False,
    progress: Progress | None = None,
) -> Report:
    """The findings of one or several traces, in one report.

    A folder stands for every chrome trace in it and below. ``select`` and ``ignore`` take rule codes or prefixes and
    restrict what is reported, and which findings ``saving_all_ms_per_step`` covers. With a ``policy``, expected
    findings are marked and stale expectations listed. ``bare_ms`` is the mean length of a step with no profiler, for
    traces that do not hold it. ``hta`` adds HTA's tables (``TraceInfo.hta``).

    ``jobs`` processes read the traces, no more than there are processors; with more than one, the calling program's
    main module must be safe to import. ``scheduler`` is the address of a dask cluster that does it instead.
    ``max_bytes`` and ``cache`` are those of ``load``.

    Traces that cannot be read are listed in ``Report.unread``. Raises ``TraceError`` when none can be read,
    ``ValueError`` for an unknown rule, ``EngineError`` for a cluster that is not there, and ``MissingExtra`` (an
    ``ImportError``) for ``hta`` without the extra.
    """
    return analyze_files(
        find_traces(paths),
        choose_engine(jobs, scheduler),
        select=select, ignore=ignore, policy=policy, bare_ms=bare_ms, hta=hta, progress=progress,
        reading=Reading(max_bytes=max_bytes, cache=cache),
    )[0]  # fmt: skip


def choose_engine(jobs: int = 1, scheduler: str | None = None) -> Engine:
    """This machine with up to ``jobs`` processes, or the dask cluster whose scheduler has the address."""
    if scheduler is None:
        return Local(jobs)
    from syncscope.analysis.cluster import Cluster

    return Cluster(scheduler)


def analyze_files(
    files: Sequence[str],
    engine: Engine,
    *,
    select: Sequence[str] = (),
    ignore: Sequence[str] = (),
    policy: policies.Policy | None = None,
    bare_ms: float | None = None,
    hta: bool = False,
    pictures: bool = False,
    reading: Reading = DEFAULT_READING,
    progress: Progress | None = None,
) -> tuple[Report, tuple[Lanes, ...]]:
    """``analyze`` of files already found, and their ``pictures``. Of many traces only the most notable are drawn."""
    wanted = frozenset(rule.code for rule in rules.select(select, ignore))
    if hta:
        require_hta()
    at_once = pictures and len(files) <= MOST_PICTURES
    bars = MOST_ITEMS // len(files) if at_once else 0
    job = Job(codes=wanted, bare_ms=bare_ms, hta=hta, max_bars=bars, reading=reading, several=len(files) > 1)
    results = engine.analyze(files, job, progress)
    report = results.report
    if not report.traces:
        raise TraceError(report.unread[0].path, report.unread[0].why)
    report = finished(report, wanted, policy)
    if not pictures or at_once:
        return report, results.pictures
    paths = {report.traces[number].path for number in notable(report, MOST_PICTURES)}
    drawn = [file for file in files if shown(file) in paths]
    picture = Job(report=False, max_bars=MOST_ITEMS // MOST_PICTURES, reading=reading, several=True)
    return report, engine.analyze(drawn, picture).pictures


def run_hta(
    files: Sequence[str],
    engine: Engine,
    *,
    last_step: bool = False,
    reading: Reading = DEFAULT_READING,
    progress: Progress | None = None,
) -> HTAReport:
    """HTA's tables of files already found, each on its own. Raises ``TraceError`` where one cannot be read."""
    job = Job(report=False, only_hta=True, last_step=last_step, reading=reading, several=len(files) > 1)
    results = engine.analyze(files, job, progress)
    for unread in results.report.unread:
        raise TraceError(unread.path, unread.why)
    return HTAReport(tool=TOOL, traces=results.hta)


def analyze_timelines(
    timelines: Iterable[Timeline],
    *,
    select: Sequence[str] = (),
    ignore: Sequence[str] = (),
    policy: policies.Policy | None = None,
    bare_ms: float | None = None,
) -> Report:
    """``analyze`` of traces already read. It takes one at a time, so an iterator need not hold them all."""
    wanted = frozenset(rule.code for rule in rules.select(select, ignore))
    job = Job(codes=wanted, bare_ms=bare_ms)
    pairs = [begin_report(timeline, *rules.find(timeline), job) for timeline in timelines]
    return finished(merge(estimate_together(pairs)), wanted, policy)


def require_hta() -> None:
    """Raises ``MissingExtra`` without the extra, before any trace is read."""
    require("hta")


def draw_beside(report: Report, folder: Path, reading: Reading = DEFAULT_READING) -> tuple[Report, tuple[Lanes, ...]]:
    """Draw the traces of a saved report that are in ``folder``, the notable ones of many. Returns the report, in which
    their findings have the numbers that the pictures name, and the pictures.

    A report may come from anybody, so only a file's name is taken from it, never its folder. A trace that is not
    there, or cannot be read any more, has no picture.
    """
    from syncscope.report.picture.draw import draw_lanes  # a report without pictures does without

    pictures, findings = [], list(report.findings)
    drawn = notable(report, MOST_PICTURES)
    for trace in drawn:
        file = folder / Path(report.traces[trace].path).name
        if not os.path.isfile(file):  # unlike Path.is_file, it takes any name
            continue
        try:
            timeline = Timeline(load_rank(file, report.traces[trace].rank, **msgspec.structs.asdict(reading)))
        except TraceError:
            continue
        hits = rules.find_hits(timeline)
        mine = [place for place, finding in enumerate(findings) if finding.trace == trace]
        known = numbered([findings[place] for place in mine], [hit.finding for hit in hits])
        for place, finding in zip(mine, known, strict=True):
            findings[place] = finding
        picture = draw_lanes(timeline, hits, MOST_ITEMS // len(drawn))
        pictures.append(msgspec.structs.replace(picture, path=report.traces[trace].path))
    return msgspec.structs.replace(report, findings=tuple(findings)), tuple(pictures)


def annotated(
    file: str | os.PathLike[str], findings: Sequence[Finding], max_bytes: int = MAX_BYTES
) -> Iterator[bytes | memoryview]:
    """A trace with its findings as additional tracks (``report.perfetto``), in pieces. Raises ``TraceError``."""
    from syncscope.report import perfetto  # nothing else needs it

    data, _ = source.read(os.fspath(file), max_bytes)
    try:
        timeline = Timeline(read_bytes(data, os.fspath(file)))
        hits = rules.find_hits(timeline)
        known = numbered(findings, [hit.finding for hit in hits])
        yield from perfetto.annotated(data, timeline, known, hits)
    except ValueError as error:
        raise error if isinstance(error, TraceError) else TraceError(file, str(error)) from None
