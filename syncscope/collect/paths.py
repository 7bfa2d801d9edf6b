"""Tell the user's files from libraries, and write paths into a recording without naming the machine.

A normalised path is ``<torchinductor>/…`` for what torch.compile wrote, else relative to the project root, else
``<site-packages>/…`` or ``<python>/…``, else the last two parts of the path.
"""

from __future__ import annotations

import os
import re
import site
import sys
import sysconfig
from pathlib import Path

ROOT_MARKS = ("pyproject.toml", "syncscope.toml", ".git", "setup.py", "setup.cfg")
OURS = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
"""The folder of syncscope itself, whose frames are never shown."""

_CELL = re.compile(r"[\\/]ipykernel_\d+[\\/](\d+\.py)$")
"""The file that IPython's kernel names for a cell: a process and a hash of the cell's text."""

_INSTALLED = re.compile(r".*[\\/](?:site|dist)-packages[\\/]", re.DOTALL)
"""Folders of installed packages have these names, also where Python does not list them: on ``PYTHONPATH``, as clusters
do, or in a ``.pth`` file."""

_INDUCTOR = re.compile(r"[\\/]torchinductor_[^\\/]*[\\/](.*)", re.DOTALL)
"""Where Inductor keeps the code that it writes, unless TORCHINDUCTOR_CACHE_DIR says otherwise."""


def project_root(start: Path) -> Path:
    """The nearest folder at or above ``start`` that looks like a project, else ``start`` itself."""
    for folder in (start, *start.parents):
        if any((folder / mark).exists() for mark in ROOT_MARKS):
            return folder
    return start


def _prefixes(names: tuple[str, ...], extra: tuple[str, ...] = ()) -> tuple[str, ...]:
    paths = [sysconfig.get_paths().get(name) for name in names]
    prefixes = {os.path.realpath(path) + os.sep for path in (*paths, *extra) if path}
    prefixes |= {path + os.sep for path in (*paths, *extra) if path}
    return tuple(sorted(prefixes, key=len, reverse=True))


class Paths:
    """Normalises paths and tells the user's files from libraries.

    ``own`` names installed packages that count as the user's: those of ``[tool.syncscope] own``, and the one run with
    ``-m``.
    """

    def __init__(self, root: Path, own: tuple[str, ...] = ()) -> None:
        self.root = os.path.realpath(root) + os.sep
        installed = (*site.getsitepackages(), site.getusersitepackages(), *_torch_folder())
        self._site = _prefixes(("purelib", "platlib"), installed)
        self._python = _prefixes(("stdlib", "platstdlib"), (os.path.dirname(os.__file__),))
        self._own = tuple(own)
        self._loaded: dict[str, str | None] = {}
        """The loaded files, normalised where they are the user's: a process has thousands, and few are new."""
        self._own_files: tuple[str, ...] = ()
        """The user's of them, ..."""
        self._modules: tuple[int, str] | None = None
        """... and how many modules there were then, with the name of the newest."""

    def normalise(self, file: str) -> str:
        if file.startswith("<"):
            return file
        if cell := _CELL.search(file):
            return f"<notebook>/{cell[1]}"
        if (written := _generated(file)) is not None:
            return "<torchinductor>/" + written.replace(os.sep, "/")
        for prefix in self._site:
            if file.startswith(prefix):
                return "<site-packages>/" + file[len(prefix) :].replace(os.sep, "/")
        for prefix in self._python:
            if file.startswith(prefix):
                return "<python>/" + file[len(prefix) :].replace(os.sep, "/")
        real = os.path.realpath(file)
        inside = real.startswith(self.root)
        below = real[len(self.root) - 1 :] if inside else file
        if installed := _INSTALLED.match(below):
            return "<site-packages>/" + below[installed.end() :].replace(os.sep, "/")
        if inside:
            return below[1:].replace(os.sep, "/")
        return "/".join(Path(real).parts[-2:])

    def own_files(self) -> tuple[str, ...]:
        """The user's Python files inside the project that are loaded now, normalised and sorted."""
        modules = len(sys.modules), next(reversed(sys.modules), "")
        if modules == self._modules:
            return self._own_files
        # sys.modules may hold anything, also objects that invent attributes.
        loaded = (getattr(module, "__dict__", {}).get("__file__") for module in list(sys.modules.values()))
        files = {file for file in loaded if isinstance(file, str) and file.endswith(".py")}
        known = self._loaded
        self._loaded = loaded_now = {file: known[file] if file in known else self._own_name(file) for file in files}
        self._own_files = tuple(sorted({name for name in loaded_now.values() if name is not None}))
        self._modules = modules
        return self._own_files

    def _own_name(self, file: str) -> str | None:
        """``file`` normalised, ``None`` unless it is the user's and inside the project."""
        if file.startswith(OURS) or not self.is_user(file) or not os.path.realpath(file).startswith(self.root):
            return None
        name = self.normalise(file)
        return None if name.startswith("<") else name

    def is_user(self, file: str) -> bool:
        """Whether ``file`` is in an own package, or in no library, no generated code and not in syncscope."""
        if file.startswith(OURS):
            return False  # also where syncscope runs from its sources
        if file.startswith("<"):
            return file.startswith("<ipython-input") or file == "<stdin>"
        name = self.normalise(file)
        if name.startswith("<site-packages>/"):
            return name.split("/")[1].removesuffix(".py") in self._own
        return not name.startswith(("<python>/", "<torchinductor>/"))


def _generated(file: str) -> str | None:
    """The rest of the path of a file that Inductor wrote, ``None`` for another."""
    folder = os.environ.get("TORCHINDUCTOR_CACHE_DIR", "").rstrip(os.sep)
    if folder and file.startswith(os.path.abspath(folder) + os.sep):
        return file[len(os.path.abspath(folder)) + 1 :]
    found = _INDUCTOR.search(file)
    return found[1] if found else None


def _torch_folder() -> tuple[str, ...]:
    """The folder that holds the loaded torch, which a source build puts outside site-packages."""
    torch = sys.modules.get("torch")
    file = getattr(torch, "__file__", None)
    return (os.path.dirname(os.path.dirname(os.path.abspath(file))),) if file else ()
