"""What cannot be read ends in one line that names it, and in 3."""

import gzip
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import Run

posix = pytest.mark.skipif(os.name == "nt", reason="POSIX")
WHOLE = b'{"traceEvents": ['
SPACES = gzip.compress(b" " * 1_000_000)


def folder(path: Path) -> None:
    path.mkdir()
    (path / "notes.txt").write_text("nothing")


def denied(path: Path) -> None:
    path.write_bytes(WHOLE)
    path.chmod(0)


CASES: dict[str, tuple[Callable[[Path], object], str]] = {
    "missing": (lambda path: None, "does not exist"),
    "0 bytes": (lambda path: path.write_bytes(b""), "is empty"),
    "0 bytes in gzip": (lambda path: path.write_bytes(gzip.compress(b"")), "is empty"),
    "folder": (folder, "no trace in this folder"),
    "cut": (lambda path: path.write_bytes(WHOLE), "is cut short before its first event"),
    "cut gzip": (lambda path: path.write_bytes(gzip.compress(WHOLE)[:10]), "nothing could be inflated"),
    "text": (lambda path: path.write_bytes(b"hello"), "is not JSON"),
    "not UTF-8": (lambda path: path.write_bytes(b"\xff\xfe{\x00}\x00"), "is not JSON"),
    "bytes in a name": (lambda path: path.write_bytes(b'{"traceEvents": [{"name": "\xff"}]}'), "holds no events of a"),
    "another JSON": (lambda path: path.write_bytes(b'{"a": 1}'), "is JSON but not a trace"),
    "bomb": (lambda path: path.write_bytes(gzip.compress(WHOLE) + 50 * SPACES), "inflates to more than the limit"),
}


COMMANDS = {
    "analyze": ["t.json"],
    "check": ["t.json"],
    "report": ["t.json", "-o", "out.html"],
    "diff": ["waiting.json.gz", "t.json"],
}


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("case", CASES)
def test_what_cannot_be_read_is_one_line_and_3(run: Run, folder: Path, case: str, command: str) -> None:
    make, why = CASES[case]
    make(folder / "t.json")
    done = run(command, *COMMANDS[command], "--max-size", "10M")
    assert done.code == 3
    assert done.out == ""
    assert done.err.startswith("error: t.json: ")
    assert why in done.err
    assert done.err.count("\n") == 1


@posix
def test_a_pipe_is_not_waited_for(run: Run, folder: Path) -> None:
    os.mkfifo(folder / "t.json")
    done = run("analyze", "t.json")
    assert (done.code, done.err) == (3, "error: t.json: is not a regular file\n")


@posix
@pytest.mark.parametrize("command", COMMANDS)
def test_a_file_that_calls_itself_regular_and_waits_for_what_comes_is_not_waited_for(
    run: Run, folder: Path, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As ``/proc/kmsg`` does."""
    os.mkfifo(folder / "t.json")
    monkeypatch.setattr("os.path.isfile", os.path.lexists)
    monkeypatch.setattr("syncscope.trace.source.stat.S_ISREG", lambda mode: True)
    writer = os.open(folder / "t.json", os.O_RDWR)
    done = run(command, *COMMANDS[command])
    os.close(writer)
    assert (done.code, done.err) == (3, "error: t.json: is empty\n")


@posix
@pytest.mark.skipif(os.name != "nt" and os.geteuid() == 0, reason="nothing is denied to root")
def test_a_file_without_permission_is_refused(run: Run, folder: Path) -> None:
    denied(folder / "t.json")
    done = run("analyze", "t.json")
    assert (done.code, done.err) == (3, "error: t.json: cannot be read: permission denied\n")


def test_the_limit_can_be_lowered_and_raised(run: Run, folder: Path) -> None:
    size = len(gzip.decompress((folder / "waiting.json.gz").read_bytes()))
    low = run("analyze", "waiting.json.gz", "--max-size", str(size - 1))
    assert low.code == 3
    assert f"inflates to more than the limit of {size - 1:,} bytes" in low.err
    assert run("analyze", "waiting.json.gz", "--max-size", str(size)).code == 0
    assert run("analyze", "waiting.json.gz", "--max-size", "1.5 GB").code == 0


@pytest.mark.parametrize("size", ["", "0", "-1", "many", "1X", "0.0001", "1e9", "٣"])
def test_a_size_that_is_none_is_wrong_usage(run: Run, size: str) -> None:
    done = run("analyze", "waiting.json.gz", "--max-size", size)
    assert done.code == 2
    assert "--max-size must be a size such as 500M or 20G" in done.err


@pytest.mark.parametrize("command", ["analyze", "check", "report"])
def test_a_cache_changes_nothing_but_is_filled(
    run: Run, folder: Path, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("platformdirs")
    monkeypatch.setattr("platformdirs.user_cache_path", lambda name: folder / name)
    outputs = []
    for options in ([], ["--cache"], ["--cache"]):
        done = run(command, "waiting.json.gz", "-o", "out.json", *options)
        outputs.append((done.code, done.out, done.err, (folder / "out.json").read_bytes()))
    assert outputs[0] == outputs[1] == outputs[2]
    assert len(list((folder / "syncscope").iterdir())) == 2  # the columns, and what was judged by them


def test_a_cache_without_its_extra_is_wrong_usage(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "platformdirs", None)
    done = run("analyze", "waiting.json.gz", "--cache")
    assert done.code == 2
    assert "pip install 'syncscope[cache]'" in done.err
