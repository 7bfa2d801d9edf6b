"""What to do about findings in work that is done once."""

from __future__ import annotations

from typing import Final

from syncscope.timeline.warm_up import CAPTURE, COLLECTIVES, COMPILATION, GROWTH, LOADING, NAMED, SEARCH, START, TIMING

ONCE: Final = {
    CAPTURE: "Nothing, where it runs once: capturing a graph waits for the device and gives memory back. Record the "
    "steps that replay it.",
    COMPILATION: "Nothing, where it runs once: code is compiled and tuned when it is first used. Record later steps; "
    "where it comes back, shapes or types change.",
    SEARCH: "Nothing, where it runs once: the library times its kernels when it first sees a shape. Record later "
    "steps; where it comes back, shapes change.",
    LOADING: "Nothing, where it runs once: kernels are loaded when they are first used. Record later steps.",
    COLLECTIVES: "Nothing, where it runs once: the first collective of a group connects its ranks. Record later steps.",
    GROWTH: "Nothing, where it runs once: the allocator keeps what it takes in the first step. Record later steps.",
    TIMING: "Nothing: DistributedDataParallel waits for the events of the step before in its first ten steps, and then "
    "in every hundredth. Record later steps.",
    START: "Nothing: the profiler prepares itself in the first call that it records.",
    NAMED: "Nothing, where it runs once: the program says itself that it warms up. Record later steps.",
}
"""Advice by the kind of the warm-up (``warm_up.KINDS``)."""
