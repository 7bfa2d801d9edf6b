"""What all commands have in common: how ``--help`` shows their parameters, and how those become values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, get_args

import typer
from typer.core import TyperCommand, TyperOption

from syncscope.cli.console import open_what_is_closed
from syncscope.cli.light import import_help_writer, prepare_numpy
from syncscope.garbage import collect_rarely, end_at_once

DIGITS = 9
"""A longer number is left to typer."""


class AnyCommand(TyperCommand):
    """Shows no type beside options that take no value, and takes text as it is."""

    def get_params(self, ctx: Any) -> list[Any]:
        return adapt(super().get_params(ctx))

    def format_help(self, ctx: Any, formatter: Any) -> None:
        import_help_writer()
        end_at_once()
        super().format_help(ctx, formatter)


class Command(AnyCommand):
    """One that runs no program of the user's."""

    def invoke(self, ctx: Any) -> Any:
        open_what_is_closed()
        prepare_numpy()
        end_at_once()
        with collect_rarely():
            return super().invoke(ctx)


def adapt(params: list[Any]) -> list[Any]:
    """The parameters: those without a value without the ``<bool>`` that typer shows, arguments without their type in
    Python, and those that take text or whole numbers without pydantic, which typer converts with from 0.29 on and whose
    import takes as long as that of numpy."""
    for param in params:
        if isinstance(param, TyperOption) and param.is_flag and param.metavar is None:
            param.metavar = ""
        if param.param_type_name == "argument":
            param.display_type_rich = _no_type
        convert = getattr(param, "get_runtime_param", None)
        if convert is not None and not isinstance(convert, _Texts):
            param.get_runtime_param = _Texts(convert)
    return params


def _no_type(ctx: Any) -> None:
    """What ``--help`` shows beside an argument's name, which says what it is."""


def _is_number(text: str, least: float | None, most: float | None) -> bool:
    """Whether a text is a plain whole number between two, each included; ``None`` for no bound."""
    if not (text.isascii() and text.isdigit() and len(text) <= DIGITS):
        return False
    return (least is None or least <= int(text)) and (most is None or int(text) <= most)


class _Texts:
    """In place of a parameter's conversion: it converts what is no text or plain number, and what is not given, and
    says what may be given where a word is none of those."""

    def __init__(self, usual: Callable[[], Any]) -> None:
        self._usual = usual

    def __call__(self) -> _Texts:
        return self

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        kind = param.type_descriptor.annotation
        if value is None:
            return () if param.multiple or param.nargs == -1 else None
        if isinstance(value, str) and (kind is str or value in get_args(kind)):
            return value
        if isinstance(value, str) and get_args(kind) and all(isinstance(word, str) for word in get_args(kind)):
            raise typer.BadParameter(f"{value!r} is not one of {', '.join(get_args(kind))}.", ctx=ctx, param=param)
        if kind is int and isinstance(value, str) and _is_number(value, param.min, param.max):
            return int(value)
        if kind == list[str] and isinstance(value, list | tuple) and all(isinstance(text, str) for text in value):
            return list(value)
        return self._usual().coerce(value, param=param, ctx=ctx)
