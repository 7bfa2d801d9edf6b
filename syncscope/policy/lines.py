"""On which line of a TOML file each entry of an array of tables stands: the parsers of the standard do not say."""

from __future__ import annotations

import re

_STRINGS_AND_COMMENTS = re.compile(
    r'"""(?:\\.|[^\\])*?"""' r"|'''.*?'''" r'|"(?:\\.|[^"\\\n])*"' r"|'[^'\n]*'" r"|#[^\n]*",
    re.DOTALL,
)
_HEADER_OR_ARRAY = re.compile(
    r"^[ \t]*(?:(?P<header>\[\[?)(?P<table>[\w.\- \t]*\w[ \t]*)\]\]?|(?P<key>[\w.\- \t]*\w)[ \t]*=[ \t]*(?P<array>\[))",
    re.MULTILINE,
)


def entry_lines(text: str, key: str) -> list[int]:
    """1-based lines of the tables in the array ``key`` (dotted, without quotes), in order.

    Knows ``[[key]]`` headers and ``key = [ {…}, {…} ]``. The caller compares the number with what the parser found:
    a spelling this does not know gives another number.
    """
    # Blanked strings and comments leave only brackets that are structure, every one at its old place.
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
    """Places of the ``{`` directly inside the array that opens at ``start``."""
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
