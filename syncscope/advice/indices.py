"""The advice on an index, and on what is written at one, that is on the host and copied to the device each time."""

from __future__ import annotations

from msgspec.structs import replace

from syncscope.advice.entry import Advice, Section
from syncscope.advice.operations import WRITE

INDEX = Advice(
    "aten::index aten::copy_",
    "Keep the index on the device: move it once, before the loop; or index with Python ints and slices.",
    before="""
    for batch in loader:
        y = x[order]             # order is on the host
    """,
    after="""
    order = order.to('cuda')     # once
    for batch in loader:
        y = x[order]
    """,
)
"""For an index on the host, or a list of Python."""

WRITTEN = Advice(
    f"{WRITE} aten::copy_",
    "Keep the index, and a tensor that is written there, on the device: move them once, before the loop. A Python "
    "number is written without a copy by x.index_fill_(0, index, number).",
    before="x[index] = 0.0",
    after="x.index_fill_(0, index, 0.0)",
)
"""For the same in an assignment, which copies a number, too."""

FIXED_PART = "fixed-part"
"""Stands for brackets in which nothing but numbers is: only what is written there can be copied."""

ELEMENT = Advice(
    f"{FIXED_PART} HtoD",
    "What is written there is on the host, and is copied each time: make it on the device, or move it once, before the "
    "loop. A Python number is written without a copy by x[0].fill_(number).",
    before="position[0] = start          # a vector of the device",
    after="position[0].fill_(start)",
)
"""For what is written to a fixed part: one element of a vector takes a number by a copy."""

INDEXED: Section = (ELEMENT, INDEX, WRITTEN, replace(INDEX, when="[] aten::copy_ HtoD"))
