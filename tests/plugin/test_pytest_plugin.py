"""The pytest plugin in real pytest processes: it skips where nothing can wait, and else counts what does.

PyTorch is a stand-in here, whose waits warn as the real ones do; ``test_pytest_plugin_gpu.py`` has the real ones.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import syncscope.pytest_plugin
from tests.plugin.conftest import ROOT, Run

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

MARKED = """
import pytest

@pytest.mark.max_syncs(0)
def test_marked():
    raise AssertionError("the body ran")

def test_fixture(syncscope):
    raise AssertionError("the body ran")

def test_unmarked():
    pass
"""

HEAD = """
import threading, warnings
import pytest
import torch
import syncscope as package

loss = torch.Tensor()
"""

COUNTED = """
@pytest.mark.max_syncs(2)
def test_within():
    loss.item(); loss.item()

@pytest.mark.max_syncs(1)
def test_beyond():
    loss.item()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        loss.item()

@pytest.mark.max_syncs(0)
def test_none():
    warnings.filterwarnings("always")

def test_free():
    with pytest.warns(UserWarning):
        loss.item()
"""

BODY = """
@pytest.fixture
def ready():
    with pytest.warns(UserWarning): loss.item()
    yield
    with pytest.warns(UserWarning): loss.item()

@pytest.mark.max_syncs(0)
def test_only_the_body_and_its_thread_count_and_not_what_is_expected(ready, syncscope):
    thread = threading.Thread(target=loss.item); thread.start(); thread.join()
    with syncscope.expected("metrics"): loss.item()
    with package.expected("metrics"): loss.item()
"""

BLOCKS = """
def test_recorded(syncscope):
    with syncscope.record() as waits:
        loss.item()
        assert len(waits) == 1
        with syncscope.record() as inner:
            torch.cuda.Event().synchronize()
    with pytest.warns(UserWarning): loss.item()
    assert [wait.expression for wait in waits] == ["loss.item()", "torch.cuda.Event().synchronize()"]
    assert list(inner) == waits[1:]
    assert (waits[0].file, waits[0].function) == ("test_it.py", "test_recorded")

def test_within(syncscope):
    with syncscope.max_syncs(1): loss.item()

def test_beyond(syncscope):
    with syncscope.max_syncs(0): loss.item()

def test_of_all_threads(syncscope):
    with syncscope.record(threads="all") as waits:
        thread = threading.Thread(target=lambda: loss.item(), name="reader"); thread.start(); thread.join()
        loss.item()
    assert [wait.thread for wait in waits] == ["reader", ""]

@pytest.mark.max_syncs(0, threads="all")
def test_marked_for_all():
    def read():
        loss.item()
    thread = threading.Thread(target=read, name="reader"); thread.start(); thread.join()

@pytest.mark.max_syncs(0, threads="some")
def test_marked_wrongly(): pass

def test_wrong(syncscope):
    with pytest.raises(ValueError, match="0 or more, not -1"):
        syncscope.max_syncs(-1).__enter__()

def test_with_the_guard(syncscope):
    with syncscope.record() as waits, package.guard("raise"):
        with pytest.raises(package.SyncError): loss.item()
    assert len(waits) == 1
"""

OUTCOMES = """
@pytest.mark.max_syncs(0)
class TestLoop:
    @pytest.mark.max_syncs(n=1)
    def test_nearest_mark(self): loss.item()

    def test_own_error(self):
        loss.item()
        raise KeyError("mine")

    def test_own_skip(self):
        loss.item()
        pytest.skip("not today")

    @pytest.mark.xfail(strict=True)
    def test_known(self): loss.item()
"""

STATE = """
def state():
    return (warnings._showwarnmsg, warnings._filters_mutated, torch._C._cuda_synchronize, torch.cuda.Event.synchronize,
            torch._ops.OpOverload.__call__, torch._C.ScriptMethod.__call__, torch._C._cuda_set_sync_debug_mode)

before = state()

@pytest.mark.max_syncs(0)
def test_marked(): assert torch.MODE == [1] and state() != before

@pytest.mark.max_syncs(0)
def test_failing(): loss.item()

