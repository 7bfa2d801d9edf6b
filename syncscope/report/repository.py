"""Find where in the repository the files of a report lie, so that a code host can show their lines."""

from __future__ import annotations

import re
from urllib.parse import quote

_ELSEWHERE = re.compile(r"[<~/\\]|[A-Za-z][A-Za-z0-9+.-]*:|.*(?:^|/)\.\.(?:/|$)", re.DOTALL)
"""``<site-packages>/…``, absolute paths, drives, URLs, and whatever leads out of the project."""


def in_repository(file: str, base: str) -> str | None:
    """The path of a project's file from the root of its repository, ``None`` for any other file.

    ``base`` is the project's folder in the repository, empty where they are the same.
    """
    if not file or _ELSEWHERE.match(file):
        return None
    return f"{base}/{file}" if base else file


def as_uri(path: str) -> str:
    """A relative reference, of an absolute path a ``file:`` URI. Every character that is not plain is percent-encoded,
    so nothing in a name is a scheme, a query or a host."""
    encoded = quote(path, safe="/", errors="replace")
    return f"file:///{encoded.lstrip('/')}" if encoded.startswith("/") else encoded
