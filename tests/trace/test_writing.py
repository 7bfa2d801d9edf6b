"""A file is written whole or not at all."""

from __future__ import annotations

import os
import stat
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from syncscope.trace.writing import PRIVATE, write_atomically

posix = pytest.mark.skipif(os.name == "nt", reason="file modes, links and pipes are POSIX")


def names(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


def test_pieces_are_written_one_behind_the_other(tmp_path: Path) -> None:
    path = tmp_path / "out"
    write_atomically(path, [b"one ", memoryview(b"two")])
    write_atomically(path, (piece for piece in (b"three",)))
    assert path.read_bytes() == b"three"
    assert names(tmp_path) == ["out"]


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()], ids=["full", "Ctrl-C"])
def test_what_ends_the_writing_leaves_the_old_file_and_nothing_else(tmp_path: Path, error: BaseException) -> None:
    def pieces() -> Iterator[bytes]:
        yield b"new"
        raise error

    path = tmp_path / "out"
    path.write_bytes(b"old")
    with pytest.raises(type(error)):
        write_atomically(path, pieces())
    assert path.read_bytes() == b"old"
    assert names(tmp_path) == ["out"]


def test_a_missing_folder_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        write_atomically(tmp_path / "none" / "out", [b""])


@posix
def test_a_new_file_gets_the_usual_permissions_and_a_replaced_one_keeps_its_own(tmp_path: Path) -> None:
    (tmp_path / "plain").write_bytes(b"")
    path = tmp_path / "out"
    write_atomically(path, [b"1"])
    assert permissions(path) == permissions(tmp_path / "plain")
    path.chmod(0o640)
    write_atomically(path, [b"2"])
    assert permissions(path) == 0o640
    write_atomically(path, [b"3"], PRIVATE)
    assert permissions(path) == 0o600


def permissions(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@posix
def test_a_link_stays_one(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    link = tmp_path / "link"
    link.symlink_to("real/out")
    write_atomically(link, [b"1"])
    assert link.is_symlink()
    assert (tmp_path / "real" / "out").read_bytes() == b"1"


@posix
def test_a_pipe_is_written_to_and_stays_one(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    received: list[bytes] = []
    reader = threading.Thread(target=lambda: received.append(pipe.read_bytes()))
    reader.start()
    write_atomically(pipe, [b"through ", b"it"])
    reader.join()
    assert received == [b"through it"]
    assert pipe.is_fifo()


def test_an_interrupt_right_after_the_file_is_made_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = os.open

    def interrupted(*arguments: Any, **named: Any) -> int:
        os.close(made(*arguments, **named))
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "open", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_atomically(tmp_path / "report.html", [b"half"])
    monkeypatch.undo()
    assert list(tmp_path.iterdir()) == []
