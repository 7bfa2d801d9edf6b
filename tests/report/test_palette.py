"""What lies in one row can be told apart by every reader: with normal sight, and without one of the three cones.

Colour blindness is simulated in linear RGB with the matrices of Machado, Oliveira and Fernandes, "A
Physiologically-based Model for Simulation of Color Vision Deficiency" (2009), severity 1; distances are CIE 1976 in
L*a*b*, of which 2.3 is just noticeable.
"""

from __future__ import annotations

import itertools
import re
from importlib.resources import files

import numpy as np
import pytest

from syncscope.report.figures.colours import LIGHT
from syncscope.report.figures.run import BRIGHT
from syncscope.timeline.intervals import Floats

SIGHT = {
    "normal": np.eye(3),
    "protanopia": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    ),
    "deuteranopia": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
    ),
    "tritanopia": np.array(
        [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]]
    ),
}
XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
WHITE = np.array([0.95047, 1.0, 1.08883])

ROWS = {
    "a stream": ("compute", "collective", "HtoD", "DtoH", "DtoD", "copy", "memset"),
    "a host thread": ("wait", "launch"),
    "other calls": ("wait", "call"),
    "who waits for whom": ("late-1", "late-2", "late-3", "late-4"),
    "phases of the run": ("phase-1", "phase-2", "phase-3", "phase-4", "phase-5", "phase-rest"),
}
LEAST = 20.0
NAMES = {"on-colour": ("wait", "compute", "DtoH"), "on-bright": ("collective", "HtoD", "DtoD")}
"""What names are written with, on which bars."""


def palette(scheme: str) -> dict[str, str]:
    css = files("syncscope.report").joinpath("assets", "page.css").read_text(encoding="utf-8")
    light, _, rest = css.partition("@media screen and (prefers-color-scheme: dark)")
    found = dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6}|var\(--[\w-]+\)|rgba\([^)]*\));", light))
    if scheme == "dark":
        found |= dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6});", rest.partition("* {")[0]))
    return {name: found[value[6:-1]] if value.startswith("var") else value for name, value in found.items()}


def linear(colour: str) -> Floats:
    values = np.array([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)])
    return np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)


def lab(rgb: Floats) -> Floats:
    x, y, z = (XYZ @ np.clip(rgb, 0, 1)) / WHITE
    fx, fy, fz = (v ** (1 / 3) if v > 0.008856 else 7.787 * v + 16 / 116 for v in (x, y, z))
    return np.array([116 * fy - 16, 500 * (fx - fy), 200 * (fy - fz)])


def luminance(colour: str) -> float:
    return float((XYZ @ linear(colour))[1])


@pytest.mark.parametrize("sight", SIGHT)
@pytest.mark.parametrize("row", ROWS)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_colours_of_one_row_are_far_apart(scheme: str, row: str, sight: str) -> None:
    colours = palette(scheme)
    for one, other in itertools.combinations(ROWS[row], 2):
        seen = [lab(SIGHT[sight] @ linear(colours[kind])) for kind in (one, other)]
        assert np.linalg.norm(seen[0] - seen[1]) >= LEAST, (one, other)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_names_can_be_read_on_their_bars(scheme: str) -> None:
    colours = palette(scheme)
    for ink, kinds in NAMES.items():
        for kind in kinds:
            dark, bright = sorted((luminance(colours[ink]), luminance(colours[kind])))
            assert (bright + 0.05) / (dark + 0.05) >= 4.5, (ink, kind)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_names_of_phases_can_be_read_on_their_colours(scheme: str) -> None:
    colours = palette(scheme)
    for name in ROWS["phases of the run"]:
        ink = colours["on-bright" if name in BRIGHT else "on-colour"]
        dark, bright = sorted((luminance(ink), luminance(colours[name])))
        assert (bright + 0.05) / (dark + 0.05) >= 4.5, name


def test_a_figure_outside_the_page_has_the_colours_of_the_light_page() -> None:
    colours = palette("light")
    assert {name: colours[name] for name in LIGHT} == LIGHT
