"""What commands read: traces, which become a report, and saved reports."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from syncscope.cli.console import progress
from syncscope.cli.errors import UNREADABLE, USAGE, CommandError, print_error
from syncscope.cli.output import Target, needs_picture, targets

if TYPE_CHECKING:
    from syncscope.analysis.engine import Engine
    from syncscope.policy import Policy
    from syncscope.report.picture.lanes import Lanes
    from syncscope.schema.report import Report
    from syncscope.trace.source import Reading

POOL_FILES, POOL_BYTES = 8, 20_000_000
"""Number and total size of files from which a pool of processes saves more time than it takes to start."""

LARGE_BYTES = 1_000_000
"""Total size of files from which memory is kept for what comes next."""

MOST_NAMED = 10
"""Traces that could not be read and are named on stderr."""

HEAD_BYTES = 4096
REPORT_KEY = b'"schema_version"'


def analyze_traces(
    paths: Sequence[str],
    output: Sequence[str] | None,
    policy: Policy,
    select: Sequence[str] = (),
    ignore: Sequence[str] = (),
    untouched: Sequence[Path] = (),
    bare_ms: float | None = None,
    hta: bool = False,
    engine: Engine | None = None,
    reading: Reading | None = None,
    pictures: bool = False,
) -> tuple[Report, Sequence[Lanes], list[Target]]:
    """Analyze the traces. Returns the report, the pictures where an output shows them or ``pictures`` asks
    for them, and the outputs to write.

    Raises ``CommandError`` for an output that would overwrite an input or one of ``untouched``.
    """
    from syncscope.trace.files import find_traces
    from syncscope.trace.source import Reading

    files = find_traces(paths)
    wanted = targets(output, [*paths, *files, *untouched])
    codes = select_codes(select, ignore)
    pictures, reading = pictures or needs_picture(wanted), reading or Reading()
    if reading.cache and len(files) == 1 and not (hta or pictures or engine):
        known = _read_kept(files[0], codes, policy, bare_ms, reading)
        if known is not None:
            return known, (), wanted
    from syncscope.analysis.analyze import analyze_files, choose_engine
    from syncscope.trace.memory import keep_freed

    if _size(files) >= LARGE_BYTES:
        keep_freed()
    with progress(files) as bar:
        report, drawn = analyze_files(
            files,
            engine or choose_engine(usual_processes(files)),
            select=select,
            ignore=ignore,
            policy=policy,
            bare_ms=bare_ms,
            hta=hta,
            pictures=pictures,
            reading=reading,
            progress=bar,
        )
    return report, drawn, wanted


def _read_kept(
    file: str, codes: Sequence[str], policy: Policy, bare_ms: float | None, reading: Reading
) -> Report | None:
    """The report on a trace of which the same was found before; ``None`` where it was not."""
    from syncscope.analysis.finish import finished
    from syncscope.analysis.job import Job
    from syncscope.analysis.judged import kept_report

    wanted = frozenset(codes)
    known = kept_report(file, Job(codes=wanted, bare_ms=bare_ms, reading=reading))
    return None if known is None else finished(known, wanted, policy)


def analyze_or_read(
    paths: Sequence[str],
    output: Sequence[str] | None,
    policy: Policy,
    untouched: Sequence[Path] = (),
    engine: Engine | None = None,
    reading: Reading | None = None,
) -> tuple[Report, Sequence[Lanes], list[Target]]:
    """``analyze_traces`` where some of the paths may be saved reports. Those are judged anew by ``policy``."""
    saved = [path for path in paths if is_report(Path(path))]
    if not saved:
        return analyze_traces(paths, output, policy, untouched=untouched, engine=engine, reading=reading)
    from syncscope.analysis.saved import judge_again
    from syncscope.policy import Policy

    wanted = targets(output, [*paths, *untouched])
    parts = [read_report(Path(path)) for path in saved]
    if others := [path for path in paths if path not in saved]:
        parts.append(analyze_traces(others, None, Policy(), untouched=untouched, engine=engine, reading=reading)[0])
    report = judge_again(parts, policy)
    if needs_picture(wanted) and len(paths) == 1:
        from syncscope.analysis.analyze import draw_beside  # which loads what judges

        return *draw_beside(report, Path(saved[0]).parent), wanted
    return report, (), wanted


def choose_phase(report: Report, phase: str | None) -> Report:
    """The part of a report that ``--phase`` names. Raises ``CommandError`` for a phase that no trace has."""
    if phase is None:
        return report
    from syncscope.report.notable import of_phase

    try:
        return of_phase(report, phase)
    except ValueError as error:
        raise CommandError(f"--phase: {error}", USAGE) from None


def select_engine(jobs: int | None, name: str, scheduler: str | None) -> Engine | None:
    """The engine that the options name, ``None`` for the default. Raises ``CommandError`` where options contradict."""
    from syncscope.trace.extras import MissingExtra, require

    if name == "dask":
        if scheduler is None:
            raise CommandError("--engine dask needs --scheduler ADDRESS", USAGE)
        if jobs is not None:
            raise CommandError("--jobs cannot be used with --engine dask: the cluster has its own workers", USAGE)
        try:
            require("cluster")
        except MissingExtra as error:
            raise CommandError(f"--engine dask: {error}", USAGE) from None
    elif scheduler is not None:
        raise CommandError("--scheduler needs --engine dask", USAGE)
    if scheduler is None and jobs is None:
        return None
    from syncscope.analysis.analyze import choose_engine

    return choose_engine(1 if jobs is None else jobs, scheduler)


def reading_options(max_size: str | None, cache: bool) -> Reading:
    """How to read traces, from the options. Raises ``CommandError``."""
    from syncscope.trace.extras import MissingExtra, require
    from syncscope.trace.source import MAX_BYTES, Reading

    size = MAX_BYTES if max_size is None else _bytes(max_size)
    if cache:
        try:
            require("cache", load=False)
        except MissingExtra as error:
            raise CommandError(f"--cache: {error}", USAGE) from None
    return Reading(max_bytes=size, cache=cache)


def _bytes(size: str) -> int:
    match = re.fullmatch(r"(\d{1,15}(?:\.\d{1,3})?)\s*([KMGT]?)(?:i?B)?", size.strip(), re.IGNORECASE | re.ASCII)
    if match is None or not (count := int(float(match[1]) * 1024 ** " KMGT".index(match[2].upper() or " "))):
        raise CommandError(f"--max-size must be a size such as 500M or 20G, not {size}", USAGE)
    return count


def print_unread(report: Report) -> None:
    """Name the traces that could not be read, on stderr."""
    for entry in report.unread[:MOST_NAMED]:
        print_error(f"{entry.path}: {entry.why}")
    if len(report.unread) > MOST_NAMED:
        print_error(f"… and {len(report.unread) - MOST_NAMED} more could not be read")


def exit_if_unread(report: Report) -> None:
    """Name the traces that could not be read, and exit with 3 when there is one."""
    print_unread(report)
    if report.unread:
        raise typer.Exit(UNREADABLE)


def usual_processes(files: Sequence[str]) -> int:
    from syncscope.trace.workers import available_cores

    return available_cores() if len(files) >= POOL_FILES or _size(files) >= POOL_BYTES else 1


def _size(files: Sequence[str]) -> int:
    """The bytes of files together; those elsewhere are not counted."""
    return sum(os.stat(file).st_size for file in files if os.path.isfile(file))


def select_codes(select: Sequence[str], ignore: Sequence[str]) -> tuple[str, ...]:
    """The codes that ``--select`` and ``--ignore`` leave. Raises ``CommandError`` for an unknown code."""
    if not (select or ignore):
        from syncscope.schema.catalogue import read_catalogue

        return tuple(rule.code for rule in read_catalogue())
    from syncscope.rules import select as select_rules

    try:
        return tuple(rule.code for rule in select_rules(select, ignore))
    except ValueError as error:
        raise CommandError(str(error), USAGE) from None


def is_report(path: Path) -> bool:
    """Whether a file is a saved report. Everything else goes to the trace reader, which refuses what is no trace."""
    if not os.path.isfile(path):  # unlike Path.is_file, it takes any name
        return False
    from syncscope.trace.source import open_at_once

    try:
        with open(path, "rb", opener=open_at_once) as stream:
            return REPORT_KEY in (stream.read(HEAD_BYTES) or b"")
    except OSError:
        return False


def read_report(path: Path) -> Report:
    """Read a saved report, its findings in the order of today. Raises ``CommandError`` for a file that is none or
    contradicts itself, or that a newer syncscope wrote."""
    import msgspec

    from syncscope.schema.contradictions import find_contradiction
    from syncscope.schema.order import ordered
    from syncscope.schema.report import SCHEMA_VERSION, Report

    try:
        data = path.read_bytes()
        version = msgspec.json.decode(data, type=dict[str, msgspec.Raw])["schema_version"]
        if msgspec.json.decode(version, type=int) > SCHEMA_VERSION:
            known = f"schema {bytes(version).decode()}; this version reads up to {SCHEMA_VERSION}"
            raise CommandError(f"{path}: was written by a newer syncscope ({known})", UNREADABLE)
        report = Report.from_json(data)
    except (msgspec.DecodeError, KeyError) as error:
        raise CommandError(f"{path}: not a report: {error}", UNREADABLE) from None
    except OSError as error:
        raise CommandError(f"{path}: {error.strerror or error}", UNREADABLE) from None
    if (why := find_contradiction(report)) is not None:
        raise CommandError(f"{path}: not a report: {why}", UNREADABLE)
    return msgspec.structs.replace(report, findings=ordered(report.findings, report.traces))
