"""Expectations in comments of the program: ``x = loss.item()  # syncscope: expect SYN102 -- one read an epoch``.

A comment is about its own line, so it covers only findings whose line was recorded, also where the line moved since.
Comments are looked for in the files of the findings and in all files that the program had loaded, because a stale
comment has no finding. Where a recording does not list its files, the files in the findings' call chains take their
place.
"""

from __future__ import annotations

import io
import os
import re
import stat
import tokenize
from collections import defaultdict
from collections.abc import Iterator, Sequence
from glob import escape
from itertools import islice
from pathlib import Path

from syncscope.patterns import compile_later
from syncscope.policy.config import ConfigError, codes_of
from syncscope.policy.moved_lines import find_moved
from syncscope.policy.near_misses import may_hold, near_miss
from syncscope.policy.policy import EXACT, Expectation
from syncscope.schema.catalogue import rules_by_code
from syncscope.schema.findings import Site
from syncscope.schema.report import Report

MOST_FILES = 5000
"""Files that are read. A trace may name any number."""
MOST_BYTES = 1 << 20
"""Of one file."""

_COMMENT = compile_later(r"#\s*syncscope:\s*expect(?=\s|--|$)")
_NEXT_COMMENT = compile_later(r"\s#\s")
_FLAGS = os.O_RDONLY | sum(getattr(os, name, 0) for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_BINARY"))
"""Refuse a link that replaced the file since it was checked, and do not block on a pipe."""


def find_comments(report: Report, folders: Sequence[Path]) -> tuple[Expectation, ...]:
    """The expectations in the files that the report's recordings name and that are in ``folders``.

    Raises ``ConfigError``, naming file and line, for a comment without a reason or a rule.
    """
    if not folders:
        return ()
    sites = _sites_by_file(report)
    return tuple(
        expectation
        for name in islice(_names(report), MOST_FILES)
        for expectation in _of_file(name, folders, sites.get(name, ()))
    )


def _sites_by_file(report: Report) -> dict[str, list[Site]]:
    """The lines that were recorded to wait."""
    sites: dict[str, list[Site]] = defaultdict(list)
    for finding in report.findings:
        if finding.site is not None and finding.site_source in EXACT:
            sites[finding.site.file].append(finding.site)
    return sites


def _names(report: Report) -> Iterator[str]:
    """The files to read, each once. Traces without recorded lines are left out: their lines are those of functions."""
    recorded = {index for index, info in enumerate(report.traces) if "sites" in info.has}
    names: dict[str, None] = {}
    for index in sorted(recorded):
        names.update(dict.fromkeys(report.traces[index].files or ()))
    for finding in report.findings:
        if finding.trace in recorded and finding.site is not None:
            names[finding.site.file] = None
            if report.traces[finding.trace].files is None:
                names.update(dict.fromkeys(frame.file for frame in finding.chain))
    return (name for name in names if not name.startswith("<"))


def _of_file(name: str, folders: Sequence[Path], sites: Sequence[Site]) -> Iterator[Expectation]:
    data = read_source(name, folders)
    if data is None or not may_hold(data):
        return
    moved = find_moved(data, sites)
    for line, text in _comments(data):
        match = _COMMENT.search(text)
        if match is None:
            _refuse_near_miss(f"{name}:{line}", text)
        else:
            where, recorded = f"{name}:{line}", moved.get(line, line)
            yield from _expectations(where, name, recorded, _NEXT_COMMENT.split(text[match.end() :], 1)[0])


def _refuse_near_miss(where: str, text: str) -> None:
    """Raise ``ConfigError`` for a comment that means to expect something but would be ignored."""
    codes = set(rules_by_code())
    for comment in _NEXT_COMMENT.split(text):
        if (said := near_miss(comment, codes)) is not None:
            raise ConfigError(where, f"{said}: did you mean # syncscope: expect SYN102 -- why it is fine?")


def _comments(data: bytes) -> Iterator[tuple[int, str]]:
    """Line and text of every comment, up to the first line that this version of Python cannot tokenize."""
    try:
        for token in tokenize.tokenize(io.BytesIO(data).readline):
            if token.type == tokenize.COMMENT:
                yield token.start[0], token.string
    except (SyntaxError, tokenize.TokenError, ValueError):
        return


def _expectations(where: str, name: str, line: int, text: str) -> Iterator[Expectation]:
    """The expectations of ``SYN102, CPY201 -- reason`` on a recorded line: one for each rule, so that each can be stale
    on its own."""
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


def read_source(name: str, folders: Sequence[Path]) -> bytes | None:
    """The file that a report calls ``name``, from the first of ``folders`` that has it; ``None`` for a file that must
    not be read: only regular files under the first folder, the project's root, are read, up to ``MOST_BYTES``.

    Names come from traces, which are untrusted, so links are resolved before a path is compared with the root.
    """
    try:
        root = os.path.join(os.path.realpath(folders[0]), "")
        places = (os.path.realpath(folder / name) for folder in folders)
        place = next((place for place in places if place.startswith(root) and os.path.isfile(place)), None)
        return _read(place) if place is not None else None
    except (OSError, ValueError):  # ValueError: a name that no file can have
        return None


def _read(place: str) -> bytes | None:
    with os.fdopen(os.open(place, _FLAGS), "rb") as stream:
        opened = os.fstat(stream.fileno())
        if not stat.S_ISREG(opened.st_mode) or opened.st_size > MOST_BYTES:
            return None
        data = stream.read(MOST_BYTES + 1)
    return data if len(data) <= MOST_BYTES else None
