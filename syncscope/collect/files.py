"""The names of the files that one process writes into the folder of a run, and the files that a run has written."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from syncscope.collect.naming import (
    NO_RANK,
    PATTERN,
    Rank,
    file_name,
    is_our_name,
    rank_in_environment,
    rank_in_group,
)
from syncscope.collect.process_age import launcher_began_ns
from syncscope.collect.tracefile import Head, holds_recording, read_head


class FileNames:
    """Where this process writes the files of its phases.

    ``run`` is the run's id, the same in all of its processes, and ``began_ns`` when it began. ``main`` is the process
    that ``profile`` runs the program in. ``inherited`` is the rank that the environment of the parent already named:
    it is not this process's own.
    """

    def __init__(
        self, folder: Path, run: str | None = None, *, main: bool = True, inherited: Rank = NO_RANK,
        began_ns: int | None = None,
    ) -> None:  # fmt: skip
        self.folder = folder
        self.run = run or new_run_id()
        self.main = main
        self._inherited = inherited
        self._began_ns = time.time_ns() if began_ns is None else began_ns
        self._cleared = False
        self._in_group = NO_RANK

    def look_for_rank(self) -> None:
        """Call it now and then: a program may take its process group down before it ends. Costs 1 µs."""
        if self._in_group[0] is None:
            self._in_group = rank_in_group()

    def rank(self) -> Rank:
        """Rank and world size of this process, as far as is known by now.

        Where another process of the run has written files as that rank, they keep the name, and this process has no
        rank: a program may spawn ranks several times.
        """
        self.look_for_rank()
        rank, world = self._in_group
        if rank is None:
            rank, world = rank_in_environment()
            if (rank, world) == self._inherited:
                return NO_RANK
        if rank is not None and self._is_taken(rank, world):
            return NO_RANK
        return rank, world

    def path(self, slug: str | None) -> Path:
        """Where the file of the phase with that ``slug`` belongs now, or the main file. The first call removes files
        of earlier runs."""
        if not self._cleared:
            self._cleared = True
            self._remove_stale()
        rank, world = self.rank()
        return self.folder / file_name(rank, world, os.getpid(), slug, self.main)

    def _is_taken(self, rank: int, world: int | None) -> bool:
        stem = file_name(rank, world, os.getpid(), None, self.main).removesuffix(".json.gz")
        if stem == "trace":
            return False
        heads = (read_head(path) for path in (self.folder / f"{stem}.json.gz", *self.folder.glob(f"{stem}.*.json.gz")))
        return any(head is not None and head.run == self.run and head.pid != os.getpid() for head in heads)

    def _remove_stale(self) -> None:
        """Remove recordings of ours that were last written before this run began, and nothing else."""
        for path in self.folder.glob(PATTERN):
            try:
                written_ns = path.stat().st_mtime_ns
                if not is_our_name(path.name) or written_ns >= self._began_ns or not holds_recording(path):
                    continue
                if not self._is_of_a_rank_that_is_over(path, written_ns):
                    path.unlink(missing_ok=True)
            except OSError:  # another rank was faster, or it is not ours to remove
                continue

    def _is_of_a_rank_that_is_over(self, path: Path, written_ns: int) -> bool:
        """Whether another rank of the same launch wrote the file and ended before this one began."""
        head = read_head(path)
        if head is None or head.run != self.run or head.rank in (None, rank_in_environment()[0], rank_in_group()[0]):
            return False
        launcher_ns = launcher_began_ns()
        return launcher_ns is not None and written_ns >= launcher_ns


def new_run_id() -> str:
    """An id for a run that begins: the same for all ranks that one launcher started, else one of its own."""
    names = (
        "TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT", "MASTER_ADDR", "MASTER_PORT", "SLURM_JOB_ID",
        "SLURM_STEP_ID", "OMPI_MCA_ess_base_jobid", "PMIX_NAMESPACE",
    )  # fmt: skip
    known = [f"{name}={os.environ[name]}" for name in names if name in os.environ]
    world = rank_in_environment()[1] or rank_in_group()[1] or 1
    if world < 2 or not known:
        return os.urandom(8).hex()
    from hashlib import sha256

    return sha256("\n".join([*known, f"world={world}"]).encode()).hexdigest()[:16]


def find_files(folder: Path, run: str) -> dict[Path, Head]:
    """The trace files of one run, with what their heads say, by name."""
    heads = {path: read_head(path) for path in sorted(folder.glob(PATTERN))}
    return {path: head for path, head in heads.items() if head is not None and head.run == run}


def count_processes(folder: Path, run: str) -> int:
    """How many processes of the run have written files."""
    return len({(head.pid, head.rank) for head in find_files(folder, run).values()})


@contextlib.contextmanager
def the_only_writer(report: Path, run: str, traces: Iterable[Path]) -> Iterator[bool]:
    """Whether this process is the one of several ranks that writes ``report`` about the ``traces`` of a run.

    Ranks end at the same moment, so each may find that all are complete. The first to make a hidden file writes, and
    removes it afterwards; who comes later finds a report that is newer than the traces.
    """
    claim = report.with_name(f".syncscope-{run}.report")
    try:
        claim.touch(exist_ok=False)
    except FileExistsError:
        yield False
        return
    except OSError:  # the report cannot be written either, which its writer says
        yield True
        return
    try:
        yield not _is_newer(report, traces)
    finally:
        with contextlib.suppress(OSError):
            claim.unlink(missing_ok=True)


def _is_newer(report: Path, traces: Iterable[Path]) -> bool:
    try:
        return report.stat().st_mtime_ns > max(path.stat().st_mtime_ns for path in traces)
    except (OSError, ValueError):  # neither is there
        return False
