"""The command as a process: pipes, colours, encodings, speed of ``--help``."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli import traces
from tests.interrupts import heed_interrupts

pty = pytest.importorskip("pty", reason="needs POSIX terminals and pipes")

COMMAND = [sys.executable, "-m", "syncscope"]


def environment(**more: str) -> dict[str, str]:
    return {**os.environ, "TERM": "xterm", **more}


def run(*arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *arguments], capture_output=True, text=True, encoding="utf-8", env=environment(**more), check=False
    )


def in_terminal(*arguments: str, **more: str) -> str:
    """What the command prints on a terminal 80 columns wide."""
    leader, follower = pty.openpty()
    with subprocess.Popen(
        [*COMMAND, *arguments], stdout=follower, stderr=follower, env=environment(COLUMNS="80", **more)
    ):
        os.close(follower)
        chunks = []
        while True:
            try:
                chunk = os.read(leader, 65536)
            except OSError:  # Linux says so when the other side is closed
                break
            if not chunk:
                break
            chunks.append(chunk)
    os.close(leader)
    return b"".join(chunks).decode()


def test_version() -> None:
    from syncscope import __version__

    assert run("--version").stdout == f"syncscope {__version__}\n"


@pytest.mark.slow
def test_help_takes_under_half_a_second_of_processor_time() -> None:
    def children() -> float:
        times = os.times()
        return times.children_user + times.children_system

    taken = []
    for _ in range(4):
        before = children()
        assert run("--help").returncode == 0
        taken.append(children() - before)
    assert min(taken) < 0.5


def test_help_loads_nothing_heavy() -> None:
    script = (
        "import sys; sys.argv = ['syncscope', '--help']\n"
        "from syncscope.cli import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "print(*{'pandas', 'numpy', 'plotly', 'torch'} & set(sys.modules), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stderr.split() == []


@pytest.mark.parametrize("command", ["profile", "analyze", "check", "report", "rules"])
def test_the_help_of_every_command_has_examples_and_exit_codes(command: str) -> None:
    text = run(command, "--help").stdout
    assert f"syncscope {command}" in text
    assert "Examples" in text
    assert "Exit status" in text


def test_no_colours_in_a_pipe() -> None:
    assert "\x1b" not in run("analyze", "waiting.json.gz").stdout


def test_colours_on_a_terminal_unless_switched_off() -> None:
    assert "\x1b[" in in_terminal("analyze", "waiting.json.gz")
    assert "\x1b[3" not in in_terminal("analyze", "waiting.json.gz", NO_COLOR="1")
    assert "\x1b[" in run("analyze", "waiting.json.gz", FORCE_COLOR="1").stdout


def test_an_error_is_wrapped_between_words_on_a_terminal_and_is_one_line_elsewhere() -> None:
    wrong = ("analyze", "waiting.json.gz", "-o", "report.pdf")
    lines = re.sub(r"\x1b\[[0-9;]*m", "", in_terminal(*wrong)).split("\r\n")
    assert len(lines) > 2 and all(len(line.rstrip()) <= 80 for line in lines)
    once = run(*wrong, COLUMNS="80").stderr
    assert once.count("\n") == 1
    assert " ".join(line.strip() for line in lines).split() == once.split()


def test_a_terminal_sees_a_bar_for_several_files_and_json_stays_json(folder: Path) -> None:
    text = in_terminal("analyze", "waiting.json.gz", "clean.json")
    assert "0/2" in text
    assert "0/2" not in run("analyze", "waiting.json.gz", "clean.json").stderr


def test_an_encoding_without_our_signs_is_no_error(folder: Path) -> None:
    traces.waiting(frame=("größe.py", 21, "f", "µ.item()")).write(folder / "named.json")
    done = run("analyze", "named.json", PYTHONIOENCODING="ascii")
    assert done.returncode == 0
    assert "gr??e.py:21  ?.item()" in done.stdout


def test_json_is_utf_8_whatever_the_encoding(folder: Path) -> None:
    traces.waiting(frame=("größe.py", 21, "f", "µ.item()")).write(folder / "named.json")
    assert "größe.py" in run("analyze", "named.json", "--format", "json", PYTHONIOENCODING="ascii").stdout


@pytest.mark.parametrize(
    ("arguments", "code"), [("analyze", 0), ("analyze --format json", 0), ("check", 1), ("check --format json", 1)]
)
def test_a_reader_that_goes_away_is_no_error(arguments: str, code: int, folder: Path) -> None:
    line = f"{shlex.join(COMMAND)} {arguments} waiting.json.gz; echo $? > code"
    done = subprocess.run(
        ["sh", "-c", f"({line}) | true"], capture_output=True, text=True, env=environment(), check=False
    )
    assert done.stderr == ""
    assert (folder / "code").read_text() == f"{code}\n"


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is full")
@pytest.mark.parametrize("arguments", ["analyze waiting.json.gz", "check --format json clean.json", "rules SYN102"])
@pytest.mark.parametrize("both", [False, True])
def test_a_full_disk_behind_standard_output_is_one_line_and_2(arguments: str, both: bool, folder: Path) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [*COMMAND, *arguments.split()], stdout=full, stderr=full if both else subprocess.PIPE, text=True,
            env=environment(), check=False,
        )  # fmt: skip
    assert done.returncode == 2
    assert both or done.stderr == "error: standard output: No space left on device\n"


@pytest.mark.skipif(os.name == "nt", reason="POSIX")
@pytest.mark.parametrize(("arguments", "code"), [("check waiting.json.gz", 1), ("analyze --format json clean.json", 0)])
@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-"])
def test_closed_standard_streams_are_no_error(arguments: str, code: int, closed: str, folder: Path) -> None:
    line = f"{shlex.join(COMMAND)} {arguments} {closed}"
    done = subprocess.run(["sh", "-c", line], capture_output=True, text=True, env=environment(), check=False)
    assert (done.returncode, done.stderr) == (code, "")


def test_an_internal_error_is_one_line_and_neither_clean_nor_a_finding(folder: Path) -> None:
    script = (
        "import sys; sys.argv = ['syncscope', 'check', 'waiting.json.gz']\n"
        "import syncscope.analysis.rank as r\n"
        "def fail(*_): raise KeyError('oh')\n"
        "r.make_report = fail\n"
        "from syncscope.cli import main; main()"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 3
    assert done.stderr == "error: internal error: KeyError: 'oh' (SYNCSCOPE_TRACEBACK=1 prints the traceback)\n"


def test_wrong_options_are_exit_2_without_a_traceback() -> None:
    for arguments in (["analyse", "x"], ["analyze"], ["analyze", "--nope"], ["analyze", "x", "--format", "pdf"]):
        done = run(*arguments)
        assert done.returncode == 2
        assert "Traceback" not in done.stderr
    assert "analyze" in run("analyse", "x").stderr


@pytest.mark.parametrize("module", ["syncscope.cli", "typer", "syncscope.trace.reader", "syncscope.report.text"])
def test_an_interrupt_while_the_command_imports_ends_it_without_a_traceback(module: str, tmp_path: Path) -> None:
    """The import of one module is the moment, so that it is always the same."""
    (tmp_path / "sitecustomize.py").write_text(
        "import signal, sys\n"
        "class Interrupt:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        f"        if name == {module!r}:\n"
        "            signal.raise_signal(signal.SIGINT)\n"
        "sys.meta_path.insert(0, Interrupt())\n"
    )
    done = subprocess.run(
        [*COMMAND, "analyze", "waiting.json.gz"],
        capture_output=True, text=True, check=False, preexec_fn=heed_interrupts,
        env=environment(PYTHONPATH=os.pathsep.join([str(tmp_path), *sys.path])),
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


def test_an_interrupt_that_an_import_wraps_is_an_interrupt(folder: Path) -> None:
    """Before Python 3.12 an exception in ``__set_name__`` comes as the cause of a ``RuntimeError``."""
    script = (
        "import sys; sys.argv = ['syncscope', 'check', 'waiting.json.gz']\n"
        "import syncscope.analysis.analyze as a\n"
        "def fail(*_, **__): raise RuntimeError('Error calling __set_name__') from KeyboardInterrupt()\n"
        "a.analyze_files = fail\n"
        "from syncscope.cli import main; main()"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (130, "")


@pytest.mark.parametrize("command", ["profile", "watch", "analyze", "check", "diff", "report", "hta", "rules"])
def test_help_names_values_and_no_types_of_python(command: str) -> None:
    lines = run(command, "--help", COLUMNS="80").stdout.splitlines()
    assert len(lines) > 10
    assert not [line for line in lines if re.search(r"<(list|str|int|float|bool)\b", line)]


@pytest.mark.parametrize("command", ["profile", "watch"])
def test_help_says_where_a_recording_goes(command: str) -> None:
    assert "syncscope-SCRIPT" in run(command, "--help", COLUMNS="100").stdout
