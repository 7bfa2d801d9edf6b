"""Every rule keeps the form that its documentation and the commands rely on."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from pathlib import Path
from typing import get_args

import pytest

import syncscope
from syncscope.estimate.questions import QUESTIONS
from syncscope.policy.policy import default_gate
from syncscope.rules import RULES, RankRule, Rule, RunRule, select
from syncscope.rules.base.question import NoQuestion
from syncscope.rules.base.race_rule import RaceRule
from syncscope.rules.base.rule import Hit, Inspection
from syncscope.rules.base.wait_rule import WaitRule
from syncscope.rules.cross_stream_race import CrossStreamRace
from syncscope.rules.overwrite_in_flight import OverwriteInFlight
from syncscope.rules.read_before_arrival import ReadBeforeArrival
from syncscope.schema.findings import SEVERITIES
from syncscope.schema.recording import CROSS_STREAM_RACE, OVERWRITE_IN_FLIGHT, READ_BEFORE_ARRIVAL, HazardRule

EACH = pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code)


def test_codes_and_names_are_unique():
    assert len({rule.code for rule in RULES}) == len({rule.name for rule in RULES}) == len(RULES)


@EACH
def test_code_name_and_severity_are_well_formed(rule: Rule):
    assert re.fullmatch(r"(SYN|CPY|OVL|HAZ|LCH|DST|CMP)\d{3}", rule.code)
    assert re.fullmatch(r"[a-z]+(-[a-z]+)*", rule.name)
    assert not rule.name.startswith("no-")
    assert rule.severity in SEVERITIES


@EACH
def test_the_file_is_called_after_the_rule(rule: Rule):
    assert type(rule).__module__ == "syncscope.rules." + rule.name.replace("-", "_")
    assert type(rule).__name__ == rule.name.title().replace("-", "")


@EACH
def test_the_docstring_says_what_why_bad_good_and_fine(rule: Rule):
    assert rule.summary.endswith(".")
    assert 20 < len(rule.summary) < 120
    parts = [rule.doc.index(part) for part in ("\n\nWhy it costs: ", "\n\nBad:\n", "\n\nGood:\n", "\n\nFine:\n")]
    assert parts == sorted(parts)


@EACH
def test_each_example_is_code(rule: Rule):
    for part in ("Bad", "Good", "Fine"):
        body = re.search(rf"\n{part}:\n((?:    .*\n|\n)+)", rule.doc + "\n")
        assert body, part
        assert body[1].strip()


@EACH
def test_a_rule_holds_no_state(rule: Rule):
    assert not vars(rule)


def unanswered(rules: Sequence[Rule]) -> list[str]:
    """The rules that neither ask something the estimate can try nor say why not."""
    return [
        rule.code
        for rule in rules
        if not (rule.question in QUESTIONS or (isinstance(rule.question, NoQuestion) and rule.question.why))
    ]


class Bogus(RankRule):
    """A rule with a question that nobody can try."""

    code = "SYN999"
    question = "none"  # type: ignore[assignment]

    def find(self, inspection: Inspection) -> list[Hit]:
        return []


def test_every_rule_has_a_question_that_the_estimate_can_try():
    assert unanswered(RULES) == []
    assert unanswered([Bogus()]) == ["SYN999"]


@EACH
def test_the_record_is_complete(rule: Rule):
    assert isinstance(rule.gated, bool)
    assert rule.needs and rule.advice
    assert isinstance(rule, RankRule | RunRule)
    own = vars(type(rule))
    assert {"code", "name", "severity", "needs", "gated", "question", "advice"} <= own.keys()


def test_waits_and_pageable_copies_are_gated():
    waits = ("SYN100", "SYN101", "SYN102", "SYN103", "SYN104", "SYN105", "SYN109", "SYN110")
    assert default_gate() == (*waits, "CPY201")


def test_races_are_recorded_for_the_rules_about_races():
    assert set(get_args(HazardRule)) == {rule.code for rule in RULES if isinstance(rule, RaceRule)}
    assert [ReadBeforeArrival.code, OverwriteInFlight.code, CrossStreamRace.code] == [
        READ_BEFORE_ARRIVAL,
        OVERWRITE_IN_FLIGHT,
        CROSS_STREAM_RACE,
    ]


CODE = re.compile(r"(SYN|CPY|OVL|LCH|HAZ|DST|CMP)\d*")
PACKAGE = Path(syncscope.__file__).parent
NAMES_CODES = {"schema/recording.py", "schema/findings.py"}
"""Part of a file's format: the races that the collector writes down, the wait that matches any other in a report, that
without which nothing is known of waits, and what the figures of a rule are of."""


def codes_in(source: str) -> list[str]:
    """Rules' codes and beginnings of codes among the constants of a module, but for a class's own ``code``."""
    tree = ast.parse(source)
    own = {
        id(statement.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
        for statement in node.body
        if isinstance(statement, ast.Assign) and [ast.unparse(target) for target in statement.targets] == ["code"]
    }
    constants = (node for node in ast.walk(tree) if isinstance(node, ast.Constant) and id(node) not in own)
    return [str(node.value) for node in constants if isinstance(node.value, str) and CODE.fullmatch(node.value)]


@pytest.mark.parametrize("file", sorted(path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.py")))
def test_no_other_module_names_a_rules_code(file: str):
    found = codes_in((PACKAGE / file).read_text(encoding="utf-8"))
    assert found == [] or file in NAMES_CODES


@pytest.mark.parametrize(
    "line", ['if code == "SYN102": pass', 'code.startswith(("OVL", "LCH"))', 'code = "SYN102"', 'GATE = {"CPY201": 1}']
)
def test_a_branch_on_a_code_would_be_seen(line: str):
    assert codes_in(line)


def test_print_comes_first_and_library_last_of_the_waits():
    waits = [rule.code for rule in RULES if isinstance(rule, WaitRule)]
    assert waits == ["SYN104", "SYN110", "SYN106", "SYN105", "SYN103", "SYN102", "SYN101", "SYN109"]


COPIES = {"CPY201", "CPY202", "CPY203", "CPY204"}


class TestSelect:
    def test_nothing_selects_all(self):
        assert select() == RULES

    def test_prefixes_and_codes(self):
        assert {rule.code for rule in select(["CPY", "SYN102"], [])} == {
            "CPY201",
            "CPY202",
            "CPY203",
            "CPY204",
            "SYN102",
        }

    def test_ignore_wins(self):
        assert "SYN102" not in {rule.code for rule in select(["SYN"], ["SYN102"])}

    @pytest.mark.parametrize("wrong", ["SYN999", "scalar", ""])
    def test_an_unknown_rule_is_named(self, wrong: str):
        with pytest.raises(ValueError, match=repr(wrong)):
            select([], [wrong])
