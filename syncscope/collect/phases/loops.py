"""The loops of a function, read from its bytecode. Needs nothing but the standard library, and no source file."""

from __future__ import annotations

import dis
import sys
from bisect import bisect_left, bisect_right
from itertools import pairwise
from types import CodeType

MAX_CODES = 20_000
"""Functions whose loops are kept."""

ENDS = frozenset(("RETURN_VALUE", "RETURN_CONST", "RAISE_VARARGS", "RERAISE"))
"""Instructions with nothing after them. Unconditional jumps are told by their names."""

RESUMES = frozenset(("JUMP_BACKWARD_NO_INTERRUPT",))
"""``await`` and ``yield from`` jump back to go on: no loop of the program. Python 3.13 leaves handlers with it too."""


CACHE = 0
"""Of an instruction's own data behind it, since Python 3.11."""

RELATIVE, ABSOLUTE = frozenset(dis.hasjrel), frozenset(dis.hasjabs)
BACKWARD = frozenset(
    op for op in RELATIVE if "JUMP_BACKWARD" in dis.opname[op] or dis.opname[op] == "END_ASYNC_FOR"
)  # fmt: skip
JUMPS_BACK = frozenset(op for op in BACKWARD if dis.opname[op] not in RESUMES)


class Loop:
    """One ``for`` or ``while`` statement or comprehension. The same object each time that its code is asked.

    Offsets are bytes into the bytecode, as ``f_lasti``; ``stop`` belongs to the loop. ``handlers`` are offsets outside
    of ``start`` to ``stop`` that belong to it too: Python moves exception handlers to the end of a function. ``heads``
    are the targets of the jumps that begin a turn: a handler may also jump back into the turn that it is in.
    """

    __slots__ = ("code", "handlers", "heads", "line", "start", "stop")

    def __init__(self, code: CodeType, start: int, stop: int, line: int, handlers: frozenset[int], head: int) -> None:
        self.code = code
        self.start = start
        self.stop = stop
        self.line = line
        self.handlers = handlers
        self.heads = frozenset((head,))

    def holds(self, lasti: int) -> bool:
        return self.start <= lasti <= self.stop or lasti in self.handlers

    def __repr__(self) -> str:
        return f"Loop({self.code.co_name}:{self.line}, {self.start}-{self.stop})"


_known: dict[int, tuple[CodeType, tuple[Loop, ...]]] = {}
_following: dict[tuple[int, int, int], tuple[CodeType, bool]] = {}


def loops_of(code: CodeType) -> tuple[Loop, ...]:
    """All loops of ``code``, those inside others first."""
    known = _known.get(id(code))
    if known is None:
        known = code, _find(code)
        if len(_known) < MAX_CODES:
            # Keeping the code keeps its id from being used again.
            _known[id(code)] = known
    return known[1]


def codes_read() -> int:
    """Of how many functions the loops were read."""
    return len(_known)


def may_follow(code: CodeType, before: int, after: int) -> bool:
    """Whether the instruction at ``after`` may run once that at ``before`` did, in the same turn of the loop: without
    a jump back. Two branches of a condition do not follow each other."""
    if after <= before:
        return False
    places = id(code), before, after  # to hash a code takes as long as to read a part of it
    known = _following.get(places)
    if known is None:
        known = code, _leads_to(code, before, after)
        if len(_following) < MAX_CODES:
            _following[places] = known
    return known[1]


def _leads_to(code: CodeType, before: int, after: int) -> bool:
    names, jumps = _read(code)
    offsets = list(names)
    first, last = (bisect_right(offsets, lasti) - 1 for lasti in (before, after))  # 3.11 tells of its own data, too
    reached = {offsets[first]}
    for offset, behind in pairwise(offsets[first : last + 1]):
        if offset not in reached:
            continue
        if jumps.get(offset, 0) > offset:
            reached.add(jumps[offset])
        if names[offset] not in ENDS and not _always_jumps(names[offset]):
            reached.add(behind)
    return offsets[last] in reached


def _find(code: CodeType) -> tuple[Loop, ...]:
    if sys.version_info >= (3, 11) and JUMPS_BACK.isdisjoint(code.co_code[::2]):  # most functions
        return ()
    names, jumps = _read(code)
    back: dict[int, list[int]] = {}
    for offset, target in jumps.items():
        if target <= offset:
            back.setdefault(target, []).append(offset)
    if not back:
        return ()
    lines = _lines(code)
    graph = _Graph(names, jumps, _handlers(code))
    found: list[Loop] = []
    for header, ends in back.items():
        # A jump back is a loop where nothing gets to the jump but through its target. Others leave a handler.
        before = graph.reach(without=header)
        ends = [end for end in ends if graph.block_of(end) not in before and names[end] not in RESUMES]
        if ends:
            found.append(_loop(code, header, ends, graph, names, lines))
    return _merge(sorted(found, key=lambda loop: (loop.start, -loop.stop)))


