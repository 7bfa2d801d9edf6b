from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from syncscope.collect.process_age import process_age_ns

SECOND = 1_000_000_000


def test_it_begins_with_the_process_and_not_with_the_import() -> None:
    program = "import time; time.sleep(0.3); from syncscope.collect.process_age import process_age_ns as age"
    began = time.monotonic()
    said = subprocess.run([sys.executable, "-c", f"{program}; print(age())"], capture_output=True, check=True)
    assert 0.25 * SECOND < int(said.stdout) < (time.monotonic() - began + 0.05) * SECOND


def test_without_proc_it_is_the_processor_time(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(self: Path, **kwargs: object) -> str:
        raise FileNotFoundError

    monkeypatch.setattr(Path, "read_text", missing)
    before = time.process_time_ns()
    assert before <= process_age_ns() <= time.process_time_ns()
