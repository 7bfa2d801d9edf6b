"""The page on Python, made from what ``syncscope`` exports: signatures, docstrings and the fields of structures."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from textwrap import dedent
from typing import Any

import msgspec

import syncscope
from docs.site.markdown import adapt, cell, code, code_cell, fenced

HEAD = """\
# Python

`import syncscope` alone loads neither PyTorch nor pandas, so it may stand at the top of any program. The names on this
page are the stable interface. They are made from the code.
"""
GROUPS = {
    "Record": ("profile", "watch", "step", "expected", "guard", "hazards", "SyncError", "SyncWarning"),
    "Analyse": ("analyze", "diff", "load", "to_hta", "TraceError"),
    "Structures": ("Report", "Finding", "Site", "Frame", "Trace"),
}
"""The names of ``syncscope.__all__`` that the page explains, in its order."""

LONG = 90
"""Characters of a signature that still fit one line."""

LITERAL = re.compile(r"(?m)^(?P<before>.*?)::\n\n(?P<block>(?:(?:    .*)?\n)+)")
ROLE = re.compile(r":\w+:`\.?([^`]+)`")


def render() -> str:
    """The page."""
    parts = [HEAD]
    for group, names in GROUPS.items():
        parts.append(f"## {group}\n")
        parts += [_entry(name, getattr(syncscope, name)) for name in names]
    return "\n".join(parts)


def describe(doc: str) -> str:
    """A docstring as Markdown."""
    doc = ROLE.sub(r"`\1`", doc + "\n").replace("``", "`")
    return adapt(LITERAL.sub(lambda match: f"{match['before']}\n\n{fenced(dedent(match['block']).strip())}\n", doc))


def _entry(name: str, thing: Any) -> str:
    parts = [f"### syncscope.{name}\n"]
    is_struct = isinstance(thing, type) and issubclass(thing, msgspec.Struct)
    if not is_struct and not (isinstance(thing, type) and issubclass(thing, Warning | RuntimeError)):
        parts.append(fenced(f"syncscope.{name}{signature(thing)}"))
    parts.append(describe(inspect.getdoc(thing) or "") if not _inherits_doc(thing) else "")
    if fields := list(_fields(thing)):
        rows = (f"| {code(field)} | {code_cell(kind)} | {cell(describe(doc))} |" for field, kind, doc in fields)
        parts.append("| field | type | meaning |\n|---|---|---|\n" + "\n".join(rows) + "\n")
    for method, function in _methods(thing):
        shown = method if isinstance(function, property) else f"{method}{' '.join(signature(function).split())}"
        parts.append(f"**{code(shown)}**\n\n{describe(inspect.getdoc(function) or '')}")
    return "\n".join(parts)


def _inherits_doc(thing: Any) -> bool:
    """Whether the docstring is that of a base class."""
    return isinstance(thing, type) and thing.__doc__ is None


def signature(thing: Any) -> str:
    """Parameters and result, a line each where they are long; ``self`` is left out."""
    found = inspect.signature(thing)
    names: list[str] = []
    for name, parameter in found.parameters.items():
        if name == "self":
            continue
        if parameter.kind is parameter.KEYWORD_ONLY and not any(shown.startswith("*") for shown in names):
            names.append("*")
        names.append(_parameter(parameter))
    text = f"({', '.join(names)})"
    if len(text) > LONG:
        text = "(\n" + "".join(f"    {name},\n" for name in names) + ")"
    has_result = not isinstance(thing, type) and found.return_annotation is not inspect.Signature.empty
    return f"{text} -> {_annotation(found.return_annotation)}" if has_result else text


def _parameter(parameter: inspect.Parameter) -> str:
    star = "*" if parameter.kind is parameter.VAR_POSITIONAL else ""
    kind = "" if parameter.annotation is parameter.empty else f": {_annotation(parameter.annotation)}"
    default = "" if parameter.default is parameter.empty else f"{' = ' if kind else '='}{parameter.default!r}"
    return f"{star}{parameter.name}{kind}{default}"


def _annotation(annotation: Any) -> str:
    return annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)


def _fields(thing: Any) -> Iterator[tuple[str, str, str]]:
    """The annotated fields of a structure: name, type, and the docstring below it."""
    if not isinstance(thing, type) or not (
        hasattr(thing, "__struct_fields__") or hasattr(thing, "__dataclass_fields__")
    ):
        return
    (tree,) = ast.parse(dedent(inspect.getsource(thing))).body
    assert isinstance(tree, ast.ClassDef)
    for number, node in enumerate(tree.body):
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            after = tree.body[number + 1] if number + 1 < len(tree.body) else None
            known = isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
            yield node.target.id, ast.unparse(node.annotation), inspect.cleandoc(after.value.value) if known else ""


def _methods(thing: Any) -> Iterator[tuple[str, Any]]:
    """The public methods and properties that a class has of its own and describes."""
    if not isinstance(thing, type):
        return
    for name, member in vars(thing).items():
        member = member.__func__ if isinstance(member, classmethod | staticmethod) else member
        is_member = inspect.isfunction(member) or isinstance(member, property)
        if is_member and member.__doc__ and not name.startswith("_"):
            yield name, member
