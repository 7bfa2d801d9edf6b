"""The source text that a recording keeps around the user's lines."""

from __future__ import annotations

import linecache
from collections.abc import Iterable

from syncscope.collect.sites.stacks import Stacks
from syncscope.schema.recording import RecordedFrame

CONTEXT_LINES = 2
"""Source lines kept on each side of a user's line."""


def source_lines(stacks: Stacks, frames: Iterable[RecordedFrame]) -> dict[str, dict[str, str]]:
    """The source text around the user's lines: normalised file → line → text."""
    sources: dict[str, dict[str, str]] = {}
    files = {name: file for file, name in stacks.files()}
    for frame in frames:
        file = files.get(frame.file)
        if file is None or not frame.user or frame.line is None:
            continue
        lines = linecache.getlines(file)
        last = (frame.end_line or frame.line) + CONTEXT_LINES
        for number in range(max(1, frame.line - CONTEXT_LINES), min(last, len(lines)) + 1):
            sources.setdefault(frame.file, {})[str(number)] = lines[number - 1].rstrip("\n")
    return sources
