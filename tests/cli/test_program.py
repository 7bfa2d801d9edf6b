"""The life of a user's program under a command."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import typer

from syncscope.cli.program import loader, project_of, run

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


@pytest.mark.parametrize(
    ("name", "why"), [("gone.py", "no such file"), ("folder", "is a folder (to run a module, use -m)")]
)
def test_what_is_no_script_is_wrong_usage(tmp_path: Path, name: str, why: str) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(typer.BadParameter, match=r"(gone\.py|folder): ") as raised:
        loader(str(tmp_path / name), is_module=False)
    assert raised.value.message.endswith(f"{name}: {why}.")


@pytest.mark.parametrize(
    ("module", "own"),
    [("tool.train", ("tool",)), ("torch.distributed.run", ()), ("accelerate.commands.launch", ())],
)
def test_a_launcher_is_no_package_of_the_users(module: str, own: tuple[str, ...]) -> None:
    assert project_of(module, module)[1] == own
