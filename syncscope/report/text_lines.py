"""Lines on a terminal: wrapped, and harmless whatever they contain."""

from __future__ import annotations

from rich.console import Console
from rich.style import Style
from rich.text import Text

from syncscope.patterns import compile_later
from syncscope.report.escape import log_line, terminal
from syncscope.report.view import Link
from syncscope.schema.findings import Frame

UNIT = compile_later(r"(?<=\d) (?=%|(?:ns|µs|ms|s|min|h|W|MHz|B|KiB|MiB|GiB)\b)")
"""The space between a number and its unit, where no line is broken."""
KEPT = "\ue000"
"""Stands for that space while a text is wrapped; rich breaks lines at no-break spaces, too."""


def line(console: Console, text: Text, indent: int = 0, hang: int = 0) -> None:
    """Print wrapped; lines after the first are indented by ``hang`` more."""
    width = max(console.width - indent, 20)
    text = text.copy()
    text.plain = UNIT.sub(KEPT, text.plain)
    for number, part in enumerate(_wrap(text, console, width, max(width - hang, 20))):
        part.rstrip()
        part.plain = part.plain.replace(KEPT, " ")
        margin = " " * (indent + (hang if number else 0))
        shown = Text.assemble(margin, part)
        if log_line(shown.plain) != shown.plain:
            shown = Text(log_line(shown.plain))
        console.print(shown, soft_wrap=True, highlight=False)


def _wrap(text: Text, console: Console, first: int, others: int) -> list[Text]:
    """The lines of a text, the first of them of another width."""
    lines = list(text.wrap(console, first))
    if len(lines) < 2 or first == others:
        return lines
    taken = len(lines[0].plain.rstrip())
    rest = text[taken:]
    rest = rest[len(rest.plain) - len(rest.plain.lstrip()) :]
    return [lines[0], *rest.wrap(console, others)]


def place(frame: Frame, expression: str | None, style: str, link: Link | None = None) -> Text:
    """``train.py:21  loss.item()  in train_step``; file and line are a link where the terminal opens it."""
    number = "" if frame.line is None else f":{frame.line}"
    address = link(frame) if link is not None else None
    shown = Style.parse(style) + Style(link=address) if address else style
    text = Text.assemble((f"{terminal(frame.file)}{number}", shown))
    if expression:
        text.append(f"  {terminal(expression)}")
    if frame.function:
        text.append(f"  in {terminal(frame.function)}", style="dim")
    return text
