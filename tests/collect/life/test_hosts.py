"""Programs that something else runs, which is recorded with them: pytest, and a notebook's kernel."""

from __future__ import annotations

import gzip
import json
import os
import re
import sys
from pathlib import Path

import pytest

from tests.collect.life.runner import Outcome, Place, finish, prepare, start, without_ours

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX signals and fork")

PLACE = Place(standin=True)

INSIDE = """
import warnings

import pytest
import training


def test_it_trains():
    training.train(steps=30)
    warnings.warn("the program's own", UserWarning)


def test_it_fails(capsys):
    print("captured")
    training.train(steps=30, each=lambda loss: loss.tolist())
    assert capsys.readouterr().out == "captured\\n"
    assert training.x is None


@pytest.mark.filterwarnings("error")
def test_its_warnings_are_errors():
    training.train(steps=5)
    with pytest.raises(UserWarning):
        warnings.warn("raised", UserWarning)
"""

NOTEBOOK = """
import nbformat
from nbclient import NotebookClient

cells = [
    "import training\\ntraining.train(steps=30, each=lambda loss: loss.tolist())",
    "print('between')",
    "training.train(steps=5)\\nlen(training.net.parameters())",
]
notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
NotebookClient(notebook, timeout=60, kernel_name="python3").execute()
for cell in notebook.cells:
    for output in cell.outputs:
        print(output.get("text") or output.get("data"))
"""


def runs_of(folder: Path) -> list[dict[str, object]]:
    found = sorted((folder / "out").glob("*.json.gz"))
    return [json.loads(gzip.decompress(path.read_bytes()))["syncscope"] for path in found]


def timeless(outcome: Outcome) -> Outcome:
    return Outcome(re.sub(r" in [\d.]+s", " in time", outcome.stdout), outcome.stderr, outcome.status, outcome.files)


def both(tmp_path: Path, name: str, text: str, *command: str) -> tuple[Outcome, Outcome]:
    """The program alone, and as ``syncscope profile`` runs it."""
    outcomes = []
    for how, before in (("alone", [sys.executable]), ("ours", PLACE.command())):
        folder = prepare(tmp_path / how)
        (folder / name).write_text(text)
        outcomes.append(timeless(without_ours(finish(start(folder, [*before, *command], PLACE), folder))))
    return outcomes[0], outcomes[1]


def test_tests_under_pytest_end_as_they_do_alone_and_are_recorded(tmp_path: Path) -> None:
    command = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:randomly", "-p", "no:xdist", "inside.py")
    expected, found = both(tmp_path, "inside.py", INSIDE, *command)
    assert found == expected
    assert found.status == 1 and "2 passed" in found.stdout and "the program's own" in found.stdout
    (recording,) = runs_of(tmp_path / "ours")
    run = recording["run"]
    assert isinstance(run, dict) and run["complete"]
    assert sum(phase["steps"] for phase in run["phases"] if phase["kind"] == "train") == 65


def test_the_kernel_of_a_notebook_is_recorded_with_its_cells(tmp_path: Path) -> None:
    for package in ("nbclient", "nbformat", "ipykernel"):
        pytest.importorskip(package, reason="runs a notebook")
    expected, found = both(tmp_path, "runs.py", NOTEBOOK, "runs.py")
    assert (found.stdout, found.status) == (expected.stdout, expected.status) == (expected.stdout, 0), found.stderr
    assert "between" in found.stdout
    (recording,) = runs_of(tmp_path / "ours")
    run = recording["run"]
    assert isinstance(run, dict) and isinstance(recording["frames"], list)
    assert sum(phase["steps"] for phase in run["phases"] if phase["kind"] == "train") == 35
    files = {os.path.dirname(frame["file"]) for frame in recording["frames"] if "tolist" in str(frame["expression"])}
    assert files == {"<notebook>"}
