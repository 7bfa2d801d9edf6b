"""Count from Python, for as long as a program runs: ``with syncscope.watch("out/"): …``."""

from __future__ import annotations

import gzip
import logging
import os
import re
import tempfile
import threading
import zlib
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from functools import cache, partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

import msgspec

from syncscope.collect.annotations import begin, end
from syncscope.collect.children.announce import announced
from syncscope.collect.children.presence import wait_for_others
from syncscope.collect.children.request import Request
from syncscope.collect.export import Exporter, make_exporter
from syncscope.collect.files import FileNames, find_files, the_only_writer
from syncscope.collect.naming import rank_in_environment
from syncscope.collect.paths import Paths, project_root
from syncscope.collect.plan import Plan
from syncscope.collect.tracefile import NO_EVENTS, TraceFile
from syncscope.collect.watch.lines import Judge, WaitingLine
from syncscope.collect.watch.watcher import Options, Watcher
from syncscope.schema.recording import Recording
from syncscope.session import PATIENCE

if TYPE_CHECKING:
    from syncscope.schema.report import Report

log = logging.getLogger("syncscope.watch")

REPORT = "report.json"
TRAINING = ("train",)
MOST_BYTES = 64 << 20
"""Of a compressed trace that may be one of this run. Those that hold counts alone are far smaller."""


