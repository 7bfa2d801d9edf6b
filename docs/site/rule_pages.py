"""A page for each rule, made from the rule: its documentation, its record, its advice, and programs that have it."""

from __future__ import annotations

import json
import re
from textwrap import dedent, indent

from docs.does_it_wait import DATA
from docs.site.markdown import adapt, cell, code, fenced
from fixtures.labels import CASES, labels_of
from syncscope.advice import Advice
from syncscope.rules import RULES, Rule
from syncscope.rules.base.question import NoQuestion

MOST = 12
"""Operations that a page names; the others are on the page that lists them all."""

FEW = 6
"""Sentences of advice that are all shown at once."""

SECTION = re.compile(r"^(\w[\w ]*):\n((?:(?: .*)?\n)+)", re.MULTILINE)
"""The name of a piece of code in a docstring, and the indented lines below it."""


def ordered() -> list[Rule]:
    """The rules by their codes."""
    return sorted(RULES, key=lambda rule: rule.code)


def path_of(rule: Rule) -> str:
    """The page in the site."""
    return f"rules/{rule.code.lower()}.md"


def render(rule: Rule) -> str:
    """The page. Links lead from the root of the repository."""
    parts = [f"# {rule.code} {rule.name}\n", describe(rule.doc), "## In a report\n", _record(rule)]
    if advice := _advice(rule):
        parts += [
            "## What is advised\n",
            "A finding has the one that fits its op, its place and its copy.\n",
            advice,
        ]
    if operations := _operations(rule):
        parts += ["## Operations\n", operations]
    if programs := _programs(rule):
        parts += ["## Programs that have it\n", programs]
    parts += [
        "## If it is meant\n",
        fenced(f"line_that_waits()  # syncscope: expect {rule.code} -- why it may stay"),
        "[Configuration](docs/configuration.md) says how to expect it in several places.\n",
    ]
    return "\n".join(parts)


def describe(doc: str) -> str:
    """A docstring as Markdown: its pieces of code as blocks."""

    def shown(match: re.Match[str]) -> str:
        return f"**{match[1]}**\n\n{fenced(dedent(match[2]).strip())}\n"

    return adapt(SECTION.sub(shown, doc.rstrip() + "\n"))


def _record(rule: Rule) -> str:
    none = f"none is predicted: {rule.question.why}" if isinstance(rule.question, NoQuestion) else ""
    counted = "counted, also where no window recorded it" if rule.counted else "known where it was recorded"
    rows = [
        ("severity", rule.severity),
        ("`syncscope check`", "fails on it" if rule.gated else "does not fail on it, unless `gate` names it"),
        ("saving", none or "predicted by replaying the steps"),
        ("the trace must hold", ", ".join(map(code, rule.needs)) or "nothing in particular"),
        ("over a whole run", counted),
    ]
    table = "\n".join(f"| {name} | {text} |" for name, text in rows)
    return f"| | |\n|---|---|\n{table}\n\n[The table of rules](docs/rules.md) says what other traces show of it.\n"


def _advice(rule: Rule) -> str:
    """Each sentence once, with its change of code; many of them are folded, but for those that fit everything."""
    entries = list({entry.sentence: entry for entry in reversed(rule.advice)}.values())[::-1]
    if len(entries) <= FEW:
        return "\n".join(map(_entry, entries))
    general = "\n".join(_entry(entry) for entry in entries if not entry.when)
    special = "\n".join(_entry(entry) for entry in entries if entry.when)
    return f'{general}\n??? note "For single ops and places"\n\n{indent(special, "    ")}'


def _entry(entry: Advice) -> str:
    sentence = f"- {_prose(entry.sentence.replace('{op}', 'the op'))}\n"
    if entry.example is None:
        return sentence
    block = fenced(f"# before\n{entry.example.before}\n\n# after\n{entry.example.after}")
    return f"{sentence}\n{indent(block, '    ')}"


def _operations(rule: Rule) -> str:
    table = json.loads(DATA.read_text(encoding="utf-8"))
    names = [row["operation"] for row in table["operations"] if rule.code in row["rules"]]
    if not names:
        return ""
    listed = "\n".join(f"- {code(name)}" for name in names[:MOST])
    more = f" The first {MOST} of them:" if len(names) > MOST else ""
    return f"On an H200, {len(names)} operations of [Does it wait?](docs/does-it-wait.md) have it.{more}\n\n{listed}\n"


def _programs(rule: Rule) -> str:
    rows = []
    for case in CASES:
        labels = (label for label in labels_of(case) if label.rule == rule.code and label.severity != "note")
        lines = sorted({label.line or 0 for label in labels})
        if lines:
            where = ", ".join(str(line) for line in lines if line) or "no line"
            rows.append(f"| [{case}](fixtures/traces/{case}/workload.py) | {where} |\n")
    head = "Their labels were written before the recordings were looked at.\n\n| program | lines |\n|---|---|\n"
    return head + "".join(rows) if rows else ""


def _prose(text: str) -> str:
    """A sentence of a report: nothing in it is Markdown."""
    return cell(text).replace("*", "\\*").replace("_", "\\_")
