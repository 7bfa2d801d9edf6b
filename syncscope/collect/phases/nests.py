"""The loops that a program is in at one moment, over all of its frames."""

from __future__ import annotations

import os
import sys
import threading
from types import CodeType, FrameType

from syncscope.collect.paths import OURS, Paths
from syncscope.collect.phases.loops import Loop, loops_of

GENERATOR = 0x20 | 0x200
"""``CO_GENERATOR`` and ``CO_ASYNC_GENERATOR`` of ``co_flags``."""

MAX_DEPTH = 512
"""Frames looked at."""

MAX_CODES = 20_000

SERVING = tuple(
    os.path.join(os.path.dirname(os.__file__), *parts, "")
    for parts in (("asyncio",), ("concurrent", "futures"), ("multiprocessing",))
)
"""Where Python runs what it is given, again and again, also on the main thread."""

CALLBACKS = tuple(
    os.path.join(*parts)
    for parts in (("transformers", "trainer_callback.py"), ("pytorch", "trainer", "call.py"),
                  ("pytorch_lightning", "trainer", "call.py"))
)  # fmt: skip
"""Where trainers call one callback after the other: that loop is not one of the program's steps."""


class Kept:
    """What is known of a function."""

    __slots__ = ("code", "generator", "loops", "skipped", "user")

    def __init__(self, code: CodeType, skipped: bool, user: bool) -> None:
        self.code = code  # keeps its id from being used again
        self.skipped = skipped
        self.user = user
        self.generator = bool(code.co_flags & GENERATOR)
        self.loops: tuple[Loop, ...] | None = None


class Nest:
    """The loops around one event, innermost first; ``frames[i]`` is the id of the frame that runs ``loops[i]``."""

    __slots__ = ("between", "frames", "here", "inner", "loops", "passed", "path", "through", "user")

    def __init__(self) -> None:
        self.loops: list[Loop] = []
        self.frames: list[int] = []
        self.through: list[bool] = []
        """Whether the loop is in a generator: what it does, it does for the loop around."""
        self.passed = False
        """Whether a generator is inside of the innermost loop: what passes through it may be read ahead."""
        self.path: list[tuple[int, int]] = []
        """Id and ``f_lasti`` of each frame, innermost first."""
        self.between: list[str] = []
        """Names of the functions from the innermost out to that of the innermost loop."""
        self.here: tuple[CodeType, int] | None = None
        """The innermost frame of the user's, and its line."""
        self.inner: tuple[CodeType, int] | None = None
        """What the innermost frame runs, and its ``f_lasti``."""
        self.user: list[tuple[CodeType, int, str] | None] = []
        """For each loop the innermost frame of the user's that is not inside of it, the line that it runs, and the name
        of the function that it called there."""

    def keep(self, part: slice) -> None:
        """Keep these loops alone."""
        self.loops, self.frames, self.through = self.loops[part], self.frames[part], self.through[part]

    def frame_of(self, loop: Loop) -> int:
        return self.frames[self.loops.index(loop)]

    def called_from(self, loop: Loop) -> tuple[int, int]:
        """The id of the frame around that of ``loop``, and where it stands: the next call may get a frame of the same
        id. A generator is called from anywhere."""
        number = self.loops.index(loop)
        frames = [ident for ident, _ in self.path]
        around = self.path[frames.index(self.frames[number]) + 1 :]
        if not around:
            return 0, 0
        ident, lasti = around[0]
        return ident, 0 if self.through[number] else lasti


