"""Every notebook runs from start to end, and what is committed is what it shows."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import nbformat
import pytest

import syncscope
from notebooks.execute import NOTEBOOKS, PLOTLY, STILL, add_stills, execute, find_notebooks

PATHS = find_notebooks()
TEACHING = [path for path in PATHS if path.parent == NOTEBOOKS]
EVIDENCE = [path for path in PATHS if path.parent != NOTEBOOKS]
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
    assert [path.stem for path in TEACHING] == ["finding_to_saving", "generation_waits", "pinned_memory"]
    assert [path.stem for path in EVIDENCE] == ["pinned_memory_claims"]


@pytest.mark.parametrize("path", TEACHING, ids=lambda path: path.stem)
def test_a_teaching_notebook_is_short_and_uses_nothing_but_the_public_api(path: Path) -> None:
    """First the reader's own code, then record, read and fix; no plotting, and no modules of ours."""
    notebook = committed(path)
    code = "\n".join(cell.source for cell in code_cells(notebook))
    text = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    assert len(notebook.cells) <= 14
    assert len(code.splitlines()) <= 20
    assert [line for line in code.splitlines() if "import" in line] == ["import syncscope"]
    assert set(re.findall(r"syncscope\.(\w+)", code)) <= set(syncscope.__all__)
    headings = re.findall(r"^## (\w+)", text, re.MULTILINE)
    assert headings[:3] == ["Record", "Read", "Fix"]
    assert "```python" in notebook.cells[0].source


@pytest.mark.parametrize("path", TEACHING, ids=lambda path: path.stem)
def test_the_code_that_a_notebook_shows_is_that_of_a_recorded_program(path: Path) -> None:
    text = "\n".join(cell.source for cell in committed(path).cells if cell.cell_type == "markdown")
    programs = [(path.parent / name).read_text() for name in re.findall(r"\]?\(([^)\s]+workload\.py)\)", text)]
    known = {line.strip() for program in programs for line in program.splitlines()}
    shown = [line for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL) for line in block.splitlines()]
    changed = [line for block in re.findall(r"```diff\n(.*?)```", text, re.DOTALL) for line in block.splitlines()]
    lines = [*shown, *(line[1:] if line[:1] in "+-" else line for line in changed)]
    assert [line for line in lines if line.strip() not in known | {"", "..."}] == []


@every_notebook
def test_what_a_notebook_links_to_is_there(path: Path) -> None:
    text = "\n".join(cell.source for cell in committed(path).cells if cell.cell_type == "markdown")
    links = [link for link in re.findall(r"\]\(([^)]+)\)", text) if "://" not in link]
    assert [link for link in links if not (path.parent / link.partition("#")[0]).exists()] == []


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
    notebook = committed(path)
    text = " ".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    shown = " ".join(said(code_cells(notebook)[0]))
    assert re.search(r"NVIDIA H200(?:,| with) torch 2\.", shown + " ".join(text.split()))


@pytest.mark.gpu
@pytest.mark.slow
@pytest.mark.parametrize("path", EVIDENCE, ids=lambda path: path.stem)
def test_a_notebook_runs_on_the_gpu_at_hand(path: Path) -> None:
    torch = pytest.importorskip("torch", reason="recorded here and now are PyTorch programs")
    if not torch.cuda.is_available():
        pytest.skip("needs a GPU: there is none here")
    cells = code_cells(execute(path, live=True))
    assert said(cells[0])[0].startswith("Live: ")


@every_notebook
def test_every_committed_figure_has_a_still_image(path: Path) -> None:
    """``notebooks/execute.py`` draws it: GitHub and nbconvert show nothing of a plotly figure but that."""
    outputs = [output.data for cell in code_cells(committed(path)) for output in cell.outputs if "data" in output]
    figures = [data for data in outputs if PLOTLY in data]
    assert figures
    assert [data[STILL][:4] for data in figures] == ["<svg"] * len(figures)


def test_still_images_show_what_the_figure_does() -> None:
    pytest.importorskip("playwright", reason="playwright draws them")
    figure = {"data": [{"type": "bar", "x": ["a"], "y": [1], "text": ["<b>here</b>"]}], "layout": {"width": 400}}
    output = nbformat.v4.new_output("display_data", data={PLOTLY: figure})
    cell = nbformat.v4.new_code_cell(outputs=[output])
    with ThreadPoolExecutor(1) as other:  # on this thread the browser of other tests may run
        drawn = other.submit(add_stills, [nbformat.v4.new_notebook(cells=[cell])]).result()
    if not drawn:
        pytest.skip("no Chromium on this machine (SYNCSCOPE_CHROMIUM names one)")
    still = cell.outputs[0].data[STILL]
    assert still.startswith("<svg") and 'width="400"' in still and "here" in still


@every_notebook
def test_a_committed_notebook_is_small_and_loads_nothing(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert len(text.encode()) < MOST_BYTES
    assert "<script" not in text.lower()
    assert "cdn." not in text.lower()
