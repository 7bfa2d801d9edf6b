"""The names of the trace files in a folder, and the rank of this process.

``trace.json.gz``, ``trace.rank0.json.gz``, ``trace.process-71.json.gz``, and before the suffix the phase:
``trace.rank0.evaluate.json.gz``.
"""

from __future__ import annotations

import os
import re
import sys
from typing import Any, get_args

from syncscope.schema.counting import PhaseKind

PATTERN = "trace*.json.gz"
"""Matches every name that ``file_name`` gives, and others."""

_KINDS = "|".join(kind.replace(" ", "_") for kind in get_args(PhaseKind))
_OURS = re.compile(rf"trace(?:\.rank\d+|\.process-\d+)?(?:\.(?:{_KINDS})\d*)?\.json\.gz", re.ASCII)
"""With a ``Phase.slug``."""

Rank = tuple[int | None, int | None]
"""A rank and the world size; both are ``None`` in a process that is no rank."""

NO_RANK: Rank = (None, None)


def file_name(rank: int | None, world: int | None, process: int, slug: str | None, main: bool) -> str:
    """The name of the trace file of a process with the id ``process``, and of one phase where there is a ``slug``.

    ``main`` is the process that ``profile`` runs the program in. The only rank of a world is called by its rank only
    where that process started it.
    """
    if rank is not None and ((world or 1) > 1 or not main):
        stem = f"trace.rank{rank}"
    else:
        stem = "trace" if main else f"trace.process-{process}"
    return f"{stem}.{slug}.json.gz" if slug else f"{stem}.json.gz"


def is_our_name(name: str) -> bool:
    """Whether ``file_name`` gives such a name."""
    return _OURS.fullmatch(name) is not None


def rank_in_environment() -> Rank:
    """Rank and world size as torchrun and Open MPI set them."""
    for rank, world in (("RANK", "WORLD_SIZE"), ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE")):
        if os.environ.get(rank, "").isdecimal() and os.environ.get(world, "").isdecimal():
            return int(os.environ[rank]), int(os.environ[world])
    return NO_RANK


def rank_in_group() -> Rank:
    """Rank and world size of the default process group, once the program has initialised it."""
    distributed: Any = sys.modules.get("torch.distributed")
    try:
        if distributed is not None and distributed.is_available() and distributed.is_initialized():
            return int(distributed.get_rank()), int(distributed.get_world_size())
    except (AttributeError, RuntimeError, ValueError):  # a build without it, or a group that is being taken down
        pass
    return NO_RANK


def how_it_was_started() -> str:
    """``spawn``, ``fork``, ``forkserver``, or the name of the script."""
    multiprocessing = sys.modules.get("multiprocessing")
    if multiprocessing is not None and multiprocessing.parent_process() is not None:
        return multiprocessing.get_start_method(allow_none=True) or "spawn"
    return os.path.basename(sys.argv[0]) if getattr(sys, "argv", None) else "python"