class Nests:
    """Reads nests. Frames of syncscope and of PyTorch itself have no loops; those outside the user's do not count."""

    def __init__(self, paths: Paths, torch_folder: str | None = None) -> None:
        self.paths = paths
        self.codes: dict[int, Kept] = {}
        self._skip: tuple[str, ...] = (OURS,)
        if torch_folder:
            self.skip(torch_folder)

    def skip(self, folder: str) -> None:
        """Frames of files in ``folder`` are not the program's."""
        self._skip = (*self._skip, os.path.join(folder, ""))
        self.codes.clear()

    def of_code(self, code: CodeType) -> Kept:
        kept = self.codes.get(id(code))
        if kept is None:
            if len(self.codes) >= MAX_CODES:
                self.codes.clear()  # the loops stay: they are kept with the code
            file = code.co_filename
            kept = Kept(code, file.startswith(self._skip), self.paths.is_user(file))
            self.codes[id(code)] = kept
        return kept

    def innermost(self, frame: FrameType | None) -> FrameType | None:
        """The innermost frame of the program, from ``frame`` outwards."""
        codes = self.codes
        while frame is not None:
            kept = codes.get(id(frame.f_code))
            if not (kept.skipped if kept is not None else self.of_code(frame.f_code).skipped):
                return frame
            frame = frame.f_back
        return None

    def trainer_of(self, frame: FrameType | None) -> FrameType | None:
        """The innermost frame of the program, and where that calls callbacks, the one of the trainer that has them."""
        frame = self.innermost(frame)
        while frame is not None and frame.f_code.co_filename.endswith(CALLBACKS):
            frame = frame.f_back
        return frame

    def loops_around(self, frame: FrameType | None) -> list[Loop]:
        """The loops around ``frame``, innermost first, that the user's code runs, or a library that it calls. From any
        thread."""
        found: list[Loop] = []
        of_user = depth = 0
        while frame is not None and depth < MAX_DEPTH:
            kept = self.of_code(frame.f_code)
            if not kept.skipped:
                lasti = frame.f_lasti
                found += [loop for loop in self._loops_in(kept) if loop.holds(lasti)]
                of_user = len(found) if kept.user else of_user
            frame, depth = frame.f_back, depth + 1
        return found[:of_user]

    def read(self, frame: FrameType | None) -> Nest:
        """The nest of ``frame``, from the innermost frame out to the outermost of the user's; or the loop that calls
        the user's code for each request, where no other is around."""
        nest = Nest()
        users: list[tuple[CodeType, int, int, str]] = []
        after_user = 0
        called = ""
        depth = 0
        nest.inner = None if frame is None else (frame.f_code, frame.f_lasti)
        while frame is not None and depth < MAX_DEPTH:
            depth += 1
            kept = self.of_code(frame.f_code)
            lasti = frame.f_lasti
            if not kept.skipped:
                if not nest.loops:
                    nest.between.append(kept.code.co_name)
                self._add_loops(nest, kept, frame, lasti)
                nest.passed |= kept.generator and (not nest.loops or nest.through[0])
                if kept.user:
                    users.append((kept.code, frame.f_lineno or kept.code.co_firstlineno, len(nest.loops), called))
                    after_user = len(nest.loops)
                called = kept.code.co_name
            nest.path.append((id(frame), lasti))
            frame = frame.f_back
        if users:  # else a program without a file of the user's: all of it counts
            nest.here = users[0][:2]
            if not after_user and nest.loops and _serves(nest.loops[-1].code):
                code, line, _, called = users.pop()
                users.append((code, line, 1, called))  # as if the loop were in it
                nest.keep(slice(-1, None))
            else:
                nest.keep(slice(0, after_user))
        nest.user = [_user_of(number, users) for number in range(len(nest.loops))]
        return nest

    @staticmethod
    def _loops_in(kept: Kept) -> tuple[Loop, ...]:
        if kept.loops is None:
            kept.loops = () if _is_forward(kept.code) else loops_of(kept.code)
        return kept.loops

    def _add_loops(self, nest: Nest, kept: Kept, frame: FrameType, lasti: int) -> None:
        for loop in self._loops_in(kept):
            if loop.holds(lasti):
                nest.loops.append(loop)
                nest.frames.append(id(frame))
                nest.through.append(kept.generator)


def _serves(code: CodeType) -> bool:
    """Whether the outermost loop of a library, which ``code`` runs with nothing of the user's around it, calls what is
    the user's for each request or task: on a worker thread, in a worker process, or as the loop of a server."""
    if threading.get_ident() != threading.main_thread().ident:
        return True
    return code.co_filename.startswith(SERVING) and "ipykernel" not in sys.modules  # which runs each cell in its loop


def _is_forward(code: CodeType) -> bool:
    """Whether a function is what the call of a module runs. Who calls it by its name, not the module, does the same in
    one step: loops over the module's layers are none of the program's. Nor are those of a call of the class around
    PyTorch's, such as one over the parts of a batch."""
    if code.co_name == "__call__" and "__call__" not in code.co_names:
        return False
    return code.co_name in ("forward", "__call__") and code.co_varnames[:1] == ("self",)


def _user_of(number: int, users: list[tuple[CodeType, int, int, str]]) -> tuple[CodeType, int, str] | None:
    """The first of ``users``, innermost first, out to whose frame more than ``number`` loops were seen."""
    for code, line, loops, called in users:
        if loops > number:
            return code, line, called
    return None
