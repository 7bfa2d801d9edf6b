"""Find and read the configuration: ``[tool.syncscope]`` of pyproject.toml, or the whole of syncscope.toml.

[tool.syncscope]
gate = ["SYN", "CPY201"]
expect = [
  { rule = "SYN102", file = "train.py", function = "log_*", reason = "one read an epoch" },
]

[tool.syncscope.budgets]
max_stall_share = 0.1

[[tool.syncscope.overrides]]
path = "scripts/*"
ignore = ["SYN105"]
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import msgspec

from syncscope.patterns import compile_later
from syncscope.policy.policy import Expectation, Override, Policy, default_gate
from syncscope.policy.settings import Budgets, Expect, Scope, Settings
from syncscope.policy.settings import Override as OverrideEntry
from syncscope.schema.catalogue import read_catalogue

OWN_FILE = "syncscope.toml"
SHARED_FILE = "pyproject.toml"
TABLE = ("tool", "syncscope")
STRUCTS = {"expect": Expect, "overrides": OverrideEntry, "budgets.scopes": Scope, "budgets": Budgets}
"""By the key of the table that they are read from, inner ones first."""

_STRINGS_AND_COMMENTS = compile_later(
    r'"""(?:\\.|[^\\])*?"""' r"|'''.*?'''" r'|"(?:\\.|[^"\\\n])*"' r"|'[^'\n]*'" r"|#[^\n]*",
    re.DOTALL,
)
_HEADER_OR_ARRAY = compile_later(
    r"^[ \t]*(?:(?P<header>\[\[?)(?P<table>[\w.\- \t]*\w[ \t]*)\]\]?|(?P<key>[\w.\- \t]*\w)[ \t]*=[ \t]*(?P<array>\[))",
    re.MULTILINE,
)


class ConfigError(ValueError):
    """A configuration that cannot be used. ``str()`` is one line with the file (and the line of a comment), the key and
    the reason."""

    def __init__(self, where: str | Path, reason: str) -> None:
        super().__init__(f"{shown(where)}: {reason}")


def load_policy(start: Path, config: Path | None = None) -> Policy:
    """The policy of the folder ``start``, from the nearest configuration in it or above.

    The folder of that configuration is the project's root, or ``start`` where there is no configuration. ``config``
    names a file to read instead; the root is then ``start``. Raises ``ConfigError`` when the file cannot be used.
    """
    settings, path = _settings(start, config)
    here = start.resolve()
    if path is None:
        return Policy(folders=(here,))
    root = here if config is not None else path.parent
    return Policy(
        gate=default_gate() if settings.gate is None else _codes(settings.gate, path, "gate"),
        expect=_expectations(settings, path),
        own=settings.own,
        allow_partial=settings.allow_partial,
        overrides=tuple(_override(entry, path, f"overrides[{i}]") for i, entry in enumerate(settings.overrides)),
        budgets=_budgets(settings.budgets, path),
        phases=settings.phases,
        min_steps=settings.min_steps,
        folders=(root, here) if here != root else (root,),
    )


def _expectations(settings: Settings, path: Path) -> tuple[Expectation, ...]:
    entries = zip(settings.expect, _locations(path, len(settings.expect)), strict=True)
    return tuple(
        Expectation(
            rule=entry.rule,
            codes=frozenset(_codes([entry.rule], path, f"expect[{i}].rule")),
            reason=" ".join(entry.reason.split()),
            where=where,
            file=entry.file,
            function=entry.function,
            max_per_step=entry.max_per_step,
        )
        for i, (entry, where) in enumerate(entries)
    )


def _override(entry: OverrideEntry, path: Path, key: str) -> Override:
    if entry.gate is None and not entry.ignore:
        raise ConfigError(path, f"{_dotted(path, key)}: needs gate or ignore")
    return Override(
        path=entry.path,
        gate=None if entry.gate is None else _codes(entry.gate, path, f"{key}.gate"),
        ignore=_codes(entry.ignore, path, f"{key}.ignore"),
    )


def _budgets(budgets: Budgets, path: Path) -> Budgets:
    """The budgets as they are. Raises ``ConfigError`` for one that limits nothing, or what no process group has."""
    for i, scope in enumerate(budgets.scopes):
        key = _dotted(path, f"budgets.scopes[{i}]")
        given = {name for name in Scope.__struct_fields__ if getattr(scope, name) is not None}
        limits = given - {"phase", "group"}
        if scope.phase is None and scope.group is None:
            raise ConfigError(path, f"{key}: needs phase or group")
        if not limits:
            raise ConfigError(path, f"{key}: limits nothing")
        if scope.group is not None and (others := limits - {"max_exposed_comm_ms"}):
            raise ConfigError(path, f"{key}: {min(others)} is not of a process group")
    return budgets


def own_packages(start: Path, config: Path | None = None) -> tuple[str, ...]:
    """The ``own`` list of ``load_policy`` alone, without loading the rules. Raises ``ConfigError``."""
    return _settings(start, config)[0].own


def settings_without_rules(start: Path) -> tuple[Settings, Path]:
    """The configuration of ``load_policy`` as it is written, without loading the rules, and the project's root.

    Raises ``ConfigError``.
    """
    settings, path = _settings(start, None)
    return settings, start.resolve() if path is None else path.parent


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
            if path.is_file() and (name == OWN_FILE or TABLE[-1] in _text(path)):
                table = _table(path)
                if table is not None:
                    return _convert(table, path), path
    return Settings(), None


def _table(path: Path) -> dict[str, Any] | None:
    """The file's table; ``None`` for a pyproject.toml without one."""
    if sys.version_info >= (3, 11):  # takes as long as all else here, and most projects have no table
        import tomllib
    else:
        import tomli as tomllib
    try:
        document: Any = tomllib.loads(_text(path))
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(path, f"not TOML: {error}") from None
    except RecursionError:
        raise ConfigError(path, "nested too deeply") from None
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
        raise ConfigError(path, f"{_dotted(path, key)}: {_reword(message, key)}") from None


