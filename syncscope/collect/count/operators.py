"""Whether the program is inside of an operator, where waits have no Python warning."""

from __future__ import annotations

import os
from types import FrameType

from syncscope.collect.sites.threads import current_frames

OPERATORS = os.path.join("torch", "_ops.py")
"""Where operators are called from."""


def in_operator() -> bool:
    """Whether a thread is in a call of ``torch.ops`` that began while nothing was counted: were the mode switched on in
    the midst of it, C++ would print a line on stderr for each wait."""
    for frame in current_frames().values():
        inner: FrameType | None = frame
        while inner is not None:
            if inner.f_code.co_filename.endswith(OPERATORS):
                return True
            inner = inner.f_back
    return False
