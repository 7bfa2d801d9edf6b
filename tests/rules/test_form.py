"""Every rule keeps the form that its documentation and the commands rely on."""

from __future__ import annotations

import re

import pytest

from syncscope.rules import RULES, Rule, select
from syncscope.rules.rule import WaitRule
from syncscope.schema.findings import SEVERITIES

EACH = pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code)


def test_codes_and_names_are_unique():
    assert len({rule.code for rule in RULES}) == len({rule.name for rule in RULES}) == len(RULES)


@EACH
def test_code_name_and_severity_are_well_formed(rule: Rule):
    assert re.fullmatch(r"(SYN|CPY|OVL|HAZ|LCH|DST)\d{3}", rule.code)
    assert re.fullmatch(r"[a-z]+(-[a-z]+)+", rule.name)
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
