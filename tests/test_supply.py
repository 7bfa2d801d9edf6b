"""What is installed, and from where: no code runs at installation, and every action of CI is a known commit."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

import syncscope
from syncscope import __version__
from syncscope.schema import address

ROOT = Path(__file__).parent.parent
WORKFLOWS = (ROOT / "action.yml", *sorted((ROOT / ".github" / "workflows").glob("*.yml")), ROOT / "docs" / "gate.yml")

BY_TAG = (f"{address.REPOSITORY}@v{__version__}",)
"""Actions of the example whose commit its reader chooses."""

NEVER = {"pickle", "marshal", "shelve", "dill", "cloudpickle", "socket", "http", "requests", "ftplib", "smtplib"}
"""Modules that the package does not import: those that run what they read, and those that talk to the network."""


HOOK = "syncscope-children.pth"
"""What Python reads when it starts."""


def build(kind: str, folder: Path) -> Path:
    script = f"import sys, hatchling.build as b; print(b.build_{kind}(sys.argv[1]))"
    command = [sys.executable, "-c", script, str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder / done.stdout.strip()


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The wheel and the source distribution, as ``python -m build`` has them made."""
    pytest.importorskip("hatchling", reason="the packages are built by hatchling")
    folder = tmp_path_factory.mktemp("dist")
    return build("wheel", folder), build("sdist", folder)


def test_the_wheel_holds_the_package_and_one_line_that_runs_by_itself(built: tuple[Path, Path]) -> None:
    with zipfile.ZipFile(built[0]) as wheel:
        names = wheel.namelist()
        line = wheel.read(HOOK).decode()
    assert {name.split("/")[0] for name in names} == {"syncscope", f"syncscope-{__version__}.dist-info", HOOK}
    assert [name for name in names if name.endswith((".pth", "setup.py", ".so", ".pyd", ".pyc"))] == [HOOK]
    assert line.count("\n") == 1 and line.endswith(" else None\n")
    assert "if 'SYNCSCOPE_PROFILE' in os.environ or 'SYNCSCOPE_GUARD' in os.environ" in line
    assert "syncscope/report/report.schema.json" in names


def test_the_source_distribution_builds_without_code_of_its_own(built: tuple[Path, Path]) -> None:
    with tarfile.open(built[1]) as source:
        members = source.getmembers()
    names = [member.name.partition("/")[2] for member in members]
    assert [name for name in names if name.endswith((".pth", ".pyc"))] == [HOOK]
    assert not {"setup.py", "hatch_build.py"} & set(names)
    assert all(member.isfile() or member.isdir() for member in members)
    assert {"pyproject.toml", "SECURITY.md", "LICENSE"} <= set(names)


def test_the_wheel_installs_and_runs_from_its_folder(built: tuple[Path, Path], tmp_path: Path) -> None:
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "-q", "--no-deps", "--no-index"]
    installed = subprocess.run(
        [*pip, "--target", str(tmp_path / "site"), str(built[0])], capture_output=True, text=True, check=False
    )
    assert (installed.returncode, installed.stderr) == (0, "")
    code = "import sys; sys.path.insert(0, 'site'); import syncscope; print(syncscope.__file__)"
    run = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert Path(run.stdout.strip()) == tmp_path / "site" / "syncscope" / "__init__.py"


STARTED = (
    "import site, sys; site.addsitedir('site'); print(sorted(n for n in sys.modules if n.startswith('syncscope')))"
)
"""Does with a folder what Python does with site-packages when it starts."""


@pytest.mark.parametrize("kind", ["wheel", "editable"])
def test_an_installed_hook_does_nothing_unless_a_recorded_program_started_the_process(
    built: tuple[Path, Path], tmp_path: Path, kind: str
) -> None:
    if kind == "editable":
        pytest.importorskip("editables", reason="hatchling makes editable installations with it")
    package = built[0] if kind == "wheel" else build("editable", tmp_path)
    with zipfile.ZipFile(package) as wheel:
        wheel.extractall(tmp_path / "site")
    loaded = []
    for asked in ({}, {"SYNCSCOPE_PROFILE": "{}"}):
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "SYNC"))}
        run = subprocess.run(
            [sys.executable, "-S", "-c", STARTED],
            cwd=tmp_path, env={**environment, **asked}, capture_output=True, text=True, check=True,
        )  # fmt: skip
        assert run.stderr == ""
        loaded.append(run.stdout)
    assert loaded[0] == "[]\n" and "syncscope.collect.children.startup" in loaded[1]


def test_no_hook_of_the_build_runs_code() -> None:
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert not re.search(r"\[tool\.hatch\.build.*hooks|\[tool\.hatch\.metadata\.hooks", project)
    assert not (ROOT / "setup.py").exists() and not (ROOT / "hatch_build.py").exists()


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.name)
def test_actions_are_pinned_by_a_commit_with_its_version_beside_it(file: Path) -> None:
    uses = re.findall(r"uses: (\S+)(.*)", file.read_text(encoding="utf-8"))
    loose = [
        action
        for action, comment in uses
        if action not in BY_TAG
        and not (re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", action) and re.match(r" # v\d+\.\d+\.\d+$", comment))
    ]
    assert loose == []


def test_the_lock_has_a_hash_for_each_requirement_and_holds_every_dependency() -> None:
    lock = (ROOT / "requirements.lock").read_text(encoding="utf-8").replace("\\\n", " ")
    entries = [line for line in lock.splitlines() if line and not line.startswith("#")]
    assert all(re.match(r"[\w.-]+==\S+ .*--hash=sha256:[0-9a-f]{64}", line) for line in entries)
    locked = {line.partition("==")[0] for line in entries}
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    listed = re.search(r"^dependencies = \[(.*?)^\]", project, re.DOTALL | re.MULTILINE)
    assert listed is not None
    assert set(re.findall(r'^  "([\w-]+)>=', listed[1], re.MULTILINE)) <= locked


def test_the_package_neither_unpickles_nor_opens_connections() -> None:
    found = []
    for file in Path(syncscope.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom):
                modules = [node.module or ""]
            called = node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else ""
            bad = [module for module in modules if module.split(".")[0] in NEVER or module == "urllib.request"]
            found += [f"{file.name}: {name}" for name in (*bad, *([called] if called in ("eval", "exec") else []))]
    assert found == ["run.py: exec"]  # the program that `syncscope profile` is given
