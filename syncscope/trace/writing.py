"""Files that are written whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

PRIVATE = 0o600
"""Permissions of a file that only its user may read."""


def write_atomically(
    path: str | os.PathLike[str], pieces: Iterable[bytes | memoryview], permissions: int | None = None
) -> None:
    """Write ``pieces``, one after the other, to a temporary file in the same folder, then put it at ``path`` at once.

    A reader never sees half of the file. An error or an interrupt leaves what was there before, and nothing else.
    A symbolic link stays one: its target is replaced. A pipe or a device is written to, not replaced. By default a
    file that is replaced keeps its permissions, and a new one gets the usual ones. Raises ``OSError``.
    """
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():
        with target.open("wb") as stream:
            stream.writelines(pieces)
        return
    temporary = target.with_name(f".{target.name}.{os.urandom(4).hex()}")
    try:  # named before it is made: an interrupt may come at once
        with open(temporary, "xb", opener=_open_privately) as stream:
            stream.writelines(pieces)
        os.chmod(temporary, _usual_permissions(target) if permissions is None else permissions)
        os.replace(temporary, target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _open_privately(path: str, flags: int) -> int:
    return os.open(path, flags, PRIVATE)


def _usual_permissions(target: Path) -> int:
    """Those of the file at ``target``, else those that a new file gets."""
    if target.exists():
        return target.stat().st_mode & 0o7777
    umask = os.umask(0)
    os.umask(umask)
    return 0o666 & ~umask
