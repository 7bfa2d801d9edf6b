"""The loops of a function, read from its bytecode. Needs nothing but the standard library, and no source file."""

from __future__ import annotations

import dis
import sys
from collections.abc import Iterable
from types import CodeType
from typing import Any

MAX_CODES = 20_000
"""Functions whose loops are kept."""

ENDS = frozenset(("RETURN_VALUE", "RETURN_CONST", "RAISE_VARARGS", "RERAISE"))
"""Instructions with nothing after them. Unconditional jumps are told by their names."""

RESUMES = frozenset(("JUMP_BACKWARD_NO_INTERRUPT",))
"""``await`` and ``yield from`` jump back to go on: no loop of the program. Python 3.13 leaves handlers with it too."""


class Loop:
    """One ``for`` or ``while`` statement or comprehension. The same object each time that its code is asked.

    Offsets are bytes into the bytecode, as ``f_lasti``; ``stop`` belongs to the loop. ``handlers`` are offsets outside
    of ``start`` to ``stop`` that belong to it too: Python moves exception handlers to the end of a function.
    """

    __slots__ = ("code", "handlers", "line", "start", "stop")

    def __init__(self, code: CodeType, start: int, stop: int, line: int, handlers: frozenset[int]) -> None:
        self.code = code
        self.start = start
        self.stop = stop
        self.line = line
        self.handlers = handlers

    def holds(self, lasti: int) -> bool:
        return self.start <= lasti <= self.stop or lasti in self.handlers

    def __repr__(self) -> str:
        return f"Loop({self.code.co_name}:{self.line}, {self.start}-{self.stop})"


_known: dict[int, tuple[CodeType, tuple[Loop, ...]]] = {}


def loops_of(code: CodeType) -> tuple[Loop, ...]:
    """All loops of ``code``, those inside others first."""
    known = _known.get(id(code))
    if known is None:
        known = code, _find(code)
        if len(_known) < MAX_CODES:
            # Keeping the code keeps its id from being used again.
            _known[id(code)] = known
    return known[1]


def _find(code: CodeType) -> tuple[Loop, ...]:
    instructions = [i for i in dis.get_instructions(code) if i.opname != "CACHE"]
    jumps = {i.offset: i.argval for i in instructions if i.opcode in dis.hasjrel or i.opcode in dis.hasjabs}
    back: dict[int, list[int]] = {}
    for offset, target in jumps.items():
        if target <= offset:
            back.setdefault(target, []).append(offset)
    if not back:
        return ()
    lines = _lines(code)
    by_offset = {i.offset: i for i in instructions}
    graph = _Graph(instructions, jumps, _handlers(code))
    found: list[Loop] = []
    for header, ends in back.items():
        # A jump back is a loop where nothing gets to the jump but through its target. Others leave a handler.
        before = graph.reach(instructions[0].offset, without=header)
        ends = [end for end in ends if end not in before and by_offset[end].opname not in RESUMES]
        if ends:
            found.append(_loop(code, header, ends, graph, by_offset, lines))
    return _merge(sorted(found, key=lambda loop: (loop.start, -loop.stop)))


class _Graph:
    """Which instruction may follow which."""

    def __init__(
        self, instructions: list[Any], jumps: dict[int, int], handlers: Iterable[tuple[int, int, int]]
    ) -> None:
        self._next: dict[int, list[int]] = {}
        self._before: dict[int, list[int]] = {}
        offsets = [i.offset for i in instructions]
        for number, instruction in enumerate(instructions):
            here, name = instruction.offset, instruction.opname
            if here in jumps:
                self._add(here, jumps[here])
            if number + 1 < len(offsets) and name not in ENDS and not _always_jumps(name):
                self._add(here, offsets[number + 1])
        for first, last, handler in handlers:
            for offset in offsets:
                if first <= offset <= last:
                    self._add(offset, handler)

    def _add(self, source: int, target: int) -> None:
        self._next.setdefault(source, []).append(target)
        self._before.setdefault(target, []).append(source)

    def reach(self, start: int, without: int) -> set[int]:
        """What can be reached from ``start`` without ``without``."""
        return _closure(self._next, [start], without)

    def lead_to(self, ends: list[int], header: int) -> set[int]:
        """What leads to ``ends`` without ``header``."""
        return _closure(self._before, ends, header)


def _closure(edges: dict[int, list[int]], start: list[int], without: int) -> set[int]:
    seen: set[int] = set()
    todo = [offset for offset in start if offset != without]
    while todo:
        offset = todo.pop()
        if offset not in seen:
            seen.add(offset)
            todo += [other for other in edges.get(offset, ()) if other != without and other not in seen]
    return seen


def _always_jumps(name: str) -> bool:
    return name in ("JUMP_ABSOLUTE", "JUMP_FORWARD", "JUMP_BACKWARD", "JUMP_BACKWARD_NO_INTERRUPT")


def _handlers(code: CodeType) -> list[tuple[int, int, int]]:
    """First and last offset of what an exception leaves, and where to. Before Python 3.11 instructions say so."""
    entries = getattr(dis.Bytecode(code), "exception_entries", ())
    return [(entry.start, entry.end - 1, entry.target) for entry in entries]


def _loop(
    code: CodeType, header: int, ends: list[int], graph: _Graph, by_offset: dict[int, Any], lines: dict[int, int]
) -> Loop:
    body = graph.lead_to(ends, header) | {header}
    stop = max(ends)
    first = by_offset[header]
    while first.opname == "EXTENDED_ARG":
        first = by_offset[first.offset + 2]
    start, line = header, lines.get(header, code.co_firstlineno)
    if first.opname != "FOR_ITER":
        line = min([line, *(lines[end] for end in ends if end in lines)])
        start = _condition(header, line, by_offset, lines)
    return Loop(code, start, stop, line, frozenset(offset for offset in body if not start <= offset <= stop))


def _condition(header: int, line: int, by_offset: dict[int, Any], lines: dict[int, int]) -> int:
    """Where the first test of a ``while`` begins: Python writes the test before the loop and again at its end."""
    start = header
    for offset in sorted((o for o in by_offset if o < header), reverse=True):
        if lines.get(offset, line) != line or by_offset[offset].opname in ("RESUME", "GEN_START"):
            break
        start = offset
    return start


def _merge(loops: list[Loop]) -> tuple[Loop, ...]:
    """``continue`` in a ``while`` jumps to its first test, the end of the body to its second: one loop."""
    merged: list[Loop] = []
    for loop in loops:
        for other in merged:
            overlaps = other.start <= loop.start <= other.stop < loop.stop
            if overlaps or (loop.start == other.start and loop.line == other.line):
                other.stop = max(loop.stop, other.stop)
                other.line = min(loop.line, other.line)
                other.handlers |= loop.handlers
                break
        else:
            merged.append(loop)
    return tuple(sorted(merged, key=lambda loop: (-loop.start, loop.stop)))


def _lines(code: CodeType) -> dict[int, int]:
    """The line of each instruction that has one."""
    lines: dict[int, int] = {}
    if sys.version_info >= (3, 11):
        for number, position in enumerate(code.co_positions()):
            if position[0] is not None:
                lines[2 * number] = position[0]
    else:
        for first, stop, line in code.co_lines():
            if line is not None:
                lines.update((offset, line) for offset in range(first, stop, 2))
    return lines
