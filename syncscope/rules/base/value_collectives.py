"""What to do about collectives of single values: the norm of all gradients, and what is gathered to be logged."""

from __future__ import annotations

from collections.abc import Iterator

from syncscope.advice import Advice, Section
from syncscope.rules.base.groups import Group

GRADIENT_NORM, GATHERED_VALUES = "gradient-norm", "gathered-values"

CLIPS = "clip_grad_norm_"
"""How PyTorch and FSDP's first version call the function that needs the norm of all gradients."""

GATHERS = "accelerate/utils/operations.py"
"""The file of Accelerate that gathers what a program names, whichever way its model is shared out."""

STARTS = ("torch/distributed/distributed_c10d.py", "torch/distributed/c10d_logger.py")
"""The files of PyTorch that start a collective for whoever calls them."""

FOR_VALUES: Section = (
    Advice(
        GRADIENT_NORM,
        "Nothing hides it: the optimizer needs this one number of all ranks, and most of what it takes is the wait for "
        "the rank that ends backward last. Clip the whole of an accumulated batch and none of its parts, or leave it "
        "out where the norm stays below the bound.",
        before="""
        for part in batch.chunk(4):
            loss_of(part).backward()
            clip_grad_norm_(params, 1.0)
        """,
        after="""
        for part in batch.chunk(4):
            loss_of(part).backward()
        clip_grad_norm_(params, 1.0)
        """,
    ),
    Advice(
        GATHERED_VALUES,
        "Gather what is only logged every so many steps, and several values in one tensor: each gather costs mostly "
        "its start, and the wait for the last rank.",
        before="right, total = accelerator.gather(right), accelerator.gather(total)",
        after="right, total = accelerator.gather(torch.stack([right, total])[None]).sum(0)",
    ),
)
"""By what ``name_values`` says of them."""


def name_values(group: Group) -> Iterator[str]:
    """Which values the collectives are of, by the functions that start them."""
    chain = group.place.chain
    if any(frame.function.rpartition(".")[-1] == CLIPS for frame in chain):
        yield GRADIENT_NORM
        return
    callers = [frame.file for frame in chain if not frame.file.endswith(STARTS)]
    if callers and callers[-1].endswith(GATHERS):
        yield GATHERED_VALUES
