"""Waits whose lines moved since they were recorded: somebody wrote lines above them.

A recording in a repository is older than the program beside it. A comment stands on the line where its expression is
now, and the finding has the line where it was.
"""

from __future__ import annotations

import ast
import warnings
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate

from syncscope.patterns import compile_later
from syncscope.schema.findings import Site

_LINE_END = compile_later(r"\r\n?|\n")  # not those of str.splitlines, which knows more


def find_moved(source: bytes, sites: Iterable[Site]) -> dict[int, int]:
    """The recorded line of each line of ``source`` to which a wait moved.

    Only where there is no doubt: its function holds the expression as often as it was recorded to wait there.
    """
    recorded: dict[tuple[str, str], set[int]] = defaultdict(set)
    anywhere: dict[str, set[int]] = defaultdict(set)
    for site in sites:
        if site.line is not None and site.expression:
            recorded[site.function, site.expression].add(site.line)
            anywhere[site.expression].add(site.line)
    lines = _LINE_END.split(source.decode("utf-8-sig", errors="replace"))
    whole = _Text(lines, range(1, len(lines) + 1))
    if all(before <= set(whole.lines_with(text)) for text, before in anywhere.items()):
        return {}
    inside = {name: _Text(lines, numbers) for name, numbers in _lines_by_function(source, len(lines)).items()}
    moved: dict[int, int] = {}
    for (function, text), before in recorded.items():
        now = inside[function].lines_with(text) if function in inside else []
        if len(now) == len(before):
            moved.update(zip(now, sorted(before), strict=True))
    in_place = set().union(*recorded.values()) - set(moved.values())
    return {now: before for now, before in moved.items() if now not in in_place}


class _Text:
    """Some lines of a program in single spaces, as expressions are recorded: one may go over several."""

    def __init__(self, lines: Sequence[str], numbers: Iterable[int]) -> None:
        words = {number: " ".join(lines[number - 1].split()) for number in numbers}
        self._numbers = [number for number, line in words.items() if line]
        kept = [words[number] for number in self._numbers]
        self._starts = list(accumulate((len(line) + 1 for line in kept), initial=0))
        self._text = " ".join(kept)

    def lines_with(self, expression: str) -> list[int]:
        """The numbers of the lines on which the expression begins, in order."""
        found: dict[int, None] = {}
        at = self._text.find(expression)
        while at >= 0:
            line = bisect_right(self._starts, at) - 1
            found[self._numbers[line]] = None
            at = self._text.find(expression, self._starts[line + 1])
        return list(found)


def _lines_by_function(source: bytes, count: int) -> dict[str, list[int]]:
    """The lines of each function by its qualified name, without those of functions inside it. Empty where the source is
    not Python."""
    owners = dict.fromkeys(range(1, count + 1), "<module>")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the program's own escapes
            tree = ast.parse(source)
        for name, node in _functions(tree, ""):
            owners.update(dict.fromkeys(range(node.lineno, (node.end_lineno or node.lineno) + 1), name))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return {}
    lines: dict[str, list[int]] = defaultdict(list)
    for line, owner in owners.items():
        lines[owner].append(line)
    return lines


def _functions(tree: ast.AST, prefix: str) -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    """The functions in a tree, outer ones first."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield prefix + node.name, node
            yield from _functions(node, f"{prefix}{node.name}.<locals>.")
        else:
            yield from _functions(node, f"{prefix}{node.name}." if isinstance(node, ast.ClassDef) else prefix)
