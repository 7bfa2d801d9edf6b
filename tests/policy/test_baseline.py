"""The ratchet: what may stay, what is new, what became less, and a file that reviews and merges well."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from syncscope.policy import Baseline, BaselineCheck, BaselineError, Policy, check_baseline, check_gate, read_baseline
from syncscope.schema.findings import Finding, Frame, fingerprint
from syncscope.schema.report import NotChecked, Report, Steps
from tests.report import sample

POLICY = Policy(gate=("SYN102", "CPY201"))


def wait(function: str = "train_step", ordinal: int = 0, line: int = 42, **changes: Any) -> Finding:
    """An unexpected loss.item(), once a step; ``ordinal`` tells equal ones of a function apart."""
    rule = changes.get("rule", "SYN102")
    finding = sample.finding(rule, "scalar-read", line, "loss.item()", severity="error")
    assert finding.site is not None
    site = msgspec.structs.replace(finding.site, function=function)
    key = fingerprint(rule, "train.py", function, "loss.item()", ordinal)
    return msgspec.structs.replace(finding, **{"site": site, "fingerprint": key, **changes})


def report(*findings: Finding, traces: int = 1, **changes: Any) -> Report:
    infos = [sample.trace_info(f"rank{rank}.json", rank) for rank in range(traces)]
    clean = {"stale": (), "not_checked": (), **changes}
    return msgspec.structs.replace(sample.report(infos, findings), **clean)


def adopted(*findings: Finding) -> Baseline:
    """The baseline of a project that adopts the gate with these findings."""
    return check_baseline(report(*findings), POLICY, None).tightened


def code(result: BaselineCheck) -> int:
    return check_gate(result.report, POLICY).exit_code


def test_the_first_run_covers_everything_that_would_fail() -> None:
    result = check_baseline(
        report(wait(), wait("evaluate"), wait(rule="OVL301"), wait("log", status="expected")), POLICY, None
    )
    assert (result.covered, result.fixed, code(result)) == (2, 0, 0)
    assert {finding.status for finding in result.report.findings if finding.rule == "SYN102"} == {
        "baseline",
        "expected",
    }
    assert {(entry.rule, entry.function) for entry in result.tightened.findings.values()} == {
        ("SYN102", "train_step"),
        ("SYN102", "evaluate"),
    }


def test_what_was_there_may_stay_wherever_it_moves_and_what_is_new_fails() -> None:
    result = check_baseline(report(wait(line=7), wait("evaluate")), POLICY, adopted(wait(line=42)))
    assert code(result) == 1
    assert [f.site.function for f in check_gate(result.report, POLICY).unexpected if f.site] == ["evaluate"]
    assert [f.exceeds for f in result.report.findings] == [None, None]


def test_a_count_that_grows_fails_and_says_what_it_was() -> None:
    result = check_baseline(report(wait(per_step=2.0)), POLICY, adopted(wait()))
    assert code(result) == 1
    assert result.report.findings[0].exceeds == "baseline 1, now 2 a step"


@pytest.mark.parametrize("text", ["( loss.item( ) )", "loss.item()  # the mean"])
def test_formatting_an_expression_and_comments_on_its_line_do_not_make_it_new(text: str) -> None:
    before, formatted = adopted(wait()), wait(fingerprint=fingerprint("SYN102", "train.py", "train_step", text))
    assert formatted.site is not None
    formatted = msgspec.structs.replace(formatted, site=msgspec.structs.replace(formatted.site, expression=text))
    result = check_baseline(report(formatted), POLICY, before)
    assert (code(result), result.fixed, result.tightened) == (0, 0, before)
    assert code(check_baseline(report(formatted, wait(ordinal=1)), POLICY, before)) == 1


def in_steps(waits: int, steps: int) -> Finding:
    """A loss.item() that waits in some of the recorded steps, or more than once in some."""
    return wait(count=waits, per_step=waits / steps)


@pytest.mark.parametrize(
    ("before", "now", "steps", "passes"),
    [
        (3, 4, 5, True),  # every second step or so: another window, another occurrence
        (4, 5, 5, True),
        (1, 2, 3, True),
        (3, 5, 5, False),
        (1, 3, 3, False),
        (5, 6, 5, False),  # once in each step holds whichever steps were recorded, so the sixth is new
        (0, 1, 5, False),
    ],
)
def test_which_steps_were_recorded_does_not_make_a_wait_more_frequent(
    before: int, now: int, steps: int, passes: bool
) -> None:
    baseline = adopted(*([in_steps(before, steps)] if before else []))
    assert (code(check_baseline(report(in_steps(now, steps)), POLICY, baseline)) == 0) == passes


def test_which_steps_were_recorded_changes_nothing_in_the_file() -> None:
    before = adopted(in_steps(3, 5))
    for waits in (2, 3, 4):
        result = check_baseline(report(in_steps(waits, 5)), POLICY, before)
        assert (result.fixed, result.tightened) == (0, before)
    result = check_baseline(report(in_steps(1, 5)), POLICY, before)
    assert (result.fixed, [entry.per_step for entry in result.tightened.findings.values()]) == (1, [0.2])


def test_a_count_within_the_bounds_of_a_run_does_not_raise_the_baseline() -> None:
    def counted(occurrences: int) -> Finding:
        mean = occurrences / 100
        return wait(run_per_step=mean, run_per_step_low=mean, run_per_step_high=mean, occurrences=occurrences)

    before = adopted(counted(10))
    result = check_baseline(report(counted(11)), POLICY, before)
    assert (code(result), result.tightened) == (0, before)


def test_when_equal_lines_grow_in_number_every_one_is_a_candidate() -> None:
    result = check_baseline(report(wait(line=40), wait(line=42, ordinal=1)), POLICY, adopted(wait(line=40)))
    told = "baseline 1, now 2 a step: any of 2 equal lines may be the new one"
    assert [finding.exceeds for finding in result.report.findings] == [told, told]
    assert len(check_gate(result.report, POLICY).unexpected) == 2


def test_findings_of_several_frames_below_one_line_count_together() -> None:
    below = [wait(at=Frame(file="<site-packages>/lib.py", line=line, function="read")) for line in (1, 2)]
    assert code(check_baseline(report(*below), POLICY, adopted(*below))) == 0
    assert code(check_baseline(report(*below), POLICY, adopted(below[0]))) == 1


def test_of_several_ranks_the_one_with_the_most_counts() -> None:
    ranks = report(wait(per_step=1.0), wait(per_step=2.0, trace=1), traces=2)
    assert code(check_baseline(ranks, POLICY, adopted(wait(per_step=2.0)))) == 0
    assert code(check_baseline(ranks, POLICY, adopted(wait(per_step=1.0)))) == 1


def test_what_is_fixed_is_counted_and_taken_out() -> None:
    before = adopted(wait(), wait("evaluate"), wait("log", per_step=3.0))
    after = report(wait(), wait("log", per_step=2.0))
    result = check_baseline(after, POLICY, before)
    assert (result.covered, result.fixed, code(result)) == (2, 2, 0)
    assert {entry.function: entry.per_step for entry in result.tightened.findings.values()} == {
        "train_step": 1,
        "log": 2,
    }
    assert check_baseline(after, POLICY, result.tightened).fixed == 0


def test_taking_away_the_first_of_equal_lines_does_not_make_the_others_new() -> None:
    before = adopted(wait(ordinal=0), wait(ordinal=1, per_step=2.0))
    result = check_baseline(report(wait(ordinal=0, per_step=2.0)), POLICY, before)
    assert (code(result), result.fixed) == (0, 1)
    assert code(check_baseline(report(wait(ordinal=0, per_step=2.0)), POLICY, result.tightened)) == 0


def test_an_entry_that_nobody_looked_at_is_neither_fixed_nor_taken_out() -> None:
    before = adopted(wait(), wait(rule="CPY201"))
    blind = report(wait(), not_checked=(NotChecked(rule="CPY201", why="no"),))
    for result in (
        check_baseline(blind, POLICY, before),
        check_baseline(report(wait()), Policy(gate=("SYN102",)), before),
    ):
        assert (result.fixed, result.tightened) == (0, before)


def test_a_finding_that_exceeds_expectation_and_baseline_says_both() -> None:
    beyond = wait(per_step=3.0, exceeds="expected at most 1 a step, found 3")
    assert check_baseline(report(beyond), POLICY, adopted(wait(per_step=2.0))).report.findings[0].exceeds == (
        "expected at most 1 a step, found 3; baseline 2, now 3 a step"
    )
    assert check_baseline(report(beyond), POLICY, adopted(wait(per_step=3.0))).report.findings[0].exceeds is None


def test_without_steps_there_is_nothing_to_compare() -> None:
    steps = Steps(count=0, profiled_ms=None, bare_ms=None, source="none")
    info = msgspec.structs.replace(sample.trace_info("run.json"), steps=steps)
    bare = msgspec.structs.replace(report(wait(per_step=None)), traces=(info,))
    with pytest.raises(BaselineError, match=r"run\.json: a baseline needs counts a step, and this trace has no steps"):
        check_baseline(bare, POLICY, None)


def test_the_file_holds_a_line_a_finding_in_order_of_places_and_nothing_of_the_machine(tmp_path: Path) -> None:
    found = [wait("b"), wait("a", per_step=0.4), wait(site=None, op="aten::item", fingerprint="0" * 16)]
    text = adopted(*found).to_json()
    assert text == adopted(*reversed(found)).to_json()
    rows = [
        '    "0000000000000000": {"rule": "SYN102", "op": "aten::item", "per_step": 1},',
        f'    "{found[1].fingerprint}": {{"rule": "SYN102", "file": "train.py", "function": "a", '
        '"expression": "loss.item()", "per_step": 0.4},',
        f'    "{found[0].fingerprint}": {{"rule": "SYN102", "file": "train.py", "function": "b", '
        '"expression": "loss.item()", "per_step": 1}',
    ]
    shown = '    {"phase": null, "steps": 3, "one_in": 1, "mode": "full"}'
    head = ["{", '  "format": 2,', '  "recorded": [', shown, "  ],"]
    assert text.splitlines() == [*head, '  "findings": {', *rows, "  }", "}"]
    (tmp_path / "baseline.json").write_text(text)
    assert read_baseline(tmp_path / "baseline.json") == adopted(*found)


def test_an_empty_baseline_is_a_baseline(tmp_path: Path) -> None:
    (tmp_path / "baseline.json").write_text(adopted().to_json())
    assert read_baseline(tmp_path / "baseline.json") == adopted()
    assert adopted().findings == {}


def test_hostile_names_are_plain_text_in_the_file() -> None:
    text = adopted(wait("\x1b[31m\u202e\n::error::</script>")).to_json()
    assert text.isascii() and text.replace("\n", "").isprintable()
    assert text.count("\n") == 9


def test_no_file_is_no_baseline(tmp_path: Path) -> None:
    assert read_baseline(tmp_path / "baseline.json") is None


ENTRY = b'{"rule": "SYN102", "per_step": 1}'


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "not a baseline: "),
        (b"{", "not a baseline: "),
        (b"[]", "not a baseline: "),
        (b"\xff\xfe", "not a baseline: "),
        (b'{"findings": {}}', "not a baseline: "),
        (b'{"format": 1, "findings": {"a": {"rule": "SYN102"}}}', "not a baseline: "),
        (b'{"format": 1, "findings": {"a": {"rule": "SYN102", "per_step": -1}}}', "not a baseline: "),
        (b'{"format": 1, "findings": {}, "traces": []}', "not a baseline: "),
        (b'{"format": 0, "findings": {}}', "not a baseline: "),
        (b'{"format": 1, "findings": {}, "findings": {}}', 'names "findings" twice, as after a merge'),
        (b'{"format": 1, "findings": {"a": %s, "a": %s}}' % (ENTRY, ENTRY), 'names "a" twice, as after a merge'),
        (b'{"format": 3, "entries": []}', "was written by a newer syncscope (format 3; this version reads up to 2)"),
    ],
)
def test_a_file_that_is_no_baseline_says_so_in_one_line(data: bytes, said: str, tmp_path: Path) -> None:
    path = tmp_path / "baseline.json"
    path.write_bytes(data)
    with pytest.raises(BaselineError) as caught:
        read_baseline(path)
    assert str(caught.value).startswith(f"{path}: {said}")
    assert "\n" not in str(caught.value)


def test_a_folder_is_no_baseline(tmp_path: Path) -> None:
    with pytest.raises(BaselineError, match=r"Is a directory|Permission denied"):
        read_baseline(tmp_path)
