"""What all tests share: the environment they run in, a browser, and how property tests draw their examples.

Property tests try the same few examples every time under ``./check``; ``./check slow`` and plain pytest try new ones,
and more of them.

No example has a deadline: on a busy machine any may take long, and that is no fault.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]

# What a CI machine or a user's shell sets and what changes the output of rich, typer or pytest, here and in children.
CHANGES_OUTPUT = "CI BUILD_NUMBER GITHUB_ACTIONS NO_COLOR FORCE_COLOR PY_COLORS TTY_COMPATIBLE COLUMNS"
for name in CHANGES_OUTPUT.split():
    os.environ.pop(name, None)

# Tensors of tests are small: several threads of OpenMP spend most of their time in busy waits for each other.
os.environ.setdefault("OMP_NUM_THREADS", "1")

settings.register_profile("new", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("same", settings.get_profile("new"), derandomize=True, max_examples=30)
settings.load_profile("new")


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """The system's Chromium, driven by Playwright, which runs once in a process."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    path = os.environ.get("SYNCSCOPE_CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:
        pytest.skip("no Chromium on this machine (SYNCSCOPE_CHROMIUM names one)")
    with playwright.sync_playwright() as driver:
        running = driver.chromium.launch(executable_path=path, args=ARGUMENTS)
        yield running
        running.close()
