"""The releases of HTA that the tests run against, side by side.

Both install a package ``hta``, so neither can be in the environment itself, and either would bring a hundred packages
that nothing here needs. Each is put into a folder of its own, once, without what it depends on (the extra ``dev`` has
what it imports), for the ``PYTHONPATH`` of a process.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
RELEASES = ("HolisticTraceAnalysis==0.5.0", "traceinsight==0.6.1")
FOLDER = ROOT / ".hta"


@cache
def folder(release: str) -> Path:
    """The folder of a release; skips the test where it is not there and cannot be had."""
    for module in ("networkx", "psutil", "yaml"):
        pytest.importorskip(module, reason=f"HTA needs {module}")
    place = FOLDER / release
    if place.is_dir():
        return place
    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=FOLDER) as made:
        command = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", made, release]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        if done.returncode:
            pytest.skip(f"{release} is not at hand: {done.stderr.strip().splitlines()[-1] if done.stderr else 'pip'}")
        try:
            os.rename(made, place)
        except OSError:
            if not place.is_dir():  # else another process was faster
                raise
        Path(made).mkdir(exist_ok=True)
    return place


def environment(release: str, **more: str) -> dict[str, str]:
    """The environment of a process in which ``import hta`` finds the release."""
    paths = [str(ROOT), str(folder(release))]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths), **more}
