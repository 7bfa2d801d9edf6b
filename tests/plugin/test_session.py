"""Limits for all tests, the summary and the report of the plugin, in real pytest processes with a stand-in PyTorch."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.plugin.conftest import Run
from tests.plugin.test_pytest_plugin import HEAD

TESTS = f"""{HEAD}
def read():
    loss.item()

def test_two():
    read(); read()

def test_one(): read()

def test_none(): pass

@pytest.mark.max_syncs(5)
def test_marked():
    read(); read(); torch.cuda.synchronize()
"""
READ = TESTS[: TESTS.index("def read")].count("\n") + 2
XDIST = ("-p", "xdist", "-n", "2")


def report_of(folder: Path) -> Any:
    return json.loads((folder / "waits.json").read_text())


@pytest.mark.parametrize("workers", [(), XDIST], ids=["alone", "xdist"])
def test_a_limit_for_each_test_leaves_those_with_a_mark(run_pytest: Run, workers: tuple[str, ...]) -> None:
    done = run_pytest(TESTS, "--max-syncs", "1", *workers)
    states = {"test_two": "FAILED", "test_one": "PASSED", "test_none": "PASSED", "test_marked": "PASSED"}
    assert (done.tests, done.code) == (states, 1), done.out
    assert "waited for the GPU 2 times, at most 1 allowed:" in done.out


@pytest.mark.parametrize("workers", [(), XDIST], ids=["alone", "xdist"])
@pytest.mark.parametrize(("limit", "code"), [("6", 0), ("5", 1)])
def test_a_limit_for_all_tests_together(run_pytest: Run, limit: str, code: int, workers: tuple[str, ...]) -> None:
    done = run_pytest(TESTS, "--max-syncs-session", limit, *workers)
    assert (set(done.tests.values()), done.code) == ({"PASSED"}, code), done.out
    assert ("FAILED: 6 waits in all, at most 5 allowed" in done.out) == bool(code)


@pytest.mark.parametrize("workers", [(), XDIST], ids=["alone", "xdist"])
def test_the_summary_and_the_report_name_the_lines_that_wait_most(
    run_pytest: Run, tmp_path: Path, workers: tuple[str, ...]
) -> None:
    done = run_pytest(TESTS, "--syncscope-report", "waits.json", *workers)
    assert done.code == 0, done.out
    assert "6 waits in 3 of 4 tests\n" in done.out
    first = f"    5 ×  test_it.py:{READ}  loss.item()  in read  (3 tests)\n"
    assert first in done.out
    assert done.out.index(first) < done.out.index("1 ×  test_it.py")
    assert "written to waits.json" in done.out
    found = report_of(tmp_path)
    assert (found["format"], found["waits"], found["limit"], found["not_checked"]) == (1, 6, None, None)
    assert found["tests"] == {
        f"test_it.py::test_{name}": number for name, number in (("two", 2), ("one", 1), ("none", 0), ("marked", 3))
    }
    line = found["lines"][0]
    assert (line["file"], line["line"], line["function"], line["waits"]) == ("test_it.py", READ, "read", 5)
    assert line["tests"] == ["test_it.py::test_marked", "test_it.py::test_one", "test_it.py::test_two"]
    assert line["fix"].startswith("Keep it on the device")


def test_waits_of_subtests_count_once(run_pytest: Run, tmp_path: Path) -> None:
    body = "        for i in range(3):\n            with self.subTest(i=i): loss.item()\n"
    case = f"import unittest\n{HEAD}\nclass TestIt(unittest.TestCase):\n    def test_parts(self):\n{body}"
    done = run_pytest(case, "--max-syncs-session", "3", "--syncscope-report", "waits.json")
    assert done.code == 0, done.out
    assert "3 waits in 1 of 1 test\n" in done.out
    assert report_of(tmp_path)["tests"] == {"test_it.py::TestIt::test_parts": 3}


def test_the_summary_names_a_few_lines_and_says_how_many_there_are(run_pytest: Run) -> None:
    body = "\n".join("    loss.item()" for _ in range(12))
    done = run_pytest(f"{HEAD}\ndef test_many():\n{body}\n", "--max-syncs-session", "99")
    assert "12 waits in 1 of 1 test\n" in done.out
    assert done.out.count("1 ×  test_it.py") == 10
    assert "        and 2 more lines: --syncscope-report\n" in done.out


def test_limits_may_stand_in_the_configuration_and_the_command_line_wins(run_pytest: Run, tmp_path: Path) -> None:
    options = ("-o", "max_syncs=0", "-o", "max_syncs_session=99")
    assert run_pytest(TESTS, *options).tests["test_one"] == "FAILED"
    assert run_pytest(TESTS, *options, "--max-syncs", "2").code == 0


@pytest.mark.parametrize("option", ["--max-syncs=-1", "-omax_syncs=few", "--max-syncs-session=-3"])
def test_a_limit_that_is_no_number_is_wrong_usage(run_pytest: Run, option: str) -> None:
    done = run_pytest(TESTS, option)
    assert done.code == 4, done.out
    assert "takes the number of waits to allow, 0 or more, not" in done.out


def test_what_fails_counts_too_and_keeps_its_own_error(run_pytest: Run, tmp_path: Path) -> None:
    test = f"{HEAD}\ndef test_own():\n    loss.item()\n    raise KeyError('mine')\n"
    done = run_pytest(test, "--max-syncs", "0", "--syncscope-report", "waits.json")
    assert "KeyError: 'mine'" in done.out
    assert report_of(tmp_path)["waits"] == 1


def test_without_a_gpu_tests_run_and_nothing_counts_as_clean(run_pytest: Run, tmp_path: Path) -> None:
    arguments = ("--max-syncs", "0", "--max-syncs-session", "0", "--syncscope-report", "waits.json")
    done = run_pytest("def test_plain(): pass\n", *arguments, FAKE_NO_GPU="1")
    assert (done.tests, done.code) == ({"test_plain": "PASSED"}, 0), done.out
    assert "not counted: counting waits needs a GPU: there is none here" in done.out
    assert (report_of(tmp_path)["waits"], report_of(tmp_path)["not_checked"]) == (
        None,
        "needs a GPU: there is none here",
    )


def test_without_the_options_nothing_is_counted_nor_said(run_pytest: Run) -> None:
    done = run_pytest(f"{HEAD}\ndef test_plain(): assert torch.MODE == [0]\n")
    assert (done.tests, done.code) == ({"test_plain": "PASSED"}, 0), done.out
    assert "waits for the GPU" not in done.out


@pytest.mark.parametrize("path", ["missing/waits.json", "."])
def test_a_place_where_no_report_can_be_is_an_error_before_any_test(run_pytest: Run, path: str) -> None:
    done = run_pytest("def test_plain(): pass\n", "--syncscope-report", path)
    assert (done.code, done.tests) == (4, {}) and f"--syncscope-report {path}: is a folder" in done.out, done.out


def test_a_report_that_cannot_be_written_fails_the_session_and_hides_no_test(run_pytest: Run) -> None:
    test = "import os\ndef test_removes(): os.mkdir('waits.json')\ndef test_fails(): assert 1 == 2\n"
    done = run_pytest(test, "--syncscope-report", "waits.json")
    assert done.tests == {"test_removes": "PASSED", "test_fails": "FAILED"} and "assert 1 == 2" in done.out
    assert (done.code, "FAILED: not written to waits.json: Is a directory" in done.out) == (1, True), done.out


def test_a_report_that_cannot_be_written_fails_a_session_whose_tests_pass(run_pytest: Run) -> None:
    done = run_pytest("import os\ndef test_removes(): os.mkdir('waits.json')\n", "--syncscope-report", "waits.json")
    assert (done.tests, done.code) == ({"test_removes": "PASSED"}, 1), done.out


RUN_TWICE = """
from _pytest.runner import runtestprotocol

