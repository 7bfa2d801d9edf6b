"""The project's own source text, read under one rule: only regular files inside the root, at most 1 MB."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from pathlib import Path

MOST_BYTES = 1 << 20

_FLAGS = os.O_RDONLY | sum(getattr(os, name, 0) for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_BINARY"))
"""No link put there meanwhile is followed, and no pipe is waited for."""


def read_source(name: str, folders: Sequence[Path]) -> bytes | None:
    """The file that a report calls ``name``, from the first of ``folders`` that has it; ``None`` for one that may not
    be read. A name comes from a trace, and traces come from anybody: it is resolved, links and all, before it is held
    against the first of the folders, the root.
    """
    try:
        root = os.path.join(os.path.realpath(folders[0]), "")
        places = (os.path.realpath(folder / name) for folder in folders)
        place = next((place for place in places if place.startswith(root) and os.path.isfile(place)), None)
        return _read(place) if place is not None else None
    except (OSError, ValueError):  # ValueError: a name that no file can have
        return None


def _read(place: str) -> bytes | None:
    with os.fdopen(os.open(place, _FLAGS), "rb") as stream:
        opened = os.fstat(stream.fileno())
        if not stat.S_ISREG(opened.st_mode) or opened.st_size > MOST_BYTES:
            return None
        data = stream.read(MOST_BYTES + 1)
    return data if len(data) <= MOST_BYTES else None
