"""What stands between a tag and PyPI: version, changelog, address, and a workflow without a token."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml

from syncscope import __version__
from syncscope.schema import address

ROOT = Path(__file__).parents[2]
OWNER = "your-org"
PLACEHOLDER = f"{OWNER}/syncscope"
OTHER = "/".join(("acme", "sync.scope"))
"""So that this file names neither."""
PUBLISH: dict[Any, Any] = yaml.safe_load((ROOT / ".github/workflows/publish.yml").read_text(encoding="utf-8"))
CI: dict[Any, Any] = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text(encoding="utf-8"))


def script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / ".ci" / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """As much of a project as may be published."""
    (tmp_path / "syncscope" / "schema").mkdir(parents=True)
    (tmp_path / "syncscope" / "__init__.py").write_text('__version__ = "1.2.3"\n')
    (tmp_path / "syncscope" / "schema" / "address.py").write_text('REPOSITORY = "acme/syncscope"\n')
    (tmp_path / "CHANGELOG.md").write_text("# Changelog\n\n## [Unreleased]\n\n## [1.2.3] - 2026-11-30\n\n- New.\n")
    return tmp_path


@pytest.mark.parametrize(
    ("tag", "file", "old", "new", "said"),
    [
        ("v1.2.3", "CHANGELOG.md", "", "", None),
        ("v1.2.4", "CHANGELOG.md", "", "", "the tag is v1.2.4, and the package is of version 1.2.3"),
        ("1.2.3", "CHANGELOG.md", "", "", "the tag is 1.2.3, and"),
        ("v1.2.3", "CHANGELOG.md", " - 2026-11-30", "", "newest entry is not [1.2.3] with its date"),
        ("v1.2.3", "CHANGELOG.md", "[1.2.3]", "[1.2.2]", "newest entry is not [1.2.3]"),
        ("v1.2.3", "CHANGELOG.md", "[Unreleased]\n", "[Unreleased]\n\n- More.\n", "has entries under Unreleased"),
        ("v1.2.3", "syncscope/schema/address.py", "acme", OWNER, f"address is still {PLACEHOLDER}"),
    ],
)
def test_a_tag_is_published_only_where_all_agrees(
    project: Path, tag: str, file: str, old: str, new: str, said: str | None
) -> None:
    path = project / file
    path.write_text(path.read_text().replace(old, new, 1) if old else path.read_text())
    found = script("tag").faults(tag, project)
    assert found == [] if said is None else (len(found) == 1 and said in found[0])


def test_the_placeholder_is_not_published() -> None:
    done = subprocess.run(
        [sys.executable, ".ci/tag.py", f"v{__version__}"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (PLACEHOLDER in done.stderr) == (address.REPOSITORY == PLACEHOLDER)


def copy_of_the_project(folder: Path) -> Path:
    """The files that git knows, and new ones, without history."""
    if shutil.which("git") is None or not (ROOT / ".git").exists():
        pytest.skip("not a clone of the repository")
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\0")
    for name in filter(None, names):
        if (ROOT / name).is_file() and not name.startswith(("fixtures/traces", "benchmarks/savings")):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    return folder


def test_one_script_writes_the_address_wherever_it_is_named(tmp_path: Path) -> None:
    copy = copy_of_the_project(tmp_path)
    checked = [sys.executable, ".ci/address.py", "--check"]
    assert subprocess.run(checked, cwd=copy, check=False).returncode == 0
    written = [sys.executable, ".ci/address.py", OTHER]
    assert subprocess.run(written, cwd=copy, check=False).returncode == 0
    for name in ("pyproject.toml", "docs/gate.yml", "docs/ci.md", "syncscope/schema/address.py"):
        text = (copy / name).read_text(encoding="utf-8")
        assert OTHER in text and OWNER not in text
    assert f"{OTHER}@v" in (copy / "docs" / "gate.yml").read_text(encoding="utf-8")
    (copy / "docs" / "other.md").write_text(f"https://github.com/{PLACEHOLDER}\n")
    assert subprocess.run(checked, cwd=copy, capture_output=True, check=False).returncode == 1


@pytest.mark.parametrize("wrong", ["acme", "a b/c", "acme/x;y", "../x"])
def test_what_is_no_address_is_not_written(wrong: str) -> None:
    before = (ROOT / "syncscope" / "schema" / "address.py").read_bytes()
    done = subprocess.run([sys.executable, ".ci/address.py", wrong], cwd=ROOT, capture_output=True, check=False)
    assert done.returncode == 2
    assert (ROOT / "syncscope" / "schema" / "address.py").read_bytes() == before


def test_only_the_job_that_publishes_may_ask_pypi_and_it_has_no_token() -> None:
    assert PUBLISH["permissions"] == {"contents": "read"}
    allowed = {name: job.get("permissions", {}) for name, job in PUBLISH["jobs"].items()}
    assert allowed == {"build": {}, "publish": {"id-token": "write"}}
    assert PUBLISH["jobs"]["publish"]["environment"] == "pypi"
    text = (ROOT / ".github/workflows/publish.yml").read_text(encoding="utf-8")
    assert "secrets." not in text and "${{" not in text
    assert PUBLISH[True] == {"push": {"tags": ["v*"]}}  # YAML reads "on" as true


def test_a_tag_is_looked_at_before_anything_is_built() -> None:
    runs = [step["run"] for step in PUBLISH["jobs"]["build"]["steps"] if "run" in step]
    assert re.match(r"\.ci/tag\.py", runs[0])
    assert runs.index(".ci/release") < runs.index(".ci/packages")


def test_ci_installs_what_it_builds_on_every_change() -> None:
    job = CI["jobs"]["packages"]
    runs = [step["run"] for step in job["steps"] if "run" in step]
    assert runs == [".ci/release", ".ci/packages", ".ci/fresh"] and "if" not in job
