"""The examples of fixes are Python, belong to a fix, and say something else than what they replace."""

from __future__ import annotations

import ast

import pytest

from syncscope.rules import RULES
from syncscope.rules.examples import PAIRS, example
from syncscope.rules.fixes import FIXES


@pytest.mark.parametrize("needle", PAIRS)
def test_an_example_belongs_to_a_fix_and_is_python(needle: str) -> None:
    found = example(needle.split()[0], FIXES[needle])
    assert found is not None
    assert ast.dump(ast.parse(found.before)) != ast.dump(ast.parse(found.after))


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code)
def test_a_fix_without_an_example_has_what_the_rule_calls_bad_and_good(rule: object) -> None:
    code = next(one.code for one in RULES if one is rule)
    found = example(code, "a fix that has no example of its own")
    assert found is not None
    assert found.before and found.after and found.before != found.after
    assert not found.before.startswith(" ")


def test_a_rule_that_does_not_exist_has_none() -> None:
    assert example("XYZ999", "") is None