def _dotted(path: Path, key: str) -> str:
    """The key as the file spells it: ``tool.syncscope.expect[0]``."""
    table = ".".join(TABLE) if path.name == SHARED_FILE else ""
    return ".".join(part for part in (table, key) if part) or "the file"


def _reword(message: str, key: str) -> str:
    """A validation message of msgspec, in the words of a configuration file."""
    struct = next((known for table, known in STRUCTS.items() if re.match(rf"{table}\b", key)), Settings)
    if unknown := re.fullmatch(r"Object contains unknown field `(.*)`", message, re.DOTALL):
        return f'unknown key "{unknown[1]}"{_suggestion(unknown[1], struct.__struct_fields__)}'
    if missing := re.fullmatch(r"Object missing required field `(.*)`", message):
        return f'missing key "{missing[1]}"'
    if "matching regex" in message:
        return "must not be empty"
    if re.match(r"Expected `int( \| null)?`, got `float`", message):  # 1e3, say
        return "expected a whole number, written without a point and an exponent"
    words = {"str": "a string", "array": "a list", "object": "a table", "int": "a number", "float": "a number"}
    message = re.sub(r"`(\w+)( \| null)?`", lambda match: words.get(match[1], match[1]), message)
    message = re.sub(r"\.0$", "", message)
    return message[0].lower() + message[1:]


def _codes(wanted: Iterable[str], path: Path, key: str) -> tuple[str, ...]:
    try:
        return codes_of(wanted)
    except ValueError as error:
        raise ConfigError(path, f"{_dotted(path, key)}: {error}") from None


def codes_of(wanted: Iterable[str]) -> tuple[str, ...]:
    """The codes that match the codes and prefixes. Raises ``ValueError`` for one that matches none."""
    rules = read_catalogue()
    known = [rule.code for rule in rules]
    codes: dict[str, None] = {}
    for text in wanted:
        matches = [code for code in known if text and code.startswith(text)]
        if not matches:
            by_name = {rule.name: rule.code for rule in rules}
            meant = by_name.get(text.lower()) or text.upper()
            raise ValueError(f'unknown rule "{text}"{_suggestion(meant, known)}')
        codes.update(dict.fromkeys(matches))
    return tuple(codes)


def _suggestion(word: str, known: Iterable[str]) -> str:
    close = get_close_matches(word, list(known), n=1, cutoff=0.6)
    return f', did you mean "{close[0]}"?' if close else ""


def _locations(path: Path, count: int) -> list[str]:
    lines = entry_lines(_text(path), "expect" if path.name != SHARED_FILE else ".".join((*TABLE, "expect")))
    if len(lines) != count:
        return [shown(path)] * count
    return [f"{shown(path)}:{line}" for line in lines]


def shown(path: str | Path) -> str:
    """The path as a user would type it: relative when it is under the current folder."""
    absolute, here = os.path.abspath(path), os.getcwd()
    return os.path.relpath(absolute, here) if absolute.startswith(here + os.sep) else os.fspath(path)


def entry_lines(text: str, key: str) -> list[int]:
    """1-based lines of the tables in the array ``key`` (dotted, without quotes), in order.

    TOML parsers of the standard library do not give lines. This reads ``[[key]]`` headers and ``key = [ {…}, {…} ]``.
    The caller compares the number of lines with the number of entries, since other spellings are not recognised.
    """
    # With strings and comments blanked, every bracket left is structure, and at its old place.
    bare = _STRINGS_AND_COMMENTS.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)
    table, places = "", []
    for match in _HEADER_OR_ARRAY.finditer(bare):
        if match["header"]:
            table = _joined(match["table"])
            if table == key and match["header"] == "[[":
                places.append(match.start("header"))
        elif _joined(table, match["key"]) == key:
            places += _inline_tables(bare, match.start("array"))
    return [bare.count("\n", 0, place) + 1 for place in places]


def _joined(*parts: str) -> str:
    return ".".join(re.sub(r"\s", "", part) for part in parts if part.strip())


def _inline_tables(bare: str, start: int) -> list[int]:
    """Offsets of the ``{`` directly inside the array that opens at ``start``."""
    places, depth = [], 0
    for match in re.compile(r"[][{}]").finditer(bare, start):
        if match[0] in "[{":
            if depth == 1 and match[0] == "{":
                places.append(match.start())
            depth += 1
        else:
            depth -= 1
            if depth == 0:
                break
    return places
