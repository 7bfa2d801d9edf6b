"""Find where in the repository the files of a report lie, so that a code host can show their lines."""

from __future__ import annotations

import re
from urllib.parse import quote

from syncscope.patterns import compile_later

_ELSEWHERE = compile_later(r"[<~/\\]|[A-Za-z][A-Za-z0-9+.-]*:|(?:.*[/\\])?\.\.(?:[/\\]|$)", re.DOTALL)
"""``<site-packages>/…``, absolute paths, drives, URLs, and whatever leads out of the project."""

_SCHEMES = compile_later(r"(?:[/\\]*[A-Za-z][A-Za-z0-9+.-]*:)+")
"""``file:``, ``C:``, and one behind the other."""
_SEPARATOR = compile_later(r"[/\\]")


def in_repository(file: str, base: str) -> str | None:
    """The path of a project's file from the root of its repository, ``None`` for any other file.

    ``base`` is the project's folder in the repository, empty where they are the same.
    """
    if not file or _ELSEWHERE.match(file):
        return None
    return f"{base}/{file}" if base else file


def as_uri(path: str) -> str:
    """A relative reference, which leads nowhere but down; empty where nothing is left of the path.

    A scheme, a drive, the root and every ``..`` are left out. Every character that is not plain is percent-encoded, so
    nothing in a name is a query or a host.
    """
    parts = _SEPARATOR.split(_SCHEMES.sub("", path))
    return "/".join(quote(part, safe="", errors="replace") for part in parts if part not in ("", ".", ".."))
