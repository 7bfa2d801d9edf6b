"""What to do about collectives of FSDP, and of what else shares out parameters, that nothing hides.

FSDP fetches one unit ahead by itself: in the forward because its fetches have a stream of their own, in the backward by
the order of the forward. To fetch ahead explicitly only makes up for a host that is late with the next fetch. What is
exposed though the host is ahead takes longer than the unit before it computes, or has nothing before it.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from syncscope.advice import Advice, Section
from syncscope.patterns import compile_later
from syncscope.rules.base.groups import Group
from syncscope.rules.base.occurrences import places_of

FSDP2, ONE_UNIT, HOST_LATE = "fsdp2", "one-unit", "host-late"
"""Names for FSDP by ``fully_shard``, for a model that is one unit, and for collectives that the host starts when the
device has nothing left to do before them."""

MARKS, GATHERS = ("FSDP::", "FullyShardedDataParallel."), "FSDP::all_gather"
"""How the annotations of both versions begin, and those around the fetches of the second one, which name the unit."""

FULLY_SHARD = compile_later(r"fully_shard(?!ed)")
"""In paths of the second version. The first one's is ``fully_sharded_data_parallel.py``."""

BACKWARD, UNITS, LAYERS = "backward", "torch/distributed/fsdp/", "torch/distributed/tensor/"
"""The entry of what C++ backward starts, and where PyTorch keeps what shares out parameters, and layers."""

AT_ONCE_NS = 50_000
"""A collective that begins so soon after its launch waited for the host: for the copy of its input, and for nothing
else that the device had to do."""

FOR_SHARDED: Section = (
    Advice(
        f"{FSDP2} {ONE_UNIT}",
        "Make each layer a unit of its own (fully_shard(layer)): a unit is fetched, and its gradients are reduced, "
        "while another one computes, and here the whole model is one.",
        before="fully_shard(model)",
        after="for layer in model.layers:\n    fully_shard(layer)\nfully_shard(model)",
    ),
    Advice(
        ONE_UNIT,
        "Make each layer a unit of its own (auto_wrap_policy): a unit is fetched, and its gradients are reduced, "
        "while another one computes, and here the whole model is one.",
        before="model = FSDP(model)",
        after="model = FSDP(model, auto_wrap_policy=ModuleWrapPolicy({Block}))",
    ),
    Advice(
        f"{FSDP2} reduce_scatter",
        "Wrap units of one layer each, so that one is reduced while the backward computes the next. A larger batch "
        "hides more, and less is sent with reduce_dtype=torch.bfloat16, and with set_requires_gradient_sync(False) "
        "for all but the last part of an accumulated batch. What the last unit reduces has nothing left to hide "
        "behind.",
        before="fully_shard(layer)",
        after="fully_shard(layer, mp_policy=MixedPrecisionPolicy(reduce_dtype=torch.bfloat16))",
    ),
    Advice(
        "fsdp reduce_scatter",
        "Wrap units of one layer each, so that one is reduced while the backward computes the next. A larger batch "
        "hides more, and less is sent with reduce_dtype=torch.bfloat16, and with no_sync() for all but the last part "
        "of an accumulated batch. What the last unit reduces has nothing left to hide behind.",
        before="model = FSDP(model, auto_wrap_policy=policy)",
        after="""
        policy = ModuleWrapPolicy({Block})
        precision = MixedPrecision(reduce_dtype=torch.bfloat16)
        model = FSDP(model, auto_wrap_policy=policy, mixed_precision=precision)
        """,
    ),
    Advice(
        f"{FSDP2} {HOST_LATE} allgather|sharded",
        "Fetch ahead, since the host starts it only when nothing is left to compute: set_modules_to_forward_prefetch "
        "and set_modules_to_backward_prefetch with the next two layers, and model.unshard() for the first unit "
        "before the batch is made ready. All that lets the host run ahead helps as much.",
        before="fully_shard(layer)",
        after="""
        layers = list(model.layers)
        for number, layer in enumerate(layers):
            layer.set_modules_to_forward_prefetch(layers[number + 1 : number + 3])
            layer.set_modules_to_backward_prefetch(layers[max(number - 2, 0) : number][::-1])
        """,
    ),
    Advice(
        f"fsdp {HOST_LATE} allgather|sharded",
        "Fetch ahead, since the host starts it only when nothing is left to compute: forward_prefetch=True, if each "
        "step runs the same layers in the same order (the backward does it by default). All that lets the host run "
        "ahead helps as much; limit_all_gathers=False does, for more memory.",
        before="model = FSDP(model, auto_wrap_policy=policy)",
        after="model = FSDP(model, auto_wrap_policy=policy, forward_prefetch=True)",
    ),
    Advice(
        f"{FSDP2} allgather|sharded",
        "Fetch less, or compute more beside it: one unit is fetched ahead by default. param_dtype=torch.bfloat16 "
        "halves what float32 weights need, reshard_after_forward=False spares the backward's fetches where memory "
        "allows it, and a larger batch hides more. The first unit's has nothing before it to hide behind, unless "
        "model.unshard() starts it sooner.",
        before="fully_shard(layer)",
        after="""
        precision = MixedPrecisionPolicy(param_dtype=torch.bfloat16)
        fully_shard(layer, mp_policy=precision, reshard_after_forward=False)
        """,
    ),
    Advice(
        "fsdp allgather|sharded",
        "Fetch less, or compute more beside it: one unit is fetched ahead by default. param_dtype=torch.bfloat16 "
        "halves what float32 weights need, ShardingStrategy.SHARD_GRAD_OP spares the backward's fetches where memory "
        "allows it, and a larger batch hides more. The first unit's has nothing before it to hide behind.",
        before="model = FSDP(model, auto_wrap_policy=policy)",
        after="""
        precision = MixedPrecision(param_dtype=torch.bfloat16)
        strategy = ShardingStrategy.SHARD_GRAD_OP
        model = FSDP(model, auto_wrap_policy=policy, mixed_precision=precision, sharding_strategy=strategy)
        """,
    ),
)
"""By what ``name_sharding`` says of them."""


