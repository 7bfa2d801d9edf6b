"""The kernels that the program wrote in Triton and has run, with the line of their ``def``."""

from __future__ import annotations

import linecache
import sys
from collections.abc import Iterator
from types import CodeType, ModuleType
from typing import Any

from syncscope.collect.sites.stacks import Line

JIT = "triton.runtime.jit"
MOST_WRAPPERS = 4
"""Of a kernel: ``triton.autotune`` and ``triton.heuristics`` keep the function in ``fn``, as ``triton.jit`` does."""
MOST_DECORATORS = 64
"""Lines between the first decorator and the ``def``."""


def find_written() -> Iterator[Line]:
    """Those that modules hold by name; none where the program has not imported Triton. Nothing is imported or called.

    ``Line.function`` is the kernel's name, as in a trace.
    """
    kind = getattr(sys.modules.get(JIT), "JITFunction", None)
    if not isinstance(kind, type):
        return
    modules: list[Any] = list(sys.modules.values())  # some put other objects there
    for module in modules:
        for value in list(vars(module).values()) if issubclass(type(module), ModuleType) else ():
            code = _code_of(value, kind)
            if code is not None:
                yield Line(code.co_filename, _line_of_def(code), code.co_name)


def _code_of(value: Any, kind: type) -> CodeType | None:
    """The code of a kernel that has run."""
    for _ in range(MOST_WRAPPERS):
        if issubclass(type(value), kind):  # isinstance would ask the value, and some modules hold objects that mind
            of_jit = vars(value)
            compiled = of_jit.get("device_caches", of_jit.get("cache"))
            code = getattr(of_jit.get("fn"), "__code__", None)
            ran = compiled is None or len(compiled) > 0
            return code if ran and isinstance(code, CodeType) else None
        if not str(getattr(type(value), "__module__", "")).startswith("triton."):
            return None
        value = getattr(value, "__dict__", {}).get("fn")
    return None


def _line_of_def(code: CodeType) -> int:
    """``co_firstlineno`` is the line of the first decorator."""
    first = code.co_firstlineno
    lines = range(first, first + MOST_DECORATORS)
    return next((n for n in lines if linecache.getline(code.co_filename, n).lstrip().startswith("def ")), first)
