"""Runs pytest with the plugin in a process of its own, on a test file written for it, with a stand-in for PyTorch."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]

Run = Callable[..., "Outcome"]


class Outcome:
    """What pytest printed, how it ended, and what became of each test."""

    def __init__(self, done: subprocess.CompletedProcess[str]) -> None:
        self.code, self.out = done.returncode, done.stdout + done.stderr
        found = re.findall(
            r"^(?:\[gw\d\] \[ *\d+%\] )?(?:(\w+) )?test_it\.py::(\S+)(?: (\w+))?", self.out, re.MULTILINE
        )
        self.tests = {name.split("::")[-1]: before or after for before, name, after in found if before or after}


@pytest.fixture
def run_pytest(tmp_path: Path) -> Run:
    """Write the test file and run it with arguments. ``torch`` is the stand-in unless another is asked for."""

    def run(test: str, *arguments: str, conftest: str = "", torch: Path | None = HERE / "fake", **more: str) -> Outcome:
        (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = --strict-markers -ra -v\n")
        (tmp_path / "conftest.py").write_text(conftest)
        (tmp_path / "test_it.py").write_text(test)
        paths = [str(ROOT), *([str(torch)] if torch else [])]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
        command = [sys.executable, "-m", "pytest", "-p", "syncscope.pytest_plugin", "-p", "no:cacheprovider"]
        done = subprocess.run(
            [*command, *arguments], cwd=tmp_path, capture_output=True, text=True, check=False,
            env={**environment, "NO_COLOR": "1", **more},
        )  # fmt: skip
        return Outcome(done)

    return run
