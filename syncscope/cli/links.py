"""Where a place of the report leads when it is clicked in a terminal."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from syncscope.patterns import compile_later

if TYPE_CHECKING:
    from syncscope.report.view import Link
    from syncscope.schema.findings import Frame

EDITOR = "SYNCSCOPE_EDITOR"
"""Environment variable: an editor of ``EDITORS``, or an address with ``{path}``, ``{line}`` and ``{column}``."""

EDITORS = {
    "vscode": "vscode://file{path}:{line}:{column}",
    "cursor": "cursor://file{path}:{line}:{column}",
    "windsurf": "windsurf://file{path}:{line}:{column}",
    "zed": "zed://file{path}:{line}:{column}",
    "pycharm": "pycharm://open?file={path}&line={line}",
    "idea": "idea://open?file={path}&line={line}",
    "sublime": "subl://open?url=file://{path}&line={line}",
}
PLAIN = "file://{path}"
SCHEME = compile_later(r"[a-zA-Z][a-zA-Z0-9+.-]*:")


def terminal_links(folder: Path) -> Link | None:
    """Links to the files of the project of ``folder``; ``None`` where standard output is no terminal.

    Names come from traces, so only regular files inside the project are linked.
    """
    if not sys.stdout.isatty() or os.environ.get("TERM") == "dumb":
        return None
    from syncscope.collect.paths import project_root

    root = project_root(folder.resolve())
    chosen = os.environ.get(EDITOR, "")
    address = EDITORS.get(chosen, chosen if SCHEME.match(chosen) else PLAIN)
    return lambda frame: address_of(frame, root, address)


def address_of(frame: Frame, root: Path, address: str) -> str | None:
    """The ``address`` of a place, ``None`` where it is no file inside of ``root``."""
    try:
        path = (root / frame.file).resolve()
        inside = path.is_relative_to(root) and path.is_file()
    except (OSError, ValueError):  # a name that no file can have
        return None
    if not inside:
        return None
    column = getattr(frame, "column", None) or 1
    places = {"path": path.as_uri().removeprefix("file://"), "line": str(frame.line or 1), "column": str(column)}
    return re.sub(r"\{(path|line|column)\}", lambda found: places[found[1]], address)
