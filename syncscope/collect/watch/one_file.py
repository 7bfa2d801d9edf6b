"""The one trace file of a process that is only counted."""

from __future__ import annotations

import os
from pathlib import Path

from syncscope.collect.process import file_name, rank_and_world_size


class OneFile:
    """Names the trace file of this process in ``folder``. ``run`` is the run's id, the same in all of its ranks."""

    def __init__(self, folder: Path, run: str | None = None) -> None:
        self.folder = folder
        self.run = run or new_run_id()

    def path(self, slug: str | None = None) -> Path:
        return self.folder / file_name()

    def rank(self) -> tuple[int | None, int | None]:
        """Rank and world size of this process."""
        return rank_and_world_size()


def new_run_id() -> str:
    """An id for a run that begins: the same for all ranks that one launcher started, else one of its own."""
    names = ("TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT", "MASTER_ADDR", "MASTER_PORT", "SLURM_JOB_ID")
    known = [f"{name}={os.environ[name]}" for name in names if name in os.environ]
    if (rank_and_world_size()[1] or 1) < 2 or not known:
        return os.urandom(8).hex()
    from hashlib import sha256

    return sha256("\n".join(known).encode()).hexdigest()[:16]
