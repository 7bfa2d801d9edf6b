"""Comments that mean to expect something, but would be ignored: ``# syncscope: ignore SYN102``."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection
from difflib import get_close_matches

from syncscope.patterns import compile_later

NAME = "syncscope"
VERBS = (
    "expect", "expects", "expected", "except", "ignore", "ignores", "ignored", "allow", "allowed", "noqa", "disable",
    "skip", "suppress", "accept",
)  # fmt: skip
"""What other tools say, and slips."""

_BEGINNING = compile_later(
    r"[\W_]*(?P<name>sync[\W_]?scope|[^\W_]+)(?P<between>[\W_]*)(?P<word>[^\W_]*)", re.IGNORECASE
)
_CODE = compile_later(r"(?<![^\W_])[a-z]{2,4}\d{3}(?![^\W_])", re.IGNORECASE)
_NOQA = compile_later(r"\bnoqa\s*:", re.IGNORECASE)
_MAY_BE = compile_later(rb"(?i)sc[o\x80-\xff]{0,2}p|[a-z]{2,4}\d{3}(?!\d)")


def may_hold(data: bytes) -> bool:
    """Whether a source file may hold a comment of ours or a near miss, at the price of one look."""
    return any(_MAY_BE.search(line, line.find(b"#")) for line in data.splitlines() if b"#" in line)


def near_miss(comment: str, codes: Collection[str]) -> str | None:
    """The words of ``comment`` that mean to expect something and do not, ``None`` where it says something else.

    ``codes`` are those of all rules. The name may be misspelt if a verb or a code follows. Inside of another comment
    the name, a verb and a code have to be there, since prose names each.
    """
    text = unicodedata.normalize("NFKC", comment)
    named = [code.upper() in codes for code in _CODE.findall(text)]
    begins = _BEGINNING.match(text)
    if begins is None:
        return None
    name, word = re.sub(r"[\W_]", "", begins["name"]).lower(), begins["word"]
    means_it = _is_verb(word) or word.upper() in codes
    if (_is_name(name) and means_it) or (name == NAME and ":" in begins["between"]):
        return " ".join(begins[0].split())
    words = re.findall(r"[^\W_]+", text)
    if not any(named):
        return None
    if _NOQA.search(text) or (any(map(_is_name, map(str.lower, words))) and any(map(_is_verb, words))):
        return " ".join(text.split())
    return None


def _is_name(word: str) -> bool:
    return bool(get_close_matches(word, [NAME], 1, 0.8))


def _is_verb(word: str) -> bool:
    return bool(get_close_matches(word.lower(), VERBS, 1, 0.8))
