"""What ``SYNCSCOPE_GUARD`` asks for, and what the processes that it reaches tell the first of them.

``SYNCSCOPE_GUARD=raise:after=20 python serve.py`` guards ``serve.py`` and every process that it starts, each once it
has made twenty steps. The first process makes a folder, in which the others write what their guards saw, and prints
that on stderr when it ends. This is loaded in every Python of such a run, so it imports next to nothing.
"""

from __future__ import annotations

import os

from syncscope.collect.environment import GUARD, GUARD_FOLDER

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

ACTIONS = ("raise", "warn", "log", "count")
DIRECTIONS = ("device-to-host", "host-to-device", "unknown")
AFTER = 20
"""Steps that a process makes before it is guarded, unless the variable says otherwise."""


class Order:
    """What the variable says: ``ACTION[:after=STEPS][:threads=all][:allow=DIRECTION,…]``. ``count`` counts waits, and
    lets them pass.

    Raises ``ValueError`` for anything else.
    """

    def __init__(self, text: str) -> None:
        self.action, *rest = text.strip().split(":")
        self.after, self.threads = AFTER, "own"
        self.allow: tuple[str, ...] = ()
        if self.action not in ACTIONS:
            raise ValueError(f"unknown action {self.action!r}: choose from {', '.join(ACTIONS)}")
        names = [part.partition("=")[0] for part in rest]
        for part in rest:
            name, _, value = part.partition("=")
            if names.count(name) > 1:
                raise ValueError(f"says {name!r} more than once")
            if name == "after" and value.isascii() and value.isdigit():
                self.after = int(value)
            elif name == "threads" and value in ("own", "all"):
                self.threads = value
            elif name == "allow" and set(value.split(",")) <= set(DIRECTIONS):
                self.allow = tuple(value.split(","))
            else:
                raise ValueError(f"cannot read {part!r}: write raise:after=20, with threads=all or allow=DIRECTION too")


def be_the_first() -> None:
    """Report at the end what all processes saw, unless a process that started this one does."""
    folder = os.environ.get(GUARD_FOLDER)
    if folder is not None:
        if os.path.basename(folder).startswith(_named(os.getpid())):  # the first one became this program (os.exec)
            _report_at_exit(folder)
        return
    try:
        Order(os.environ[GUARD])
    except ValueError as error:
        _print([f"syncscope: {GUARD}: {error}; a process that uses the GPU will fail"])
        os.environ[GUARD_FOLDER] = ""  # said
        return
    import tempfile

    folder = os.environ[GUARD_FOLDER] = tempfile.mkdtemp(prefix=_named(os.getpid()))
    _report_at_exit(folder)


def _named(pid: int) -> str:
    """How the folder of the first process begins."""
    return f"syncscope-guard-{pid}-"


def _report_at_exit(folder: str) -> None:
    import atexit

    first = os.getpid()

    def report() -> None:
        if os.getpid() == first:  # else it is a fork
            _print(_lines(folder))
            _remove(folder)

    atexit.register(report)


def _lines(folder: str) -> list[str]:
    """What each process says, the first that used CUDA first. Nothing where none used it and this one had no torch."""
    import sys

    told = [line for one in _read(folder) for line in _of_process(one)]
    if not told and "torch" in sys.modules:
        told = ["no process used the GPU, so nothing was guarded"]
    return [f"syncscope: {line}" for line in told]


def _read(folder: str) -> Iterator[dict[str, Any]]:
    import json

    try:
        paths = [entry.path for entry in os.scandir(folder) if entry.name.endswith(".json")]
    except OSError:
        return
    for path in sorted(paths, key=os.path.getmtime):
        try:
            with open(path, encoding="utf-8") as stream:
                yield json.load(stream)
        except (OSError, ValueError):  # it died while it wrote
            continue


def _of_process(one: dict[str, Any]) -> Iterator[str]:
    who = f"process {one['pid']} ({one['how']})"
    if one["failure"]:
        yield f"{who} was not guarded: {one['failure']}"
    elif not one["armed"]:
        yield f"{who} was not guarded: it made {one['steps']} of {one['after']} steps before the guard"
    else:
        number = sum(wait["count"] for wait in one["waits"])
        times = "1 wait" if number == 1 else f"{number} waits"
        until = " until the guarded thread ended (threads=all guards every one)" if one["ended"] else " on"
        yield f"{who}, from step {one['after']}{until}: {times if number else 'no waits'}"
    for wait in one["waits"]:
        thread = f"  on {wait['thread']}" if wait["thread"] else ""
        yield f"  {wait['place']}  {wait['expression'] or ''}  in {wait['function']}{thread}  {wait['count']} ×"


def _print(lines: list[str]) -> None:
    """On stderr, without what could move a terminal's cursor. A stream that is gone is no error."""
    import sys

    try:
        for line in lines:
            shown = "".join(char if char.isprintable() else "?" for char in line)
            print(shown, file=sys.__stderr__, flush=True)
    except (OSError, ValueError, AttributeError):
        pass


def _remove(folder: str) -> None:
    import shutil

    shutil.rmtree(folder, ignore_errors=True)
