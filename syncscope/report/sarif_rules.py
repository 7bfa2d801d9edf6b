"""The rules' docstrings as SARIF's rule descriptors: a short text, a full text and markdown."""

from __future__ import annotations

import re
from typing import Any

from syncscope.patterns import compile_later
from syncscope.rules import RULES, Rule
from syncscope.schema import address

PROBLEM = {"error": "error", "warning": "warning", "note": "recommendation"}
"""GitHub's words for a severity."""

_EXAMPLES = compile_later(r"^(Bad|Good|Fine):\n((?:    .*(?:\n|$))+)", re.MULTILINE)


def descriptors() -> list[dict[str, Any]]:
    """One ``reportingDescriptor`` a rule, in order of their codes."""
    return [_descriptor(rule) for rule in sorted(RULES, key=lambda rule: rule.code)]


def _descriptor(rule: Rule) -> dict[str, Any]:
    return {
        "id": rule.code,
        "name": rule.name,
        "shortDescription": {"text": rule.summary},
        "fullDescription": {"text": f"{rule.summary} {_why(rule.doc)}".strip()},
        "defaultConfiguration": {"level": rule.severity},
        "helpUri": address.RULES,
        "help": {"text": rule.doc, "markdown": as_markdown(rule.doc)},
        "properties": {
            "tags": ["performance", "gpu", "pytorch"],
            "precision": "high",
            "problem.severity": PROBLEM[rule.severity],
        },
    }


def _why(doc: str) -> str:
    """The paragraph on what it costs."""
    match = re.search(r"\n\nWhy it costs: (.*?)\n\n", doc, re.DOTALL)
    return " ".join(match[1].split()) if match else ""


def as_markdown(doc: str) -> str:
    """A docstring with its examples as blocks of code."""

    def block(match: re.Match[str]) -> str:
        lines = "\n".join(line[4:] for line in match[2].rstrip().split("\n"))
        return f"**{match[1]}**\n\n```python\n{lines}\n```\n"

    return _EXAMPLES.sub(block, doc + "\n").replace("Why it costs: ", "**Why it costs:** ").strip() + "\n"
