"""``syncscope check``: its four exit codes, and what it says for each."""

import json
from pathlib import Path

from tests.cli import traces
from tests.cli.conftest import Run


def expect(folder: Path, rule: str, more: str = "") -> None:
    (folder / "syncscope.toml").write_text(f'expect = [\n  {{ rule = "{rule}", reason = "logs"{more} }},\n]\n')


def test_a_clean_trace_passes(run: Run) -> None:
    done = run("check", "clean.json")
    assert done.code == 0
    assert done.out.splitlines()[-1].startswith("passed: SYN101, SYN102, ")


def test_a_wait_fails_and_is_named(run: Run) -> None:
    done = run("check", "waiting.json.gz")
    assert done.code == 1
    assert "train.py:21  loss.item()  in train_step" in done.out
    assert done.out.endswith("failed: 1 unexpected finding\n")


def test_an_expected_wait_passes(run: Run, folder: Path) -> None:
    expect(folder, "SYN102", ', file = "train.py", function = "train_*"')
    done = run("check", "waiting.json.gz")
    assert done.code == 0
    assert done.out.endswith(" · 1 expected\n")


def test_an_expectation_that_matches_nothing_fails_and_names_its_line(run: Run, folder: Path) -> None:
    expect(folder, "SYN103")
    done = run("check", "clean.json")
    assert done.code == 1
    assert "stale expectation syncscope.toml:2: SYN103 matches nothing; delete it" in done.out
    assert done.out.endswith("failed: 1 stale expectation\n")


def test_an_expectation_answered_by_one_of_the_traces_is_not_stale(run: Run, folder: Path) -> None:
    expect(folder, "SYN102")
    assert run("check", "clean.json", "waiting.json.gz").code == 0


def test_no_runtime_calls_is_not_clean(run: Run, folder: Path) -> None:
    traces.blind().write(folder / "blind.json")
    done = run("check", "blind.json")
    assert done.code == 3
    (line,) = [line for line in done.out.splitlines() if line.startswith("not checked ")]
    assert "SYN101" in line
    assert "passed" not in done.out


def test_wrong_configuration_names_file_and_key(run: Run, folder: Path) -> None:
    (folder / "syncscope.toml").write_text('gates = ["SYN"]\n')
    done = run("check", "clean.json")
    assert (done.code, done.out) == (2, "")
    assert done.err == 'error: syncscope.toml: the file: unknown key "gates", did you mean "gate"?\n'


def test_an_unreadable_trace_is_3_not_1(run: Run, folder: Path) -> None:
    (folder / "empty.json").touch()
    assert run("check", "clean.json", "empty.json").code == 3


def test_the_gate_of_the_configuration_holds(run: Run, folder: Path) -> None:
    (folder / "syncscope.toml").write_text('gate = ["SYN101"]\n')
    assert run("check", "waiting.json.gz").code == 0


def test_select_replaces_the_gate_and_ignore_takes_from_it(run: Run, folder: Path) -> None:
    (folder / "syncscope.toml").write_text('gate = ["SYN101"]\n')
    assert run("check", "waiting.json.gz", "--select", "SYN102").code == 1
    (folder / "syncscope.toml").unlink()
    assert run("check", "waiting.json.gz", "--ignore", "SYN102").code == 0


def test_a_gate_without_rules_is_wrong_usage(run: Run) -> None:
    done = run("check", "waiting.json.gz", "--select", "SYN102", "--ignore", "SYN")
    assert done.code == 2
    assert "leave no rule" in done.err


def test_json_has_the_whole_report_with_its_statuses(run: Run, folder: Path) -> None:
    expect(folder, "SYN102")
    done = run("check", "waiting.json.gz", "--format", "json")
    assert done.code == 0
    statuses = {finding["rule"]: finding["status"] for finding in json.loads(done.out)["findings"]}
    assert statuses["SYN102"] == "expected"


def test_outputs_are_written_when_the_gate_fails(run: Run, folder: Path) -> None:
    assert run("check", "waiting.json.gz", "-o", "report.html").code == 1
    assert (folder / "report.html").stat().st_size > 1000