def test_after(): assert torch.MODE == [0] and state() == before
"""


@pytest.mark.parametrize(
    ("torch", "conftest", "more", "reason"),
    [
        (None, "import sys\nsys.modules['torch'] = None\n", {}, "needs PyTorch, which is not installed"),
        (ROOT / "tests/plugin/fake", "", {"FAKE_NO_GPU": "1"}, "needs a GPU: there is none here"),
    ],
    ids=["no torch", "no GPU"],
)
def test_tests_that_ask_for_it_are_skipped_where_nothing_can_wait(
    run_pytest: Run, torch: Path | None, conftest: str, more: dict[str, str], reason: str
) -> None:
    done = run_pytest(MARKED, conftest=conftest, torch=torch, **more)
    assert done.tests == {"test_marked": "SKIPPED", "test_fixture": "SKIPPED", "test_unmarked": "PASSED"}, done.out
    assert f"counting waits {reason}" in done.out


def test_the_pytorch_that_is_here_decides(run_pytest: Run) -> None:
    torch = pytest.importorskip("torch", reason="asks PyTorch for a GPU")
    test = "import pytest\n@pytest.mark.max_syncs(0)\ndef test_marked(): pass\n"
    done = run_pytest(test, torch=None)
    assert done.tests == {"test_marked": "PASSED" if torch.cuda.is_available() else "SKIPPED"}, done.out


@pytest.mark.parametrize(
    "mark",
    ["max_syncs", "max_syncs()", "max_syncs(-1)", "max_syncs('0')", "max_syncs(True)", "max_syncs(0, 1)",
     "max_syncs(most=0)"],
)  # fmt: skip
def test_a_mark_without_a_number_is_an_error(run_pytest: Run, mark: str) -> None:
    done = run_pytest(f"import pytest\n@pytest.mark.{mark}\ndef test_marked(): pass\n")
    assert (done.tests, done.code) == ({"test_marked": "ERROR"}, 1), done.out
    assert "max_syncs takes the number of waits to allow, as in max_syncs(0)" in done.out


def test_more_waits_than_allowed_fail_with_each_line_and_a_way_out(run_pytest: Run) -> None:
    body = "    for _ in range(2):\n        loss.item()\n    torch.cuda.synchronize()\n"
    test = f"{HEAD}@pytest.mark.max_syncs(2)\ndef test_marked():\n{body}"
    done = run_pytest(test)
    assert (done.tests, done.code) == ({"test_marked": "FAILED"}, 1), done.out
    line = test[: test.index("loss.item()")].count("\n") + 1
    assert "\nwaited for the GPU 3 times, at most 2 allowed:\n" in done.out
    fix = "\n      fix: Keep it on the device (sum loss.detach())"
    assert f"\n  test_it.py:{line}  loss.item()  in test_marked  2 ×{fix}" in done.out
    assert f"\n  test_it.py:{line + 1}  torch.cuda.synchronize()  in test_marked\n" in done.out
    assert "\n      at <site-packages>/torch/__init__.py:" in done.out
    assert "\n      fix: Remove it: PyTorch orders its work by itself." in done.out
    assert "Traceback" not in done.out


@pytest.mark.parametrize(
    "arguments", [(), ("-W", "error"), ("-p", "no:warnings"), ("-p", "xdist", "-n", "2")], ids=" ".join
)
def test_waits_are_counted_whatever_becomes_of_warnings(run_pytest: Run, arguments: tuple[str, ...]) -> None:
    done = run_pytest(HEAD + COUNTED, *arguments)
    expected = {"test_within": "PASSED", "test_beyond": "FAILED", "test_none": "PASSED", "test_free": "PASSED"}
    assert done.tests == expected, done.out
    assert "FAILED test_it.py::test_beyond - Failed: waited for the GPU 2 times" in done.out


def test_only_the_body_and_its_thread_count_and_not_what_is_expected(run_pytest: Run) -> None:
    done = run_pytest(HEAD + BODY)
    assert (set(done.tests.values()), done.code) == ({"PASSED"}, 0), done.out


def test_the_fixture_records_and_limits_blocks(run_pytest: Run) -> None:
    done = run_pytest(HEAD + BLOCKS)
    failed = {name for name, state in done.tests.items() if state != "PASSED"}
    assert failed == {"test_beyond", "test_marked_for_all", "test_marked_wrongly"}, done.out
    assert "\nwaited for the GPU 1 time, at most 0 allowed:\n" in done.out
    assert 'counts the waits of threads="own" or "all", not \'some\'' in done.out
    function = "test_marked_for_all.<locals>.read" if sys.version_info >= (3, 11) else "read"  # as code objects say
    assert f"loss.item()  in {function}  on reader\n" in done.out


def test_the_nearest_mark_counts_and_the_tests_own_outcome_comes_first(run_pytest: Run) -> None:
    done = run_pytest(HEAD + OUTCOMES)
    states = {
        "test_nearest_mark": "PASSED",
        "test_own_error": "FAILED",
        "test_own_skip": "SKIPPED",
        "test_known": "XFAIL",
    }
    assert done.tests == states, done.out
    assert "KeyError: 'mine'" in done.out


def test_everything_is_put_back_after_a_test(run_pytest: Run) -> None:
    done = run_pytest(HEAD + STATE)
    assert done.tests == {"test_marked": "PASSED", "test_failing": "FAILED", "test_after": "PASSED"}, done.out


def test_a_broken_configuration_is_one_line(run_pytest: Run, tmp_path: Path) -> None:
    (tmp_path / "syncscope.toml").write_text("gates = []\n")
    done = run_pytest("import pytest\n@pytest.mark.max_syncs(0)\ndef test_marked(): pass\n")
    assert (done.tests, done.code) == ({"test_marked": "FAILED"}, 1), done.out
    assert 'unknown key "gates"' in done.out


def test_the_plugin_says_what_it_offers(run_pytest: Run) -> None:
    marks = run_pytest("", "--markers").out
    assert '@pytest.mark.max_syncs(n, threads="own"): the test\'s body waits for the GPU at most n times' in marks
    assert "Records and limits the waits for the GPU in a block" in run_pytest("", "--fixtures").out


def test_pytest_finds_it_by_itself() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["entry-points"]["pytest11"] == {"syncscope": syncscope.pytest_plugin.__name__}


def test_loading_it_loads_nothing_else() -> None:
    script = (
        "import pytest, sys\nbefore = set(sys.modules)\nimport syncscope.pytest_plugin\n"
        "print(*sorted(set(sys.modules) - before))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["syncscope", "syncscope.pytest_plugin", "syncscope.pytest_plugin.compiling"]


ASYNC = f"""{HEAD}
import asyncio, unittest

