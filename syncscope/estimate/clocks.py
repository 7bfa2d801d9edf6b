"""How the time and the power of device work follow the GPU's clock, by what it is.

Kernels are told apart by their names, since a trace holds nothing else of most of them.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

import msgspec
import numpy as np

from syncscope.estimate.items import COLLECTIVE, TO_DEVICE, TO_HOST, DevicePart
from syncscope.patterns import compile_later
from syncscope.timeline.intervals import Floats
from syncscope.timeline.row_groups import number_texts
from syncscope.timeline.tables import Objects

COMPUTE = compile_later(
    r"gemm(?!v)|nvjet|xmma|wgmma|cutlass|winograd|[fwd](prop|grad)|implicit_convolve|fmha|flash|attention"
    r"|triton_(tem|mm)|_matmul|Cijk_",
    re.IGNORECASE,
)
"""Names of kernels that multiply matrices: cuBLAS, cuDNN, CUTLASS, flash attention, Triton's templates, rocBLAS."""

MEMORY = compile_later(
    r"elementwise|reduc|copy|fill|gather|scatter|index|softmax|norm|bn_[fb]w|embedding|dropout|multi_tensor|sort|scan"
    r"|transpose|nchwTo|nhwcTo|pool|gemv|nll_loss|triton_(poi|red|per|for)|adam|memset|memcpy|cat_?array",
    re.IGNORECASE,
)
"""Names of kernels that mostly move data."""

HELPER = compile_later(r"splitk_?reduc|reducesplitk|init_device_workspace|nchwTo|nhwcTo", re.IGNORECASE)
"""Names of kernels that carry the name of a matrix library and only move data for it."""

WITHOUT_TENSOR_CORES = compile_later(r"ffma|simt|^s?gemmS?N|sgemm_", re.IGNORECASE)
"""Names of matrix products in full FP32."""


class Response(msgspec.Struct, frozen=True):
    """How work answers a change of the clock by a factor *r*. Exponents."""

    compute: float
    """The time of a matrix product goes with r to the minus this."""
    memory: float
    """The same of a kernel that moves data."""
    power: float
    """The power of a matrix product while it runs goes with r to this."""


LIKELY = Response(compute=0.85, memory=0.2, power=1.8)
"""Set on 2026-11-22 from loops of matrix products with growing gaps on one H200 at its limit. From its smallest gap to
its largest, TF32's time went with the clock to the −0.79 and power for a busy GPU with the clock to the 1.66; BF16's
with −0.90 and 2.03. A loop of large copies took the same time at every gap."""

STRONG = Response(compute=1.0, memory=0.5, power=1.6)
WEAK = Response(compute=0.7, memory=0.0, power=2.1)
"""The least and the most that filling idle time may give back; set the same day, a little beyond what was measured."""

MEMORY_POWER = 1.0
"""The exponent of the power of what moves data: its voltage follows the clock, the memory's does not."""

MATRIX, SCALAR, UNKNOWN, MOVING, LINK = 1.0, 0.5, 0.7, 0.45, 0.1
"""Power above idle while a kind of work runs, as a share of a matrix product's on tensor cores at the same clock: such
a product, one without tensor cores, unknown kernels, those that move data, copies over a link. From the same loops:
598 W above idle for TF32 at 1545 MHz, so 790 W at 1800 MHz, and 367 W for copies inside the device. Steps of
full FP32 products saved what was predicted without a limit, so these draw less than an H200's limit leaves."""


def slowdown(items: DevicePart, ratio: float, response: Response) -> Floats:
    """The factor on each item's device time at a clock of ``ratio`` (n,). Copies over a link do not follow it."""
    unknown, between = _unknown(items), (response.compute + response.memory) / 2
    factor: Floats = (
        items.computes * ratio**-response.compute + items.moves * ratio**-response.memory + unknown * ratio**-between
    )
    return np.where(items.kernel, factor, 1.0)


class Kinds(NamedTuple):
    """Of each activity (n,)."""

    computes: Floats
    """1 if it multiplies matrices."""
    moves: Floats
    """1 if it mostly moves data; both 0 where its kind is unknown."""
    draws: Floats
    """Its power above idle, as a share of a matrix product's."""


def classify(names: Objects) -> Kinds:
    """The kinds of activities by their names."""
    number, known = number_texts(names)
    columns = np.array([_kind(name) for name in known], dtype=np.float64).reshape(-1, 3)
    return Kinds(*columns.T[:, number])


@lru_cache(maxsize=4096)
def _kind(name: str) -> tuple[float, float, float]:
    if COMPUTE.search(name) and not HELPER.search(name):
        return 1.0, 0.0, SCALAR if WITHOUT_TENSOR_CORES.search(name) else MATRIX
    return (0.0, 1.0, MOVING) if MEMORY.search(name) else (0.0, 0.0, UNKNOWN)


def energies(items: DevicePart) -> tuple[Floats, Floats]:
    """Energy above idle that each item takes at the recorded clock, in ns of a matrix product (n,): of its work that
    multiplies matrices, and of all other."""
    link = np.isin(items.engine, (TO_DEVICE, TO_HOST, COLLECTIVE))
    energy = items.dur * np.where(link, LINK, items.draws)
    compute = np.where(link, 0.0, energy * items.computes)
    return compute, energy - compute


def _unknown(items: DevicePart) -> Floats:
    return np.clip(1.0 - items.computes - items.moves, 0.0, 1.0)
