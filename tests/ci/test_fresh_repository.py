"""The documentation, followed literally in a repository that has nothing of ours: what is copied works as it stands.

Only the address is another: that of a clone of this project, which has the tag that the documentation names.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from syncscope import __version__
from syncscope.schema import address
from tests.ci.test_action import bash, outputs
from tests.ci.test_publishing import copy_of_the_project
from tests.cli import traces

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "docs" / "ci.md").read_text(encoding="utf-8")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("bash") is None or shutil.which("git") is None, reason="needs bash and git"),
]


def git(folder: Path, *arguments: str) -> None:
    identity = ["-c", "user.name=Nobody", "-c", "user.email=nobody@example.com", "-c", "init.defaultBranch=main"]
    subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True)


def commit(folder: Path) -> None:
    git(folder, "add", "--all", "--force")
    git(folder, "commit", "--quiet", "--no-verify", "--message", "Record")


def syncscope(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "syncscope", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, env=environment)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A fresh repository with a program, and the recording that its GPU runner made."""
    folder = tmp_path / "repository"
    (folder / "recording").mkdir(parents=True)
    git(folder, "init", "--quiet")
    (folder / "train.py").write_text("for batch in loader:\n    loss = step(batch)\n    total += loss.item()\n")
    traces.waiting().write(folder / "recording" / "trace.json.gz")
    commit(folder)
    return folder


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """This project where the address says that it is, with the tag of its version."""
    folder = copy_of_the_project(tmp_path_factory.mktemp("published"))
    git(folder, "init", "--quiet")
    commit(folder)
    git(folder, "tag", f"v{__version__}")
    return folder


def commands(section: str) -> list[list[str]]:
    """The words of the commands in the blocks of a section of the guide."""
    text = re.split(r"^##+ ", GUIDE.partition(f"\n## {section}\n")[2], flags=re.MULTILINE)[0]
    blocks = re.findall(r"```console\n(.*?)```", text, re.DOTALL)
    return [line.split() for block in blocks for line in block.splitlines()]


def test_a_project_adopts_the_gate_by_the_commands_of_the_guide(repository: Path) -> None:
    record, write, update = commands("Adopt it")
    assert record[1] == "profile"  # that is what the GPU runner did
    assert syncscope(repository, *write[1:]).returncode == 0
    check = [word for word in write[1:] if word != "--write-baseline"]
    assert syncscope(repository, *check).returncode == 0
    new = ("train.py", 3, "<module>", "accuracy.item()")
    traces.waiting(frame=new).write(repository / "recording" / "trace.json.gz")
    assert syncscope(repository, *check).returncode == 1
    traces.clean().write(repository / "recording" / "trace.json.gz")
    assert syncscope(repository, *update[1:]).returncode == 0
    assert json.loads((repository / "syncscope-baseline.json").read_text())["findings"] == {}


def test_the_workflow_is_copied_and_its_check_runs_the_action(repository: Path, published: Path) -> None:
    place = repository / ".github" / "workflows" / "gate.yml"
    place.parent.mkdir(parents=True)
    shutil.copy2(ROOT / "docs" / "gate.yml", place)
    job: dict[str, Any] = yaml.safe_load(place.read_text(encoding="utf-8"))["jobs"]["check"]
    (uses,) = [step for step in job["steps"] if step.get("id") == "syncscope"]
    assert uses["uses"] == f"{address.REPOSITORY}@v{__version__}"
    inputs = {name: str(value) for name, value in uses["with"].items()}
    (repository / "temp").mkdir()
    here = {"GITHUB_ACTION_PATH": str(published), "PYTHONPATH": ""}
    done = bash("Install syncscope", repository, {"python": sys.executable, **inputs}, **here)
    assert done.returncode == 0, done.stderr
    missing = bash("Check", repository, inputs, **here)
    assert missing.returncode == 2 and "is missing: write it once and commit it" in missing.stdout
    assert syncscope(repository, *commands("Adopt it")[1][1:]).returncode == 0
    done = bash("Check", repository, inputs, **here)
    assert done.returncode == 0, done.stdout + done.stderr
    written = outputs(repository)
    for output in re.findall(r"steps\.syncscope\.outputs\.([\w-]+)", place.read_text(encoding="utf-8")):
        assert Path(written[output]).is_file()


def test_pre_commit_runs_the_hook_of_the_guide(repository: Path, published: Path) -> None:
    pytest.importorskip("pre_commit", reason="runs pre-commit")
    block = re.findall(r"```yaml\n(repos:.*?)```", GUIDE, re.DOTALL)[0]
    (repository / "recording").rename(repository / "recordings")
    (repository / ".pre-commit-config.yaml").write_text(block.replace(address.HOME, published.as_uri()))
    assert syncscope(repository, "check", "recordings/", *commands("Adopt it")[1][3:]).returncode == 0
    commit(repository)
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "GIT_"))}
    environment |= {"PRE_COMMIT_HOME": str(repository.parent / "cache"), "NO_COLOR": "1"}

    def hook() -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "pre_commit", "run", "--all-files", "--verbose"]
        return subprocess.run(command, cwd=repository, capture_output=True, text=True, check=False, env=environment)

    done = hook()
    if re.search(r"No matching distribution found for hatchling|Connection\w*Error", done.stdout):
        pytest.skip("pip reaches no package index to install the hook from")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 in the baseline" in " ".join(done.stdout.split())
    new = ("train.py", 3, "<module>", "accuracy.item()")
    traces.waiting(frame=new).write(repository / "recordings" / "trace.json.gz")
    commit(repository)
    done = hook()
    assert done.returncode == 1
    assert "accuracy.item()" in done.stdout
