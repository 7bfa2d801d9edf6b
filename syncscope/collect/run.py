"""Run a user's script or module in this process, as ``python`` itself would.

The module stays ``__main__`` afterwards, so that ``atexit`` handlers, pickling and ``multiprocessing`` work as they do
without syncscope. What the script prints, raises and exits with stays its own.
"""

from __future__ import annotations

import importlib.util
import io
import os
import sys
import traceback
from importlib.machinery import ModuleSpec
from types import CodeType, ModuleType, TracebackType
from typing import Any

from syncscope.collect.paths import OURS


class ScriptError(ValueError):
    """The script or module cannot be found or read. ``str`` is one line."""


def load_script(path: str) -> tuple[ModuleType, CodeType]:
    """Return the ``__main__`` module and code of a script file. Sets ``sys.argv[0]`` and ``sys.path[0]``.

    Raises ``ScriptError``; ``SyntaxError`` passes.
    """
    try:
        with io.open_code(path) as file:
            source = file.read()
    except OSError as error:
        raise ScriptError(f"{path}: {error.strerror or error}") from None
    absolute = os.path.abspath(path)
    module = ModuleType("__main__")
    module.__dict__.update(__file__=absolute, __builtins__=__builtins__, __cached__=None)
    sys.path[0] = os.path.dirname(absolute)
    sys.argv[0] = path
    return module, compile(source, absolute, "exec", dont_inherit=True)


def load_module(name: str) -> tuple[ModuleType, CodeType]:
    """Return the ``__main__`` module and code for ``-m name``. Sets ``sys.argv[0]`` and ``sys.path[0]``.

    Raises ``ScriptError``.
    """
    sys.path[0] = os.getcwd()
    spec = _find(name)
    if spec.submodule_search_locations is not None:
        spec = _find(f"{name}.__main__")
    loader: Any = spec.loader
    if not hasattr(loader, "get_code"):
        raise ScriptError(f"{name}: no code object available")
    code = loader.get_code(spec.name)
    if code is None:
        raise ScriptError(f"{name}: no code object available")
    module = ModuleType("__main__")
    module.__dict__.update(
        __file__=spec.origin,
        __builtins__=__builtins__,
        __cached__=None,
        __loader__=loader,
        __package__=spec.parent,
        __spec__=spec,
    )
    sys.argv[0] = str(spec.origin)
    return module, code


def _find(name: str) -> ModuleSpec:
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError) as error:
        raise ScriptError(f"{name}: {error}") from None
    if spec is None:
        raise ScriptError(f"No module named {name}")
    return spec


def execute(module: ModuleType, code: CodeType, arguments: list[str]) -> int:
    """Run ``code`` as ``__main__`` with ``arguments`` after ``sys.argv[0]``, and return the exit status.

    Prints a traceback as Python would, without syncscope's frames. ``KeyboardInterrupt`` passes.
    """
    sys.argv[1:] = arguments
    sys.modules["__main__"] = module
    try:
        exec(code, module.__dict__)
    except SystemExit as stop:
        return exit_status(stop.code)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        _report(error)
        return 1
    return 0


def exit_status(code: object) -> int:
    """The status with which Python exits for ``SystemExit(code)``. Prints a message on stderr."""
    if code is None:
        return 0
    if isinstance(code, int):
        return code & 0xFF
    print(code, file=sys.stderr)
    return 1


def _report(error: BaseException) -> None:
    """Print what Python prints for an uncaught exception, from the script's own frame on."""
    error.__traceback__ = trim_traceback(error.__traceback__)
    sys.excepthook(type(error), error, error.__traceback__)


def trim_traceback(trace: TracebackType | None) -> TracebackType | None:
    """``trace`` without the frames of syncscope at its beginning."""
    while trace is not None and trace.tb_frame.f_code.co_filename.startswith(OURS):
        trace = trace.tb_next
    return trace


def report_syntax_error(error: SyntaxError) -> None:
    """Print a syntax error of the script as Python does."""
    traceback.print_exception(type(error), error, None)
