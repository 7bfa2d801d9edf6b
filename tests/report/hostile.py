"""Names that try to be more than names, and a report that is full of them."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from syncscope.schema.ranks import Unread
from syncscope.schema.report import Report
from syncscope.schema.verdict import Verdict

HOSTILE = {
    "markup": "</script><b>bold</b><img src=x onerror=alert(1)><!-- &amp; ]]>",
    "ansi": "\x1b[31mred\x1b[0m \x1b]8;;https://evil.example\x1b\\click\x1b]8;;\x1b\\ \x9b2J",
    "rich": "[red]markup[/red] :warning: [link=https://evil.example]x[/link]",
    "command": "::error file=a.py,line=1::injected",
    "old command": "x ##[error]injected ##[add-matcher]x.json",
    "percent": "100%0A::error::injected%0D%25,title=x: y",
    "newline": "one\n::error::two\r\n::stop-commands::x\u2028three\vfour\x85five",
    "control": "nul\x00 bell\x07 back\x08 unit\x1f del\x7f \ufffe\uffff",
    "markdown": "[click](https://evil.example) ![i](https://evil.example/i.png) **b** _i_ ~~s~~ # h > q - l 1. n",
    "table": "a | b \\| c || `code` ``two`` | --- |",
    "mention": "@everyone @octo/cat #1 owner/repo#2 https://www.evil.example www.evil.example me@evil.example",
    "html": "<a href='https://evil.example'>x</a><details><summary>",
    "placeholder": "{0} {1} [text](1) [sarif](sarif:/runs/0)",
    "bidi": "rtl\u202egnp.exe\u202c \u2066isolate\u2069 zero\u200bwidth \U000e0041tag",
    "path": "../../etc/passwd",
    "url": "https://evil.example/x.py",
    "drive": "C:\\windows\\x.py",
    "empty": "",
    "long": "x" * 5000,
}
"""By what they try. JSON, which reports and traces are read from, may hold any of them."""

CHOSEN = {"severity", "status", "site_source", "source", "outcome", "has", "rule", "kind"}
"""Fields that hold one of a few words."""

_UNSEEN = re.compile(
    "[\x00-\x09\x0b-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufffe\uffff\ud800-\udfff]"
)


def spoiled(report: Report, text: str) -> Report:
    """The report, and a trace of it that could not be read, with every free text in it replaced."""
    whole = msgspec.structs.replace(report, unread=(*report.unread, Unread(path="rank9.json", why="is empty")))
    return msgspec.convert(_spoiled(msgspec.to_builtins(whole), text), Report)


def spoiled_verdict(report: Report, text: str) -> Verdict:
    """A verdict on ``spoiled(report, text)`` against which everything stands."""
    bad = spoiled(report, text)
    budget = {"name": text, "allowed": 1.0, "found": 2.0, "outcome": "exceeded", "message": text, "trace": 0}
    return msgspec.convert(
        {
            "gate": sorted({finding.rule for finding in bad.findings}),
            "unexpected": msgspec.to_builtins([f for f in bad.findings if f.status == "unexpected"]),
            "stale": msgspec.to_builtins(bad.stale),
            "not_checked": msgspec.to_builtins(bad.not_checked),
            "unread": msgspec.to_builtins(bad.unread),
            "budgets": [budget, {**budget, "outcome": "not checked"}],
            "baseline": {"path": text, "outcome": "held", "covered": 1, "fixed": 1},
        },
        Verdict,
    )


def _spoiled(value: Any, text: str, key: str = "") -> Any:
    if isinstance(value, dict):
        free = key == "idle_by_cause"  # its keys are names too
        return {text if free else name: _spoiled(part, text, name) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_spoiled(part, text, key) for part in value]
    return text if isinstance(value, str) and key not in CHOSEN else value


def unseen(output: str) -> list[str]:
    """Characters of an output that cannot be seen or reorder what is; line ends aside."""
    return _UNSEEN.findall(output)
