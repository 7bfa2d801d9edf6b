"""The life of a user's program under a command."""

from __future__ import annotations

import subprocess
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
        loader(str(tmp_path / name), [], is_module=False)
    assert raised.value.message.endswith(f"{name}: {why}.")


@pytest.mark.parametrize(
    ("module", "own"),
    [("tool.train", ("tool",)), ("torch.distributed.run", ()), ("accelerate.commands.launch", ())],
)
def test_a_launcher_is_no_package_of_the_users(module: str, own: tuple[str, ...]) -> None:
    assert project_of(module, module)[1] == own


KILLED_AT_ONCE = """
import os, signal, time
from syncscope.cli.program import _restore_in_forked_children

# Hooks run in the order in which they were registered: SIGTERM comes before ours.
os.register_at_fork(after_in_child=lambda: os.kill(os.getpid(), signal.SIGTERM))
def handler(number, frame):
    pass
signal.signal(signal.SIGTERM, handler)
_restore_in_forked_children(handler)
child = os.fork()
if child == 0:
    time.sleep(1)
    os._exit(0)
print(os.WTERMSIG(os.waitpid(child, 0)[1]), signal.SIGTERM in signal.pthread_sigmask(signal.SIG_BLOCK, ()))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs fork")
def test_a_child_that_is_terminated_as_soon_as_it_is_forked_ends() -> None:
    """A pool does so with workers that it needs no more. Ours is no handler of the child's."""
    done = subprocess.run(
        [sys.executable, "-c", KILLED_AT_ONCE], capture_output=True, text=True, timeout=30, check=True
    )
    assert done.stdout.split() == ["15", "False"]
