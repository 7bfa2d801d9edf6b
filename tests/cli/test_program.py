"""The life of a user's program under a command."""

from __future__ import annotations

import sys
import warnings
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from syncscope.cli.program import run

PROGRAM = """
import warnings
heard = []
warnings.warn = lambda message, *args, **kwargs: heard.append(message)
warnings.warn("the program's own")
"""


def test_a_warning_of_ours_after_the_end_reaches_no_function_of_the_program(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(warnings, "warn", warnings.warn)
    monkeypatch.setattr(sys, "argv", ["train.py"])
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])
    main = ModuleType("__main__")
    recorder: Any = SimpleNamespace(open=lambda: None, close=lambda: None)

    def conclude(terminated: bool) -> int:
        warnings.warn("an old library that a report needs", DeprecationWarning, stacklevel=1)
        return 0

    assert run(recorder, lambda: (main, compile(PROGRAM, "train.py", "exec")), [], conclude) == 0
    assert main.heard == ["the program's own"] and capsys.readouterr().err == ""
    warnings.warn("later", stacklevel=1)
    assert main.heard == ["the program's own", "later"]
