"""Notebooks of public programs as scripts."""

from __future__ import annotations

import json
import re
from pathlib import Path

MAGIC = r"(?m)^( *)[%!].*$"
"""A line that is none of Python's."""


def write_script(notebook: Path, script: Path) -> None:
    """The cells of a notebook one after the other, without what only a notebook understands."""
    cells = json.loads(notebook.read_text())["cells"]
    codes = [re.sub(MAGIC, r"\1pass", "".join(cell["source"])) for cell in cells if cell["cell_type"] == "code"]
    script.parent.mkdir()
    script.write_text("\n\n".join(codes) + "\n")
