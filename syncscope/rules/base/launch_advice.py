"""What to do about launches of code that is compiled already, in all or in part."""

from __future__ import annotations

from syncscope.advice import Advice
from syncscope.rules.base.program import BESIDE_COMPILED, COMPILED, PARTLY

COMPILED_ALREADY = Advice(
    COMPILED,
    "It is compiled already: have it replayed as a CUDA graph where shapes stay the same (torch.compile's "
    "mode='reduce-overhead'), let it break into fewer parts (fullgraph=True names what breaks it), or give each launch "
    "more to do: larger batches.",
    before="step = torch.compile(step)",
    after="step = torch.compile(step, mode='reduce-overhead')",
)

COMPILED_IN_PARTS = Advice(
    BESIDE_COMPILED,
    "Most launches are of compiled code already, and the device waits for those between its parts too: let it break "
    "into fewer parts (fullgraph=True names what breaks it), replay all of it as a CUDA graph, or give each launch "
    "more to do: larger batches.",
)

REST = Advice(
    PARTLY,
    "Launch fewer and larger kernels in the parts that are neither compiled nor replayed as a graph yet: torch.compile "
    "or CUDA graphs for those, larger batches.",
)

OF_COMPILED = (COMPILED_ALREADY, COMPILED_IN_PARTS, REST)
"""What ``name_compiled`` chooses from."""
