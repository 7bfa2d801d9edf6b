"""What ``analyze``, ``check`` and ``report`` have in common: traces in, a judged report out."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from syncscope.cli.errors import UNREADABLE, USAGE, CommandError, tell
from syncscope.cli.output import Target, needs_picture, targets
from syncscope.cli.progress import progress

if TYPE_CHECKING:
    from syncscope.analysis.engine import Engine
    from syncscope.policy import Policy
    from syncscope.report.picture.lanes import Lanes
    from syncscope.schema.report import Report
    from syncscope.trace.source import Reading

WORTH_POOL_FILES, WORTH_POOL_BYTES = 8, 20_000_000
"""From so many files on, or so many bytes in several, processes of their own take less time than their start."""

MOST_TOLD = 10
"""Traces that could not be read, named on stderr."""


def study(
    paths: Sequence[str],
    output: Sequence[str] | None,
    policy: Policy,
    select: Sequence[str] = (),
    ignore: Sequence[str] = (),
    untouched: Sequence[Path] = (),
    bare_ms: float | None = None,
    hta: bool = False,
    how: Engine | None = None,
    reading: Reading | None = None,
) -> tuple[Report, Sequence[Lanes], list[Target]]:
    """The report on the traces, their pictures where an output shows them, and the outputs to write: none over an input
    or over one of ``untouched``."""
    from syncscope.analysis.analyze import analyze_files, choose_engine, find_traces
    from syncscope.trace.source import Reading

    files = find_traces(paths)
    wanted = targets(output, [*paths, *files, *untouched])
    check_codes(select, ignore)
    with progress(files) as bar:
        report, pictures = analyze_files(
            files,
            how or choose_engine(_processes(files)),
            select=select,
            ignore=ignore,
            policy=policy,
            bare_ms=bare_ms,
            hta=hta,
            pictures=needs_picture(wanted),
            reading=reading or Reading(),
            progress=bar,
        )
    return report, pictures, wanted


def chosen(jobs: int | None, name: str, scheduler: str | None) -> Engine | None:
    """The engine that the options name, ``None`` for what suits. Raises ``CommandError`` where they do not fit."""
    from syncscope.analysis.analyze import choose_engine
    from syncscope.analysis.engine import MISSING

    if name == "dask":
        if scheduler is None:
            raise CommandError("--engine dask needs the cluster's --scheduler ADDRESS", USAGE)
        if jobs is not None:
            raise CommandError("--jobs is for this machine: a dask cluster has as many workers as it has", USAGE)
        try:
            import distributed  # noqa: F401
        except ImportError:
            raise CommandError(f"--engine dask: {MISSING}", USAGE) from None
        return choose_engine(scheduler=scheduler)
    if scheduler is not None:
        raise CommandError("--scheduler is for --engine dask", USAGE)
    return None if jobs is None else choose_engine(jobs)


def reading(max_size: str | None, cache: bool) -> Reading:
    """How traces are read, by the options. Raises ``CommandError``."""
    from syncscope.trace.cache import CacheMissing, require
    from syncscope.trace.source import MAX_BYTES, Reading

    size = MAX_BYTES if max_size is None else _bytes(max_size)
    if cache:
        try:
            require()
        except CacheMissing as error:
            raise CommandError(f"--cache: {error}", USAGE) from None
    return Reading(max_bytes=size, cache=cache)


def _bytes(size: str) -> int:
    found = re.fullmatch(r"(\d{1,15}(?:\.\d{1,3})?)\s*([KMGT]?)(?:i?B)?", size.strip(), re.IGNORECASE | re.ASCII)
    if found is None or not (count := int(float(found[1]) * 1024 ** " KMGT".index(found[2].upper() or " "))):
        raise CommandError(f"--max-size takes a size as in 500M or 20G, not {size}", USAGE)
    return count


def tell_unread(report: Report) -> None:
    """Name on stderr the traces that could not be read."""
    for entry in report.unread[:MOST_TOLD]:
        tell(f"{entry.path}: {entry.why}")
    if len(report.unread) > MOST_TOLD:
        tell(f"… and {len(report.unread) - MOST_TOLD} more could not be read")


def end_unread(report: Report) -> None:
    """End the command in 3 where a trace could not be read, and name it."""
    tell_unread(report)
    if report.unread:
        raise typer.Exit(UNREADABLE)


def _processes(files: Sequence[str]) -> int:
    from syncscope.trace.workers import available_cores

    sizes = [os.stat(file).st_size for file in files if os.path.isfile(file)]
    return available_cores() if len(files) >= WORTH_POOL_FILES or sum(sizes) >= WORTH_POOL_BYTES else 1


def check_codes(select: Sequence[str], ignore: Sequence[str]) -> tuple[str, ...]:
    """The codes selected. Raises ``CommandError`` for an unknown one."""
    from syncscope.rules import select as select_rules

    try:
        return tuple(rule.code for rule in select_rules(select, ignore))
    except ValueError as error:
        raise CommandError(str(error), USAGE) from None
