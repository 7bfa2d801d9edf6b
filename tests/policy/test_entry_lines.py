"""The line of each entry, in every way TOML lets one write them; ``tomllib`` says how many there are."""

import sys

import pytest

from syncscope.policy.config import entry_lines

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

KEY = "tool.syncscope.expect"

ONE_LINE = '[tool.syncscope]\nexpect = [{ rule = "A", reason = "r" }, { rule = "B", reason = "r" }]\n'
SPREAD = """
[tool.other]
expect = [ { rule = "not ours" } ]
[tool.syncscope]
gate = ["SYN"]
expect = [
  { rule = "A", reason = "closing ] } in a string" },

  { rule = 'B', reason = '''x [ {''' },  # { comment
]
own = ["x"]
"""
HEADERS = """
[[tool.syncscope.expect]]
rule = "A"
reason = '''
[[tool.syncscope.expect]]
'''

  [[ tool.syncscope . expect ]]  # second
rule = "B"
reason = "r"
[tool.syncscope]
own = []
"""
DOTTED = '[tool]\nsyncscope.own = []\nsyncscope.expect = [\n  { rule = "A", reason = "r" },\n]\n'
ROOT = 'tool.syncscope.expect = [{ rule = "A", x.y = [{}], reason = "r" }]\n'


@pytest.mark.parametrize(
    ("text", "lines"),
    [(ONE_LINE, [2, 2]), (SPREAD, [7, 9]), (HEADERS, [2, 8]), (DOTTED, [4]), (ROOT, [1])],
    ids=["one line", "spread", "headers", "dotted", "root"],
)
def test_lines_of_entries(text: str, lines: list[int]) -> None:
    document = tomllib.loads(text)
    assert len(document["tool"]["syncscope"]["expect"]) == len(lines)
    assert entry_lines(text, KEY) == lines


def test_a_spelling_that_is_not_known_gives_another_number() -> None:
    text = '[tool."syncscope"]\nexpect = [{ rule = "A", reason = "r" }]\n'
    assert len(tomllib.loads(text)["tool"]["syncscope"]["expect"]) == 1
    assert entry_lines(text, KEY) == []