FOR_SHARDS: Section = (
    Advice(
        "reduce_scatter",
        "Start each with async_op=True as soon as its gradients are there, so that backward computes the next beside "
        "it, and wait just before the optimizer reads the result; less is sent in bfloat16. The last one has nothing "
        "left to hide behind, so make it a small one.",
        before="""
        loss.backward()
        for part, grads in buckets:
            dist.reduce_scatter_tensor(part, grads)
        """,
        after="""
        # in a hook (register_post_accumulate_grad_hook), when the last gradient of a bucket is there
        works.append(dist.reduce_scatter_tensor(part, grads, async_op=True))
        """,
    ),
    Advice(
        "allgather|sharded",
        "Fetch ahead: start the next layer's with async_op=True while this one computes. FSDP can do it "
        "(forward_prefetch, backward_prefetch, set_modules_to_forward_prefetch).",
        before="dist.all_gather_into_tensor(weight, own)\ny = layer(x, weight)",
        after="""
        coming = dist.all_gather_into_tensor(following, own, async_op=True)
        y = layer(x, weight)         # meanwhile
        coming.wait()
        """,
    ),
)
"""For shares of parameters and gradients that nothing shows to be FSDP's."""


def name_sharding(group: Group, around: set[str]) -> Iterator[str]:
    """Which FSDP the collectives are part of, by the names ``around`` them, and what leaves them without compute."""
    if any(name.startswith(MARKS[0]) or FULLY_SHARD.search(name) for name in around):
        yield FSDP2
    if _is_one_unit(group):
        yield ONE_UNIT
    if _is_host_late(group):
        yield HOST_LATE


def names_in_forward(group: Group) -> set[str]:
    """The files that tell what the collectives of the forward are part of, for a group that C++ backward starts: its
    stack ends there, and what the forward gathers is what backward gathers and scatters again. Nothing where the
    forward gathers both parameters and activations."""
    if group.place.entry != BACKWARD or any(op.startswith("autograd::engine") for ops in group.rows.ops for op in ops):
        return set()
    collectives = group.timeline.collectives
    sharded = np.isin(collectives.name, ("allgather", "reduce_scatter"))
    others = places_of(group.timeline, np.unique(collectives.place[sharded]))
    files = {frame.file for place in others if place.entry != BACKWARD for frame in place.chain}
    units, layers = {file for file in files if UNITS in file}, {file for file in files if LAYERS in file}
    return set() if units and layers else units | layers


def _is_one_unit(group: Group) -> bool:
    """Whether a step fetches one unit at the most, which the names of the fetches do not contradict."""
    collectives, steps = group.timeline.collectives, group.steps
    own = [
        marks
        for name, marks, step in zip(collectives.name, collectives.marks, collectives.step, strict=True)
        if name == "allgather" and step >= 0 and any(mark.startswith(MARKS) for mark in marks)
    ]
    units = {mark for marks in own for mark in marks if mark.startswith(GATHERS)}
    return 0 < len(own) <= steps and len(units) <= 1


def _is_host_late(group: Group) -> bool:
    """Whether most of the exposed time is of collectives that began as soon as they were launched."""
    collectives = group.timeline.collectives.take(group.rows.unit)
    at_once = (collectives.launch >= 0) & (collectives.ts - collectives.launch_end <= AT_ONCE_NS)
    exposed = np.maximum(group.rows.exposed, 0)
    return bool(2 * exposed[at_once].sum() > exposed.sum())
