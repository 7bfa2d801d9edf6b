"""The source text that a recording keeps around the user's lines."""

from __future__ import annotations

import linecache
import threading
from collections.abc import Sequence

from syncscope.collect.sites.stacks import Stacks
from syncscope.schema.recording import RecordedFrame

CONTEXT_LINES = 2
"""Source lines kept on each side of a user's line."""


class Sources:
    """Looks up each line once: the frames of ``stacks`` only become more."""

    def __init__(self, stacks: Stacks) -> None:
        self._stacks = stacks
        self._lines: dict[str, dict[str, str]] = {}
        self._done = 0
        """Frames that were looked at."""
        self._lock = threading.RLock()

    def of(self, frames: Sequence[RecordedFrame]) -> dict[str, dict[str, str]]:
        """The source text around the user's lines: normalised file → line → text. ``frames`` are those that
        ``Stacks.resolve`` returned last."""
        with self._lock:
            if self._done < len(frames):
                files = {name: file for file, name in self._stacks.files()}
                for frame in frames[self._done :]:
                    self._keep(frame, files.get(frame.file))
                self._done = len(frames)
            return {file: dict(lines) for file, lines in self._lines.items()}

    def _keep(self, frame: RecordedFrame, file: str | None) -> None:
        if file is None or not frame.user or frame.line is None:
            return
        lines = linecache.getlines(file)
        last = (frame.end_line or frame.line) + CONTEXT_LINES
        for number in range(max(1, frame.line - CONTEXT_LINES), min(last, len(lines)) + 1):
            self._lines.setdefault(frame.file, {})[str(number)] = lines[number - 1].rstrip("\n")
