"""The catalogue says of the rules what they say. ``python -m tests.rules.test_catalogue`` writes it again."""

from __future__ import annotations

import json

from syncscope.rules import RULES, Rule, RunRule
from syncscope.schema.catalogue import FILE, RuleEntry, read_catalogue


def made() -> tuple[RuleEntry, ...]:
    every = sorted(RULES, key=lambda rule: rule.code[3:])  # waits first, then copies, overlap, races, …
    return tuple(map(entry_of, every))


def entry_of(rule: Rule) -> RuleEntry:
    return RuleEntry(
        code=rule.code, name=rule.name, severity=rule.severity, doc=rule.doc, gated=rule.gated,
        counts_as_wait=rule.counts_as_wait, counted=rule.counted, compares_ranks=isinstance(rule, RunRule),
        needs=rule.needs, limited_by=rule.limited_by,
    )  # fmt: skip


def test_the_catalogue_is_what_the_rules_say():
    assert read_catalogue() == made(), "write it again: python -m tests.rules.test_catalogue"


def test_summaries_are_those_of_the_rules():
    summaries = {rule.code: rule.summary for rule in RULES}
    assert {entry.code: entry.summary for entry in read_catalogue()} == summaries


if __name__ == "__main__":
    entries = [entry._asdict() for entry in made()]
    FILE.write_text(json.dumps(entries, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
