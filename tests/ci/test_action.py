"""The GitHub Action, its example workflow and the pre-commit hook: well formed, and their steps do what they say."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from syncscope import __version__
from tests.cli import traces

ROOT = Path(__file__).parents[2]
ACTION: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
WORKFLOW: dict[str, Any] = yaml.safe_load((ROOT / "docs" / "gate.yml").read_text(encoding="utf-8"))
HOOKS: list[dict[str, Any]] = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))

needs_bash = pytest.mark.skipif(shutil.which("bash") is None, reason="the action's steps are bash")

Check = Callable[..., subprocess.CompletedProcess[str]]


def step(name: str) -> dict[str, Any]:
    (found,) = [step for step in ACTION["runs"]["steps"] if step["name"] == name]
    return dict(found)


def bash(name: str, folder: Path, inputs: dict[str, str], **more: str) -> subprocess.CompletedProcess[str]:
    """Run a step as the runner does: its script in a file, inputs in the environment as the step maps them."""
    wanted = step(name)
    defaults = {key: str(value.get("default", "")) for key, value in ACTION["inputs"].items()}
    given = {**defaults, **inputs}
    mapped = {
        variable: re.sub(r"\$\{\{ inputs\.([\w-]+) \}\}", lambda match: given[match[1]], expression)
        for variable, expression in wanted["env"].items()
    }
    script = folder / "step.sh"
    script.write_text(wanted["run"], encoding="utf-8")
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "RUNNER_TEMP": str(folder / "temp"),
        "GITHUB_ACTION_PATH": str(ROOT),
        "GITHUB_OUTPUT": str(folder / "output.txt"),
        "GITHUB_STEP_SUMMARY": str(folder / "summary.md"),
        **mapped,
        **more,
    }
    return subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", str(script)],
        cwd=folder, capture_output=True, text=True, check=False, env=environment,
    )  # fmt: skip


def outputs(folder: Path) -> dict[str, str]:
    lines = (folder / "output.txt").read_text(encoding="utf-8").splitlines()
    return dict(line.split("=", 1) for line in lines)


@pytest.fixture
def check(tmp_path: Path) -> Check:
    """The step *Check* in a folder with a trace that waits and one that does not, after an installation."""
    traces.waiting().write(tmp_path / "waiting trace.json.gz")
    traces.clean().write(tmp_path / "clean.json")
    python = tmp_path / "temp" / "syncscope" / "venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    return lambda **inputs: bash("Check", tmp_path, {name.replace("_", "-"): text for name, text in inputs.items()})


def test_no_script_holds_an_expression() -> None:
    scripts = [step["run"] for step in ACTION["runs"]["steps"]]
    scripts += [step.get("run", "") for job in WORKFLOW["jobs"].values() for step in job["steps"]]
    assert scripts
    assert not any("${{" in script for script in scripts)


def test_every_input_and_output_is_described_and_used() -> None:
    text = json.dumps(ACTION["runs"])
    for name, given in ACTION["inputs"].items():
        assert given["description"].endswith(".")
        assert given.get("required") or "default" in given
        assert f"inputs.{name} }}}}" in text
    for name, given in ACTION["outputs"].items():
        assert given["value"] == f"${{{{ steps.check.outputs.{name} }}}}"


@needs_bash
def test_a_wait_fails_the_step_with_annotations_summary_and_reports(check: Check, tmp_path: Path) -> None:
    done = check(traces="waiting trace.json.gz")
    assert done.returncode == 1
    assert [line.split(" ")[0] for line in done.stderr.splitlines()] == ["wrote"] * 3
    assert done.stdout.startswith("::error file=train.py,line=21,")
    assert (tmp_path / "summary.md").read_text().startswith("### syncscope: failed")
    written = outputs(tmp_path)
    assert written["exit-code"] == "1"
    assert json.loads(Path(written["sarif"]).read_text())["version"] == "2.1.0"
    assert Path(written["junit"]).read_text().startswith("<?xml")
    assert Path(written["html"]).stat().st_size > 1000


@needs_bash
def test_a_clean_trace_passes(check: Check, tmp_path: Path) -> None:
    assert check(traces="\nclean.json\n").returncode == 0
    assert outputs(tmp_path)["exit-code"] == "0"


@needs_bash
def test_arguments_and_configuration_reach_the_check(check: Check, tmp_path: Path) -> None:
    (tmp_path / "other.toml").write_text('gate = ["SYN101"]\n')
    both = "clean.json\nwaiting trace.json.gz"
    assert check(traces=both).returncode == 1
    assert check(traces=both, config="other.toml").returncode == 0
    assert check(traces=both, args="--ignore\nSYN102").returncode == 0
    assert check(traces=both, args="--exit-zero").returncode == 0


@needs_bash
def test_a_baseline_must_be_there(check: Check, tmp_path: Path) -> None:
    done = check(traces="waiting trace.json.gz", baseline="base.json")
    assert (done.returncode, (tmp_path / "base.json").exists()) == (2, False)
    assert "baseline base.json is missing: write it once and commit it" in done.stdout
    assert outputs(tmp_path) == {"exit-code": "2"}
    subprocess.run(
        [sys.executable, "-m", "syncscope", "check", "waiting trace.json.gz", "--baseline", "base.json",
         "--write-baseline"],
        cwd=tmp_path, check=True, capture_output=True, env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert check(traces="waiting trace.json.gz", baseline="base.json").returncode == 0


@needs_bash
def test_a_trace_that_cannot_be_read_has_no_reports(check: Check, tmp_path: Path) -> None:
    done = check(traces="none.json")
    assert done.returncode == 3
    assert outputs(tmp_path) == {"exit-code": "3"}


@needs_bash
@pytest.mark.parametrize("name", ["traces", "baseline", "config", "args"])
def test_inputs_are_data(check: Check, tmp_path: Path, name: str) -> None:
    hostile = "$(touch hacked) `touch hacked` '; touch hacked; ' \"; touch hacked; \" & touch hacked"
    assert check(**{"traces": "clean.json", name: hostile}).returncode in (2, 3)
    assert not (tmp_path / "hacked").exists()


@needs_bash
def test_a_trace_is_never_an_option(check: Check) -> None:
    assert check(traces="--help").returncode == 3


@needs_bash
@pytest.mark.slow
def test_the_installation_brings_the_actions_own_version(tmp_path: Path) -> None:
    done = bash("Install syncscope", tmp_path, {"python": sys.executable})
    assert done.returncode == 0, done.stderr
    python = tmp_path / "temp" / "syncscope" / "venv" / "bin" / "python"
    command = [python, "-P" if sys.version_info >= (3, 11) else "-I", "-m", "syncscope", "--version"]
    said = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert said.stdout == f"syncscope {__version__}\n"


def test_the_example_workflow_gives_and_takes_what_the_action_has() -> None:
    (uses,) = [step for step in WORKFLOW["jobs"]["check"]["steps"] if step.get("id") == "syncscope"]
    assert set(uses["with"]) <= set(ACTION["inputs"])
    assert uses["uses"].endswith(f"@v{__version__}")
    used = set(re.findall(r"steps\.syncscope\.outputs\.([\w-]+)", json.dumps(WORKFLOW)))
    assert used <= set(ACTION["outputs"])
    assert set(WORKFLOW["jobs"]["record"].get("permissions", {})) == set()
    assert WORKFLOW["permissions"] == {"contents": "read"}


def test_the_pre_commit_hook_runs_the_check_on_what_it_is_told(tmp_path: Path) -> None:
    (hook,) = HOOKS
    traces.clean().write(tmp_path / "clean.json")
    assert hook["pass_filenames"] is False  # a check wants all recordings at once
    program, *arguments = hook["entry"].split()
    assert program == "syncscope"
    done = subprocess.run(
        [sys.executable, "-m", "syncscope", *arguments, "clean.json"],
        cwd=tmp_path, capture_output=True, check=False, env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert done.returncode == 0
