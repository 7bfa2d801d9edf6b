"""What follows a training is counted where few of its steps are, with a stand-in for PyTorch."""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path

import msgspec
import pytest

from syncscope.schema.recording import Recording
from syncscope.schema.report import Report
from tests.collect.life.runner import Place, profiled

pytestmark = [
    pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX signals"),
    pytest.mark.skipif(sys.version_info < (3, 12), reason="Python tells ends of loops from 3.12 on"),
]


def test_lines_behind_a_loop_that_no_loader_ends_are_found(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    found = profiled(folder, Place(standin=True), "waits_behind.py")
    assert found.status == 0, found.stderr
    document = json.loads(gzip.decompress((folder / "out" / "trace.json.gz").read_bytes()))
    recording = msgspec.convert(document["syncscope"], Recording)
    assert recording.run is not None
    (train,) = (phase for phase in recording.run.phases if phase.kind == "train")
    assert (train.steps, train.counted_steps < 500) == (1_600, True)
    report = Report.from_json((folder / "out" / "report.json").read_bytes())
    lines = {finding.site.line: finding for finding in report.findings if finding.site}
    assert [lines[line].occurrences for line in (28, 29, 31)] == [1, 1, 1]
