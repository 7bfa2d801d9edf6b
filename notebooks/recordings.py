"""What the notebooks look at: recorded and measured here and now where there is a GPU, else as it was on an H200.

``SYNCSCOPE_NOTEBOOKS=recorded`` takes what comes with the project on any machine.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
CASES = ROOT / "fixtures" / "traces"
KEPT = ROOT / "notebooks" / "recorded"
PAIRS = ROOT / "benchmarks" / "savings" / "recordings"

_folder = tempfile.TemporaryDirectory()


@cache
def live(*needs: str) -> bool:
    """Whether there is a GPU to record on, and every package that the program ``needs``."""
    if os.environ.get("SYNCSCOPE_NOTEBOOKS") == "recorded" or not all(map(find_spec, ("torch", *needs))):
        return False
    import torch

    return torch.cuda.is_available()


@cache
def recording(case: str) -> Path:
    """The trace of ``fixtures/traces/CASE/workload.py``, or of the tutorial's ``races``."""
    if case == "races":
        return _recorded(ROOT / "notebooks" / "races.py", KEPT / "races.json.gz", "--hazards")
    return _recorded(CASES / case / "workload.py", CASES / case / "trace.json.gz")


def _recorded(script: Path, kept: Path, *options: str) -> Path:
    if not live(*_needs(script.read_text(encoding="utf-8"))):
        return kept
    out = Path(_folder.name) / kept.parent.name / kept.name.partition(".")[0]
    _run("syncscope", "profile", "--stop", "--steps", "3", *options, "-o", out, script)
    return out / "trace.json.gz"


@cache
def measured() -> dict[str, Any]:
    """What ``notebooks/measure.py`` measures with no profiler; of generation, what it did on an H200 where transformers
    is missing."""
    kept: dict[str, Any] = json.loads((KEPT / "measured.json").read_text(encoding="utf-8"))
    if not live():
        return kept
    file = Path(_folder.name) / "measured.json"
    _run("notebooks.measure", file)
    figures: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return {**figures, "generation": figures["generation"] or kept["generation"]}


@cache
def pair(name: str) -> Path:
    """The folder in which ``benchmarks/savings`` keeps one pair: both versions' timings, and traces of the first."""
    script = PAIRS.parent / "pairs" / f"{name.partition('.')[0]}.py"
    if not live(*_needs(script.read_text(encoding="utf-8"))):
        return PAIRS / name
    _run("benchmarks.savings.record", Path(_folder.name), "--only", name)
    return Path(_folder.name) / name


def _needs(program: str) -> list[str]:
    return ["transformers"] if "transformers" in program else []


def _run(module: str, *arguments: str | Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", module, *map(str, arguments)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(f"{module}: {done.stderr.strip()[-2000:]}")
