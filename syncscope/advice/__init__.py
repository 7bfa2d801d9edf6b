"""What to write instead of a wait or a copy: advice as a sentence and, where it is short, as a change of code."""

from __future__ import annotations

from syncscope.advice.copies import (
    COPIES,
    COPY_TO_DEVICE,
    COPY_TO_HOST,
    EITHER_WAY,
    INFERENCE,
    LAST_TO_HOST,
    LIBRARIES,
    MOVED_WEIGHTS,
    NO_BATCH,
    READ,
    READ_IN_INFERENCE,
    SMALL_TO_DEVICE,
    STACK,
    SYNCHRONIZE,
    UNCACHED,
    VALUES_TO_HOST,
    WEIGHTS,
    for_call,
)
from syncscope.advice.entry import Advice, Example, Section, choose
from syncscope.advice.operations import (
    BY_OP,
    NEW_TENSORS,
    PYTORCH_CODE,
    READS,
    SCALER_STEP,
    SHAPES,
)

__all__ = [
    "BY_OP",
    "COPIES",
    "COPY_TO_DEVICE",
    "COPY_TO_HOST",
    "EITHER_WAY",
    "INFERENCE",
    "LAST_TO_HOST",
    "LIBRARIES",
    "MOVED_WEIGHTS",
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
    "VALUES_TO_HOST",
    "WEIGHTS",
    "Advice",
    "Example",
    "Section",
    "choose",
    "for_call",
]