def pytest_runtest_protocol(item, nextitem):  # as pytest-rerunfailures does
    for last in (False, True):
        reports = runtestprotocol(item, nextitem=nextitem, log=False)
        for report in reports:
            if report.when == "call" and not last:
                report.outcome = "rerun"
            item.ihook.pytest_runtest_logreport(report=report)
    return True

def pytest_report_teststatus(report):
    return ("rerun", "R", "RERUN") if report.outcome == "rerun" else None
"""
ONCE = "def test_reads(): loss.item()"
IN_A_SUBTEST = """
import unittest
class TestIt(unittest.TestCase):
    def test_reads(self):
        with self.subTest(): loss.item()
"""


@pytest.mark.parametrize("test", [ONCE, IN_A_SUBTEST], ids=["test", "subtest"])
def test_only_the_last_run_of_a_test_that_is_run_again_counts(run_pytest: Run, tmp_path: Path, test: str) -> None:
    done = run_pytest(f"{HEAD}\n{test}\n", "--syncscope-report", "waits.json", conftest=RUN_TWICE)
    assert done.code == 0 and report_of(tmp_path)["waits"] == 1, done.out


PROFILED = f"""{HEAD}
import syncscope.session

class Recording:
    def __init__(self, folder, **options): self.folder, self.options = folder, options
    def __enter__(self): torch.cuda.synchronize(); return self
    def __exit__(self, *error): torch.cuda.synchronize()

@pytest.fixture(autouse=True)
def recorder(monkeypatch): monkeypatch.setattr(syncscope.session, "profile", Recording)

def test_recorded(syncscope):
    with syncscope.profile(steps=5) as recording: pass
    assert recording.options == {{"steps": 5}} and recording.folder.is_dir()

def test_failing(syncscope):
    with syncscope.profile(): pass
    raise KeyError("mine")

@pytest.mark.max_syncs(0)
def test_limited(syncscope): syncscope.profile()
"""


def test_the_fixture_records_a_test_with_profile(run_pytest: Run, tmp_path: Path) -> None:
    done = run_pytest(PROFILED, "--max-syncs", "0", "--syncscope-report", "waits.json")
    states = {"test_recorded": "PASSED", "test_failing": "FAILED", "test_limited": "FAILED"}
    assert done.tests == states, done.out
    assert "recorded into " in done.out and "takes no max_syncs" in done.out
    assert report_of(tmp_path)["tests"]["test_it.py::test_recorded"] is None
    assert "; 2 tests recorded with profile, not counted" in done.out
