"""What to do with tensors that the host makes, and that are copied to the device."""

from __future__ import annotations

from syncscope.advice.entry import Advice, Section

MADE_ANEW = "made-anew"
"""Stands for a tensor that is made on the host and moved at once."""

MADE_ON_DEVICE = Advice(
    MADE_ANEW,
    "Make it on the device, which needs no copy: pass device= where it is made.",
    before="x = torch.zeros(64, 128).to('cuda')",
    after="x = torch.zeros(64, 128, device='cuda')",
)

FIXED = "fixed"
"""Stands for a tensor of values that the text of the call holds."""

MADE_ONCE = Advice(
    FIXED,
    "Its values stand in the code and never change: make it once, outside of the loop or as a buffer of the module "
    "(register_buffer), which moves with the model. A single value is best a number of Python, which is no copy.",
    before="scale = torch.tensor([0.5]).to(x.device)   # in forward",
    after="self.register_buffer('scale', torch.tensor([0.5]))   # in __init__",
)

DRAWN = "drawn"
"""Stands for a new tensor of random numbers."""

DRAWN_ON_DEVICE = Advice(
    f"{MADE_ANEW} {DRAWN}",
    "Make it on the device, which needs no copy: pass device= where it is made; a distribution draws on the device of "
    "its parameters. A seed gives other random numbers there than on the host.",
    before="x = torch.randn(64, 128).to('cuda')",
    after="x = torch.randn(64, 128, device='cuda')",
)

MAKES_TENSOR = "tensor()|as_tensor()|asarray()|new_tensor()|aten::lift_fresh"

GIVEN = "given"
"""Stands for a new tensor of values that the text of the call does not hold, so that they may change."""

NEW_TENSORS: Section = (
    Advice(
        f"{MAKES_TENSOR} one-value",
        "Make it on the device (torch.full, torch.arange with device=), or once outside the loop.",
        before="scale = torch.tensor(0.5, device='cuda')",
        after="scale = torch.full((), 0.5, device='cuda')",
    ),
    Advice(
        f"{MAKES_TENSOR} {GIVEN}",
        "Copy values that change from pinned memory: torch.tensor(values, pin_memory=True).to(device, "
        "non_blocking=True); make what stays the same once outside the loop.",
        before="lengths = torch.tensor(lengths, device='cuda')",
        after="lengths = torch.tensor(lengths, pin_memory=True).to('cuda', non_blocking=True)",
    ),
    Advice(
        MAKES_TENSOR,
        "Make it once outside the loop, or on the device where it follows a rule (torch.arange with device=); values "
        "that change go through pinned memory: torch.tensor(values, pin_memory=True).to(device, non_blocking=True).",
        before="lengths = torch.tensor(lengths, device='cuda')",
        after="lengths = torch.tensor(lengths, pin_memory=True).to('cuda', non_blocking=True)",
    ),
)
"""Tensors made on the host and copied to the device."""
