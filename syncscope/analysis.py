"""From trace files to one report: load, look, judge, join."""

from __future__ import annotations

import gzip
import os
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import msgspec

from syncscope import __version__, rules
from syncscope import policy as policies
from syncscope.estimate import estimate
from syncscope.findings import Report, Tool
from syncscope.merge import merge
from syncscope.rules.straggling_sync import StragglingSync
from syncscope.timeline import Timeline
from syncscope.timeline.lanes import Lanes, lanes
from syncscope.trace import TraceError, load

__all__ = ["Progress", "analyze", "analyze_timelines", "find_traces", "lanes_beside", "load", "timelines"]

Progress = Callable[[str, int, int], None]
"""Called with the trace about to be read, how many are done and how many there are; and once at the end."""

REPORT_FILE = "report.json"
SUFFIXES = (".json", ".json.gz")
HEAD_BYTES = 64 * 1024
TRACE_KEYS = (b'"traceEvents"', b'"schemaVersion"', b'"deviceProperties"', b'"ph"')


def analyze(
    *paths: str | os.PathLike[str],
    select: Sequence[str] = (),
    ignore: Sequence[str] = (),
    policy: policies.Policy | None = None,
    bare_ms: float | None = None,
    progress: Progress | None = None,
) -> Report:
    """The findings of one or several traces, in one report.

    A folder stands for every chrome trace in it and below. ``select`` and ``ignore`` take rule codes or prefixes and
    restrict what is reported, and what ``saving_all_ms_per_step`` is the saving of. With a ``policy``, expected
    findings are marked and stale expectations listed. ``bare_ms`` is the mean length of a step with no profiler, for
    traces that do not hold it.

    Raises ``TraceError`` for a file that cannot be read and ``ValueError`` for an unknown rule.
    """
    return analyze_timelines(_each(paths, progress), select=select, ignore=ignore, policy=policy, bare_ms=bare_ms)


def analyze_timelines(
    timelines: Iterable[Timeline],
    *,
    select: Sequence[str] = (),
    ignore: Sequence[str] = (),
    policy: policies.Policy | None = None,
    bare_ms: float | None = None,
) -> Report:
    """``analyze`` of traces already read. Takes one at a time, so an iterator need not hold them all."""
    wanted = frozenset(rule.code for rule in rules.select(select, ignore))
    report = merge(_report(timeline, wanted, bare_ms) for timeline in timelines)
    if policy is not None:
        report = policies.apply(report, policy)
    return only(report, wanted)


def timelines(*paths: str | os.PathLike[str], progress: Progress | None = None) -> list[Timeline]:
    """Every trace that the paths stand for, read and held: for a report with pictures. Raises ``TraceError``."""
    return list(_each(paths, progress))


def _each(paths: Sequence[str | os.PathLike[str]], progress: Progress | None) -> Iterator[Timeline]:
    files = find_traces(paths)
    for done, file in enumerate(files):
        if progress:
            progress(str(file), done, len(files))
        yield Timeline(load(file))
    if progress:
        progress(str(files[-1]), len(files), len(files))


def _report(timeline: Timeline, codes: frozenset[str], bare_ms: float | None) -> Report:
    """The report on a trace. Savings are told of the rules with these codes alone, and of them together."""
    hits, not_checked = rules.hits(timeline)
    wanted = [hit for hit in hits if hit.finding.rule in codes]
    worth = estimate(timeline, wanted, bare_ms)
    others = tuple(hit.finding for hit in hits if hit.finding.rule not in codes)
    return Report(
        tool=Tool(name="syncscope", version=__version__),
        traces=(msgspec.structs.replace(timeline.info(), replay=worth.replay),),
        findings=(*worth.findings, *others),
        saving_all_ms_per_step=worth.every.ms,
        saving_all_low_ms_per_step=worth.every.low,
        saving_all_high_ms_per_step=worth.every.high,
        not_checked=tuple(not_checked),
    )


def only(report: Report, codes: frozenset[str]) -> Report:
    """The report on the rules with these codes. Done last, so that no expectation turns stale by being left out."""
    traces = report.traces
    if StragglingSync.code not in codes:
        traces = tuple(msgspec.structs.replace(info, meetings=None) for info in traces)
    return msgspec.structs.replace(
        report,
        traces=traces,
        findings=tuple(finding for finding in report.findings if finding.rule in codes),
        not_checked=tuple(entry for entry in report.not_checked if entry.rule in codes),
        stale=tuple(entry for entry in report.stale if any(code.startswith(entry.rule) for code in codes)),
    )


def lanes_beside(report: Report, folder: Path) -> tuple[Lanes, ...]:
    """The picture of each of a saved report's traces that lies in ``folder``, where they were written together.

    A report may come from anybody, so only a file's name is taken from it, never its folder. A trace that is not
    there, or is no longer readable, has no picture.
    """
    pictures = []
    for info in report.traces:
        file = folder / Path(info.path).name
        if file.is_file():
            try:
                pictures.append(msgspec.structs.replace(lanes(Timeline(load(file))), path=info.path))
            except TraceError:
                continue
    return tuple(pictures)


def find_traces(paths: Sequence[str | os.PathLike[str]]) -> list[Path]:
    """The trace files that paths stand for, each once. Raises ``TraceError`` for a folder without any."""
    found: dict[str, Path] = {}
    for path in map(Path, paths):
        files = _in_folder(path) if path.is_dir() else [path]
        if not files:
            raise TraceError(path, "no trace in this folder (*.json or *.json.gz of torch.profiler)")
        for file in files:
            found.setdefault(os.path.realpath(file), file)
    if not found:
        raise ValueError("no trace given")
    return list(found.values())


def _in_folder(folder: Path) -> list[Path]:
    files = [
        file
        for file in folder.rglob("*")
        if file.name.endswith(SUFFIXES)
        and file.name != REPORT_FILE
        and not any(part.startswith(".") for part in file.relative_to(folder).parts)
        and file.is_file()
        and _may_be_trace(file)
    ]
    return sorted(files, key=lambda file: _natural(str(file)))


def _natural(text: str) -> list[tuple[int, str]]:
    """Sorts rank 10 after rank 2."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", text)]


def _may_be_trace(file: Path) -> bool:
    """Whether a file in a folder is to be read. A broken one is, so that it is reported and not passed over."""
    try:
        with gzip.open(file) if file.name.endswith(".gz") else file.open("rb") as stream:
            head = stream.read(HEAD_BYTES)
    except (OSError, EOFError, zlib.error):
        return True
    return not head.strip() or any(key in head for key in TRACE_KEYS)
