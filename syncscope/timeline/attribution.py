"""The ops around waits and copies that a window recorded without ops: what the attribution window saw there, else what
the expression that ran says by itself."""

from __future__ import annotations

import ast
import re
from functools import lru_cache

import numpy as np
import pandas as pd

from syncscope.schema.recording import Attributed, Recording
from syncscope.timeline.places import Place

Chain = tuple[str, ...]

COPY: Chain = ("aten::to", "aten::copy_")
READ: Chain = ("aten::item",)
BY_METHOD: dict[str, Chain] = {
    **dict.fromkeys(("to", "cuda", "cpu", "copy_", "tolist", "tensor", "as_tensor", "asarray", "new_tensor"), COPY),
    **dict.fromkeys(("item", "float", "int", "bool", "complex"), READ),
    **{name: (f"aten::{name}", *READ) for name in ("equal", "allclose", "one_hot", "bincount")},
    **{
        name: (f"aten::{name}",)
        for name in ("nonzero", "argwhere", "masked_select", "unique", "unique_consecutive", "repeat_interleave")
    },
}
"""What a function or method is known to do when it waits, by its name."""

_OPERATOR = re.compile(r"(?:\w+\.)*ops\.(\w+)\.(\w+)(?:\.\w+)?")
"""``torch.ops.torchvision.nms``, perhaps with an overload."""


def occurrences(waits: pd.DataFrame, copies: pd.DataFrame, places: tuple[Place, ...]) -> pd.DataFrame:
    """Waits, and host copies that no wait completes, with a recorded stack, in order of time: ``ts``, ``step``,
    ``stack``, ``wait`` and ``copy`` (rows, −1 the other), ``ops``, and ``ordinal``: the how many-th of its stack in its
    step. Two windows that do the same things count them alike."""
    lone = copies[((copies["wait"] < 0) & (copies["launch"] >= 0)).to_numpy(bool)]
    table: pd.DataFrame = pd.concat(
        [
            waits[["ts", "step", "place", "ops"]].assign(wait=waits.index, copy=-1),
            lone[["launch_ts", "step", "place", "ops"]]
            .rename(columns={"launch_ts": "ts"})
            .assign(wait=-1, copy=lone.index),
        ],
        ignore_index=True,
    )
    table["stack"] = np.array([places[place].stack for place in table["place"]], dtype=np.int64)
    table = table[(table["stack"] >= 0).to_numpy(bool)].sort_values("ts", kind="stable", ignore_index=True)
    table["ordinal"] = table.groupby(["step", "stack"]).cumcount()
    return table


def attributed(found: pd.DataFrame) -> list[Attributed]:
    """The table of an attribution window from its ``occurrences``: the first step that got that far speaks."""
    known = found[((found["step"] >= 0) & (found["ops"].map(len) > 0)).to_numpy(bool)]
    first = known.drop_duplicates(["stack", "ordinal"])
    return [
        Attributed(stack=int(stack), ordinal=int(ordinal), ops=ops)
        for stack, ordinal, ops in zip(first["stack"], first["ordinal"], first["ops"], strict=True)
    ]


def fill_ops(waits: pd.DataFrame, copies: pd.DataFrame, places: tuple[Place, ...], recording: Recording | None) -> None:
    """Put the ops that are unknown into ``waits`` and ``copies``.

    A step that took another path than the attribution window falls back to the first chain seen at the stack, a stack
    that the window never saw to its expression.
    """
    table = recording.attribution if recording and recording.attribution else ()
    exact = {(seen.stack, seen.ordinal): seen.ops for seen in table}
    anywhere = {seen.stack: seen.ops for seen in reversed(table)}
    wait_ops, copy_ops = waits["ops"].tolist(), copies["ops"].tolist()
    known = waits["ops_known"].to_numpy(bool).copy()
    found = occurrences(waits, copies, places)
    columns = (found[name].tolist() for name in ("wait", "copy", "stack", "ordinal", "place"))
    for wait, copy, stack, ordinal, place in zip(*columns, strict=True):
        if (wait_ops[wait] or known[wait]) if wait >= 0 else copy_ops[copy]:
            continue
        ops = exact.get((stack, ordinal)) or anywhere.get(stack) or ops_of_expression(places[place].running)
        if ops and wait >= 0:
            wait_ops[wait], known[wait] = ops, True
        elif ops:
            copy_ops[copy] = ops
    for copy, wait in enumerate(copies["wait"].tolist()):
        if wait >= 0 and not copy_ops[copy]:
            copy_ops[copy] = wait_ops[wait]  # both are of one op
    waits["ops"], waits["ops_known"] = pd.Series(wait_ops, dtype=object), known
    copies["ops"] = pd.Series(copy_ops, dtype=object)


def ops_of_expression(text: str | None) -> Chain | None:
    """The ops behind a wait whose expression leaves no doubt, else ``None``.

    A name, a comparison or ``not`` can only wait because its truth was asked for.
    """
    tree = _parsed(text)
    if isinstance(tree, (ast.Name, ast.Attribute, ast.Compare, ast.UnaryOp)):
        return ("aten::is_nonzero", *READ)
    if not isinstance(tree, ast.Call):
        return None
    if operator := _OPERATOR.fullmatch(ast.unparse(tree.func)):
        return (f"{operator[1]}::{operator[2]}",)
    name = called(text)
    if name == "where" and len(tree.args) + isinstance(tree.func, ast.Attribute) <= 2 and not tree.keywords:
        return ("aten::where", "aten::nonzero")
    return BY_METHOD.get(name)


def called(text: str | None) -> str:
    """The name of the function or method that an expression calls, ``[]`` where it takes a part, else ``""``."""
    tree = _parsed(text)
    if isinstance(tree, ast.Subscript):
        return "[]"
    function = tree.func if isinstance(tree, ast.Call) else None
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


@lru_cache(maxsize=4096)
def _parsed(text: str | None) -> ast.expr | None:
    try:
        return ast.parse(text or "", mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
