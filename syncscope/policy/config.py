"""``[tool.syncscope]`` of pyproject.toml, or the whole of syncscope.toml, checked and read.

[tool.syncscope]
gate = ["SYN", "CPY201"]
own = ["our_models"]
expect = [
  { rule = "SYN102", file = "train.py", function = "log_*", reason = "one read an epoch" },
]
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Any

import msgspec

from syncscope.findings import Finding
from syncscope.policy.lines import entry_lines

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

DEFAULT_GATE = ("SYN101", "SYN102", "SYN103", "SYN104", "SYN105", "SYN109", "SYN110", "CPY201")
"""What ``syncscope check`` fails on unless ``gate`` says otherwise."""

OWN_FILE = "syncscope.toml"
SHARED_FILE = "pyproject.toml"
TABLE = ("tool", "syncscope")


class ConfigError(ValueError):
    """A configuration that cannot be used: ``str()`` is one line, naming the file, the key and the reason."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"{shown(path)}: {reason}")
        self.path = path
        self.reason = reason


class ExpectEntry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An ``expect`` entry as written."""

    rule: str
    reason: Annotated[str, msgspec.Meta(pattern=r"\S")]
    file: str | None = None
    function: str | None = None


class Settings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The table as written."""

    expect: tuple[ExpectEntry, ...] = ()
    gate: tuple[str, ...] | None = None
    own: tuple[str, ...] = ()


@dataclass(frozen=True)
class Expectation:
    """Findings that are fine, and why."""

    rule: str
    """As written: a code or a prefix."""
    codes: frozenset[str]
    """The rules it means."""
    reason: str
    where: str
    """``pyproject.toml:12``: the entry's own line, or the file alone where that cannot be told."""
    file: str | None = None
    """Glob on the whole path of the site's file, as the report shows it; ``*`` crosses folders."""
    function: str | None = None
    """Glob on the site's qualified function."""

    def covers(self, finding: Finding) -> bool:
        """Whether the finding is one of those expected; one with no line only where neither glob is given."""
        if finding.rule not in self.codes:
            return False
        site = finding.site
        if site is None:
            return self.file is None and self.function is None
        return (self.file is None or fnmatchcase(site.file, self.file)) and (
            self.function is None or fnmatchcase(site.function, self.function)
        )


@dataclass(frozen=True)
class Policy:
    """What a project's configuration asks for. The default is that of a project without one."""

    gate: tuple[str, ...] = DEFAULT_GATE
    """Codes that ``check`` fails on."""
    expect: tuple[Expectation, ...] = ()
    own: tuple[str, ...] = ()
    """Packages that count as the user's code though they are installed."""


def load_policy(start: Path, config: Path | None = None) -> Policy:
    """The policy that holds in the folder ``start``: that of the nearest configuration at or above it.

    ``config`` names a file instead of searching. Raises ``ConfigError`` when the file cannot be used.
    """
    settings, path = _settings(start, config)
    if path is None:
        return Policy()
    entries = zip(settings.expect, _places(path, len(settings.expect)), strict=True)
    return Policy(
        gate=DEFAULT_GATE if settings.gate is None else tuple(_codes(settings.gate, path, "gate")),
        expect=tuple(
            Expectation(
                rule=entry.rule,
                codes=frozenset(_codes([entry.rule], path, f"expect[{i}].rule")),
                reason=" ".join(entry.reason.split()),
                where=where,
                file=entry.file,
                function=entry.function,
            )
            for i, (entry, where) in enumerate(entries)
        ),
        own=settings.own,
    )


def own_packages(start: Path, config: Path | None = None) -> tuple[str, ...]:
    """Only the ``own`` list of ``load_policy``; no rule is looked up. Raises ``ConfigError``."""
    return _settings(start, config)[0].own


def _settings(start: Path, config: Path | None) -> tuple[Settings, Path | None]:
    if config is not None:
        table = _table(config)
        if table is None:
            raise ConfigError(config, f"has no [{'.'.join(TABLE)}] table")
        return _convert(table, config), config
    folder = start.resolve()
    for parent in (folder, *folder.parents):
        for name in (OWN_FILE, SHARED_FILE):
            path = parent / name
            if path.is_file():
                table = _table(path)
                if table is not None:
                    return _convert(table, path), path
    return Settings(), None


def _table(path: Path) -> dict[str, Any] | None:
    """The file's table for us; ``None`` when a pyproject.toml has none."""
    try:
        document: Any = tomllib.loads(_text(path))
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(path, f"not TOML: {error}") from None
    if path.name != SHARED_FILE:
        return dict(document)
    for key in TABLE:
        if not isinstance(document, dict) or key not in document:
            return None
        document = document[key]
    if not isinstance(document, dict):
        raise ConfigError(path, f"{'.'.join(TABLE)}: must be a table")
    return document


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigError(path, error.strerror or str(error)) from None
    except UnicodeDecodeError:
        raise ConfigError(path, "not UTF-8 text") from None


def _convert(table: dict[str, Any], path: Path) -> Settings:
    try:
        return msgspec.convert(table, Settings)
    except msgspec.ValidationError as error:
        message, _, at = str(error).partition(" - at `$")
        key = at.rstrip("`").lstrip(".")
        raise ConfigError(path, f"{_dotted(path, key)}: {_explained(message, key)}") from None


def _dotted(path: Path, key: str) -> str:
    """The key as the file spells it: ``tool.syncscope.expect[0]``."""
    table = ".".join(TABLE) if path.name == SHARED_FILE else ""
    return ".".join(part for part in (table, key) if part) or "the file"


def _explained(message: str, key: str) -> str:
    """The validation message in the words of a configuration file."""
    struct = ExpectEntry if key.startswith("expect[") else Settings
    if unknown := re.fullmatch(r"Object contains unknown field `(.*)`", message, re.DOTALL):
        return f'unknown key "{unknown[1]}"{_suggestion(unknown[1], struct.__struct_fields__)}'
    if missing := re.fullmatch(r"Object missing required field `(.*)`", message):
        return f'missing key "{missing[1]}"'
    if "matching regex" in message:
        return "must not be empty"
    words = {"str": "a string", "array": "a list", "object": "a table", "int": "a number", "float": "a number"}
    message = re.sub(r"`(\w+)( \| null)?`", lambda match: words.get(match[1], match[1]), message)
    return message[0].lower() + message[1:]


def _codes(wanted: Iterable[str], path: Path, key: str) -> list[str]:
    """The codes that codes and prefixes stand for."""
    from syncscope.rules import RULES  # loads pandas

    known = [rule.code for rule in RULES]
    codes: list[str] = []
    for text in wanted:
        found = [code for code in known if text and code.startswith(text)]
        if not found:
            raise ConfigError(path, f'{_dotted(path, key)}: unknown rule "{text}"{_suggestion(text, known)}')
        codes += [code for code in found if code not in codes]
    return codes


def _suggestion(word: str, known: Iterable[str]) -> str:
    close = get_close_matches(word, list(known), n=1, cutoff=0.6)
    return f', did you mean "{close[0]}"?' if close else ""


def _places(path: Path, count: int) -> list[str]:
    lines = entry_lines(_text(path), "expect" if path.name != SHARED_FILE else ".".join((*TABLE, "expect")))
    if len(lines) != count:
        return [shown(path)] * count
    return [f"{shown(path)}:{line}" for line in lines]


def shown(path: Path) -> str:
    """The path as a user would type it: relative when it lies under the current folder."""
    absolute, here = os.path.abspath(path), os.getcwd()
    return os.path.relpath(absolute, here) if absolute.startswith(here + os.sep) else os.fspath(path)
