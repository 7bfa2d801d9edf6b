"""Reading a damaged trace event by event: a file cut short, bare ``NaN``, unescaped quotes, fields of odd types.

Slow (about 10 µs an event), so it runs only when the typed decode of the whole document failed. It skips and counts
every event that cannot be read.
"""

from __future__ import annotations

import json
import re
from typing import Any

import msgspec

from syncscope.patterns import compile_later
from syncscope.trace.decoding.events import UNREAD, Document, Event
from syncscope.trace.source import Loss, TraceError, one_line

_SCANNER = json.JSONDecoder(strict=False)  # accepts NaN, Infinity and control characters in strings
_SPACE = compile_later(r"[\s,]*")
_READ_PHASES = frozenset("XBEM")
_KEPT_KEYS = ("traceEvents", "baseTimeNanoseconds", "deviceProperties", "distributedInfo", "syncscope")
_KEY = compile_later(rf'"({"|".join(_KEPT_KEYS)})"\s*:\s*')
_FIRST_KEY = compile_later(r'\s*\{\s*"([^"\\]{1,100})"\s*:')
_LAST_EVENT = compile_later(r'\}\s*(?=\]\s*(?:,\s*"[^"\\]{1,100}"\s*:|\}?\s*$))')

_MAX_REPAIR = 1 << 20  # characters of one event
_LOOSE_NUMBER = compile_later(r"(?<=[:\[,])(\s*)[-+]?(?:nan|inf)(?:inity)?(?=\s*[,}\]])", re.IGNORECASE)
# Which quote ends a string: of a key the one before a colon, of an item the one before a comma or bracket, of a
# value the one before another key or before the object's end.
_ENDS_KEY = compile_later(r"\s*:")
_ENDS_ITEM = compile_later(r"\s*[,\]]")
_ENDS_VALUE = compile_later(r'\s*(?:,\s*"[^"\\]{1,100}"\s*:|\})')
_IS_KEY = compile_later(r'[^"\\]{0,100}"\s*:')
_QUOTE = compile_later(r'\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})|["\\]')
_SURROGATE = compile_later("[\ud800-\udfff]")


_TOML = compile_later(r"\[\[?(?!true\b|false\b|null\b)[A-Za-z_][\w.-]*\]")
"""How a file of TOML often begins, and no JSON does: with the name of a table in brackets."""


class _Damage(msgspec.Struct):
    """What was wrong with the text."""

    cut: bool = False
    read: int = 0
    skipped: int = 0
    repaired: int = 0
    first: str = ""
    keys: set[str] = msgspec.field(default_factory=set)
    tail: bool = False

    def skip(self, why: str) -> None:
        self.skipped += 1
        self.first = self.first or why

    def warnings(self) -> list[str]:
        warnings: list[str] = []
        if self.cut:
            warnings.append(Loss(f"the file is cut short: the {self.read:,} events before the cut were read"))
        if self.repaired:
            warnings.append(f"{_events(self.repaired)} with unescaped quotes or bare numbers repaired")
        if self.skipped:
            warnings.append(Loss(f"{_events(self.skipped)} skipped as not valid, the first: {self.first}"))
        warnings += [Loss(f"the {key} was not readable and is ignored") for key in sorted(self.keys)]
        if self.tail:
            warnings.append(Loss("text after the end of the trace is ignored"))
        return warnings


def _events(count: int) -> str:
    return f"{count:,} event{'s' if count != 1 else ''}"


def salvage(text: str, path: str) -> tuple[Document, list[str]]:
    """Read what can be read of ``text``, whose root is an object or a list. Raises :class:`TraceError` for nothing."""
    damage = _Damage()
    events: list[Event] | None = None
    top: dict[str, Any] = {}
    if text.startswith("["):
        events, position = _read_events(text, 1, damage)
    else:
        events, top, position = _read_object(text, damage)
    if not damage.read and _TOML.match(text):
        raise TraceError(path, "is TOML, not a trace: traces are JSON of torch.profiler or `syncscope profile`")
    if not damage.read and damage.cut:
        raise TraceError(path, "is cut short before its first event")
    damage.tail = bool(text[position : position + 1000].strip()) and not damage.cut
    document = Document(
        events=events,
        base_ns=top.get("baseTimeNanoseconds"),
        devices=top.get("deviceProperties"),
        distributed=top.get("distributedInfo"),
        syncscope=top.get("syncscope"),
    )
    return document, damage.warnings()


def salvage_events(text: str) -> list[Event] | None:
    """The events of a JSON list; ``None`` when part of it would be lost or repaired."""
    damage = _Damage()
    events, position = _read_events(text, 1, damage)
    return None if damage != _Damage(read=damage.read) or position != len(text) else events


