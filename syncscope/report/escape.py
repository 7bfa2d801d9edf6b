"""What a foreign name may look like in each output. Names come from traces, and traces from anybody."""

from __future__ import annotations

import re

# An escape sequence goes whole, so that no "[31m" is left behind.
_ESCAPE_SEQUENCE = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor, erase
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f]).*?(?:\x07|\x1b\\|\x9c|$)"  # OSC and other strings: titles, links
    r"|\x1b[ -/]*[0-~]?",
    re.DOTALL,
)
# Control characters, zero-width and bidirectional ones (they reorder what is read), lone surrogates (not writable).
_UNSEEN = re.compile(r"[\x00-\x1f\x7f-\x9f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff]")
_SPACE = re.compile(r"[\t\n\r\v\f\x85\u2028\u2029]+")


def terminal(text: str) -> str:
    """One line that a terminal shows as it is: no escape sequence, control or direction character is left.

    Markup of ``rich`` is left alone: put the result in a ``rich.text.Text``, which never reads it.
    """
    return _UNSEEN.sub("", _SPACE.sub(" ", _ESCAPE_SEQUENCE.sub("", text)))
