"""Which lines may wait, judged while a program runs: their rules are not known yet.

A line is known where the baseline has its expression under any rule, or where the configuration or a comment on the
line expects it. Counts are not compared here: ``syncscope check`` does that with the whole run.
"""

from __future__ import annotations

import linecache
import os
from fnmatch import fnmatchcase
from pathlib import Path

import msgspec

from syncscope.patterns import compile_later
from syncscope.policy.baseline import Baseline, BaselineError, read_baseline
from syncscope.policy.config import settings_without_rules
from syncscope.policy.settings import Expect
from syncscope.schema.expressions import without_format

_COMMENT = compile_later(r"#\s*syncscope:\s*expect\b")


class KnownLines(msgspec.Struct, frozen=True):
    expressions: frozenset[tuple[str, str, str]]
    """File, function and expression of the baseline's entries."""
    expected: tuple[Expect, ...] = ()
    root: Path | None = None
    """The folder that files are relative to."""
    phases: tuple[str, ...] | None = None
    """Kinds or names of the phases that the configuration judges; ``None`` where it does not say."""

    def __contains__(self, place: tuple[str, int | None, str, str | None]) -> bool:
        """Whether ``(file, line, function, expression)`` may wait."""
        file, line, function, expression = place
        if (file, function, without_format(expression)) in self.expressions:
            return True
        if any(_covers(entry, file, function) for entry in self.expected):
            return True
        return line is not None and self.root is not None and _has_comment(self.root / file, line)


def read_known_lines(baseline: Path, start: Path) -> KnownLines:
    """What the baseline and the configuration of the folder ``start`` let wait.

    A baseline that is not written yet knows no line. Raises ``BaselineError`` and ``ConfigError``.
    """
    found = read_baseline(baseline)
    if found is None and not baseline.parent.is_dir():
        raise BaselineError(f"{baseline}: no such folder")
    settings, root = settings_without_rules(start)
    return KnownLines(_expressions(found or Baseline(findings={})), settings.expect, root, settings.phases)


def _expressions(baseline: Baseline) -> frozenset[tuple[str, str, str]]:
    return frozenset(
        (entry.file, entry.function or "", without_format(entry.expression))
        for entry in baseline.findings.values()
        if entry.file is not None
    )


def _covers(entry: Expect, file: str, function: str) -> bool:
    """An expectation without a place is about a rule, which is not known here."""
    if entry.file is None and entry.function is None:
        return False
    return (entry.file is None or fnmatchcase(file, entry.file)) and (
        entry.function is None or fnmatchcase(function, entry.function)
    )


def _has_comment(file: Path, line: int) -> bool:
    return _COMMENT.search(linecache.getline(os.fspath(file), line)) is not None
