"""The colours of figures: names of the page's style, and what they are where it is light."""

from __future__ import annotations

from collections.abc import Callable

LIGHT = {
    "phase-1": "#0279b8", "phase-2": "#e7a014", "phase-3": "#4fcfa3", "phase-4": "#7c2047", "phase-5": "#add7eb",
    "phase-rest": "#7e858c", "on-colour": "#ffffff", "on-bright": "#14171b", "text": "#1b1f24",
    "soft": "#59616b", "line": "#dfe3e8", "accent": "#0b5cad", "bg": "#ffffff", "sunken": "#eef0f3",
    "compute": "#0279b8", "collective": "#4fcfa3", "HtoD": "#e7a014", "DtoH": "#7c2047", "DtoD": "#add7eb",
    "copy": "#846c1b", "memset": "#798390", "launch": "#8fa3bb", "call": "#b4bcc6", "op": "#dde2e9",
    "annotation": "#cfd6e4", "wait": "#cc3311", "idle": "#c9ced5", "good": "#0b6b53",
    "idle-1": "#a7aeb7", "idle-2": "#bfc5cc", "idle-3": "#d3d8dd", "idle-4": "#e4e7ea",
    "hatch": "rgba(10, 12, 16, .55)",
}  # fmt: skip
"""The page's colours, where it is light."""

Colour = Callable[[str], str]
"""What plotly takes for a colour's name."""


def in_light(name: str) -> str:
    """The colours of a figure by itself."""
    return LIGHT[name]


def on_page(name: str) -> str:
    """The colours of a figure on the page, whose scripts put the style's in."""
    return f"var(--{name})"
