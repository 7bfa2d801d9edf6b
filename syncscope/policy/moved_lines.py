"""Waits whose lines moved since they were recorded: somebody wrote lines above them.

A recording in a repository is older than the program beside it. A comment stands on the line where its expression is
now, and the finding has the line where it was.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from syncscope.schema.findings import Site

LONGEST = 20
"""Lines that one expression may take."""

_LINE_END = re.compile(r"\r\n?|\n")  # not those of str.splitlines, which knows more


def find_moved(source: bytes, sites: Iterable[Site]) -> dict[int, int]:
    """The recorded line of each line of ``source`` to which a wait moved.

    Only where there is no doubt: its function holds the expression as often as it was recorded to wait there.
    """
    recorded: dict[tuple[str, str], set[int]] = defaultdict(set)
    for site in sites:
        if site.line is not None and site.expression:
            recorded[site.function, site.expression].add(site.line)
    lines = _LINE_END.split(source.decode("utf-8-sig", errors="replace"))
    if all(_begins_at(text, lines, line) for (_, text), at in recorded.items() for line in at):
        return {}
    owners = _functions_by_line(source, len(lines))
    moved: dict[int, int] = {}
    for (function, text), before in recorded.items():
        now = [line for line, owner in owners.items() if owner == function and _begins_at(text, lines, line)]
        if len(now) == len(before):
            moved.update(zip(now, sorted(before), strict=True))
    in_place = {line for at in recorded.values() for line in at} - set(moved.values())
    return {now: before for now, before in moved.items() if now not in in_place}


def _begins_at(text: str, lines: Sequence[str], line: int) -> bool:
    """Whether an expression, in single spaces, begins on a line, from 1."""
    below = [" ".join(part.split()) for part in lines[line - 1 : line - 1 + LONGEST]]
    return bool(below) and 0 <= " ".join(filter(None, below)).find(text) < len(below[0])


def _functions_by_line(source: bytes, count: int) -> dict[int, str]:
    """The qualified name of the function that each line belongs to, in order. Empty where the source is not Python."""
    owners = dict.fromkeys(range(1, count + 1), "<module>")
    try:
        for name, node in _functions(ast.parse(source), ""):
            owners.update(dict.fromkeys(range(node.lineno, (node.end_lineno or node.lineno) + 1), name))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return {}
    return owners


def _functions(tree: ast.AST, prefix: str) -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    """The functions in a tree, outer ones first."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield prefix + node.name, node
            yield from _functions(node, f"{prefix}{node.name}.<locals>.")
        else:
            yield from _functions(node, f"{prefix}{node.name}." if isinstance(node, ast.ClassDef) else prefix)
