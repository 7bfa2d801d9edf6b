"""The place at which the host is while the device is idle, and when one says something."""

from __future__ import annotations

import msgspec

from syncscope.schema.numbers import percent
from syncscope.timeline import Place

COMMON = ("<site-packages>/torch/", "<python>/")
"""Files whose functions are behind every step."""

MAIN_SHARE = 0.5
"""A place stands for the bubbles if it is behind at least this share of their time."""

ALL = 0.995
"""From this share on a place has all of it."""

EVERYWHERE = 0.9
"""A function that runs for this share of the trace is around nearly all that happens: it says where nothing is that
lies in a function of half its length or less."""


class IdlePlace(msgspec.Struct, frozen=True):
    """Where the host is in most of some bubbles."""

    place: Place
    """Its ``at`` is the function that takes the most of it, where one does."""
    share: float
    """Of the bubbles' time."""
    op: str = ""
    """The outermost op that takes most of it, where neither a function nor an annotation is known."""
    spread: bool = False
    """Whether the annotation holds others that share it."""
    of_step: bool = False
    """Whether samples show that most of it lies in PyTorch's Python code of modules, the backward pass or optimizers,
    or works on gradients."""

    def share_in_words(self) -> str:
        return "all" if self.share >= ALL else percent(self.share, 1.0)

    def in_words(self) -> str:
        """``preprocess (lib/video.py:235)``; the line is that of the ``def``, as all that the trace's frames know."""
        frame = self.place.at or self.place.site
        if frame is None:
            return self.place.annotation or self.op
        return f"{frame.function} ({frame.file}{'' if frame.line is None else f':{frame.line}'})"
