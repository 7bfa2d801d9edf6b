"""Where a process writes what was counted in it, and what the file says of the process."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Protocol

from syncscope.collect.tracefile import write_trace

Rank = tuple[int | None, int | None]
"""A rank and the world size; both are ``None`` in a process that is no rank."""


class RunFiles(Protocol):
    """The trace files of this process, in the folder of a run."""

    run: str
    """The run's id, the same in all of its processes."""

    def rank(self) -> Rank: ...

    def write(self, data: bytes) -> Path:
        """Write the file, whole or not at all, and return its path. Raises ``OSError``."""


class OneFile:
    """One trace file in ``folder``, called by the rank that the environment names."""

    def __init__(self, folder: Path, run: str | None = None) -> None:
        self.folder = folder
        self.run = run or new_run_id()

    def rank(self) -> Rank:
        return rank_in_environment()

    def write(self, data: bytes) -> Path:
        rank, world = self.rank()
        path = self.folder / (f"trace.rank{rank}.json.gz" if (world or 1) > 1 else "trace.json.gz")
        write_trace(path, data)
        return path


def rank_in_environment() -> Rank:
    """Rank and world size of this process, as torchrun and Open MPI set them."""
    for rank, world in (("RANK", "WORLD_SIZE"), ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE")):
        if os.environ.get(rank, "").isdecimal() and os.environ.get(world, "").isdecimal():
            return int(os.environ[rank]), int(os.environ[world])
    return None, None


def new_run_id() -> str:
    """An id for a run that begins: the same for all ranks that one launcher started, else one of its own."""
    names = ("TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT", "MASTER_ADDR", "MASTER_PORT", "SLURM_JOB_ID")
    known = [f"{name}={os.environ[name]}" for name in names if name in os.environ]
    if (rank_in_environment()[1] or 1) < 2 or not known:
        return os.urandom(8).hex()
    from hashlib import sha256

    return sha256("\n".join(known).encode()).hexdigest()[:16]


def version() -> str:
    """Our version, as it is installed."""
    from importlib.metadata import PackageNotFoundError
    from importlib.metadata import version as installed_version

    try:
        return installed_version("syncscope")
    except PackageNotFoundError:
        return "0+unknown"
