"""Patterns are compiled when they are first used, and all of them can be."""

from __future__ import annotations

import gc
import re
from importlib import import_module
from pkgutil import walk_packages

import pytest

import syncscope
from syncscope.patterns import _Uncompiled, compile_later

ANALYSIS = ("cli", "compare", "estimate", "policy", "ranks", "report", "rules", "schema", "timeline", "trace")


def test_a_pattern_is_compiled_at_its_first_use(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[str] = []
    compile_now = re.compile

    def compile_and_note(text: str, flags: int) -> re.Pattern[str]:
        compiled.append(text)
        return compile_now(text, flags)

    monkeypatch.setattr(re, "compile", compile_and_note)
    word = compile_later(r"W(\d)", re.IGNORECASE)
    assert not compiled
    assert [found[1] for found in word.finditer("w1 W2")] == ["1", "2"]
    assert word.sub(r"<\1>", "w3") == "<3>"
    assert word.pattern == r"W(\d)"
    assert compiled == [r"W(\d)"]


def test_what_is_wrong_with_a_pattern_is_raised_where_it_is_used() -> None:
    wrong = compile_later(b"(")
    with pytest.raises(re.error):
        wrong.match(b"")


def test_all_patterns_can_be_compiled() -> None:
    for package in ANALYSIS:
        for module in walk_packages([f"{syncscope.__path__[0]}/{package}"], f"syncscope.{package}."):
            import_module(module.name)
    patterns: list[_Uncompiled[str]] = [
        one for one in gc.get_objects() if type(one) is _Uncompiled and one._source[0] != b"("
    ]
    assert len(patterns) > 100
    for pattern in patterns:
        re.compile(*pattern._source)
