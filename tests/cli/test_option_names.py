"""What options are called, whatever release of typer reads them."""

from __future__ import annotations

import importlib
import inspect
import typing

import pytest
from typer.models import OptionInfo


@pytest.mark.parametrize("verb", ["analyze", "check", "diff", "hta", "profile", "report", "watch"])
def test_each_option_is_called_by_its_own_name(verb: str) -> None:
    """typer 0.27.0 calls an option without a name of its own by its ``metavar``, ``--MODE`` instead of ``--mode``."""
    command = getattr(importlib.import_module(f"syncscope.cli.{verb}"), verb)
    hints = typing.get_type_hints(command, include_extras=True)
    assert set(hints) >= set(inspect.signature(command).parameters)
    options = {
        name: extra
        for name, hint in hints.items()
        for extra in getattr(hint, "__metadata__", ())
        if isinstance(extra, OptionInfo)
    }
    assert options
    unnamed = [name for name, option in options.items() if not str(option.default).startswith("-")]
    assert unnamed == []
