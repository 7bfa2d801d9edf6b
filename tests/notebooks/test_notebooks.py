"""Every notebook runs from start to end, and what is committed is what it shows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nbformat
import pytest

from notebooks.execute import NOTEBOOKS, execute

PATHS = sorted(NOTEBOOKS.glob("*.ipynb"))
PLOTLY = "application/vnd.plotly.v1+json"
MOST_BYTES = 300_000

every_notebook = pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)


def code_cells(notebook: Any) -> list[Any]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def committed(path: Path) -> Any:
    return nbformat.read(path, as_version=4)


def said(cell: Any) -> list[str]:
    """What the cell shows as text: tables, sentences, printed lines."""
    shown = [output.get("data", {}) for output in cell.outputs]
    texts = [data.get("text/markdown", data.get("text/plain", "")) for data in shown]
    return [*texts, *(output.text for output in cell.outputs if output.output_type == "stream")]


def drawn(cell: Any) -> list[Any]:
    return [to_digits(output.data[PLOTLY]["data"]) for output in cell.outputs if PLOTLY in output.get("data", {})]


def to_digits(shown: Any) -> Any:
    """``shown`` with its numbers to twelve digits: Python 3.12 sums floats to one digit more than 3.11 does."""
    if isinstance(shown, float):
        return float(f"{shown:.12g}")
    if isinstance(shown, list):
        return [to_digits(part) for part in shown]
    return {key: to_digits(part) for key, part in shown.items()} if isinstance(shown, dict) else shown


def test_there_are_notebooks() -> None:
    assert [path.stem for path in PATHS] == ["finding_to_saving", "generation_waits", "pinned_memory"]


@every_notebook
def test_every_cell_runs_and_shows_what_is_committed(path: Path) -> None:
    """When the last two fail, the figures have changed: ``python notebooks/execute.py``, and read the text again."""
    fresh, kept = code_cells(execute(path)), code_cells(committed(path))
    assert [cell.execution_count for cell in fresh] == list(range(1, len(fresh) + 1))
    assert [output for cell in fresh for output in cell.outputs if output.get("name") == "stderr"] == []
    assert [cell.source for cell in fresh if not any((*said(cell), *drawn(cell)))] == []
    assert [cell.execution_count for cell in kept] == [cell.execution_count for cell in fresh]
    assert [said(cell) for cell in kept] == [said(cell) for cell in fresh]
    assert [drawn(cell) for cell in kept] == [drawn(cell) for cell in fresh]


@every_notebook
def test_a_notebook_says_where_its_figures_come_from(path: Path) -> None:
    first = code_cells(committed(path))[0]
    assert "Recorded: " in said(first)[0] and "NVIDIA H200, torch 2." in said(first)[0]


@pytest.mark.gpu
@pytest.mark.slow
@every_notebook
def test_a_notebook_runs_on_the_gpu_at_hand(path: Path) -> None:
    torch = pytest.importorskip("torch", reason="recorded here and now are PyTorch programs")
    if not torch.cuda.is_available():
        pytest.skip("needs a GPU: there is none here")
    cells = code_cells(execute(path, live=True))
    assert said(cells[0])[0].startswith("Live: ")


@every_notebook
def test_every_committed_figure_has_a_still_image(path: Path) -> None:
    """``notebooks/execute.py`` draws it where kaleido is installed."""
    outputs = [output.data for cell in code_cells(committed(path)) for output in cell.outputs if "data" in output]
    figures = [data for data in outputs if PLOTLY in data]
    assert all(data.keys() & {"image/svg+xml", "image/png"} for data in figures)


@every_notebook
def test_a_committed_notebook_is_small_and_loads_nothing(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert len(text.encode()) < MOST_BYTES
    assert "<script" not in text.lower()
    assert "cdn." not in text.lower()
