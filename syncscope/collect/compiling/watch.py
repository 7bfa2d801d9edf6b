"""Hear of each compilation and graph break where Dynamo makes it.

Nothing is imported and nothing is wrapped before the program has imported the compiler. What is wrapped runs when
something is compiled, never when compiled code runs.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import CodeType, FrameType, ModuleType
from typing import Any

import msgspec

from syncscope.collect.compiling.frames import CONVERT, program_frame
from syncscope.collect.compiling.graphs import GraphWatch
from syncscope.collect.compiling.kernels import KernelWatch
from syncscope.collect.compiling.log import CompileLog, Phase, Place, Row
from syncscope.collect.compiling.noted import count_graphs, is_unsupported, noted_breaks
from syncscope.collect.compiling.reasons import (
    RESUMED,
    Reason,
    function_name,
    lines_of,
    read_break,
    read_guard,
)
from syncscope.collect.compiling.tuning import TuningWatch
from syncscope.collect.imports import ImportWatch
from syncscope.collect.patching import Patches
from syncscope.collect.sites.stacks import Line, Stacks
from syncscope.collect.sites.threads import Threads
from syncscope.schema.compiling import CompileKind, RecordedCompiling

COMPILE = "_compile"
"""Compiles one frame. Its first argument is the frame's code."""
UTILS = "torch._dynamo.utils"
CALLBACKS = "torch._dynamo.callback"
BACKWARD = "LAZY_BACKWARD"
"""The trigger of a callback around a backward that is compiled when it first runs (PyTorch 2.8 and later)."""

MOST_IDS = 1024


@dataclass
class _Before:
    """What Dynamo had said before a compilation."""

    code: CodeType
    phase: Phase | None
    outer: int
    """The stack that compiles."""
    compile_id: str
    breaks: int
    graphs: int
    start_ns: int


