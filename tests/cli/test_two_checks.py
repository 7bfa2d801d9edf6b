"""Two checks at once on one baseline, in processes of their own: an error or the right result, and no file lost."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.cli import traces
from tests.cli.conftest import Run

FILE = "syncscope-baseline.json"
OTHER = ("train.py", 40, "evaluate", "accuracy.item()")

MEETING = """
import sys, time
from pathlib import Path
import syncscope.policy
from syncscope.cli import app

check, mine, number = syncscope.policy.check_baseline, Path(sys.argv[1]), int(sys.argv[2])

def meet(*arguments):
    "All have read the file, and none has written it."
    mine.touch()
    end = time.monotonic() + 60
    while len(list(mine.parent.glob("*.here"))) < number and time.monotonic() < end:
        time.sleep(0.0005)
    return check(*arguments)

syncscope.policy.check_baseline = meet
app(sys.argv[3:])
"""


def at_once(folder: Path, *commands: Sequence[str]) -> list[tuple[int, str]]:
    """How each of the commands ends, and its last line of errors, where all read the baseline before any writes it."""
    meeting = folder / f"meeting{time.monotonic_ns()}"
    meeting.mkdir()
    started = [
        subprocess.Popen(
            [sys.executable, "-c", MEETING, str(meeting / f"{number}.here"), str(len(commands)), *command],
            cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        for number, command in enumerate(commands)
    ]  # fmt: skip
    errors = [process.communicate(timeout=120)[1].strip() for process in started]
    return [(process.returncode, error) for process, error in zip(started, errors, strict=True)]


def is_refusal(error: str) -> bool:
    return "was changed by another run meanwhile" in error or "is being written by another run" in error


def check(trace: str, *more: str) -> list[str]:
    return ["check", trace, "--baseline", FILE, *more]


def expressions(folder: Path) -> set[str]:
    return {entry["expression"] for entry in json.loads((folder / FILE).read_text())["findings"].values()}


def test_of_several_that_write_it_one_does_and_the_others_say_so(folder: Path) -> None:
    traces.waiting(frame=OTHER).write(folder / "other.json.gz")
    ended = at_once(folder, *[check(name, "--write-baseline") for name in ("waiting.json.gz", "other.json.gz") * 2])
    assert sorted(code for code, _ in ended) == [0, 2, 2, 2]
    assert all(is_refusal(error) for code, error in ended if code)
    written = [code for code, _ in ended].index(0)
    assert expressions(folder) == {"accuracy.item()" if written % 2 else "loss.item()"}
    assert [path.name for path in folder.iterdir() if path.name.startswith((".sync", FILE + "."))] == []


def test_of_two_that_tighten_it_neither_undoes_what_the_other_did(run: Run, folder: Path) -> None:
    traces.waiting(frame=OTHER).write(folder / "other.json.gz")
    assert run(*check("waiting.json.gz", "--write-baseline")).code == 0
    baseline = json.loads((folder / FILE).read_text())
    assert run("check", "other.json.gz", "--baseline", "second.json", "--write-baseline").code == 0
    baseline["findings"] |= json.loads((folder / "second.json").read_text())["findings"]
    (folder / FILE).write_text(json.dumps(baseline))
    ended = at_once(folder, check("waiting.json.gz", "--update"), check("other.json.gz", "--update"))
    assert sorted(code for code, _ in ended) == [0, 2]
    assert expressions(folder) == ({"loss.item()"} if ended[0][0] == 0 else {"accuracy.item()"})


def test_a_check_beside_one_that_writes_passes_on_nothing_that_is_new(run: Run, folder: Path) -> None:
    traces.waiting(frame=OTHER).write(folder / "other.json.gz")
    assert run(*check("waiting.json.gz", "--write-baseline")).code == 0
    ended = at_once(folder, check("clean.json", "--update"), check("other.json.gz"), check("waiting.json.gz"))
    assert [code for code, _ in ended] == [0, 1, 0]
    assert run(*check("waiting.json.gz")).code == 1


@pytest.mark.parametrize("arguments", [("waiting.json.gz", "--write-baseline"), ("clean.json", "--update")])
def test_a_lock_that_a_killed_run_left_is_an_error_that_names_it(
    run: Run, folder: Path, arguments: tuple[str, ...]
) -> None:
    if "--update" in arguments:
        assert run(*check("waiting.json.gz", "--write-baseline")).code == 0
    (folder / f"{FILE}.lock").touch()
    before = (folder / FILE).read_bytes() if "--update" in arguments else None
    done = run("check", *arguments, "--baseline", FILE)
    assert done.code == 2
    assert f"if none is running, delete {FILE}.lock" in done.err
    assert (folder / f"{FILE}.lock").exists()
    assert ((folder / FILE).read_bytes() if (folder / FILE).exists() else None) == before
