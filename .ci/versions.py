#!/usr/bin/env python3
"""Run the tests with the oldest and the newest version of each dependency, on several Pythons.

``.ci/versions.py`` takes every Python of ``PYTHONS`` that is on PATH or under pyenv. ``.ci/versions.py 3.10 --oldest``
takes one, and the oldest versions only. Each pair gets an environment of its own in ``build/versions``, without
PyTorch: the tests that need it skip. The exit status is 1 where a test fails or an environment cannot be made, and 2
where a named Python is not to be had.

Needs uv, which knows the oldest versions that fit together. Where it is not on PATH, pip installs it into an
environment of its own.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import venv
import xml.etree.ElementTree as ElementTree
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build" / "versions"
PYTHONS = ("3.10", "3.11", "3.12", "3.13", "3.14")
EXTRAS = ("arrow", "cache", "cluster", "remote")
"""The optional dependencies whose oldest versions are tested too."""

SHOWN = (
    "isal", "msgspec", "numpy", "pandas", "plotly", "rich", "tomli", "typer",
    "distributed", "fsspec", "platformdirs", "pyarrow",
)  # fmt: skip


def find_python(name: str) -> Path | None:
    """The interpreter called ``name``: a path, or a version such as 3.11 on PATH or under pyenv. ``None`` if absent."""
    if os.sep in name:
        return Path(name) if _version(name) else None
    found = shutil.which(f"python{name}")
    if found and _version(found):  # a shim of pyenv is there for versions that are switched off, too
        return Path(found)
    if shutil.which("pyenv"):
        prefix = subprocess.run(["pyenv", "prefix", name], capture_output=True, text=True, check=False)
        python = Path(prefix.stdout.strip()) / "bin" / "python"
        if prefix.returncode == 0 and _version(str(python)):
            return python
    return None


def _version(python: str) -> str:
    """``3.11.7``, or nothing where ``python`` does not run."""
    try:
        said = subprocess.run([python, "-c", "import platform; print(platform.python_version())"],
                              capture_output=True, text=True, check=False)  # fmt: skip
    except OSError:
        return ""
    return said.stdout.strip() if said.returncode == 0 else ""


def find_uv() -> str:
    """The path of uv, installed by pip where it is not on PATH."""
    if found := shutil.which("uv"):
        return found
    folder = BUILD / "uv"
    uv = folder / ("Scripts" if os.name == "nt" else "bin") / "uv"
    if not uv.exists():
        venv.create(folder, clear=True, with_pip=True)
        subprocess.run([uv.parent / "python", "-m", "pip", "install", "-q", "uv"], check=True)
    return str(uv)


def oldest_versions(uv: str, version: str) -> str:
    """One ``name==version`` a line: the oldest allowed versions that have a wheel for this Python."""
    extras = [word for extra in EXTRAS for word in ("--extra", extra)]
    command = [uv, "pip", "compile", "-q", "--no-header", "--no-annotate", "--only-binary", ":all:",
               "--resolution", "lowest-direct", "--python-version", version, *extras, "pyproject.toml"]  # fmt: skip
    resolved = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout
    return "".join(f"{line}\n" for line in resolved.splitlines() if line.partition("==")[0] in SHOWN)


def make_environment(uv: str, python: Path, kind: str, folder: Path) -> Path:
    """A new environment in ``folder`` with the package and what its tests need. Returns its interpreter."""
    subprocess.run([uv, "venv", "-q", "--clear", "--seed", "--python", python, folder], check=True)
    own = folder / ("Scripts" if os.name == "nt" else "bin") / "python"
    constraints = []
    if kind == "oldest":
        file = folder / "oldest.txt"
        file.write_text(oldest_versions(uv, _version(str(python))), encoding="utf-8")
        constraints = ["-c", file]
    subprocess.run([uv, "pip", "install", "-q", "--python", own, *constraints, "--only-binary", ":all:",
                    "--no-binary", "syncscope", "-e", ".[dev]"], cwd=ROOT, check=True)  # fmt: skip
    return own


def installed(python: Path) -> str:
    """The versions of what users install, in one line."""
    ask = (
        "import importlib.metadata as m, sys\n"
        "have = {d.name.lower(): d.version for d in m.distributions()}\n"
        "print(*(f'{n} {have[n]}' for n in sys.argv[1:] if n in have), sep=', ')"
    )
    return subprocess.run([python, "-c", ask, *SHOWN], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()


def run_tests(python: Path, report: Path, jobs: str, words: list[str]) -> bool:
    """Whether the tests pass. ``report`` is JUnit XML."""
    report.unlink(missing_ok=True)
    command = [python, "-m", "pytest", "-q", "-r", "fE", "-n", jobs, "--dist", "worksteal", "--hypothesis-profile",
               "same", "-p", "no:cacheprovider", f"--junitxml={report}", *words]  # fmt: skip
    environment = {**os.environ, "PATH": f"{python.parent}{os.pathsep}{os.environ.get('PATH', '')}"}
    return subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode == 0


def counts(report: Path) -> str:
    """``3646 passed, 2 failed, 105 skipped`` from JUnit XML, or that there is none."""
    try:
        suites = list(ElementTree.parse(report).getroot().iter("testsuite"))
    except (OSError, ElementTree.ParseError):
        return "the tests did not end"
    total, failures, errors, skipped = (
        sum(int(suite.get(name, 0)) for suite in suites) for name in ("tests", "failures", "errors", "skipped")
    )
    return f"{total - failures - errors - skipped} passed, {failures + errors} failed, {skipped} skipped"


def check_one(uv: str, python: Path, kind: str, jobs: str, words: list[str]) -> tuple[bool, str]:
    """Whether the tests pass on one Python with one set of versions, and the row of the table."""
    version = _version(str(python))
    folder = BUILD / f"{version}-{kind}"
    print(f"== Python {version}, {kind} versions", flush=True)
    try:
        own = make_environment(uv, python, kind, folder)
        versions = installed(own)
    except subprocess.CalledProcessError:
        return False, f"{version:8} {kind:6}  the environment could not be made"
    report = folder.with_suffix(f"{folder.suffix}.xml")
    passed = run_tests(own, report, jobs, words)
    return passed, f"{version:8} {kind:6}  {counts(report)}\n{'':17}{versions}"


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("python", nargs="*", help="versions such as 3.11, or paths; all that are to be had by default")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--oldest", dest="kinds", action="store_const", const=("oldest",), help="only the oldest")
    which.add_argument("--newest", dest="kinds", action="store_const", const=("newest",), help="only the newest")
    parser.add_argument("--jobs", default="auto", help="how many tests run at the same time")
    parser.add_argument("--tests", nargs="+", default=[], metavar="WORD", help="arguments for pytest, such as paths")
    given = parser.parse_args()

    pythons = {name: find_python(name) for name in given.python or PYTHONS}
    missing = [name for name, python in pythons.items() if python is None]
    if missing:
        print(f"not to be had here: Python {', '.join(missing)}", flush=True)
    if (missing and given.python) or len(missing) == len(pythons):
        return 2
    BUILD.mkdir(parents=True, exist_ok=True)
    uv = find_uv()
    results = [
        check_one(uv, python, kind, given.jobs, given.tests)
        for python in pythons.values()
        if python is not None
        for kind in given.kinds or ("oldest", "newest")
    ]
    print("\nPython   set     tests, and the versions", *(row for _, row in results), sep="\n")
    return 0 if all(passed for passed, _ in results) else 1


if __name__ == "__main__":
    sys.exit(main())
