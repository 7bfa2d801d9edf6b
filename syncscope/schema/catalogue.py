"""What the rules say of themselves, to be read without the rules: those need numpy, and most of a second of imports."""

import functools
import json
from pathlib import Path
from typing import NamedTuple

FILE = Path(__file__).with_name("rules.json")
"""Made from the rules by ``python -m tests.rules.test_catalogue``; a test compares it with them."""


class RuleEntry(NamedTuple):
    """What is said of one rule."""

    code: str
    name: str
    severity: str
    doc: str
    gated: bool
    counts_as_wait: bool
    counted: bool
    compares_ranks: bool
    needs: tuple[str, ...]
    limited_by: str

    @property
    def summary(self) -> str:
        """The first line of the documentation."""
        return self.doc.split("\n", 1)[0]


@functools.cache
def read_catalogue() -> tuple[RuleEntry, ...]:
    """All rules, in the order of their codes."""
    entries = json.loads(FILE.read_text(encoding="utf-8"))
    return tuple(RuleEntry(**{**entry, "needs": tuple(entry["needs"])}) for entry in entries)


@functools.cache
def rules_by_code() -> dict[str, RuleEntry]:
    """All rules by code."""
    return {entry.code: entry for entry in read_catalogue()}
