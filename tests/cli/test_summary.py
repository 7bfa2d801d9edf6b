"""What ``profile`` prints when the program is over."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from syncscope import session
from syncscope.cli import profile
from syncscope.collect import files
from syncscope.collect.children import presence
from tests.report import sample

ENDED = "The program ended before its windows were over."


def printed(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], path: Path, *notes: str) -> str:
    """What is on stderr after a program whose trace warns that it ended early."""
    info = msgspec.structs.replace(sample.trace_info(), warnings=(ENDED,))
    monkeypatch.setattr(session, "write_reports", lambda *_: sample.report([info]))
    monkeypatch.setattr(files, "count_processes", lambda *_: 1)
    monkeypatch.setattr(presence, "wait_for_others", lambda *_: None)
    collector: Any = SimpleNamespace(notes=list(notes), path=path / "trace.json.gz")
    plan = SimpleNamespace(phase=None)
    request: Any = SimpleNamespace(folder=str(path), run="run", inherited=(None, None), plan=plan)
    assert profile._summary(collector, request, 0.0)
    return capfd.readouterr().err


def test_a_note_that_the_report_has_as_a_warning_is_told_once(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    said = printed(monkeypatch, capfd, tmp_path, ENDED, "One process could not be counted.")
    assert f"note: {ENDED}" not in said
    assert "syncscope: note: One process could not be counted." in said
