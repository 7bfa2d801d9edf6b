"""What a recording says of the process that wrote it: its rank, the name of its file, our version."""

from __future__ import annotations

import os


def file_name() -> str:
    rank, world = rank_and_world_size()
    return f"trace.rank{rank}.json.gz" if rank is not None and (world or 1) > 1 else "trace.json.gz"


def rank_and_world_size() -> tuple[int | None, int | None]:
    """Rank and world size of this process, as torchrun and Open MPI set them."""
    for rank, world in (("RANK", "WORLD_SIZE"), ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE")):
        if os.environ.get(rank, "").isdecimal() and os.environ.get(world, "").isdecimal():
            return int(os.environ[rank]), int(os.environ[world])
    return None, None


def version() -> str:
    """Our version, as it is installed."""
    from importlib.metadata import PackageNotFoundError
    from importlib.metadata import version as installed_version

    try:
        return installed_version("syncscope")
    except PackageNotFoundError:
        return "0+unknown"
