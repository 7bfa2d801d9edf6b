"""What to write instead of a wait or a copy: advice as a sentence and, where it is short, as a change of code."""

from __future__ import annotations

from syncscope.advice.entry import Advice, Example, Section, choose
from syncscope.advice.sections import (
    BY_OP,
    COPIES,
    COPY_TO_DEVICE,
    COPY_TO_HOST,
    LIBRARIES,
    NEW_TENSORS,
    PYTORCH_CODE,
    READ,
    READS,
    SCALER_STEP,
    SHAPES,
    STACK,
    SYNCHRONIZE,
    for_call,
)

__all__ = [
    "BY_OP",
    "COPIES",
    "COPY_TO_DEVICE",
    "COPY_TO_HOST",
    "LIBRARIES",
    "NEW_TENSORS",
    "PYTORCH_CODE",
    "READ",
    "READS",
    "SCALER_STEP",
    "SHAPES",
    "STACK",
    "SYNCHRONIZE",
    "Advice",
    "Example",
    "Section",
    "choose",
    "for_call",
]
