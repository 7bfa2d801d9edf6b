"""Which files are the user's, and how a path is written into a recording.

A path is normalised so that a recording says nothing about the machine: relative to the project root, else
``<site-packages>/…``, ``<python>/…``, or the last two parts of a file outside all of them.
"""

from __future__ import annotations

import os
import site
import sys
import sysconfig
from pathlib import Path

ROOT_MARKS = ("pyproject.toml", "syncscope.toml", ".git", "setup.py", "setup.cfg")
OURS = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
"""The folder of syncscope itself: its frames are never shown."""


def project_root(start: Path) -> Path:
    """The nearest folder at or above ``start`` that looks like a project, else ``start`` itself."""
    for folder in (start, *start.parents):
        if any((folder / mark).exists() for mark in ROOT_MARKS):
            return folder
    return start


def _prefixes(names: tuple[str, ...], extra: tuple[str, ...] = ()) -> tuple[str, ...]:
    paths = [sysconfig.get_paths().get(name) for name in names]
    found = {os.path.realpath(path) + os.sep for path in (*paths, *extra) if path}
    found |= {path + os.sep for path in (*paths, *extra) if path}
    return tuple(sorted(found, key=len, reverse=True))


class Paths:
    """Normalises paths and tells the user's files from libraries.

    ``own`` names packages that count as the user's although they are installed
    (``[tool.syncscope] own``, and the package run with ``-m``).
    """

    def __init__(self, root: Path, own: tuple[str, ...] = ()) -> None:
        self.root = os.path.realpath(root) + os.sep
        installed = (*site.getsitepackages(), site.getusersitepackages(), *_torch_folder())
        self._site = _prefixes(("purelib", "platlib"), installed)
        self._python = _prefixes(("stdlib", "platstdlib"), (os.path.dirname(os.__file__),))
        self._own = tuple(own)

    def normalise(self, file: str) -> str:
        if file.startswith("<"):
            return file
        for prefix in self._site:
            if file.startswith(prefix):
                return "<site-packages>/" + file[len(prefix) :].replace(os.sep, "/")
        for prefix in self._python:
            if file.startswith(prefix):
                return "<python>/" + file[len(prefix) :].replace(os.sep, "/")
        real = os.path.realpath(file)
        if real.startswith(self.root):
            return real[len(self.root) :].replace(os.sep, "/")
        return "/".join(Path(real).parts[-2:])

    def own_files(self) -> tuple[str, ...]:
        """The user's Python files inside the project that are loaded now, normalised and sorted."""
        # Anything may stand in sys.modules, and some of it makes up attributes when asked.
        loaded = (getattr(module, "__dict__", {}).get("__file__") for module in list(sys.modules.values()))
        files = {file for file in loaded if isinstance(file, str) and file.endswith(".py")}
        mine = (file for file in files if not file.startswith(OURS) and self.is_user(file))
        names = {self.normalise(file) for file in mine if os.path.realpath(file).startswith(self.root)}
        return tuple(sorted(name for name in names if not name.startswith("<")))

    def is_user(self, file: str) -> bool:
        """Outside site-packages, the standard library, generated code and syncscope, or in an own package."""
        if file.startswith(OURS):
            return False  # also where syncscope runs from its sources
        if file.startswith("<"):
            return file.startswith("<ipython-input") or file == "<stdin>"
        name = self.normalise(file)
        if name.startswith("<site-packages>/"):
            return name.split("/")[1].removesuffix(".py") in self._own
        return not name.startswith("<python>/")


def _torch_folder() -> tuple[str, ...]:
    """Where torch lives when it is a source build outside site-packages: its parent folder, else nothing."""
    torch = sys.modules.get("torch")
    file = getattr(torch, "__file__", None)
    return (os.path.dirname(os.path.dirname(os.path.abspath(file))),) if file else ()
