"""Python stacks: taken in microseconds while the program runs, turned into lines and expressions afterwards."""

from __future__ import annotations

import functools
import itertools
import linecache
import re
import sys
import threading
from collections.abc import Iterator, Sequence
from types import CodeType, FrameType
from typing import NamedTuple

from syncscope.collect.paths import OURS, Paths
from syncscope.collect.run import execute
from syncscope.schema.recording import RecordedFrame

MAX_DEPTH = 128
"""Frames kept of a stack, from the innermost outwards."""

CONDITION = re.compile(r"(?:if|elif|while) (.*):$")

HEADS = (b"if", b"elif", b"while")
"""How a statement begins whose expression is its condition."""

USER, OUR = 1, 2
"""Whose code it is."""

UNREAD = ""
"""In place of an expression whose text was not asked for yet."""

MAX_EXPRESSION = 400
"""Characters kept of an expression."""


class Line(NamedTuple):
    """A line that somebody names, with no frame that runs it. Columns are as in ``Position``."""

    file: str
    """As Python knows it (``co_filename``)."""
    line: int
    function: str
    end_line: int | None = None
    column: int | None = None
    end_column: int | None = None


Taken = tuple[CodeType, int] | Line
"""Code and instruction of a frame, or a line."""


class Stacks:
    """Interned stacks.

    Two stacks count as one when they agree from the innermost frame out to the user's line, by which findings are
    grouped. The frames further out are those of the first such stack. ``take`` reads no more than it must; ``resolve``
    looks up lines and expressions.
    """

    def __init__(self, paths: Paths) -> None:
        self._paths = paths
        self.is_user = functools.lru_cache(maxsize=4096)(paths.is_user)
        """Whether a file, as Python names it, is the user's."""
        self._normalise = functools.lru_cache(maxsize=4096)(paths.normalise)
        self._ids: dict[tuple[int, ...], int] = {}
        self.direct: dict[tuple[int, ...], int] = {}
        """Numbers by the code and instruction of the innermost frame, where it tells enough, or of two."""
        self._taken: list[Sequence[Taken]] = []
        self._extended: dict[tuple[int, tuple[Taken, ...]], int] = {}
        self._known: dict[int, tuple[CodeType, int]] = {}
        """By the code's id, ``USER``, ``OUR`` or neither."""
        self._resolving = threading.RLock()
        self._expressions = Expressions()
        self._frames: list[RecordedFrame] = []
        self._frame_numbers: dict[object, int] = {}
        self._resolved: list[tuple[int, ...]] = []
        self._files: set[tuple[str, str]] = set()
        self._files_of = 0
        """Stacks whose files are known."""

    def empty(self) -> Stacks:
        """Another table that tells the user's files alike."""
        return Stacks(self._paths)

    def take(self, frame: FrameType) -> int:
        """The number of the stack whose innermost frame is ``frame``."""
        # One or two innermost frames identify most stacks.
        code, lasti, direct = id(frame.f_code), frame.f_lasti, self.direct
        number = direct.get((code, lasti))
        if number is None and (back := frame.f_back) is not None:
            number = direct.get((code, lasti, id(back.f_code), back.f_lasti))
        return self._walk(frame) if number is None else number

    def take_of_another_thread(self, frame: FrameType) -> int:
        """The number of the stack whose innermost frame is ``frame``, of a thread that may run meanwhile: all of it is
        read once, and never counts as another stack that is like it up to the user's line."""
        return self.extend(None, tuple(reversed(frames_of(frame))))

    def find(self, frame: FrameType) -> int:
        """The number of the stack if it was taken before, else -1. Keeps nothing of it."""
        return self._ids.get(self._key(frame, keep=False), -1)

    def extend(self, stack: int | None, inner: Sequence[Taken]) -> int:
        """The number of a stack with further frames inside of ``stack``, outermost first; of those alone where there is
        no stack."""
        key = -1 if stack is None else stack, tuple(inner)
        number = self._extended.get(key)
        if number is None:
            outer = [] if stack is None else self._taken[stack]
            self._taken.append([*reversed(inner), *outer][:MAX_DEPTH])
            number = self._extended[key] = len(self._taken) - 1
        return number

    def instructions(self, stack: int) -> Iterator[tuple[CodeType, int]]:
        """Code and instruction of each frame that Python runs, from the innermost out."""
        for one in self._taken[stack] if 0 <= stack < len(self._taken) else ():
            if not isinstance(one, Line):
                yield one

    def own_frames(self, stack: int) -> Iterator[tuple[str, str]]:
        """The normalised file and the function of each frame, from the innermost out to the user's line, which is not
        among them. Equal stacks have them in common."""
        for one in self._taken[stack] if 0 <= stack < len(self._taken) else ():
            file = _file_of(one)
            if self.is_user(file):
                return
            yield self._normalise(file), one.function if isinstance(one, Line) else one[0].co_name

    def _walk(self, frame: FrameType) -> int:
        whole = self._key(frame, keep=True)
        number = self._ids.get(whole)
        if number is None:
            # Two threads may race here. Both numbers then name the same stack, which is harmless.
            self._taken.append(frames_of(frame))
            number = self._ids[whole] = len(self._taken) - 1
        if len(whole) <= 4:
            self.direct[whole] = number
        return number

    def _key(self, frame: FrameType, *, keep: bool) -> tuple[int, ...]:
        """Code and instruction of each frame out to the user's line, without our own: they come and go, and a line that
        waits inside of a library stays the same."""
        key: list[int] = []
        inner: FrameType | None = frame
        known = self._known
        while inner is not None:
            code = inner.f_code
            ident = id(code)
            seen = known.get(ident)
            if seen is None:
                seen = code, self._whose(code.co_filename)
                if keep:  # and with the code its id, which must not be used again
                    known[ident] = seen
            if seen[1] != OUR:
                key.append(ident)
                key.append(inner.f_lasti)
                if seen[1]:
                    break
            inner = inner.f_back
        return tuple(key)

    def _whose(self, file: str) -> int:
        return OUR if file.startswith(OURS) else USER if self.is_user(file) else 0

    def resolve(self) -> tuple[tuple[RecordedFrame, ...], tuple[tuple[int, ...], ...]]:
        """All frames, and for each stack the numbers of its frames, outermost first. Without syncscope's own.

        Looks up only what was taken since the last time.
        """
        with self._resolving:
            while (number := len(self._resolved)) < len(self._taken):
                stack = self._resolve(self._taken[number])
                if len(self._resolved) == number:  # else a signal's handler came here meanwhile
                    self._resolved.append(stack)
            return tuple(self._frames), tuple(self._resolved)

    def _resolve(self, taken: Sequence[Taken]) -> tuple[int, ...]:
        stack: list[int] = []
        for one in reversed(taken):
            if _file_of(one).startswith(OURS):
                continue
            key: object = one if isinstance(one, Line) else (id(one[0]), one[1])
            if key not in self._frame_numbers:
                frame = _resolve_line(one, self._paths, self._expressions) if isinstance(one, Line) else (
                    _resolve_frame(*one, self._paths, self._expressions)
                )  # fmt: skip
                self._frame_numbers[key] = len(self._frames)
                self._frames.append(frame)
            stack.append(self._frame_numbers[key])
        return tuple(stack)

    def files(self) -> set[tuple[str, str]]:
        """The user's files in the stacks, each as (name that Python knows, normalised name)."""
        paths = self._paths
        with self._resolving:
            taken = self._taken[self._files_of :]
            self._files_of += len(taken)
            names = {_file_of(one) for stack in taken for one in stack}
            users = (name for name in names if not name.startswith(OURS) and paths.is_user(name))
            self._files |= {(name, paths.normalise(name)) for name in users}
            return set(self._files)


