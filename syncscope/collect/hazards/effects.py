"""What an operator does to the memory of its arguments, read off its schema.

As ``torch.cuda._sanitizer`` does it: an argument that the schema marks as written is written, one that only a view is
made of is not touched, every other one is read; what comes out is written unless it is a view.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

Touch = Literal["read", "write", "none"]

CONVERSIONS = frozenset({"aten::_to_copy"})
"""A new tensor, perhaps on the other side of the bus."""

COPIES = frozenset({"aten::copy_", "aten::_foreach_copy_"})
"""From the second argument into the first."""

UNTOUCHED = frozenset({
    "aten::record_stream", "aten::is_pinned", "aten::set_", "aten::resize_", "aten::resize_as_", "aten::_unsafe_view",
    "aten::_reshape_alias", "aten::is_same_size", "aten::is_set_to", "aten::_has_same_storage_numel",
})  # fmt: skip
"""These look at shapes and pointers only."""


@dataclass(frozen=True, slots=True)
class Effects:
    """Of one operator."""

    name: str
    """``aten::add``."""
    arguments: tuple[tuple[int, str, Touch], ...]
    """Position, name and touch of every argument that may hold tensors and is touched."""
    fills: bool
    """Whether new tensors that come out have been written."""
    kind: Literal["copy", "conversion", "other"] = "other"

    @property
    def none(self) -> bool:
        """Whether it touches no memory."""
        return not self.arguments and not self.fills


def effects(schema: Any) -> Effects:
    """The effects of an operator with this ``FunctionSchema``."""
    name = str(schema.name)
    if name in UNTOUCHED:
        return Effects(name, (), fills=False)
    short = name.split("::")[-1]
    # ``zeros_like(t)``, ``t.new_zeros(…)``: of t only the shape and the type are asked.
    shape_only = short.startswith("new_") or short.endswith("_like")
    arguments = []
    for position, argument in enumerate(schema.arguments):
        touch = _touch(argument, shape_only)
        if touch != "none" and "Tensor" in str(argument.type):
            arguments.append((position, str(argument.name), touch))
    fills = not short.startswith(("empty", "new_empty")) and any(_is_new(value) for value in schema.returns)
    kind: Literal["copy", "conversion", "other"] = (
        "copy" if name in COPIES else "conversion" if name in CONVERSIONS else "other"
    )
    return Effects(name, tuple(arguments), fills, kind)


def tensors(value: Any, tensor: type) -> Iterator[Any]:
    """The tensors in an argument or a result: itself, or those of a list."""
    if isinstance(value, tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from tensors(item, tensor)


def _touch(argument: Any, shape_only: bool) -> Touch:
    alias = argument.alias_info
    if alias is not None:
        return "write" if alias.is_write else "none"
    return "none" if shape_only else "read"


def _is_new(value: Any) -> bool:
    return value.alias_info is None and "Tensor" in str(value.type)