class watch:
    """Count the waits inside the block, or from ``start()`` to ``stop()``, for as long as it takes.

    ::

        with syncscope.watch("out/", every="10m", baseline="syncscope-baseline.json"):
            train()

    ``folder`` gets the count, never older than ten seconds, and ``report.json`` at the end and every ``every``
    (seconds, or ``"10m"``). Without a folder nothing is written. With a ``baseline``, a line that waits and is not in
    it is passed to ``on_new`` between two steps, or logged to the logger ``syncscope.watch`` without one; without a
    baseline, ``on_new`` hears of every line that waits. ``exporters`` are objects with ``export(measures)`` and
    ``close()``, or texts such as ``"tensorboard=runs/waits"``. Lines are judged in training, unless ``phases`` of the
    configuration says otherwise. With ``children``, and a folder, the processes that the block starts are counted into
    the same folder; a variable in ``os.environ`` tells them, until the block ends.

    No profiler runs. Without a GPU nothing is counted.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str] | None = None,
        *,
        every: float | str | None = None,
        baseline: str | os.PathLike[str] | None = None,
        on_new: Callable[[WaitingLine], None] | None = None,
        exporters: Iterable[str | Exporter] = (),
        source: bool = True,
        own: tuple[str, ...] = (),
        children: bool = False,
    ) -> None:
        self.folder = Path(folder).absolute() if folder is not None else None
        self._pid = os.getpid()
        here = Path.cwd()
        root = project_root(here)
        self._request = count_request(self.folder, root, own, source) if self.folder is not None else None
        known, phases = judge(Path(baseline).absolute() if baseline is not None else None, here)
        options = Options(
            every=seconds(every) if every is not None else None,
            on_report=self._write_report if folder is not None else None,
            known=known,
            phases=phases,
            on_new=on_new or (_log if known is not None else None),
            exporters=exporters_of(exporters),
            others=partial(read_others, self._request) if self._request is not None and children else None,
        )
        files = names_of(self._request) if self._request is not None else None
        self._watcher = Watcher(files, Paths(root, own), options, source=source)
        self._announced: AbstractContextManager[None] = nullcontext()
        if self._request is not None and children:
            self._announced = announced(self._request, children=True)

    def start(self) -> watch:
        """Begin to count. ``stop`` ends it, or the end of the program."""
        _stop_all_at_exit()
        _open.add(self)
        self._announced.__enter__()
        begin(self._watcher)
        return self

    def stop(self) -> None:
        """Stop counting, and write the report. Does nothing the second time."""
        _open.discard(self)
        if self._watcher.closed or os.getpid() != self._pid:
            return
        end(self._watcher)
        self._announced.__exit__(None, None, None)
        if self._request is not None:
            end_with_others(self._watcher, PATIENCE)
        self._write_report()

    def step(self) -> None:
        """Say that a step ended."""
        self._watcher.step()

    def report(self) -> Report | None:
        """What was counted so far, ``None`` before the program has used CUDA."""
        return report_of(self._watcher)

    @property
    def new_lines(self) -> tuple[WaitingLine, ...]:
        """The lines that waited and are not in the baseline, so far."""
        return self._watcher.new_lines

    @property
    def notes(self) -> tuple[str, ...]:
        """What could not be counted or written, one sentence each."""
        return self._watcher.notes

    def __enter__(self) -> watch:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _write_report(self) -> None:
        if self.folder is None:
            return
        try:
            write_report(self._watcher, self.folder / REPORT)
        except Exception as error:  # the program must not fail because of its report
            log.warning("the report could not be written (%s: %s)", type(error).__name__, error)


_open: set[watch] = set()
"""Those that the end of the program stops."""


@cache
def _stop_all_at_exit() -> None:
    """Stop those that are open when the program ends.

    The report needs thread pools, which Python closes before ``atexit``. What is registered last runs first.
    """
    import concurrent.futures.process
    import concurrent.futures.thread  # noqa: F401

    threading._register_atexit(_stop_all)  # type: ignore[attr-defined]


def _stop_all() -> None:
    for watching in tuple(_open):
        watching.stop()


def count_request(folder: Path, root: Path, own: tuple[str, ...], source: bool) -> Request:
    """What the processes that the program starts are told: to count, and record no window."""
    plan = Plan(windows=False)
    return Request(str(folder), plan, str(root), own, source=source, inherited=rank_in_environment())


def names_of(request: Request) -> FileNames:
    """Where this process writes what it counts, beside those that it starts."""
    return FileNames(Path(request.folder), request.run, began_ns=request.began_ns)


def read_others(request: Request) -> list[Recording]:
    """What was counted so far, in each process of the run that has written it."""
    files = find_files(Path(request.folder), request.run)
    return [recording for path in files if (recording := _read(path)) is not None]


def end_with_others(watcher: Watcher, patience: float) -> None:
    """Judge the lines of the processes that the program started, which get ``patience`` seconds to end."""
    if watcher.folder is not None:
        wait_for_others(watcher.folder, watcher.count.run_id, patience)
    watcher.look_at_others()


def report_of(watcher: Watcher) -> Report | None:
    """The report of what was counted so far, of all processes whose counts are in the folder.

    ``None`` before the program, or one that it started, has used CUDA.
    """
    from syncscope.analysis.analyze import analyze_files, choose_engine
    from syncscope.analysis.differing_ranks import describe_differences
    from syncscope.policy.leniently import apply_leniently, with_warning

    count, folder = watcher.count, watcher.folder
    if count.began and not watcher.closed:
        watcher.write_state()
    with tempfile.TemporaryDirectory(prefix="syncscope-") as temporary:
        if count.began and watcher.path is None:
            folder = Path(temporary)
            TraceFile(folder / "trace.json.gz").write(NO_EVENTS, watcher.recording())
        files = list(find_files(folder, count.run_id)) if folder is not None else []
        if not files:
            return None
        report = analyze_files([os.fspath(path) for path in files], choose_engine())[0]
        recordings = [recording for path in files if (recording := _read(path)) is not None]
    report = apply_leniently(report, watcher.start)
    ranks = {recording.rank: recording for recording in recordings if recording.rank is not None}
    differences = describe_differences(ranks)
    for number, trace in enumerate(report.traces):
        if trace.rank in differences:
            report = with_warning(report, differences[trace.rank], number)
    return report


def write_report(watcher: Watcher, path: Path) -> Report | None:
    """Write the report of what was counted so far. Returns it, ``None`` where there is none or another rank writes it.

    Of several ranks the first writes it, and at the end the one that finishes last.
    """
    rank, world = rank_in_environment()
    if (world or 1) > 1 and (files := _all_complete(watcher, world or 1)):
        with the_only_writer(path, watcher.count.run_id, files) as alone:
            return _write_report(watcher, path) if alone else None
    return None if rank and (world or 1) > 1 else _write_report(watcher, path)


def _write_report(watcher: Watcher, path: Path) -> Report | None:
    from syncscope.trace.writing import write_atomically

    report = report_of(watcher)
    if report is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, [report.to_json().encode()])
    return report


def _all_complete(watcher: Watcher, world: int) -> list[Path]:
    """The files of all ranks, where each has written its last state; else none."""
    if watcher.path is None or not watcher.closed:
        return []
    heads = find_files(watcher.path.parent, watcher.count.run_id)
    complete = {head.rank for head in heads.values() if head.complete}
    return list(heads) if len(complete) >= world else []


class _File(msgspec.Struct):
    syncscope: Recording


def _read(path: Path) -> Recording | None:
    try:
        if path.stat().st_size > MOST_BYTES:
            return None
        return msgspec.json.decode(gzip.decompress(path.read_bytes()), type=_File).syncscope
    except (OSError, EOFError, ValueError, zlib.error):
        return None  # of another program, or damaged


def judge(baseline: Path | None, start: Path) -> tuple[Judge | None, tuple[str, ...]]:
    """Which lines may wait, and the phases in which that is judged, by a baseline and the configuration of ``start``.

    Raises ``BaselineError`` and ``ConfigError``.
    """
    from syncscope.policy.known_lines import read_known_lines

    if baseline is None:
        return None, TRAINING
    known = read_known_lines(baseline, start)
    return lambda line: (line.file, line.line, line.function, line.expression) in known, known.phases or TRAINING


def exporters_of(wanted: Iterable[str | Exporter]) -> tuple[Exporter, ...]:
    """The exporters that are named. Raises ``ExportError``."""
    rank, world = rank_in_environment()
    own = rank if (world or 1) > 1 else None
    return tuple(make_exporter(one, own) if isinstance(one, str) else one for one in wanted)


def seconds(text: float | str) -> float:
    """The seconds of ``30``, ``"30s"``, ``"10m"``, ``"2h"``. Raises ``ValueError``."""
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([smh]?)\s*", str(text))
    value = float(found[1]) * {"": 1, "s": 1, "m": 60, "h": 3600}[found[2]] if found else 0.0
    if value <= 0:
        raise ValueError(f"{text!r} is no length of time: write 30, 30s, 10m or 2h")
    return value


def _log(line: WaitingLine) -> None:
    log.warning("new wait: %s", line)
