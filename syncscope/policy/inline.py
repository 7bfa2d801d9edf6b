"""Expectations written in the program: ``x = loss.item()  # syncscope: expect SYN102 -- one read an epoch``.

A comment speaks of its own line alone, so only findings whose very line was recorded are meant. It is looked for in
the files that the recordings name: those where something was found, and those that the program had loaded, since the
wait of a stale comment is gone. Recordings that do not list their files leave the files in their findings' call chains.
"""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Iterator, Sequence
from glob import escape
from itertools import islice
from pathlib import Path

from syncscope.policy.config import ConfigError, codes_of
from syncscope.policy.policy import Expectation
from syncscope.policy.source import read_source
from syncscope.schema.report import Report

MARKER = b"syncscope:"
MOST_FILES = 5000
"""A trace may name as many as it likes."""

_COMMENT = re.compile(r"#\s*syncscope:\s*expect\b")
_NEXT_COMMENT = re.compile(r"\s#\s")


def comments(report: Report, folders: Sequence[Path]) -> tuple[Expectation, ...]:
    """The expectations in the files that the report's recordings name and that ``folders`` hold (``read_source``).

    Raises ``ConfigError``, naming file and line, for a comment without a reason or a rule.
    """
    if not folders:
        return ()
    return tuple(expectation for name in islice(_names(report), MOST_FILES) for expectation in _of_file(name, folders))


def _names(report: Report) -> Iterator[str]:
    """The files to look into, each once. Traces without recorded lines name none: theirs are those of functions."""
    recorded = {index for index, info in enumerate(report.traces) if "sites" in info.has}
    found: dict[str, None] = {}
    for index in sorted(recorded):
        found.update(dict.fromkeys(report.traces[index].files or ()))
    for finding in report.findings:
        if finding.trace in recorded and finding.site is not None:
            found[finding.site.file] = None
            if report.traces[finding.trace].files is None:
                found.update(dict.fromkeys(frame.file for frame in finding.chain))
    return (name for name in found if not name.startswith("<"))


def _of_file(name: str, folders: Sequence[Path]) -> Iterator[Expectation]:
    data = read_source(name, folders)
    if data is None or MARKER not in data:
        return
    for line, text in _comments(data):
        match = _COMMENT.search(text)
        if match:
            yield from _expectations(f"{name}:{line}", name, line, _NEXT_COMMENT.split(text[match.end() :], 1)[0])


def _comments(data: bytes) -> Iterator[tuple[int, str]]:
    """Line and text of every comment, up to where the file is no Python this version knows."""
    try:
        for token in tokenize.tokenize(io.BytesIO(data).readline):
            if token.type == tokenize.COMMENT:
                yield token.start[0], token.string
    except (SyntaxError, tokenize.TokenError, ValueError):
        return


def _expectations(where: str, name: str, line: int, text: str) -> Iterator[Expectation]:
    """What ``SYN102, CPY201 -- reason`` means: one expectation a rule, so that each can be stale by itself."""
    listed, _, given = text.partition("--")
    rules, reason = re.findall(r"[^,\s]+", listed), " ".join(given.split())
    if not rules:
        raise ConfigError(where, "syncscope: expect names no rule; write: expect SYN102 -- why it is fine")
    if not reason:
        raise ConfigError(where, f"syncscope: expect {', '.join(rules)} gives no reason; add: -- why it is fine")
    for rule in rules:
        try:
            codes = frozenset(codes_of([rule]))
        except ValueError as error:
            raise ConfigError(where, f"syncscope: expect: {error}") from None
        yield Expectation(rule=rule, codes=codes, reason=reason, where=where, file=escape(name), line=line)
