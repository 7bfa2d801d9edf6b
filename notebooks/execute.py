"""Execute the notebooks and keep their outputs: ``python notebooks/execute.py [NOTEBOOK…]``.

They look at the recordings that come with the project, also where there is a GPU. Figures are kept as data for plotly,
which Jupyter draws. Where playwright and Chromium are, they are kept as still images too, drawn by plotly's own script:
for viewers that draw no plotly figures, as GitHub and nbconvert.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from unittest import mock
from urllib.parse import unquote

import nbformat
from nbclient import NotebookClient

NOTEBOOKS = Path(__file__).parent
PLOTLY, STILL = "application/vnd.plotly.v1+json", "image/svg+xml"
CHROMIUM = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def find_notebooks() -> list[Path]:
    """Those that teach, and those that hold claims against measurements."""
    return sorted(NOTEBOOKS.glob("*.ipynb")) + sorted(NOTEBOOKS.glob("evidence/*.ipynb"))


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
        resources={"metadata": {"path": str(path.parent)}},
    )
    chosen = {"SYNCSCOPE_NOTEBOOKS": "live" if live else "recorded", "PLOTLY_RENDERER": "plotly_mimetype"}
    with mock.patch.dict(os.environ, chosen):
        client.execute()
    notebook.metadata.language_info = {"name": "python"}  # not which version happened to be at hand
    return notebook


def add_stills(notebooks: list[Any]) -> bool:
    """Draw every figure of executed notebooks once more, as SVG. ``False`` where there is no browser to do it."""
    chromium = os.environ.get("SYNCSCOPE_CHROMIUM") or next(filter(None, map(shutil.which, CHROMIUM)), None)
    if chromium is None or not find_spec("playwright"):
        return False
    from playwright.sync_api import sync_playwright
    from plotly.offline import get_plotlyjs

    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page()
        page.set_content("<!doctype html><title>figures</title>")
        page.add_script_tag(content=get_plotlyjs())
        for data in _figures(notebooks):
            address = page.evaluate(
                """({ data, layout }) => Plotly.toImage({ data, layout }, {
                    format: "svg", width: layout.width || 820, height: layout.height || 420 })""",
                {"data": data[PLOTLY]["data"], "layout": data[PLOTLY]["layout"]},
            )
            data[STILL] = unquote(address.partition(",")[2])
        browser.close()
    return True


def _figures(notebooks: list[Any]) -> Iterator[Any]:
    for notebook in notebooks:
        for cell in notebook.cells:
            for output in cell.get("outputs", ()):
                if PLOTLY in output.get("data", {}):
                    yield output.data


if __name__ == "__main__":
    paths = [Path(path) for path in sys.argv[1:]] or find_notebooks()
    executed = [execute(path) for path in paths]
    if not add_stills(executed):
        print("no Chromium or no playwright: figures have no still images", file=sys.stderr)
    for path, notebook in zip(paths, executed, strict=True):
        nbformat.write(notebook, path)  # type: ignore[no-untyped-call]
