"""``syncscope rules``."""

import pytest

from syncscope.rules import RULES
from tests.cli.conftest import Run


def test_every_rule_is_listed_with_its_name(run: Run) -> None:
    lines = run("rules").out.splitlines()
    for rule in RULES:
        assert any(line.split()[:3] == [rule.code, rule.name, rule.severity] for line in lines)


def test_the_beginning_of_codes_lists_those_rules(run: Run) -> None:
    codes = [line.split()[0] for line in run("rules", "cpy").out.splitlines() if line[:1].strip()]
    assert codes == sorted(rule.code for rule in RULES if rule.code.startswith("CPY"))


@pytest.mark.parametrize("name", ["SYN102", "syn102", "scalar-read"])
def test_one_rule_is_explained_by_code_or_name(run: Run, name: str) -> None:
    (rule,) = [rule for rule in RULES if rule.code == "SYN102"]
    done = run("rules", name)
    assert done.code == 0
    assert done.out.startswith("SYN102 scalar-read")
    assert rule.doc.strip().splitlines()[0].strip() in done.out


@pytest.mark.parametrize(("name", "hint"), [("SYN12", "SYN1"), ("scaler-read", "scalar-read"), ("x", "lists them")])
def test_an_unknown_rule_is_exit_2_with_a_hint(run: Run, name: str, hint: str) -> None:
    done = run("rules", name)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith(f'error: unknown rule "{name}"')
    assert hint in done.err


def test_waits_come_first_and_the_rules_of_a_compiler_last(run: Run) -> None:
    codes = [line.split()[0] for line in run("rules").out.splitlines() if line[:1].strip()]
    assert codes == sorted(codes, key=lambda code: code[3:])
    assert codes[0].startswith("SYN") and codes[-1].startswith("CMP")
