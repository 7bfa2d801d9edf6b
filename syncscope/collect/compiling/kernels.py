"""Find the lines that compiled kernels come from, as a trace names the kernels.

Dynamo and AOTAutograd keep the stack of each node of a graph, and Inductor says in its code which nodes a kernel
computes. Both are there when a graph is compiled, also where Inductor takes its code from its cache. Of a backward that
comes from the cache of AOTAutograd only those nodes have a stack that are of the forward, too.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from syncscope.collect.compiling.output_code import is_backward, names_of_dynamo, read_kernels, sources_of
from syncscope.collect.compiling.reasons import PLACE, function_name
from syncscope.collect.compiling.written import find_written
from syncscope.collect.imports import ImportWatch
from syncscope.collect.patching import Patches
from syncscope.collect.sites.stacks import Line, Stacks
from syncscope.schema.compiling import MOST_KERNELS, MOST_LINES, RecordedKernel

GRAPH, CALL = "torch._dynamo.output_graph", "call_user_compiler"
"""Hands a graph of Dynamo's to the backend: a method of ``OutputGraph``."""
INDUCTOR, COMPILE = "torch._inductor.compile_fx", "_compile_fx_inner"
"""Compiles a graph of AOTAutograd's, a backward among them (PyTorch 2.5 and later)."""
CODE = "torch._inductor.codecache"

MOST_BYTES = 1 << 24
"""A file of Inductor's with more is not read."""


class KernelWatch:
    """Notes the lines of kernels while it is open. ``name_line`` gives a line the qualified name of its function.

    It runs in the midst of the compiler, so no error of ours leaves: ``failure`` says what the first one was. In a
    forked child nothing is noted.
    """

    def __init__(self, stacks: Stacks, name_line: Callable[[Line], Line]) -> None:
        self.failure = ""
        self._stacks = stacks
        self._name_line = name_line
        self._kernels: dict[str, dict[int, None]] = {}
        """The stacks of each kernel."""
        self._read: set[str] = set()
        """The files that were read, or that others wrote."""
        self._torch = ""
        self._patches = Patches()
        self._imports = ImportWatch((GRAPH, INDUCTOR), self._imported)
        self._closed, self._pid = True, os.getpid()

    def open(self, torch: Any) -> None:
        self._torch, self._closed = os.path.join(os.path.dirname(torch.__file__), ""), False
        self._patches = Patches(torch)
        self._imports.open()

    def close(self) -> None:
        """Put everything back, and find the kernels that the program wrote. Does nothing unless open."""
        if self._closed:
            return
        if not self._off:
            self._tried(self._add_written)
        self._closed = True
        self._imports.close()
        self._patches.restore()

    def recorded(self) -> tuple[RecordedKernel, ...]:
        kernels = list(self._kernels.items())  # another thread may compile
        return tuple(RecordedKernel(name=name, stacks=tuple(stacks)) for name, stacks in kernels)

    @property
    def _off(self) -> bool:
        return self._closed or os.getpid() != self._pid

    def _imported(self, module: ModuleType) -> None:
        self._tried(lambda: self._wrap(module))  # the program's import must not fail

    def _wrap(self, module: ModuleType) -> None:
        if module.__name__ == GRAPH:
            owner = getattr(module, "OutputGraph", None)
            if hasattr(owner, CALL):
                self._patches.replace(owner, CALL, self._make_call)
        elif hasattr(module, COMPILE):
            self._patches.replace(module, COMPILE, self._make_compile)

    def _make_call(self, original: Any) -> Any:
        watch = self

        def call_user_compiler(output_graph: Any, module: Any, *args: Any, **kwargs: Any) -> Any:
            sources = watch._sources_of(module)
            compiled = original(output_graph, module, *args, **kwargs)
            watch._tried(lambda: watch._add(sources, backward=False))
            return compiled

        return call_user_compiler

    def _make_compile(self, original: Any) -> Any:
        watch = self

        def compile_fx_inner(module: Any, *args: Any, **kwargs: Any) -> Any:
            sources = watch._sources_of(module)
            compiled = original(module, *args, **kwargs)
            watch._tried(lambda: watch._add(sources, backward=True))
            return compiled

        return compile_fx_inner

    def _sources_of(self, module: Any) -> Mapping[str, str]:
        """The stacks of the nodes of a graph that is to be compiled. What was compiled before is not its code."""
        found: dict[str, str] = {}

        def read() -> None:
            self._read.update(path for path in _code_files())
            found.update(sources_of(module.graph.nodes))

        self._tried(read)
        return found

    def _add(self, sources: Mapping[str, str], *, backward: bool) -> None:
        """Read what Inductor wrote meanwhile. Of a backward Dynamo's graph knows few nodes, but may have its names."""
        for path in _code_files():
            if path in self._read or os.path.getsize(path) > MOST_BYTES:
                continue
            self._read.add(path)
            text = Path(path).read_text(encoding="utf-8", errors="replace")
            known = sources
            if is_backward(text) and not backward:
                known = {name: sources[name] for name in names_of_dynamo(text) & sources.keys()}
            lines: dict[str, list[Line]] = {}
            for kernel in read_kernels(text):
                if kernel.written is not None:
                    self._note(kernel.kernel, [kernel.written])
                for stack in dict.fromkeys(known.get(node, "") for node in kernel.nodes):
                    if stack not in lines:
                        lines[stack] = self._lines_of(stack)
                    self._note(kernel.kernel, lines[stack])

    def _add_written(self) -> None:
        for line in find_written():
            if not line.file.startswith(self._torch) and line.file not in self._read:
                self._note(line.function, [line])

    def _lines_of(self, stack: str) -> list[Line]:
        """Outermost first, out to the innermost line outside of PyTorch."""
        found = [Line(file, int(number), function_name(name)) for file, number, name in PLACE.findall(stack)]
        while found and found[-1].file.startswith((self._torch, "<")):
            found.pop()
        return [self._name_line(line) for line in found]

    def _note(self, kernel: str, lines: list[Line]) -> None:
        if not lines or (kernel not in self._kernels and len(self._kernels) >= MOST_KERNELS):
            return
        stacks = self._kernels.setdefault(kernel, {})
        if len(stacks) < MOST_LINES:
            stacks[self._stacks.extend(None, lines)] = None

    def _tried(self, action: Callable[[], None]) -> None:
        if self._off:
            return
        try:
            action()
        except Exception as error:
            self.failure = self.failure or f"Not all lines of kernels are known ({type(error).__name__}: {error})."


def _code_files() -> Iterator[str]:
    """The Python files that Inductor has written and loaded."""
    cache = getattr(sys.modules.get(CODE), "PyCodeCache", None)
    modules = getattr(cache, "modules", None)
    if not isinstance(modules, list):
        modules = list(getattr(cache, "cache", {}).values())  # PyTorch 2.5 and earlier
    for module in list(modules):
        path = getattr(module, "__file__", None)
        if isinstance(path, str):
            yield path
