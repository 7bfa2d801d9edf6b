"""The reports of a program that is watched."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from syncscope import watching
from syncscope.collect.files import the_only_writer


@pytest.mark.parametrize("rank", ["0", "1"])
def test_of_ranks_that_end_together_one_writes_the_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rank: str
) -> None:
    monkeypatch.setenv("RANK", rank)
    monkeypatch.setenv("WORLD_SIZE", "2")
    trace, report = tmp_path / "trace.rank0.json.gz", tmp_path / "report.json"
    trace.touch()
    monkeypatch.setattr(watching, "_all_complete", lambda *_: [trace])
    monkeypatch.setattr(watching, "_write_report", lambda *_: "written")
    watcher: Any = SimpleNamespace(count=SimpleNamespace(run_id="run"))
    with the_only_writer(report, "run", [trace]) as other:
        assert other and watching.write_report(watcher, report) is None
    assert watching.write_report(watcher, report) == "written"


@pytest.mark.parametrize(("rank", "says"), [("0", "written"), ("1", None)])
def test_before_all_have_ended_the_first_rank_writes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rank: str, says: str | None
) -> None:
    monkeypatch.setenv("RANK", rank)
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setattr(watching, "_all_complete", lambda *_: [])
    monkeypatch.setattr(watching, "_write_report", lambda *_: "written")
    assert watching.write_report(SimpleNamespace(), tmp_path / "report.json") == says  # type: ignore[arg-type]
