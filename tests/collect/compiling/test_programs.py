"""A program that compiles is reported with its lines, and lives as it does alone. On PyTorch for the CPU."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="the programs use PyTorch")

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
PROGRAMS = HERE / "programs_run"
SHORT = ("--warmup", "2", "--bare", "4", "--steps", "2", "--attribution", "2")
OURS = re.compile(r"^syncscope: .*(?:\n(?:.*\n)*syncscope: .*)?\n", re.MULTILINE)
VARYING = re.compile(r"^([A-Z])\d{4} [\d:.]+ \d+ |0x[0-9a-f]+", re.MULTILINE)
"""Date, time, process and addresses in PyTorch's logs."""
TOLD = re.compile(r"Graph break|Reason|Explanation|Hint|Recompiling|triggered|- \d+/\d+|Error")
"""What PyTorch logs beside the frames around a compiled function, which are ours too: see docs/promises.md."""


def run(folder: Path, program: str, *ours: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *([str(HERE / "command.py"), *ours] if ours else []), str(PROGRAMS / program)]
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "COV", "TORCH"))}
    known = {**kept, "PYTHONPATH": str(ROOT), "NO_COLOR": "1", "COLUMNS": "100", **environment}
    return subprocess.run(command, cwd=folder, env=known, capture_output=True, text=True, check=False, timeout=200)


def line_of(program: str, comment: str) -> int:
    lines = (PROGRAMS / program).read_text(encoding="utf-8").splitlines()
    return next(number for number, line in enumerate(lines, 1) if line.endswith(f"# {comment}"))


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, subprocess.CompletedProcess[str]]:
    folder = tmp_path_factory.mktemp("recorded")
    return folder, run(folder, "compiles.py", "profile", *SHORT, "-o", "out")


def findings(folder: Path) -> dict[str, Any]:
    report = json.loads((folder / "out" / "report.json").read_text(encoding="utf-8"))
    return {finding["rule"]: finding for finding in report["findings"]}


@pytest.mark.slow
def test_an_unmodified_program_is_reported_with_its_lines(recorded: Any) -> None:
    folder, done = recorded
    assert done.returncode == 0, done.stderr
    found = findings(folder)
    again, broken = found["CMP701"], found["CMP702"]
    assert again["site"]["line"] == line_of("compiles.py", "recompiles in step 30")
    assert again["site"]["function"] == "Net.forward"
    assert (again["phase"], again["occurrences"], again["site_source"]) == ("train", 1, "compile")
    assert again["run_steps"][1] in (29, 30)  # in which call of the optimiser the first step ends is the tracker's
    assert "scale == 2" in again["message"]
    assert broken["site"]["line"] == line_of("compiles.py", "breaks the graph")
    assert (broken["per_step"], broken["phase"]) == (1.0, "train")
    assert "a step runs 2 compiled parts" in broken["message"]
    report = json.loads((folder / "out" / "report.json").read_text(encoding="utf-8"))
    inside = [one["at"]["file"] for one in report["findings"] if one["at"] and "fake_tensor" in one["at"]["file"]]
    assert not inside  # what Dynamo runs to compile does not wait


@pytest.mark.slow
def test_what_waits_only_while_it_compiles_is_told_apart_from_what_waits_in_each_step(tmp_path: Path) -> None:
    done = run(tmp_path, "waits.py", "profile", *SHORT, "-o", "out")
    assert done.returncode == 0, done.stderr
    report = json.loads((tmp_path / "out" / "report.json").read_text(encoding="utf-8"))
    counted = report["traces"][0]["run"]["counted"]
    (told,) = counted["compiling"]
    assert (told["site"]["line"], told["at"]["function"]) == (line_of("waits.py", "waits while it compiles"), "fold")
    assert told["waits"] == 14 or (told["at_least"] and told["waits"] == 7)  # seven each time that it compiles
    (read,) = (one for one in report["findings"] if one["rule"].startswith("SYN") and one["at"]["function"] == "read")
    assert read["site"]["line"] == line_of("waits.py", "waits in each step")
    assert read["run_per_step"] == pytest.approx(1.0, abs=0.05)
    assert not [one for one in report["findings"] if one["at"] and "_inductor" in one["at"]["file"]]
    assert "while it compiles: " in done.stderr


@pytest.mark.slow
def test_its_output_random_numbers_and_graphs_are_those_of_the_program_alone(recorded: Any, tmp_path: Path) -> None:
    _, done = recorded
    alone = run(tmp_path, "compiles.py")
    graphs = re.compile(r"^graphs \d+$", re.MULTILINE)
    assert done.stdout == alone.stdout
    assert graphs.findall(done.stderr) == graphs.findall(alone.stderr) == ["graphs 4"]


@pytest.mark.slow
@pytest.mark.parametrize("logs", ["", "recompiles,graph_breaks,cudagraphs"])
def test_what_pytorch_logs_and_raises_stays_word_for_word(tmp_path: Path, logs: str) -> None:
    environment = {"TORCH_LOGS": logs} if logs else {}
    alone = run(tmp_path, "logs.py", **environment)
    done = run(tmp_path, "logs.py", "watch", **environment)
    own, recorded = (
        [line for line in VARYING.sub(r"\1", OURS.sub("", one.stderr)).splitlines() if TOLD.search(line)]
        for one in (alone, done)
    )
    assert (done.returncode, done.stdout) == (alone.returncode, alone.stdout)
    assert done.returncode == 1
    assert recorded == own
    assert any("Recompiling function run" in line for line in own) == bool(logs)


def test_a_program_that_compiles_nothing_does_not_import_the_compiler(tmp_path: Path) -> None:
    alone = run(tmp_path, "compiles_nothing.py")
    done = run(tmp_path, "compiles_nothing.py", "watch", "-o", "report.json")
    assert done.returncode == 0, done.stderr
    assert done.stdout == alone.stdout == "dynamo []\n"
    report = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))
    assert "compiled" in report["traces"][0]["has"]
    assert not [finding for finding in report["findings"] if finding["rule"].startswith("CMP")]
