"""The line at the bottom, on a terminal of ten rows and forty columns."""

from __future__ import annotations

import os
import struct
import sys
from collections.abc import Iterator

import pytest

from syncscope.collect.watch.live_line import LiveLine

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX terminals")


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[int, int]]:
    """The program's side and the user's side of a terminal in which this process is in the foreground."""
    pty = pytest.importorskip("pty")
    import fcntl
    import termios

    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 10, 40, 0, 0))
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("LOCAL_RANK", raising=False)
    monkeypatch.setattr(os, "tcgetpgrp", lambda descriptor: os.getpgrp())
    yield follower, leader
    for descriptor in (leader, follower):
        os.close(descriptor)


def shown(leader: int) -> str:
    os.set_blocking(leader, False)
    try:
        return os.read(leader, 65536).decode()
    except BlockingIOError:
        return ""


def test_it_is_below_what_scrolls_and_leaves_the_cursor(terminal: tuple[int, int]) -> None:
    follower, leader = terminal
    LiveLine(follower).show("syncscope: 3 steps")
    assert shown(leader) == "\033D\033[1A\0337\033[1;9r\0338\0337\033[10;1H\033[2Ksyncscope: 3 steps\0338"


def test_the_next_one_takes_its_place(terminal: tuple[int, int]) -> None:
    follower, leader = terminal
    line = LiveLine(follower)
    line.show("one")
    shown(leader)
    line.show("two")
    assert shown(leader) == "\0337\033[10;1H\033[2Ktwo\0338"


def test_it_gives_the_row_back(terminal: tuple[int, int]) -> None:
    follower, leader = terminal
    line = LiveLine(follower)
    line.show("one")
    shown(leader)
    line.close()
    assert shown(leader) == "\0337\033[10;1H\033[2K\033[r\0338"
    line.close()
    assert shown(leader) == ""


def test_it_is_cut_to_the_terminal_and_holds_no_control_characters(terminal: tuple[int, int]) -> None:
    follower, leader = terminal
    LiveLine(follower).show("\033[31m" + "x" * 100 + "\n")
    text = shown(leader).split("\033[2K")[1].removesuffix("\0338")
    assert text == "?[31m" + "x" * 34


@pytest.mark.parametrize(("name", "value"), [("TERM", "dumb"), ("LOCAL_RANK", "1")])
def test_a_terminal_without_a_cursor_and_other_ranks_show_none(
    terminal: tuple[int, int], monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(name, value)
    LiveLine(terminal[0]).show("one")
    assert shown(terminal[1]) == ""


def test_a_job_in_the_background_shows_none(terminal: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "tcgetpgrp", lambda descriptor: os.getpgrp() + 1)
    LiveLine(terminal[0]).show("one")
    assert shown(terminal[1]) == ""


def test_a_file_that_took_the_number_of_a_closed_stderr_is_left_alone(tmp_path, terminal: tuple[int, int]) -> None:
    descriptor = os.dup(terminal[0])
    line = LiveLine(descriptor)
    os.close(descriptor)
    file = os.open(tmp_path / "data", os.O_WRONLY | os.O_CREAT)
    os.dup2(file, descriptor)
    line.show("one")
    for number in {file, descriptor}:
        os.close(number)
    assert (tmp_path / "data").read_bytes() == b""


def test_a_pipe_shows_none() -> None:
    reading, writing = os.pipe()
    LiveLine(writing).show("one")
    os.close(writing)
    assert os.read(reading, 10) == b""
    os.close(reading)