class CompileWatch:
    """Fills ``log`` while it is open. ``phase_at(frame)`` is the phase of what happens now in a frame.

    It runs in the midst of the compiler, so no error of ours leaves: ``failure`` says what the first one was. In a
    forked child nothing is logged.
    """

    def __init__(self, stacks: Stacks, threads: Threads, phase_at: Callable[[FrameType], Phase | None]) -> None:
        self.log = CompileLog()
        self.failure = ""
        self.at_work: Callable[[bool], None] = _nothing
        """Called when something begins to be compiled, with ``True``, and when that is over."""
        self._stacks = stacks
        self._threads = threads
        self._phase_at = phase_at
        self._torch: Any = None
        self._patches = Patches()
        self._imports = ImportWatch(CONVERT, self._imported)
        self._lacking: tuple[str, ...] = ()
        self.kernels = KernelWatch(stacks, self._named)
        self._closed = True
        self._pid = os.getpid()
        self._local = _Local()
        self._tuning = TuningWatch(self._local, self._tuned)
        self.graphs = GraphWatch(self.log, stacks, threads, phase_at, self._compiling, self._failed)
        self._latest: Row | None = None
        """What was compiled last, and is tuned when it first runs."""
        self._guards_seen: dict[CodeType, int] = {}
        """How many failures of guards of a code were read."""
        self._rows: dict[str, Row] = {}
        """The rows of compilations by Dynamo's id, for the backward that is compiled later."""
        self._qualified: dict[tuple[str, str], str] = {}
        """The qualified names of functions that were compiled, by file and name."""

    @property
    def missing(self) -> tuple[str, ...]:
        """What this version of PyTorch lacks, so that it is not seen."""
        return (*self._lacking, *self.graphs.missing)

    def open(self, torch: Any) -> None:
        self._torch, self._closed = torch, False
        self._patches = Patches(torch)
        self._imports.open()
        self.graphs.open(torch)
        self.kernels.open(torch)
        self._tuning.open(torch)

    def close(self) -> None:
        """Put everything back. Does nothing unless open."""
        self._closed = True
        self._imports.close()
        self._patches.restore()
        self.graphs.close()
        self.kernels.close()
        self._tuning.close()
        callbacks = getattr(sys.modules.get(CALLBACKS), "callback_handler", None)
        for name, ours in (("start_callbacks", self._backward_begins), ("end_callbacks", self._backward_ends)):
            registered: Any = getattr(callbacks, name, None)
            if isinstance(registered, list) and ours in registered:
                registered.remove(ours)

    def recorded(self) -> RecordedCompiling:
        """What was compiled so far, and the lines of its kernels."""
        return msgspec.structs.replace(self.log.recorded(self.missing), kernels=self.kernels.recorded())

    def is_at_work(self) -> bool:
        """Whether something is being compiled on this thread."""
        return self._local.depth > 0

    def _compiling(self) -> int | None:
        """The stack that compiles on this thread, if one does."""
        return self._local.outer if self._local.depth else None

    @property
    def _off(self) -> bool:
        return self._closed or os.getpid() != self._pid

    def _imported(self, module: ModuleType) -> None:
        """The program has imported a part of the compiler."""
        try:
            self._lacking = (f"{CONVERT}.{COMPILE}",)
            if hasattr(module, COMPILE):
                self._patches.replace(module, COMPILE, self._make_compile)
                self._lacking = ()
        except Exception as error:  # the program's import must not fail
            self._failed(error)

    # Compilations.

    def _make_compile(self, original: Any) -> Any:
        watch, local = self, self._local

        def compile_frame(*args: Any, **kwargs: Any) -> Any:
            if watch._off or local.depth:
                return original(*args, **kwargs)
            before = watch._begin(args, kwargs.get("compile_id"), sys._getframe(1))
            local.depth += 1
            watch.at_work(True)
            error: BaseException | None = None
            try:
                return original(*args, **kwargs)
            except BaseException as raised:
                error = raised
                raise
            finally:
                local.depth -= 1
                watch.at_work(False)
                if before is not None:
                    watch._end(before, error)
                error = None  # else it would keep this frame

        return compile_frame

    def _begin(self, args: Sequence[Any], compile_id: Any, frame: FrameType) -> _Before | None:
        try:
            code, utils = args[0], sys.modules[UTILS]
            if not isinstance(code, CodeType):
                return None
            self._hear_of_backward()
            if not RESUMED.match(code.co_name):
                name = getattr(code, "co_qualname", code.co_name)
                self._qualified[code.co_filename, code.co_name] = name
            outer = program_frame(frame, code)
            self._local.outer = self._stacks.take(outer)
            return _Before(
                code, self._phase_at(outer), self._local.outer, str(compile_id or ""), len(noted_breaks(utils)),
                count_graphs(utils), time.time_ns(),
            )  # fmt: skip
        except Exception as error:
            self._failed(error)
            return None

    def _end(self, before: _Before, error: BaseException | None) -> None:
        try:
            end_ns, utils = time.time_ns(), sys.modules[UTILS]
            guards, reasons = self._new_guards(before.code, utils), noted_breaks(utils)
            graphs = max(count_graphs(utils) - before.graphs, 0)
            breaks = list(reasons[before.breaks :] if len(reasons) >= before.breaks else reasons)
            if not (guards or breaks or graphs or is_unsupported(error)):
                return  # a frame that has nothing to compile
            compiled = self._stacks.extend(None, [self._definition(before.code)])
            row = self._compiled(before, guards, compiled, graphs, error is not None)
            self._latest = row
            self.log.timed(row, self._threads.current(), before.start_ns, end_ns)
            if row is not None and before.compile_id and len(self._rows) < MOST_IDS:
                self._rows[before.compile_id] = row
            seen = set()
            for reason in breaks:
                lines = lines_of(getattr(reason, "user_stack", None) or ())
                if (key := (tuple(lines), reason.reason)) not in seen:  # Dynamo may begin anew, and say it again
                    seen.add(key)
                    self._broke(before, compiled, lines, str(reason.reason), uncompiled=False)
            if is_unsupported(error) and not guards:
                self._broke(before, compiled, lines_of(getattr(error, "real_stack", None) or ()), str(error), True)
        except Exception as ours:
            self._failed(ours)

    def _compiled(self, before: _Before, guards: list[str], compiled: int, graphs: int, failed: bool) -> Row | None:
        """A function was compiled, for the first time or once more."""
        reason = read_guard(guards[0]) if guards else Reason(None)
        inner = self._whole(reason.line, before.code) or self._definition(before.code)
        place = Place(self._stacks.extend(before.outer, [inner]), compiled)
        kind: CompileKind = "recompile" if guards else "compile"
        return self.log.add(
            kind, before.phase, place, reason._replace(line=None), graphs=graphs, uncompiled=failed,
            compile_id=before.compile_id,
        )  # fmt: skip

    def _broke(self, before: _Before, compiled: int, lines: list[Line], reason: str, uncompiled: bool) -> None:
        inner = [self._named(line) for line in lines] or [self._definition(before.code)]
        place = Place(self._stacks.extend(before.outer, inner), compiled)
        self.log.add(
            "break", before.phase, place, read_break(reason), uncompiled=uncompiled, compile_id=before.compile_id
        )

    def _new_guards(self, code: CodeType, utils: Any) -> list[str]:
        """The failures of guards that Dynamo has noted for ``code`` since they were last read, the first one first."""
        noted = getattr(utils, "guard_failures", {}).get(code, ())
        seen = self._guards_seen.get(code, 0)
        if noted:
            self._guards_seen[code] = len(noted)
        return [str(one) for one in (noted[seen:] if len(noted) >= seen else noted)]

    def _definition(self, code: CodeType) -> Line:
        return self._named(Line(code.co_filename, code.co_firstlineno, function_name(code.co_name)))

    def _whole(self, line: Line | None, code: CodeType) -> Line | None:
        """``line`` with its whole path, ``None`` where that is not known: some versions name its end only."""
        if line is None:
            return None
        if code.co_filename.endswith(line.file):
            return self._named(line._replace(file=code.co_filename))
        return self._named(line) if os.path.isabs(line.file) and os.path.exists(line.file) else None

    def _named(self, line: Line) -> Line:
        return line._replace(function=self._qualified.get((line.file, line.function), line.function))

    # A backward that is compiled when it first runs.

    def _hear_of_backward(self) -> None:
        """``torch._dynamo.reset()`` forgets callbacks."""
        handler = getattr(sys.modules.get(CALLBACKS), "callback_handler", None)
        starts, ends = (getattr(handler, name, None) for name in ("start_callbacks", "end_callbacks"))
        if isinstance(starts, list) and isinstance(ends, list) and self._backward_begins not in starts:
            starts.append(self._backward_begins)
            ends.append(self._backward_ends)

    def _backward_begins(self, *about: Any) -> None:
        if about and getattr(getattr(about[0], "callback_trigger", None), "name", "") == BACKWARD:
            self._local.backward_ns = time.time_ns()
            self.at_work(True)

    def _backward_ends(self, *about: Any) -> None:
        start_ns, self._local.backward_ns = self._local.backward_ns, 0
        if start_ns:
            self.at_work(False)
        if start_ns and about and not self._off:
            try:
                row = self._rows.get(str(getattr(about[0], "compile_id", "")))
                self.log.timed(row, self._threads.current(), start_ns, time.time_ns())
            except Exception as error:
                self._failed(error)

    def _tuned(self, start_ns: int, end_ns: int) -> None:
        if not self._off:
            self.log.timed(self._latest, self._threads.current(), start_ns, end_ns)

    def _failed(self, error: Exception) -> None:
        self.failure = self.failure or f"What torch.compile did is not all known ({type(error).__name__}: {error})."


class _Local(threading.local):
    depth = 0
    """Compilations under way on this thread."""
    outer = 0
    """The stack of the one under way."""
    backward_ns = 0


def _nothing(begins: bool) -> None:
    """Hears of nothing."""