def _read_object(text: str, damage: _Damage) -> tuple[list[Event] | None, dict[str, Any], int]:
    """Read the root object key by key. Returns its events, the other keys that are used, and where the object ends."""
    events: list[Event] | None = None
    top: dict[str, Any] = {}
    position = 1
    while True:
        position = _skip(text, position)
        if text.startswith("}", position):
            return events, top, position + 1
        named = ""
        try:
            key, position = _SCANNER.raw_decode(text, position)
            position = _skip(text, position)
            if not isinstance(key, str) or not text.startswith(":", position):
                raise ValueError
            named = key
            position = _skip(text, position + 1)
            if key == "traceEvents" and text.startswith("[", position):
                events, position = _read_events(text, position + 1, damage)
                if damage.cut:
                    return events, top, position
                continue
            value, position = _SCANNER.raw_decode(text, position)
            if key in _KEPT_KEYS:
                top[key] = _encodable(value)
        except (ValueError, RecursionError):
            following = _KEY.search(text, position)
            if following is None:
                damage.cut = True
                return events, top, len(text)
            damage.keys.add(f"key {one_line(named)}" if named else f"text before the key {following[1]}")
            position = following.start()


def _read_events(text: str, position: int, damage: _Damage) -> tuple[list[Event], int]:
    """The events of the list whose inside starts at ``position``, and where the list ends."""
    events: list[Event] = []
    next_event = _boundary(text, position)
    while True:
        position = _skip(text, position)
        if text.startswith("]", position):
            return events, position + 1
        try:
            raw, position = _SCANNER.raw_decode(text, position)
        except (ValueError, RecursionError):
            raw, end = _repair(text, position, next_event)
            if end is None:
                damage.cut = True
                return events, len(text)
            if raw is None:
                damage.skip("broken JSON")
            else:
                damage.repaired += 1
            position = end
        events.append(UNREAD if raw is None else _convert(raw, damage))


def _boundary(text: str, position: int) -> re.Pattern[str]:
    """What stands between two events. A program writes all alike: each begins with the key of the first, or ``ph``."""
    first = _FIRST_KEY.match(text, position)
    return re.compile(rf'\}}\s*,\s*(?=\{{\s*"(?:ph|{re.escape(first[1] if first else "ph")})"\s*:)')


def _convert(raw: object, damage: _Damage) -> Event:
    """The event, or :data:`UNREAD` for one of another phase and for what is no event."""
    phase = raw.get("ph", "") if isinstance(raw, dict) else None
    if isinstance(phase, str) and phase not in _READ_PHASES:
        return UNREAD
    try:
        event = msgspec.convert(_encodable(raw), Event, strict=False)
    except (msgspec.ValidationError, OverflowError) as error:
        damage.skip(one_line(str(error)))
        return UNREAD
    except RecursionError:
        damage.skip("nested too deeply")
        return UNREAD
    damage.read += 1
    return event


def _encodable(value: Any) -> Any:
    """``value`` without lone halves of surrogate pairs, which UTF-8 cannot encode."""
    if isinstance(value, str):
        return value if value.isascii() else _SURROGATE.sub("\ufffd", value)
    if isinstance(value, dict):
        return {_encodable(key): _encodable(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_encodable(item) for item in value]
    return value


def _repair(text: str, start: int, next_event: re.Pattern[str]) -> tuple[object, int | None]:
    """Repair the broken event at ``start``.

    Returns the event (``None`` where that fails) and where the next one begins (``None`` when the text is cut short).
    """
    end = next_event.search(text, start) or _LAST_EVENT.search(text, start)
    if end is None:
        return None, None
    if end.start() - start > _MAX_REPAIR:
        return None, end.end()
    broken = _LOOSE_NUMBER.sub(r"\1null", text[start : end.start() + 1])
    for candidate in (broken, _escape_strays(broken)):
        try:
            return json.loads(candidate, strict=False), end.end()
        except (ValueError, RecursionError):
            continue
    return None, end.end()


def _escape_strays(text: str) -> str:
    """``text`` with the quotes and backslashes inside strings escaped that were written bare."""
    parts = []
    done = 0
    ends: re.Pattern[str] | None = None  # what follows the string's last quote; set inside a string
    for match in _QUOTE.finditer(text):
        if len(match[0]) > 1:  # escaped already
            continue
        if match[0] == '"' and ends is None:
            before = text[max(0, match.start() - 100) : match.start()].rstrip()[-1:]
            is_key = before in "{," and _IS_KEY.match(text, match.end()) is not None
            ends = _ENDS_VALUE if before == ":" else _ENDS_KEY if is_key else _ENDS_ITEM
        elif match[0] == '"' and ends is not None and ends.match(text, match.end()):
            ends = None
        else:
            parts += [text[done : match.start()], "\\"]
            done = match.start()
    return "".join(parts) + text[done:]


def _skip(text: str, position: int) -> int:
    match = _SPACE.match(text, position)
    return match.end() if match else position