def _file_of(taken: Taken) -> str:
    return taken.file if isinstance(taken, Line) else taken[0].co_filename


def frames_of(frame: FrameType | None) -> list[tuple[CodeType, int]]:
    """Code and instruction offset of every frame of a stack, innermost first, out to the script that ``execute``
    runs."""
    codes: list[tuple[CodeType, int]] = []
    while frame is not None and frame.f_code is not execute.__code__ and len(codes) < MAX_DEPTH:
        codes.append((frame.f_code, frame.f_lasti))
        frame = frame.f_back
    return codes


class Expressions:
    """The source text that a frame was running, and its ordinal among equal expressions of its function."""

    def __init__(self) -> None:
        self._seen: dict[CodeType, dict[str, dict[Position, str | None]]] = {}

    def text(self, file: str, position: Position) -> str | None:
        """The expression at ``position``. Before Python 3.11 the whole line."""
        lines = linecache.getlines(file)[position.line - 1 : position.end_line]
        if not lines:
            return None
        if position.column is None or position.end_column is None:
            return normalise(lines[0])
        # Columns are offsets into UTF-8. Cut the end first: both may be on one line.
        raw = [line.encode() for line in lines]
        raw[-1] = raw[-1][: position.end_column]
        raw[0] = raw[0][position.column :]
        if len(raw) > 1 and raw[0].rstrip().endswith(b":"):
            raw = raw[:1]  # a statement with its body: keep its head
        text = normalise(b"".join(raw).decode(errors="replace"))
        condition = CONDITION.match(text or "")  # Python 3.11 marks the statement, 3.12 its condition
        return condition[1] if condition else text

    def columns(self, file: str, position: Position) -> tuple[int | None, int | None]:
        """Begin and end of ``position`` in characters of their lines; ``None`` before Python 3.11."""
        if position.column is None or position.end_column is None:
            return None, None
        first, last = (linecache.getline(file, line).encode() for line in (position.line, position.end_line))
        if not first or not last:
            return position.column, position.end_column  # bytes: no source to count characters in
        begin, end = first[: position.column], last[: position.end_column]
        return len(begin.decode(errors="replace")), len(end.decode(errors="replace"))

    def ordinal(self, code: CodeType, position: Position, text: str | None) -> int:
        """How many equal expressions the function holds before this one."""
        if text is None:
            return 0
        if code not in self._seen:
            self._seen[code] = self._by_beginning(code)
        here = position.line, position.column or 0
        alike = self._seen[code].get(text[0], {})
        before = [one for one in alike if (one.line, one.column or 0) < here]
        for one in before:
            if alike[one] is UNREAD:
                alike[one] = self.text(code.co_filename, one)
        return len({(one.line, one.column or 0) for one in before if alike[one] == text})

    def _by_beginning(self, code: CodeType) -> dict[str, dict[Position, str | None]]:
        """All positions of ``code`` by the first character of their expressions. Most are never read whole: a function
        of a library has hundreds."""
        found: dict[str, dict[Position, str | None]] = {}
        lines = linecache.getlines(code.co_filename)
        for position in all_positions(code):
            line = lines[position.line - 1] if position.line <= len(lines) else ""
            start = line.encode()[position.column or 0 :].lstrip()
            text: str | None = UNREAD
            if start.startswith(HEADS):
                text = self.text(code.co_filename, position)  # its condition, maybe
            first = start.decode(errors="replace") if text is UNREAD else text
            if first:
                found.setdefault(first[0], {})[position] = text
        return found


