"""A line that no window recorded gets its op from a later step, with a stand-in for PyTorch."""

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

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX signals")

PLACE = Place(standin=True)


def test_a_line_that_waits_seldom_gets_its_op_and_every_wait_is_counted(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    # For 20 s: on a slow machine steps to look at are chosen every eight seconds only, since that takes milliseconds.
    found = profiled(folder, PLACE, "waits_seldom.py", "700", "0.03")
    assert found.status == 0, found.stderr
    document = json.loads(gzip.decompress((folder / "out" / "trace.json.gz").read_bytes()))
    recording = msgspec.convert(document["syncscope"], Recording)
    assert recording.run is not None and recording.attribution is not None
    (wait,) = (wait for wait in recording.run.waits if wait.kind == "warning")
    assert (wait.count, wait.last_step) == (30, 695)
    (train,) = (phase for phase in recording.run.phases if phase.kind == "train")
    assert train.steps == train.counted_steps
    assert [one.ops for one in recording.attribution if one.stack == wait.stack] == [("aten::nonzero",)]
    report = Report.from_json((folder / "out" / "report.json").read_bytes())
    (finding,) = (finding for finding in report.findings if finding.site and finding.site.line == 19)
    assert (finding.op, finding.site_source, finding.name) == ("aten::nonzero", "count", "dynamic-shape")


def test_a_wait_that_tells_of_the_end_of_a_loop_is_counted_where_a_look_begins_with_it(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    found = profiled(folder, PLACE, "waits_after_evaluations.py", "9", "20", "0.02")
    assert found.status == 0, found.stderr
    document = json.loads(gzip.decompress((folder / "out" / "trace.json.gz").read_bytes()))
    run = msgspec.convert(document["syncscope"], Recording).run
    assert run is not None
    assert [(phase.kind, phase.steps) for phase in run.phases if phase.steps] == [("train", 180), ("evaluate", 180)]
    (wait,) = run.waits
    assert (run.phases[wait.phase].kind, wait.count, wait.estimate) == ("epoch end", 9, 9)
