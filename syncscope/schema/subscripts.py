"""Which part the text of an expression takes."""

from __future__ import annotations

import ast

from syncscope.schema.expressions import parse_expression

_OF_NUMBERS = (ast.Constant, ast.Slice, ast.Tuple, ast.UnaryOp, ast.unaryop, ast.expr_context)


def takes_fixed_part(expression: str | None) -> bool:
    """Whether an expression takes a part by numbers that stand in its text: ``x[0]``, ``self.rows[:2]``."""
    tree = parse_expression(expression)
    nodes = list(ast.walk(tree.slice)) if isinstance(tree, ast.Subscript) else []
    named = any(isinstance(node, ast.Constant) and isinstance(node.value, str) for node in nodes)  # a key of a dict
    return bool(nodes) and not named and all(isinstance(node, _OF_NUMBERS) for node in nodes)
