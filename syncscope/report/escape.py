"""Escape foreign names for each output. Names come from traces, and traces come from anybody."""

from __future__ import annotations

import re

from syncscope.patterns import compile_later

# An escape sequence goes whole, so that no "[31m" is left behind.
_ESCAPE_SEQUENCE = compile_later(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor, erase
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f]).*?(?:\x07|\x1b\\|\x9c|$)"  # OSC and other strings: titles, links
    r"|\x1b[ -/]*[0-~]?",
    re.DOTALL,
)
# Control characters, zero-width and bidirectional ones (they reorder what is read), tags, and what cannot be written:
# lone surrogates and the two that no XML may hold.
_UNSEEN = compile_later(
    r"[\x00-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufffe\uffff\ud800-\udfff"
    r"\U000e0000-\U000e007f]"
)
_SPACE = compile_later(r"[\t\n\r\v\f\x85\u2028\u2029]+")
_PUNCTUATION = compile_later(r"[!-/:-@\[-`{-~]")


def terminal(text: str) -> str:
    """One line that a terminal shows as it is: no escape sequence, control or direction character is left.

    Markup of ``rich`` is left alone: put the result in a ``rich.text.Text``, which never reads it. The log of GitHub
    Actions obeys ``##[…]`` anywhere in a line, so that is broken; what it obeys at the begin of one, see ``log_line``.
    XML holds the result too, once ``<``, ``>``, ``&`` and quotes are escaped.
    """
    return _UNSEEN.sub("", _SPACE.sub(" ", _ESCAPE_SEQUENCE.sub("", text))).replace("##[", "## [")


def log_line(text: str) -> str:
    """A printed line that the log of GitHub Actions does not take for a command: those begin with ``::``."""
    return re.sub(r"^(\s*):(?=:)", r"\1: ", text)


def json_text(text: str) -> str:
    """JSON in which the log of GitHub Actions finds no command."""
    return text.replace("##[", "#\\u0023[")


def command(text: str) -> str:
    """The message of a GitHub workflow command."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def command_property(text: str) -> str:
    """The value of a property of a GitHub workflow command."""
    return command(text).replace(":", "%3A").replace(",", "%2C")


def markdown(text: str) -> str:
    """One line of markdown, also in a table's cell, that reads as the text: no markup, link, HTML or mention.

    GitHub finds ``@name`` and ``#1`` after the markdown is rendered; an invisible space keeps them apart.
    """
    return re.sub(r"\\[@#]", r"\g<0>&#8203;", _PUNCTUATION.sub(r"\\\g<0>", terminal(text).strip()))


def code(text: str) -> str:
    """The text as a code span, in which nothing is markup; also in a table's cell, where ``|`` needs a backslash."""
    shown = terminal(text).strip().replace("\\|", "\\ |").replace("|", "\\|")
    fence = "`" * (1 + max(map(len, re.findall("`+", shown)), default=0))
    space = " " if "`" in shown or not shown else ""
    return f"{fence}{space}{shown}{space}{fence}"


def sarif(text: str) -> str:
    """A plain-text message of SARIF, without the links and placeholders that such a message may hold."""
    return re.sub(r"\{(?=\d+\})", "{ ", terminal(text).replace("](", "] ("))


def plotly_text(text: str) -> str:
    """A label of a plotly figure, which reads a little HTML: entities keep names what they are."""
    return terminal(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
