"""Regular expressions that are compiled when they are first used.

The rules and the tables know a hundred of them, of which a trace needs a third: to compile the others took a twentieth
of a short command.
"""

from __future__ import annotations

import re
from typing import Any, AnyStr, Generic, cast

METHODS = ("search", "match", "fullmatch", "finditer", "findall", "split", "sub", "subn", "pattern", "flags")


class _Uncompiled(Generic[AnyStr]):
    """Stands for a pattern, and has what that has from its first use on."""

    def __init__(self, text: AnyStr, flags: int) -> None:
        self._source: tuple[AnyStr, int] = (text, flags)

    def __getattr__(self, name: str) -> Any:
        if name not in METHODS:
            raise AttributeError(name)
        compiled = re.compile(*self._source)
        self.__dict__.update({method: getattr(compiled, method) for method in METHODS})
        return self.__dict__[name]


def compile_later(text: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """As :func:`re.compile`, but what is wrong with the pattern is raised where it is first used."""
    return cast("re.Pattern[AnyStr]", _Uncompiled(text, flags))
