"""Python stacks from a trace's ``python_function`` rows. They give the line of the ``def``, not of the call."""

from __future__ import annotations

import re
from functools import cached_property

import numpy as np

from syncscope.patterns import compile_later
from syncscope.schema.findings import Frame
from syncscope.timeline.intervals import Bools, Ints
from syncscope.timeline.nesting import Nesting
from syncscope.trace.rows import Rows
from syncscope.trace.tables.python_names import UNKNOWN

PROFILER = ("<site-packages>/torch/profiler/", "<site-packages>/torch/autograd/profiler")
"""Files of the profiler, whose waits are not the program's."""


GENERATED = compile_later(r"(?:^|/)(?:torchinductor_[^/]*|inductor_cache|torch_compile_cache)/")
"""Folders where torch.compile, and vLLM's cache of it, keep the code that they write."""


def is_user(file: str) -> bool:
    """Whether a normalised path is a file of the program, not of a library or of Python, nor generated."""
    written = not file.startswith("<") or file.startswith(("<ipython-input", "<stdin>"))
    return written and not GENERATED.search(file)


def is_generated(file: str) -> bool:
    """Whether a normalised path is no file that somebody wrote: that of code that a program makes while it runs."""
    in_no_file = file.startswith("<") and "/" not in file and not is_user(file)
    return in_no_file or file.startswith("<torchinductor>") or bool(GENERATED.search(file))


class PythonStacks:
    """The stacks of a trace's ``python_function`` rows."""

    def __init__(self, frames: Rows) -> None:
        """``frames`` is the trace's table of that name."""
        files, functions = frames.texts["file"], frames.texts["function"]
        # Of what was running when the recording began there is a row without a file (``<function main at 0x7f…>``),
        # which may end long before what runs inside of it: it encloses nothing.
        nameless = np.array([name == UNKNOWN for name in files.names], dtype=bool)[files.codes]
        self.ts, self.tid = frames["ts"], frames["tid"]
        self.end = np.where(nameless, self.ts, frames["end"]) if nameless.any() else frames["end"]
        self.nesting = Nesting(self.ts, self.end, self.tid)
        self._files, self._file = files.names, files.codes
        self._line = frames["line"]
        self._functions, self._function = functions.names, functions.codes
        self._stacks: dict[tuple[int, int, int, int], int] = {}
        self._identity: dict[int, int] = {}

    def are(self, functions: tuple[str, ...]) -> Bools:
        """Which rows (n,) are one of these functions."""
        wanted = np.array([name in functions for name in self._functions], dtype=bool)
        are: Bools = wanted[self._function]
        return are

    @property
    def built_in(self) -> Bools:
        """Which rows (n,) are functions in C."""
        built_in: Bools = self._line < 0
        return built_in

    def are_in(self, file: str, functions: tuple[str, ...]) -> Bools:
        """Which rows (n,) are one of these functions of files that end with ``file``. A method counts by its own
        name."""
        files = [name.endswith(file) for name in self._files]
        if not any(files) or self._own_names.isdisjoint(functions):
            return np.zeros(len(self.ts), dtype=bool)
        wanted = np.array([name.split(".")[-1] in functions for name in self._functions], dtype=bool)
        found: Bools = np.array(files, dtype=bool)[self._file] & wanted[self._function]
        return found

    @cached_property
    def _own_names(self) -> frozenset[str]:
        """The functions' names, of methods without those of their classes."""
        return frozenset(name.split(".")[-1] for name in self._functions)

    def pass_through(self, files: re.Pattern[str]) -> bool:
        """Whether any row is of a file whose name holds the pattern."""
        return any(files.search(name) for name in self._files)

    def chain(self, row: int) -> tuple[Frame, ...]:
        """The stack that ends at a row, outermost first; built-in functions and module markers are left out."""
        rows = [i for i in self.nesting.chain(row) if self._line[i] >= 0]
        return tuple(
            Frame(file=self._files[self._file[i]], line=int(self._line[i]), function=self._functions[self._function[i]])
            for i in reversed(rows)
        )

    def identity(self, row: int) -> int:
        """A number of the stack that ends at a row, which stacks of the same calls share."""
        new = []
        while row >= 0 and row not in self._identity:
            new.append(row)
            row = self.nesting.parent.item(row)
        number = self._identity.get(row, -1)
        for row in reversed(new):
            call = (number, self._file.item(row), self._line.item(row), self._function.item(row))
            number = self._identity[row] = self._stacks.setdefault(call, len(self._stacks))
        return number

    def builtin(self, row: int) -> str:
        """The function in C that a row is (``item``, ``copy_``), ``""`` for a Python frame."""
        return "" if row < 0 or self._line[row] >= 0 else self._functions[self._function[row]]

    def in_profiler(self, rows: Ints) -> Bools:
        """Which stacks (n,), given by their innermost rows (−1 none), pass through the profiler's own files."""
        own = np.array([file.startswith(PROFILER) for file in self._files], dtype=bool)
        # Whether a row or anything around it is the profiler's, walking all stacks outwards at once.
        inside = np.zeros(len(rows), dtype=bool)
        row = rows.copy()
        while (live := row >= 0).any():
            inside[live] |= own[self._file[row[live]]]
            row[live] = self.nesting.parent[row[live]]
        return inside
