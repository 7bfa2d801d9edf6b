"""A team adopts the gate on a program full of waits, as a new user would, with recordings from an H200.

``fixtures/gate`` has the program and what its one changed line looks like in each state.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from syncscope.analysis.analyze import analyze
from tests.cli.conftest import Outcome, Run

GATE = Path(__file__).parents[2] / "fixtures" / "gate"
CHANGE = json.loads((GATE / "change.json").read_text(encoding="utf-8"))
LABELS = json.loads((GATE / "labels.json").read_text(encoding="utf-8"))["labels"]
RECORDING = {"base": "base", "added": "added", "allowed": "added", "removed": "base"}
"""A comment changes nothing that runs."""

BASELINE = "syncscope-baseline.json"


class Repository:
    """The team's working copy."""

    def __init__(self, folder: Path, run: Run) -> None:
        self._folder = folder
        self._run = run
        shutil.copytree(GATE / "repository", folder, dirs_exist_ok=True)
        (folder / ".git").mkdir()

    def edit(self, state: str) -> None:
        """Change the one line, and record the program anew."""
        script = self._folder / CHANGE["file"]
        lines = (GATE / "repository" / CHANGE["file"]).read_text(encoding="utf-8").splitlines()
        assert lines[CHANGE["line"] - 1] == CHANGE["base"]
        lines[CHANGE["line"] - 1] = CHANGE[state]
        script.write_text("\n".join(lines) + "\n", encoding="utf-8")
        shutil.copyfile(GATE / f"{RECORDING[state]}.json.gz", self._folder / "trace.json.gz")

    def check(self, *arguments: str) -> Outcome:
        done: Outcome = self._run("check", "trace.json.gz", "--baseline", BASELINE, *arguments, "--format", "github")
        return done


@pytest.fixture
def repository(folder: Path, run: Run) -> Repository:
    return Repository(folder, run)


@pytest.mark.parametrize("recording", ["base", "added"])
def test_the_recordings_hold_the_twenty_waits_and_the_one_added(recording: str) -> None:
    report = analyze(GATE / f"{recording}.json.gz")
    found = {
        (finding.rule, finding.site.file, finding.site.line): finding.per_step
        for finding in report.findings
        if finding.site is not None and finding.rule.startswith(("SYN", "CPY201"))
    }
    wanted = {(label["rule"], label["file"], label["line"]): label["per_step"] for label in LABELS}
    assert sum(rule.startswith("SYN") for rule, _, _ in wanted) == 20
    if recording == "added":
        wanted["SYN102", CHANGE["file"], CHANGE["line"]] = 1
    assert found == wanted
    assert report.traces[0].coverage.waits == report.traces[0].coverage.with_line


def test_without_a_baseline_the_gate_fails_on_all_of_them(repository: Repository, run: Run) -> None:
    repository.edit("base")
    done = run("check", "trace.json.gz", "--format", "github")
    assert done.code == 1
    places = {(label["file"], label["line"]) for label in LABELS}
    assert done.out.count("::error ") == len(places) < len(LABELS)
    assert done.out.endswith(f"failed: {len(LABELS)} unexpected findings\n")


def test_the_gate_is_adopted_and_holds(repository: Repository, folder: Path) -> None:
    repository.edit("base")
    assert repository.check("--write-baseline").code == 0
    assert len(json.loads((folder / BASELINE).read_text())["findings"]) == len(LABELS)
    assert repository.check().code == 0
    adopted = (folder / BASELINE).read_bytes()

    repository.edit("added")
    done = repository.check()
    assert done.code == 1
    (error,) = [line for line in done.out.splitlines() if line.startswith("::")]
    column = CHANGE["added"].index("loss.item()") + 1
    place = f"file=train.py,line={CHANGE['line']},col={column},endColumn={column + len('loss.item()')}"
    assert error.startswith(f"::error {place},title=SYN102 scalar-read::loss.item() reads one value from the device")
    assert done.out.endswith(f"failed: 1 unexpected finding · {len(LABELS)} in the baseline\n")
    assert (folder / BASELINE).read_bytes() == adopted

    repository.edit("allowed")
    done = repository.check()
    assert (done.code, done.out.count("::")) == (0, 0)
    assert f" · 1 expected · {len(LABELS)} in the baseline\n" in done.out

    repository.edit("removed")
    done = repository.check()
    assert done.code == 1
    (error,) = [line for line in done.out.splitlines() if line.startswith("::")]
    assert error == (
        f"::error file=train.py,line={CHANGE['line']},title=SYN102 stale expectation::"
        'SYN102 matches nothing; delete it (it says "the mean loss of the run")'
    )

    repository.edit("base")
    assert repository.check().code == 0
    assert (folder / BASELINE).read_bytes() == adopted
