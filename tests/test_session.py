"""The reports that a recording leaves behind."""

from pathlib import Path

import pytest

from syncscope.session import write_reports
from tests.cli import traces


def test_a_mistake_in_a_comment_does_not_cost_the_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text("x = loss.item()  # syncscope: expect SYN102\n")
    traces.waiting().write(tmp_path / "trace.json.gz")
    report = write_reports(tmp_path)
    assert report is not None and report.findings
    (warning,) = report.traces[0].warnings
    assert warning.startswith("No expectation was applied: train.py:1: syncscope: expect SYN102 gives no reason")
    assert (tmp_path / "report.json").is_file() and (tmp_path / "report.html").is_file()
