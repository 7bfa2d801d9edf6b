"""What all commands have in common in their ``--help``."""

from __future__ import annotations

from typing import Any

from typer.core import TyperCommand, TyperOption


class Command(TyperCommand):
    """Shows no type beside options that take no value."""

    def get_params(self, ctx: Any) -> list[Any]:
        return without_types(super().get_params(ctx))


def without_types(params: list[Any]) -> list[Any]:
    """The parameters, those without a value without the ``<bool>`` that typer shows."""
    for param in params:
        if isinstance(param, TyperOption) and param.is_flag and param.metavar is None:
            param.metavar = ""
    return params
