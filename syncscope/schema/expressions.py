"""What a recorded expression, the text of ``RecordedFrame.expression``, says by itself."""

from __future__ import annotations

import ast
from functools import lru_cache


def called_name(expression: str | None) -> str:
    """The name of the function or method that an expression calls, ``[]`` where it is a subscript, else ``""``."""
    tree = parse(expression)
    if isinstance(tree, ast.Subscript):
        return "[]"
    function = tree.func if isinstance(tree, ast.Call) else None
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


@lru_cache(maxsize=4096)
def parse(expression: str | None) -> ast.expr | None:
    """The syntax tree of an expression, ``None`` for text that is none: recorded text may be a statement, or cut."""
    try:
        return ast.parse(expression or "", mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
