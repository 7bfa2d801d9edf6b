"""What was decided of an event, to decide the same where it comes again."""

from __future__ import annotations

from types import CodeType
from typing import Literal

from syncscope.collect.phases.phase import Phase

Where = Literal["direct", "inside", "outside"]
"""An event in the loop of its phase, in a further loop inside of it, or in none of its loops."""


class Decision:
    """The phase of an event, as long as the frames out to the one with its loop stand where they stood.

    ``path`` is their ``f_lasti``, without the innermost. ``phase`` is ``None`` for a batch that no phase asks for.
    """

    __slots__ = ("around", "code", "depth", "frame_id", "lasti", "outer_lasti", "path", "phase", "skipped", "where")

    def __init__(self, phase: Phase | None, frame_id: int, path: tuple[int, ...], where: Where) -> None:
        self.phase = phase
        self.frame_id = frame_id
        self.path = path
        self.where = where
        self.code: CodeType | None = None
        """Of the innermost frame that is not PyTorch's, for the latest event of its kind; where it stands, and how
        many frames of PyTorch's are inside of it."""
        self.lasti = self.skipped = 0
        self.depth = self.outer_lasti = 0
        """How many frames are inside of the one with the loop, and where that one stands."""
        self.around: CodeType | None = None
        """What the frame around that one runs: a later frame may have the number of one that is over."""
