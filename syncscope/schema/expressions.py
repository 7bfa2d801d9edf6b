"""What the text of an expression calls. Light enough for the collector: no numpy, no pandas."""

from __future__ import annotations

import ast
from functools import lru_cache

TO_HOST = frozenset({"item", "tolist", "cpu", "numpy", "__bool__", "__int__", "__float__"})
"""Names of calls that copy from the device to the host."""


@lru_cache(maxsize=4096)
def parse_expression(text: str | None) -> ast.expr | None:
    """The tree of an expression, ``None`` where it is none."""
    try:
        return ast.parse(text or "", mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def add_argument(expression: str | None, argument: str) -> str | None:
    """The expression with an argument added to the call that it is, ``None`` where it is none or has it already."""
    tree, text = parse_expression(expression), (expression or "").rstrip()
    if not isinstance(tree, ast.Call) or tree.end_col_offset != len(text.encode()) or tree.end_lineno != 1:
        return None
    if any(keyword.arg == argument.partition("=")[0] for keyword in tree.keywords):
        return None
    inside = text[:-1].rstrip().rstrip(",")
    return f"{inside}, {argument})" if tree.args or tree.keywords else f"{inside}{argument})"


def called_name(expression: str | None) -> str:
    """The name of the function or method that an expression calls, ``[]`` where it takes a part, else ``""``."""
    tree = parse_expression(expression)
    if isinstance(tree, ast.Subscript):
        return "[]"
    function = tree.func if isinstance(tree, ast.Call) else None
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