LOOP = asyncio.new_event_loop()

async def reads(): loss.item()

class TestTasks(unittest.IsolatedAsyncioTestCase):
    @pytest.mark.max_syncs(0)
    async def test_unittest(self): await reads()

TASK = LOOP.create_task(reads())

@pytest.mark.max_syncs(0)
def test_a_task_that_was_there(): LOOP.run_until_complete(TASK)
"""


def test_waits_of_whatever_task_the_test_runs_count(run_pytest: Run) -> None:
    done = run_pytest(ASYNC)
    names = ("test_unittest", "test_a_task_that_was_there")
    assert done.tests == dict.fromkeys(names, "FAILED") and done.out.count("waited for the GPU 1 time") == 2, done.out


def test_a_block_that_lasts_as_long_as_the_device_is_held_fails(run_pytest: Run) -> None:
    conftest = """
import contextlib
import pytest
import syncscope.collect.live.hold

@contextlib.contextmanager
def held(hold_ms, threads):
    told = []
    yield told
    told.append(f"held for {hold_ms} ms")

@pytest.fixture(autouse=True)
def holds(monkeypatch): monkeypatch.setattr(syncscope.collect.live.hold, "held", held)
"""
    test = """
def test_held(syncscope):
    with syncscope.max_syncs(0, hold_ms=20): pass

def test_not_held(syncscope):
    with syncscope.max_syncs(0): pass
"""
    done = run_pytest(test, conftest=conftest)
    assert done.tests == {"test_held": "FAILED", "test_not_held": "PASSED"}, done.out
    assert "held for 20 ms" in done.out
