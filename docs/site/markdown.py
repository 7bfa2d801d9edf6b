"""What GitHub and Zensical read differently in a Markdown file, and where its links lead."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

LINK = re.compile(r"(\]\()([^)\s]+)(\))")
ATTRIBUTE = re.compile(r'(\b(?:src|srcset|href)=")([^"\s]+)(")')
CODE = re.compile(r"(`+[^`]+`+)")
FENCE = re.compile(r"^\s*(```|~~~)")
ELSEWHERE = re.compile(r"^(?:[a-z][a-z0-9+.-]*:|#|//)", re.IGNORECASE)
"""Links with a scheme, and those within a page."""


def adapt(text: str) -> str:
    """The same page for Zensical: GitHub begins a list or a table without an empty line before it, drops comments, and
    reads ``\\|`` in the code of a table as ``|``."""
    done: list[str] = []
    for line, fenced in _lines(text):
        if not fenced:
            line = re.sub(r"<!--.*?-->", "", line)
            if line.startswith("|"):
                line = CODE.sub(lambda code: code[0].replace("\\|", "|"), line)
            if done and done[-1].strip() and _begins(line) and not _belongs(done[-1], line):
                done.append("")
        done.append(line)
    return "\n".join(done) + "\n"


def move_links(text: str, move: Callable[[str], str]) -> str:
    """The text with ``move`` of each relative link, the part before ``#``. Code stays as it is."""

    def moved(match: re.Match[str]) -> str:
        target, mark, anchor = match[2].partition("#")
        return f"{match[1]}{match[2] if ELSEWHERE.match(match[2]) else move(target) + mark + anchor}{match[3]}"

    done = []
    for line, fenced in _lines(text):
        if not fenced:
            parts = CODE.split(line)
            parts[::2] = [ATTRIBUTE.sub(moved, LINK.sub(moved, part)) for part in parts[::2]]
            line = "".join(parts)
        done.append(line)
    return "\n".join(done) + "\n"


def link_codes(text: str, codes: dict[str, str], begin: str = "") -> str:
    """The text with each of ``codes`` in the lines that begin with ``begin`` as a link to what ``codes`` says, but for
    headings and code."""
    known = re.compile(rf"\b({'|'.join(map(re.escape, codes))})\b")

    def linked(part: str) -> str:
        return known.sub(lambda match: f"[{match[1]}]({codes[match[1]]})", part)

    done = []
    for line, fenced in _lines(text):
        if line.startswith(begin) and not line.startswith("#") and not fenced:
            parts = CODE.split(line)
            parts[::2] = [linked(part) for part in parts[::2]]
            line = "".join(parts)
        done.append(line)
    return "\n".join(done) + "\n"


def cell(text: str) -> str:
    """Text as the cell of a table."""
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;").replace("[", "\\[")


def code(text: str) -> str:
    """Text as code in a sentence."""
    mark = "``" if "`" in text else "`"
    return f"{mark}{text}{mark}" if text else ""


def code_cell(text: str) -> str:
    """Text as code in the cell of a table."""
    return code(text).replace("|", "\\|")


def fenced(text: str, language: str = "python") -> str:
    """Text as a block of code."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    mark = "`" * max(3, longest + 1)
    return f"{mark}{language}\n{text.rstrip()}\n{mark}\n"


def _lines(text: str) -> Iterator[tuple[str, bool]]:
    """Each line, and whether it is in a block of code or opens or closes one."""
    inside = ""
    for line in text.splitlines():
        mark = FENCE.match(line)
        yield line, bool(inside or mark)
        if mark:
            inside = "" if inside == mark[1] else inside or mark[1]


def _begins(line: str) -> bool:
    """Whether a line begins a list or a table, or goes on in one."""
    return bool(re.match(r"(?:[-*] |\d+\. |\|)", line))


def _belongs(before: str, line: str) -> bool:
    """Whether ``line`` goes on in what the line before it is part of."""
    if line.startswith("|"):
        return before.startswith("|")
    return before.startswith(" ") or (_begins(before) and not before.startswith("|"))