class Position(NamedTuple):
    """Lines from 1; columns from 0 in UTF-8 bytes, ``None`` before Python 3.11."""

    line: int
    end_line: int
    column: int | None
    end_column: int | None


def normalise(text: str) -> str | None:
    """One line, single spaces, at most ``MAX_EXPRESSION`` characters."""
    return " ".join(text.split())[:MAX_EXPRESSION] or None


def position_at(code: CodeType, lasti: int) -> Position | None:
    """The position of the instruction at ``lasti``."""
    if lasti < 0:
        return None
    if sys.version_info >= (3, 11):
        return _position(*next(itertools.islice(code.co_positions(), lasti // 2, None), (None,) * 4))
    line = next((line for start, end, line in code.co_lines() if start <= lasti < end), None)
    return _position(line, line, None, None)


def all_positions(code: CodeType) -> set[Position]:
    """The positions of all instructions."""
    if sys.version_info >= (3, 11):
        places = {_position(*place) for place in set(code.co_positions())}
    else:
        places = {_position(line, line, None, None) for _, _, line in code.co_lines()}
    return {place for place in places if place is not None}


def _position(line: int | None, end_line: int | None, column: int | None, end_column: int | None) -> Position | None:
    return None if line is None else Position(line, end_line or line, column, end_column)


def _resolve_frame(code: CodeType, lasti: int, paths: Paths, expressions: Expressions) -> RecordedFrame:
    position = position_at(code, lasti)
    text = expressions.text(code.co_filename, position) if position else None
    column, end_column = expressions.columns(code.co_filename, position) if position else (None, None)
    return RecordedFrame(
        file=paths.normalise(code.co_filename),
        line=position.line if position else code.co_firstlineno,
        end_line=position.end_line if position else None,
        column=column,
        end_column=end_column,
        function=getattr(code, "co_qualname", code.co_name),
        expression=text,
        ordinal=expressions.ordinal(code, position, text) if position else 0,
        user=paths.is_user(code.co_filename),
        first_line=code.co_firstlineno,
    )


def _resolve_line(line: Line, paths: Paths, expressions: Expressions) -> RecordedFrame:
    """Without columns the expression is the whole line, as before Python 3.11."""
    position = Position(line.line, line.end_line or line.line, line.column, line.end_column)
    column, end_column = expressions.columns(line.file, position)
    return RecordedFrame(
        file=paths.normalise(line.file),
        line=line.line,
        end_line=position.end_line,
        column=column,
        end_column=end_column,
        function=line.function,
        expression=expressions.text(line.file, position),
        user=paths.is_user(line.file),
    )
