"""Read what Dynamo and Inductor say: the guard that failed, why a graph breaks, why there is no CUDA graph."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from syncscope.collect.sites.stacks import Line

MOST_CHARACTERS = 300
"""Kept of a reason, and of its explanation."""

COMPILE_ID = re.compile(r"^[!\d/]+: ")
SOURCE = re.compile(r"\s{2,}# .*$")
"""Behind a guard: the source line that it comes from, and where that is."""
SOURCE_PLACE = re.compile(r"# (\S+):(\d+) in (\S+)\s*$")
PLACE = re.compile(r'File "([^"]+)", line (\d+), in (\S+)')
RESUMED = re.compile(r"(?:torch_dynamo_resume_in_|__resume_at_\d+_)(?P<name>\w+?)(?:_at_\d+)*$")
"""The name of the part of a function behind a graph break."""

EXPLANATION = re.compile(r"^\s*Explanation: (.*)$", re.MULTILINE)
HINT = re.compile(r"^\s*Hint: (.*)$", re.MULTILINE)

FOUND_FROM = re.compile(r"\.?\s*Found from\b")
SKIPPING = re.compile(r"^skipping cudagraphs? due to ", re.IGNORECASE)


class Reason(NamedTuple):
    """Why something happened, and the line that PyTorch names for it."""

    text: str | None
    detail: str | None = None
    line: Line | None = None
    """Its file may be the end of a path only: ``is_whole`` tells."""


def read_guard(failure: str) -> Reason:
    """A guard that failed, as in ``torch._dynamo.utils.guard_failures``.

    ``0/1: n == 2      # y = x * n  # dir/train.py:5 in f``, with PyTorch 2.12 and later also the line's stack.
    """
    first = failure.partition("\n")[0]
    places = PLACE.findall(failure) or SOURCE_PLACE.findall(first)
    line = _line(places[-1]) if places else None
    return Reason(_cut(SOURCE.sub("", COMPILE_ID.sub("", first))), None, line)


def read_break(reason: str) -> Reason:
    """Why a graph breaks: a first line, and from PyTorch 2.7 on an explanation and hints."""
    said = (pattern.search(reason) for pattern in (EXPLANATION, HINT))
    detail = " ".join(match[1].strip() for match in said if match)
    return Reason(_cut(reason.strip().partition("\n")[0]), _cut(detail))


def read_skip(message: str) -> Reason:
    """Why Inductor does without CUDA graphs, as it warns."""
    places = PLACE.findall(message)
    text = FOUND_FROM.split(message.strip())[0].partition("\n")[0]
    return Reason(_cut(SKIPPING.sub("", text)), None, _line(places[-1]) if places else None)


def function_name(name: str) -> str:
    """The name of a function in the source, where ``name`` may be that of its part behind a graph break."""
    match = RESUMED.match(name)
    return match["name"] if match else name


def lines_of(stack: Iterable[object]) -> list[Line]:
    """A stack of ``traceback.FrameSummary``, outermost first."""
    return [line for frame in stack if (line := _line_of(frame)) is not None]


def _line_of(frame: object) -> Line | None:
    file, number = getattr(frame, "filename", None), getattr(frame, "lineno", None)
    if not isinstance(file, str) or not isinstance(number, int):
        return None
    ends = (getattr(frame, name, None) for name in ("end_lineno", "colno", "end_colno"))
    return Line(file, number, function_name(str(getattr(frame, "name", ""))), *ends)


def _line(place: tuple[str, str, str]) -> Line:
    file, number, function = place
    return Line(file, int(number), function_name(function))


def _cut(text: str) -> str | None:
    return " ".join(text.split())[:MOST_CHARACTERS] or None
