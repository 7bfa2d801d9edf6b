"""Commands run in an empty folder, in this process, without colours."""

from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from syncscope.cli import app
from tests.cli import traces

Run = Callable[..., "Outcome"]


class Outcome:
    """What a command printed and how it ended."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with a trace that waits and one that does not."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    traces.waiting().write(tmp_path / "waiting.json.gz")
    traces.clean().write(tmp_path / "clean.json")
    return tmp_path


@pytest.fixture
def run() -> Run:
    """Run ``syncscope`` with arguments."""

    def invoke(*arguments: object) -> Outcome:
        result = CliRunner().invoke(app, [str(argument) for argument in arguments], catch_exceptions=False)
        return Outcome(result.exit_code, result.stdout, result.stderr)

    return invoke
