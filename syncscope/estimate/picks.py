"""Elements that are picked only to be read, as in ``int(lengths[i])`` or ``losses[i].item()``."""

from __future__ import annotations

import ast

from syncscope.schema.expressions import parse_expression

READERS, METHODS = frozenset({"int", "float", "bool", "complex", "range"}), frozenset({"item", "tolist"})
"""Functions that read their argument, and methods that read what they belong to."""


def count_picks(expression: str | None) -> int:
    """How many indices an expression picks an element by that it then reads: an op each, if it is one of a tensor and
    not of a list. What takes a part, or something by its name, is none."""
    tree = parse_expression(expression)
    if not isinstance(tree, ast.Call) or tree.keywords:
        return 0
    function, picked = tree.func, 0
    of: ast.expr | None = None
    if isinstance(function, ast.Name) and function.id in READERS and len(tree.args) == 1:
        of = tree.args[0]
    elif isinstance(function, ast.Attribute) and function.attr in METHODS and not tree.args:
        of = function.value
    while isinstance(of, ast.Subscript):
        indices = of.slice.elts if isinstance(of.slice, ast.Tuple) else [of.slice]
        if not all(map(_may_be_a_number, indices)):
            return 0
        picked += len(indices)
        of = of.value
    return picked


def _may_be_a_number(index: ast.expr) -> bool:
    if isinstance(index, ast.Constant):
        return isinstance(index.value, int) and not isinstance(index.value, bool)
    return isinstance(index, (ast.Name, ast.Attribute, ast.BinOp, ast.UnaryOp))
