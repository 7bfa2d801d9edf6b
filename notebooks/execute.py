"""Execute the notebooks of this folder and keep their outputs: ``python notebooks/execute.py [NOTEBOOK…]``.

They look at the recordings that come with the project, also where there is a GPU. Where kaleido is installed, figures are kept as still images too, for viewers that draw no plotly figures.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any
from unittest import mock

import nbformat
from nbclient import NotebookClient

NOTEBOOKS = Path(__file__).parent


def execute(path: Path, live: bool = False) -> Any:
    """The notebook (nbformat 4) with fresh outputs only; with ``live`` from this machine's GPU, where it has one.

    Raises ``nbclient.exceptions.CellExecutionError`` where a cell fails.
    """
    notebook: Any = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.update(outputs=[], execution_count=None)
    client = NotebookClient(
        notebook,
        timeout=300,
        kernel_name="python3",
        allow_errors=False,
        record_timing=False,
        resources={"metadata": {"path": str(NOTEBOOKS.parent)}},
    )
    with mock.patch.dict(os.environ, {"SYNCSCOPE_NOTEBOOKS": "live" if live else "recorded"}):
        client.execute()
    notebook.metadata.language_info = {"name": "python"}  # not which version happened to be at hand
    return notebook


if __name__ == "__main__":
    for path in map(Path, sys.argv[1:]) if sys.argv[1:] else sorted(NOTEBOOKS.glob("*.ipynb")):
        nbformat.write(execute(path), path)  # type: ignore[no-untyped-call]
