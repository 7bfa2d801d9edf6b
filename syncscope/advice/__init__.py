"""What to write instead of a wait or a copy: advice as a sentence and, where it is short, as a change of code."""

from __future__ import annotations

from syncscope.advice.entry import Advice, Example, Section, choose
from syncscope.advice.sections import (
    BY_OP,
    COPIES,
    COPY_TO_DEVICE,
    COPY_TO_HOST,
    INFERENCE,
    LIBRARIES,
    NEW_TENSORS,
    NO_BATCH,
    PYTORCH_CODE,
    READ,
    READ_IN_INFERENCE,
    READS,
    SCALER_STEP,
    SHAPES,
    SMALL_TO_DEVICE,
    STACK,
    SYNCHRONIZE,
    UNCACHED,
    for_call,
)

__all__ = [
    "BY_OP",
    "COPIES",
    "COPY_TO_DEVICE",
    "COPY_TO_HOST",
    "INFERENCE",
    "LIBRARIES",
    "NEW_TENSORS",
    "NO_BATCH",
    "PYTORCH_CODE",
    "READ",
    "READS",
    "READ_IN_INFERENCE",
    "SCALER_STEP",
    "SHAPES",
    "SMALL_TO_DEVICE",
    "STACK",
    "SYNCHRONIZE",
    "UNCACHED",
    "Advice",
    "Example",
    "Section",
    "choose",
    "for_call",
]