def _read(code: CodeType) -> tuple[dict[int, str], dict[int, int]]:
    """The names of all instructions and the targets of jumps, by offset. ``dis`` takes five times as long."""
    raw, names, jumps = code.co_code, {}, {}
    after = extended = 0
    while after < len(raw):
        offset, op, arg = after, raw[after], raw[after + 1] | extended
        after += 2
        while after < len(raw) and raw[after] == CACHE:
            after += 2
        names[offset] = dis.opname[op]
        extended = arg << 8 if op == dis.EXTENDED_ARG else 0
        if op in RELATIVE:
            jumps[offset] = after + 2 * (-arg if op in BACKWARD else arg)
        elif op in ABSOLUTE:
            jumps[offset] = 2 * arg
    return names, jumps


class _Graph:
    """Which block may follow which. A block is known by the offset of its first instruction: those behind it follow
    each other, and the same handlers are around all of them."""

    def __init__(self, names: dict[int, str], jumps: dict[int, int], handlers: list[tuple[int, int, int]]) -> None:
        offsets = list(names)
        self._next: dict[int, list[int]] = {}
        self._plain: dict[int, list[int]] = {}
        """``_next`` without handlers."""
        self._before: dict[int, list[int]] = {}
        starts = {offsets[0], *jumps.values()}
        for first, last, handler in handlers:
            starts.update((first, handler, *offsets[bisect_right(offsets, last) :][:1]))
        ends = {offset for offset, name in names.items() if offset in jumps or name in ENDS}
        starts.update(offsets[number + 1] for number, offset in enumerate(offsets[:-1]) if offset in ends)
        self._starts = sorted(starts.intersection(names))
        self._behind = dict(zip(self._starts, [*self._starts[1:], offsets[-1] + 1], strict=True))
        for start, behind in self._behind.items():
            last = offsets[bisect_left(offsets, behind) - 1]
            plain = [jumps[last]] if last in jumps else []
            if behind in names and names[last] not in ENDS and not _always_jumps(names[last]):
                plain.append(behind)
            self._plain[start] = plain
            for target in plain + [handler for first, end, handler in handlers if first <= start <= end]:
                self._add(start, target)

    def _add(self, source: int, target: int) -> None:
        self._next.setdefault(source, []).append(target)
        self._before.setdefault(target, []).append(source)

    def block_of(self, offset: int) -> int:
        return self._starts[bisect_right(self._starts, offset) - 1]

    def reach(self, without: int) -> set[int]:
        """The blocks that can be reached without ``without``."""
        return _closure(self._next, self._starts[:1], without)

    def follow(self, header: int) -> set[int]:
        """The blocks that follow ``header`` where nothing is raised."""
        return _closure(self._plain, [header], without=-1)

    def lead_to(self, ends: list[int], header: int) -> set[int]:
        """The blocks that lead to ``ends`` without ``header``, and its own."""
        return _closure(self._before, [self.block_of(end) for end in ends], header) | {header}

    def outside(self, blocks: set[int], start: int, stop: int) -> frozenset[int]:
        """The offsets in ``blocks`` that are not between ``start`` and ``stop``."""
        found: list[int] = []
        for block in blocks:
            behind = self._behind[block]
            if block < start or behind > stop + 2:
                found += range(block, behind, 2)  # in a call, a frame stands on the call's own data
        return frozenset(offset for offset in found if not start <= offset <= stop)


def _closure(edges: dict[int, list[int]], start: list[int], without: int) -> set[int]:
    seen: set[int] = set()
    todo = [block for block in start if block != without]
    while todo:
        block = todo.pop()
        if block not in seen:
            seen.add(block)
            todo += [other for other in edges.get(block, ()) if other != without and other not in seen]
    return seen


def _always_jumps(name: str) -> bool:
    return name in ("JUMP_ABSOLUTE", "JUMP_FORWARD", "JUMP_BACKWARD", "JUMP_BACKWARD_NO_INTERRUPT")


def _handlers(code: CodeType) -> list[tuple[int, int, int]]:
    """First and last offset of what an exception leaves, and where to. Before Python 3.11 instructions say so."""
    if not getattr(code, "co_exceptiontable", b""):
        return []
    entries = getattr(dis.Bytecode(code), "exception_entries", ())
    return [(entry.start, entry.end - 1, entry.target) for entry in entries]


def _loop(
    code: CodeType, header: int, ends: list[int], graph: _Graph, names: dict[int, str], lines: dict[int, int]
) -> Loop:
    body, usual = graph.lead_to(ends, header), graph.follow(header)
    # A handler behind the loop, maybe behind other loops, may jump back as well.
    stop = max([end for end in ends if graph.block_of(end) in usual] or ends)
    first = header
    while names[first] == "EXTENDED_ARG":
        first += 2
    start, line = header, lines.get(header, code.co_firstlineno)
    if names[first] != "FOR_ITER":
        line = min([line, *(lines[end] for end in ends if end in lines)])
        start = _condition(header, line, names, lines)
    return Loop(code, start, stop, line, graph.outside(body, start, stop), header)


def _condition(header: int, line: int, names: dict[int, str], lines: dict[int, int]) -> int:
    """Where the first test of a ``while`` begins: Python writes the test before the loop and again at its end."""
    start = header
    for offset in sorted((o for o in names if o < header), reverse=True):
        if lines.get(offset, line) != line or names[offset] in ("RESUME", "GEN_START"):
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
                other.heads |= loop.heads
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
