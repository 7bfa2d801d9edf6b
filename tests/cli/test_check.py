"""``syncscope check``: its four exit codes, and what it says for each."""

import json
from pathlib import Path

import pytest

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


def test_a_comment_on_the_line_expects_the_wait_there(run: Run, folder: Path) -> None:
    comment = "# syncscope: expect SYN102 -- one read an epoch"
    (folder / "train.py").write_text("\n" * 20 + f"total += loss.item()  {comment}\n")
    done = run("check", "waiting.json.gz")
    assert (done.code, done.out.splitlines()[-1].endswith(" · 1 expected")) == (0, True)
    traces.clean(files=("train.py",)).write(folder / "fixed.json")
    done = run("check", "fixed.json")
    assert done.code == 1
    assert 'stale expectation train.py:21: SYN102 matches nothing; delete it (it says "one read an epoch")' in (
        " ".join(done.out.split())
    )


def test_a_comment_without_a_reason_is_wrong_configuration(run: Run, folder: Path) -> None:
    (folder / "train.py").write_text("loss.item()  # syncscope: expect SYN102\n")
    done = run("check", "waiting.json.gz")
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("error: train.py:1: syncscope: expect SYN102 gives no reason")


def test_the_output_names_what_exceeds_an_expectation(run: Run, folder: Path) -> None:
    expect(folder, "SYN102", ", max_per_step = 0.5")
    done = run("check", "waiting.json.gz")
    assert done.code == 1
    assert "\n  expected at most 0.5 a step, found 1\n" in done.out


def test_an_override_ignores_a_path(run: Run, folder: Path) -> None:
    (folder / "syncscope.toml").write_text('[[overrides]]\npath = "train*"\nignore = ["SYN102"]\n')
    assert run("check", "waiting.json.gz").code == 0


def budgets(folder: Path, text: str) -> None:
    (folder / "syncscope.toml").write_text(f"[budgets]\n{text}\n")


def test_a_budget_in_time_fails_beyond_the_spread(run: Run, folder: Path) -> None:
    budgets(folder, "max_unexpected_syncs_per_step = 1\nmax_stall_share = 0.1")
    done = run("check", "waiting.json.gz")
    assert done.code == 1
    assert "budget exceeded max_stall_share: the host is blocked for 45 % of a step" in done.out
    assert done.out.endswith("failed: 1 budget exceeded · 1 within the budget\n")


def test_a_budget_that_is_kept_passes(run: Run, folder: Path) -> None:
    budgets(folder, "max_unexpected_syncs_per_step = 1\nmax_stall_share = 0.5\nmax_exposed_copy_ms = 1")
    done = run("check", "waiting.json.gz")
    assert done.code == 0
    assert "budget kept max_unexpected_syncs_per_step: 1 unexpected wait a step, 1 allowed" in done.out


def test_a_budget_that_cannot_be_checked_is_3(run: Run, folder: Path) -> None:
    budgets(folder, "max_stall_share = 0.5")
    traces.clean(steps=2).write(folder / "short.json")
    done = run("check", "short.json")
    assert done.code == 3
    assert "budget not checked max_stall_share: needs at least 3 steps, and there are 2" in done.out
    assert done.out.endswith("failed: 1 budget not checked\n")


@pytest.mark.parametrize(("trace", "code"), [("waiting.json.gz", 0), ("blind.json", 3)])
def test_exit_zero_is_for_findings_not_for_what_could_not_be_checked(
    trace: str, code: int, run: Run, folder: Path
) -> None:
    traces.blind().write(folder / "blind.json")
    done = run("check", trace, "--exit-zero")
    assert done.code == code
    assert done.out.splitlines()[-1].startswith("failed: ")


def test_exit_zero_does_not_hide_a_rule_that_could_not_be_checked_behind_findings(run: Run, folder: Path) -> None:
    traces.blind().write(folder / "blind.json")
    assert run("check", "waiting.json.gz", "blind.json").code == 1
    assert run("check", "waiting.json.gz", "blind.json", "--exit-zero").code == 3
