"""``syncscope check`` on recordings that counted their run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Run
from tests.runs import document_of, with_run, write

FILE = "syncscope-baseline.json"


def only_counted(document: dict[str, Any]) -> dict[str, Any]:
    """The document of the same run, had no window been recorded."""
    recording = document["syncscope"]
    phases = [{**phase, "recorded": False} for phase in recording["run"]["phases"]]
    without: dict[str, Any] = {
        "steps": {"source": "none"},
        "sites": [],
        "bare": None,
        "phase": None,
        "attribution": None,
    }
    return {
        **document,
        "traceEvents": [],
        "syncscope": {**recording, **without, "run": {**recording["run"], "phases": phases}},
    }


@pytest.fixture
def adopted(run: Run, folder: Path) -> bytes:
    """The baseline of a recording that did not count its run."""
    write(folder / "before.json.gz", document_of("item_logging"))
    assert run("check", "before.json.gz", "--baseline", FILE, "--write-baseline").code == 0
    return (folder / FILE).read_bytes()


@pytest.mark.parametrize("every", [1, 10])
@pytest.mark.parametrize("windows", [True, False])
def test_the_baseline_of_a_window_holds_for_the_run(
    run: Run, folder: Path, adopted: bytes, every: int, windows: bool
) -> None:
    document = with_run(document_of("item_logging"), every=every)
    write(folder / "now.json.gz", document if windows else only_counted(document))
    done = run("check", "now.json.gz", "--baseline", FILE)
    assert (done.code, (folder / FILE).read_bytes()) == (0, adopted)


def test_a_line_that_waits_every_hundredth_step_fails_although_no_window_saw_it(
    run: Run, folder: Path, adopted: bytes
) -> None:
    document = with_run(document_of("item_logging"))
    recording = document["syncscope"]
    frame = {"file": "train.py", "line": 77, "function": "log", "expression": "scaler.get()", "user": True}
    recording["frames"].append(frame)
    recording["stacks"].append([len(recording["frames"]) - 1])
    seldom = {"count": 1, "steps": 1, "first_step": 50, "last_step": 50}
    wait = {"phase": 0, "stack": len(recording["stacks"]) - 1, "kind": "warning", **seldom}
    recording["run"]["waits"].append(wait)
    write(folder / "now.json.gz", document)
    done = run("check", "now.json.gz", "--baseline", FILE, "-o", "report.json")
    assert done.code == 1
    found = json.loads((folder / "report.json").read_text())["findings"]
    (new,) = [one for one in found if one["status"] == "unexpected" and one["rule"] == "SYN100"]
    assert (new["site"]["line"], new["run_per_step"], new["site_source"]) == (77, 0.01, "count")
    done = run("check", "now.json.gz", "--baseline", FILE, "--select", "SYN102")
    assert done.code == 0


def test_another_phase_fails_only_where_the_policy_names_it(run: Run, folder: Path) -> None:
    evaluation = {"name": "evaluate", "kind": "evaluate", "steps": 10, "counted_steps": 10, "time_ns": 10**9}
    document = with_run(document_of("clean_loop"), phases=[evaluation])
    recording = document["syncscope"]
    recording["frames"].append({"file": "train.py", "line": 9, "function": "f", "expression": "x.item()", "user": True})
    recording["stacks"].append([len(recording["frames"]) - 1])
    wait = {"phase": 1, "stack": len(recording["stacks"]) - 1, "kind": "warning", "count": 10, "steps": 10}
    recording["run"]["waits"].append({**wait, "last_step": 9})
    write(folder / "now.json.gz", document)
    assert run("check", "now.json.gz").code == 0
    (folder / "syncscope.toml").write_text('phases = ["evaluate"]\n')
    assert run("check", "now.json.gz").code == 1
    (folder / "syncscope.toml").write_text("phases = []\n")
    assert run("check", "now.json.gz").code == 2


def test_a_comment_on_a_line_that_only_the_count_saw_is_not_stale(run: Run, folder: Path) -> None:
    document = only_counted(with_run(document_of("item_logging")))
    site = next(f for f in document["syncscope"]["frames"] if f["expression"] == "loss.item()")
    source = folder / site["file"]
    source.parent.mkdir(parents=True)
    comment = "x = loss.item()  # syncscope: expect SYN102 -- the log\n"
    source.write_text("\n" * (site["line"] - 1) + comment)
    (folder / "syncscope.toml").write_text("")
    write(folder / "now.json.gz", document)
    assert run("check", "now.json.gz").code == 0
    source.write_text("\n" * site["line"] + comment)
    assert run("check", "now.json.gz").code == 1


def test_a_run_that_holds_no_wait_is_clean_without_any_window(run: Run, folder: Path) -> None:
    document = only_counted(with_run(document_of("clean_loop")))
    write(folder / "now.json.gz", document)
    assert run("check", "now.json.gz").code == 0
    document["syncscope"]["run"]["counted"] = False
    write(folder / "now.json.gz", document)
    assert run("check", "now.json.gz").code == 3
