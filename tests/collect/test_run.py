"""A script runs as ``python script.py`` runs it: output, status, arguments, traceback, ``__main__``."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from syncscope.collect.run import exit_status

DRIVER = """
import sys
from syncscope.collect.run import ScriptError, execute, load_module, load_script
kind, name, *arguments = sys.argv[1:]
try:
    main, code = load_module(name, arguments) if kind == "-m" else load_script(name)
except ScriptError as error:
    print("refused:", error)
    sys.exit(2)
sys.exit(execute(main, code, arguments))
"""


def run(tmp_path: Path, *arguments: str, ours: bool) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", DRIVER, *arguments] if ours else [sys.executable, *arguments]
    if not ours and arguments[0] == "script":
        command = [sys.executable, *arguments[1:]]
    return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)


PROGRAMS = {
    "prints_its_arguments": "import sys\nprint(sys.argv, sys.path[0] != '', __name__, __file__)\n",
    "exits_with_a_number": "import sys\nsys.exit(7)\n",
    "exits_with_a_message": "import sys\nsys.exit('no data')\n",
    "exits_with_nothing": "raise SystemExit\n",
    "raises": "def f():\n    raise ValueError('bad')\nf()\n",
    "raises_from": "try:\n    1 / 0\nexcept ZeroDivisionError as e:\n    raise KeyError('x') from e\n",
    "imports_a_neighbour": "import neighbour\nprint(neighbour.VALUE)\n",
    "has_an_exit_handler": "import atexit\nvalue = 3\natexit.register(lambda: print('bye', value))\n",
    "pickles_its_class": (
        "import pickle\nclass A:\n    pass\nprint(type(pickle.loads(pickle.dumps(A()))).__module__)\n"
    ),
    "spawns": (
        "import multiprocessing as mp\ndef work(x):\n    return x + 1\nif __name__ == '__main__':\n"
        "    with mp.get_context('spawn').Pool(1) as pool:\n        print(pool.map(work, [1]))\n"
    ),
    "replaces_the_excepthook": "import sys\nsys.excepthook = lambda *a: print('mine', a[0].__name__)\n1 / 0\n",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_script_behaves_as_under_python(tmp_path: Path, name: str) -> None:
    (tmp_path / "program.py").write_text(PROGRAMS[name])
    (tmp_path / "neighbour.py").write_text("VALUE = 5\n")
    plain = run(tmp_path, "script", "program.py", "--steps", "3", "-x", ours=False)
    ours = run(tmp_path, "script", "program.py", "--steps", "3", "-x", ours=True)
    assert (ours.stdout, ours.stderr, ours.returncode) == (plain.stdout, plain.stderr, plain.returncode)


@pytest.mark.parametrize("module", ["package", "package.inner"])
def test_a_module_behaves_as_under_python(tmp_path: Path, module: str) -> None:
    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").write_text("import sys\nprint(sys.argv)\n")  # before the module is found
    body = "import sys\nfrom . import __name__ as n\nprint(sys.argv[1:], __package__, __spec__.name, n, __name__)\n"
    (package / "__main__.py").write_text(body)
    (package / "inner.py").write_text(body)
    plain = run(tmp_path, "-m", module, "--lr", "1", ours=False)
    ours = run(tmp_path, "-m", module, "--lr", "1", ours=True)
    assert plain.returncode == 0
    assert (ours.stdout, ours.stderr) == (plain.stdout, plain.stderr)


@pytest.mark.parametrize("arguments", [("script", "nowhere.py"), ("-m", "nowhere"), ("-m", "nowhere.deeper")])
def test_what_is_not_there_is_refused_in_one_line(tmp_path: Path, arguments: tuple[str, str]) -> None:
    done = run(tmp_path, *arguments, ours=True)
    assert done.returncode == 2
    assert done.stdout.startswith("refused: ") and done.stdout.count("\n") == 1
    assert done.stderr == ""


@pytest.mark.parametrize(("code", "status"), [(2**70, 255), (-1, 255), (256, 0), (True, 1)])
def test_the_status_of_a_number_is_pythons(code: int, status: int) -> None:
    assert exit_status(code) == status
