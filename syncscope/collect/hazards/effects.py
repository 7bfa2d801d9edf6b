"""Read from an operator's schema what it does to the memory of its arguments.

An argument that the schema marks as written is written, one that is only viewed is not touched, every other one is
read. A result is written unless it is a view. ``torch.cuda._sanitizer.ArgumentHandler`` decides the same way, but it
cannot be used: importing its module activates PyTorch's GPU trace, and it ignores tensors on the host.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

Touch = Literal["read", "write", "none"]
Kind = Literal["copy", "conversion", "join", "other"]

CONVERSIONS = frozenset({"aten::_to_copy"})
"""Operators that make a new tensor, perhaps on the other side of the bus."""

COPIES = frozenset({"aten::copy_", "aten::_foreach_copy_"})
"""Operators that copy the second argument into the first."""

JOINS = frozenset({"_c10d_functional::wait_tensor", "c10d_functional::wait_tensor"})
"""Operators that make the current stream wait for a collective."""

UNTOUCHED = frozenset({
    "aten::record_stream", "aten::is_pinned", "aten::set_", "aten::resize_", "aten::resize_as_", "aten::_unsafe_view",
    "aten::_reshape_alias", "aten::is_same_size", "aten::is_set_to", "aten::_has_same_storage_numel",
})  # fmt: skip
"""Operators that look at shapes and pointers only."""


@dataclass(frozen=True, slots=True)
class Effects:
    """What one operator reads and writes."""

    name: str
    """``aten::add``."""
    arguments: tuple[tuple[int, str, Touch], ...]
    """Position, name and kind of access of every argument that holds tensors and is accessed."""
    fills: bool
    """Whether it writes the new tensors that it returns."""
    kind: Kind = "other"

    @property
    def none(self) -> bool:
        """Whether it touches no memory."""
        return not self.arguments and not self.fills


def read_effects(schema: Any) -> Effects:
    """The effects of an operator with a ``FunctionSchema``."""
    name = str(schema.name)
    if name in UNTOUCHED:
        return Effects(name, (), fills=False)
    short = name.split("::")[-1]
    # ``zeros_like(t)`` and ``t.new_zeros(…)`` read only the shape and the type of t.
    shape_only = short.startswith("new_") or short.endswith("_like")
    arguments = []
    for position, argument in enumerate(schema.arguments):
        touch = _touch(argument, shape_only)
        if touch != "none" and "Tensor" in str(argument.type):
            arguments.append((position, str(argument.name), touch))
    fills = not short.startswith(("empty", "new_empty")) and any(_is_new(value) for value in schema.returns)
    kinds: dict[str, Kind] = {
        **dict.fromkeys(COPIES, "copy"),
        **dict.fromkeys(CONVERSIONS, "conversion"),
        **dict.fromkeys(JOINS, "join"),
    }
    return Effects(name, tuple(arguments), fills, kinds.get(name, "other"))


def find_tensors(value: Any, tensor: type) -> Iterator[Any]:
    """The tensors in an argument or a result: the value itself, or the items of a list."""
    if isinstance(value, tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from find_tensors(item, tensor)


def _touch(argument: Any, shape_only: bool) -> Touch:
    alias = argument.alias_info
    if alias is not None:
        return "write" if alias.is_write else "none"
    return "none" if shape_only else "read"


def _is_new(value: Any) -> bool:
    return value.alias_info is None and "Tensor" in str(value.type)
