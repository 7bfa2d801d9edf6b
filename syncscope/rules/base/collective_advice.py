"""What to do about collectives that nothing hides, by what they are part of."""

from __future__ import annotations

import re
from collections.abc import Iterator

from syncscope.advice import Advice, Section
from syncscope.patterns import compile_later
from syncscope.rules.base.groups import Group
from syncscope.rules.base.program import only_infers
from syncscope.rules.base.sharded_advice import FOR_SHARDED, FOR_SHARDS, name_sharding, names_in_forward
from syncscope.rules.base.value_collectives import FOR_VALUES, GRADIENT_NORM, name_values
from syncscope.timeline.collectives import PEERS
from syncscope.timeline.late_peers import mostly_wait
from syncscope.trace.names import is_direct_collective
from syncscope.trace.quantiles import median

REDISTRIBUTE = compile_later(r"\bRedistribute(?:Backward)?$")
"""How DTensor calls its change from one placement to another (torch/distributed/tensor/_redistribute.py)."""

ONE_SHOT = "one-shot"
"""Stands for collectives whose kernels write to the memory of the other devices at once, in one shot or two."""

CONTEXTS = {
    "optimizer": r"^Optimizer\.step#|\boptimi[sz]er\b(?!\.zero)|shampoo|torch/optim/",
    "fsdp": r"(?i:fsdp)|FullySharded|fully_shard",
    "embeddings": r"KJT|All2All_Pooled|sparse[ _](?:arch|data_dist)|all2all_|alltoall_(?:fwd|bwd)_|torchrec|embedding",
    "tensor-parallel": r"^(?:vllm|sgl_kernel|symm_mem|_C_custom_ar)::|(?:^|/)vllm/|sglang/srt|tensor_parallel"
    r"|torch/distributed/tensor/|(?:Model|Tensor|Sequence)ParallelRegion|VocabParallel|^LinearWithGradAccumulation"
    rf"|{REDISTRIBUTE.pattern}",
    ONE_SHOT: r"^(?:symm_mem|_C_custom_ar)::",
    "ddp-forward": r"^DistributedDataParallel\.forward$",
}
"""What a collective is part of, by the names around it: annotations, ops, and files of the stack."""

FUNCTIONAL = "_c10d_functional::"
"""How the ops of functional collectives begin, which models are made of."""

LOOKUP = "split_embedding"
"""Part of the names of FBGEMM's ops that look up the rows of tables, as TorchRec has them."""

SHARDED = {"allgather", "reduce_scatter"}
"""The collectives of parameters that ranks share out among them."""

MANY, SMALL_BYTES, SHORT_NS = 8, 1 << 20, 100_000
"""Collectives are many small ones if there are at least this many a step, half of them of no more than this size (where
it is unknown, of no more than this time): then what each costs is mostly the start."""

LARGE, LARGE_BYTES, OF_ONE_LAYER = "large", 100 << 20, 2
"""All-reduces of backward are large if they are of this size on average, four times that of the buckets that
DistributedDataParallel makes by itself, though each is of no more gradients than this, those of a weight and a bias: a
parameter that is larger than a bucket has one of its own."""

GRADIENT = "torch::autograd::AccumulateGrad"
"""The op that ends the gradient of each parameter."""

DEEP_EP = "deep-ep"
"""Stands for collectives of DeepEP, by the namespace of its kernels."""

BEFORE = "before-trace"
"""Stands for collectives that were launched before a trace that holds the launches of others."""

LATE_PEER = "late-peer"
"""Stands for collectives that mostly wait for another rank."""

ALONE_WITH_PEER = Advice(
    LATE_PEER,
    "See what the other ranks do before it, since this one waits for the last of them: record all of them in the "
    "same steps, and give all traces at once (DST601 then names the late rank and what it did). Shares of the work "
    "that are as large for each rank make the wait shorter.",
    before="ids = shard_by_key(batch)            # some ranks get more than others",
    after="ids = shard_by_load(batch)           # each rank gets as much",
)
"""What to do about collectives that mostly wait for another rank, as far as one trace tells."""

COMPARED = Advice(
    LATE_PEER,
    "See to the rank that comes late: DST601 names it and what it did where it holds the others, and its own findings "
    "say what it did before. Shares of the work that are as large for each rank make the wait shorter.",
)
"""What to do about collectives that mostly wait for another rank, where the traces of the others are given too."""

CHEAPER = {"optimizer", "tensor-parallel", f"backward {LARGE}", GRADIENT_NORM}
"""What begins the names of advice by which collectives become cheaper, by a part that nothing tells: what they are part
of needs them before it goes on, or they cannot be split, so they cannot be hidden."""

COALESCED = "nccl:coalesced"
"""The mark around sends and receives that are started together, as by ``batch_isend_irecv``."""

GEFORCE, NO_PEER_ACCESS = "GeForce", "no-peer-access"
"""In the names of devices that do not reach each other's memory, and the name for such a device."""

FOR_COLLECTIVES: Section = (
    Advice(
        BEFORE,
        "Nothing here: the step before the recorded ones started it. What the recorded steps start has findings of "
        "its own.",
    ),
    ALONE_WITH_PEER,
    *FOR_VALUES,
    Advice(
        "optimizer allgather|reduce_scatter|sharded|broadcast",
        "The optimizer shares out its work and collects the results: collect them in fewer, larger pieces, and "
        "beside work that does not need them (ZeroRedundancyOptimizer's overlap_with_ddp=True), or share them out "
        "among fewer ranks (DistributedShampoo's num_trainers_per_group).",
        before="""
        for p, own in zip(params, parts):
            dist.all_gather_into_tensor(p, own)
        """,
        after="dist.all_gather_into_tensor(flat_params, flat_parts)   # one buffer, of which params are views",
    ),
    *FOR_SHARDED,
    Advice(
        "embeddings all_to_all",
        "Compute the dense part between the start of the embeddings' all-to-all and its wait(), send the next "
        "batch's indices while this one computes (TorchRec's TrainPipelineSparseDist, where it is not there yet), "
        "and send the embeddings in half precision (get_qcomm_codecs_registry).",
        before="rows = embeddings(ids).wait()\ny = dense(x)",
        after="""
        coming = embeddings(ids)
        y = dense(x)                 # meanwhile
        rows = coming.wait()
        """,
    ),
    Advice(
        f"{DEEP_EP} all_to_all",
        "Let it run beside compute that needs none of it (shared experts, the other half of the batch): with "
        "return_recv_hook=True of DeepEP's low_latency_dispatch and low_latency_combine, and the hook called just "
        "before the result is used; of dispatch and combine with async_finish=True. Where the program does so already, "
        "spread the experts so that each rank gets as many tokens (EPLB).",
        before="y = experts(buffer.low_latency_dispatch(x, ids, most, many)[0])\ny = y + shared(x)",
        after="""
        coming, *_, hook = buffer.low_latency_dispatch(x, ids, most, many, return_recv_hook=True)
        y = shared(x)                # meanwhile
        hook()
        y = y + experts(coming)
        """,
    ),
    Advice(
        "all_to_all",
        "Start it with async_op=True, compute what needs none of it (shared experts, the other half of the batch), "
        "and call wait() just before it is used; fewer and larger messages cost less.",
        before="dist.all_to_all_single(out, x)\ny = shared(x) + experts(out)",
        after="""
        work = dist.all_to_all_single(out, x, async_op=True)
        y = shared(x)                # meanwhile
        work.wait()
        y = y + experts(out)
        """,
    ),
    Advice(
        "send|recv|point-to-point",
        "Post it early (batch_isend_irecv), so that it runs beside another micro-batch; a pipeline hides more "
        "with more micro-batches or an interleaved schedule (ScheduleInterleaved1F1B).",
        before="dist.recv(x)\ny = stage(x)",
        after="""
        coming = dist.irecv(following)   # of the next micro-batch
        y = stage(x)                     # meanwhile
        coming.wait()
        """,
    ),
    Advice(
        COALESCED,
        "Start these sends and receives before compute that does not need them: the block at hand, another "
        "micro-batch. A pipeline hides more with more micro-batches or an interleaved schedule "
        "(ScheduleInterleaved1F1B), and shares of the work that are as large for each rank make the wait shorter.",
        before="for work in dist.batch_isend_irecv(ops):\n    work.wait()\ny = attend(block)",
        after="""
        works = dist.batch_isend_irecv(ops)   # of the next block
        y = attend(block)                     # meanwhile
        for work in works:
            work.wait()
        """,
    ),
    Advice(
        f"tensor-parallel {NO_PEER_ACCESS}",
        "Each layer needs it before it goes on, and these devices reach each other only through the host, so kernels "
        "that write to the peers' memory are out: send less (split the model by layers, in a pipeline, which sends "
        "one activation instead of several a layer; or over fewer ranks), or run it in pieces beside the matrix "
        "products around it (asynchronous tensor parallelism).",
        before="""
        y = x @ weight
        dist.all_reduce(y)
        """,
        after="""
        for part in x.chunk(4):
            parts.append(part @ weight)
            works.append(dist.all_reduce(parts[-1], async_op=True))   # beside the next product
        """,
    ),
    Advice(
        f"tensor-parallel {ONE_SHOT}",
        "Each layer needs it before it goes on, and its kernel is a fast one already: fuse it with the norm that "
        "follows, run it in pieces beside the matrix products around it (asynchronous tensor parallelism), or "
        "split the model over fewer ranks.",
        before="y = x @ weight\ndist.all_reduce(y)",
        after="""
        for part in x.chunk(4):
            parts.append(part @ weight)
            works.append(dist.all_reduce(parts[-1], async_op=True))   # beside the next product
        """,
    ),
    Advice(
        "tensor-parallel allgather|reduce_scatter|sharded",
        "Each layer needs it before it goes on, so make it cheaper: symmetric-memory kernels, or run it in pieces "
        "beside the matrix products around it (asynchronous tensor parallelism: torch.compile with "
        "torch._inductor.config._micro_pipeline_tp = True); or split the model over fewer ranks.",
        before="model = torch.compile(model)",
        after="""
        torch._inductor.config._micro_pipeline_tp = True
        model = torch.compile(model)   # sends in pieces, beside the products
        """,
    ),
    Advice(
        "tensor-parallel",
        "Each layer needs it before it goes on, so make it cheaper: one-shot or symmetric-memory kernels, fused "
        "with the norm that follows or run in pieces beside the matrix products around it (asynchronous tensor "
        "parallelism); or split the model over fewer ranks.",
        before="dist.all_reduce(y)",
        after="y = torch.ops.symm_mem.one_shot_all_reduce(y, 'sum', group)   # y is in symmetric memory",
    ),
    Advice(
        "ddp-forward broadcast",
        "Pass broadcast_buffers=False where the buffers need not be those of rank 0 in every step (SyncBatchNorm "
        "keeps its own in step).",
        before="model = DistributedDataParallel(model)",
        after="model = DistributedDataParallel(model, broadcast_buffers=False)",
    ),
    Advice(
        "many-small",
        "Join them: each costs mostly its start. Reduce one flat buffer instead of one tensor at a time; "
        "DistributedDataParallel does it for gradients, in buckets of bucket_cap_mb (25 by default).",
        before="""
        for p in params:
            dist.all_reduce(p.grad)
        """,
        after="""
        flat = torch.cat([p.grad.flatten() for p in params])
        dist.all_reduce(flat)
        """,
    ),
    *FOR_SHARDS,
    Advice(
        f"backward {LARGE}",
        "Send less: half the bytes with a hook that reduces in bfloat16 (model.register_comm_hook(None, "
        "bf16_compress_hook)); when gradients are accumulated, no_sync() for all but the last part. Smaller buckets "
        "(bucket_cap_mb) hide more only where several parameters share one: a parameter is not split.",
        before="model = DistributedDataParallel(model)",
        after="""
        model = DistributedDataParallel(model, gradient_as_bucket_view=True)
        model.register_comm_hook(None, default_hooks.bf16_compress_hook)
        """,
    ),
    Advice(
        "backward",
        "Reduce sooner and in smaller pieces: DistributedDataParallel's bucket_cap_mb (25 by default), with "
        "gradient_as_bucket_view=True; when gradients are accumulated, no_sync() for all but the last part.",
        before="model = DistributedDataParallel(model, bucket_cap_mb=500)",
        after="model = DistributedDataParallel(model, bucket_cap_mb=25, gradient_as_bucket_view=True)",
    ),
    Advice(
        "",
        "Start it with async_op=True as soon as its input is there, compute what does not need it, and call wait() "
        "on the result just before it is used; for gradients let DistributedDataParallel do that.",
        before="dist.all_reduce(x)\ny = model(z)",
        after="""
        work = dist.all_reduce(x, async_op=True)
        y = model(z)                 # meanwhile
        work.wait()
        """,
    ),
)
"""By what ``name_surroundings`` says of them."""


def name_surroundings(group: Group) -> Iterator[str]:
    """What the collectives are part of, whether they are many small ones, whether backward starts them, and which they
    are."""
    if is_from_before(group):
        yield BEFORE
    if waits_for_peer(group):
        yield LATE_PEER
    contexts = _contexts(group)
    yield from contexts
    if "fsdp" in contexts:
        yield from name_sharding(group, _names_around(group))
    if GEFORCE in (group.timeline.device_name or ""):
        yield NO_PEER_ACCESS
    if _many_small(group):
        yield "many-small"
    if group.place.entry == "backward" or any(op.startswith("autograd::engine") for op in group.ops):
        yield "backward"
    kinds = set(group.rows.call)
    if kinds == {"allreduce"} and _are_large(group):
        yield LARGE
    if len(kinds) == 1:
        yield from kinds
    elif kinds <= SHARDED:
        yield "sharded"
    elif kinds <= {"send", "recv"}:
        yield "point-to-point"
    if kinds == {PEERS} and COALESCED in _marks(group):
        yield COALESCED


def _contexts(group: Group) -> list[str]:
    """Which of ``CONTEXTS`` the names around the collectives show.

    Sharded weights are not redistributed (but by SimpleFSDP), so what DTensor redistributes in the forward of an FSDP
    unit is an activation. Without a backward nothing scatters gradients: a program that only infers and scatters
    sums shares out its activations, and gathers them again, and one that sums by functional collectives, inside its
    model, does so with activations.
    """
    if values := list(name_values(group)):
        return values
    around = _names_around(group)
    found = [name for name, pattern in CONTEXTS.items() if any(re.search(pattern, one) for one in around)]
    if any("deep_ep::" in kernel for kernel in _kernels(group)):
        found.append(DEEP_EP)
    if ONE_SHOT not in found and all(map(is_direct_collective, _kernels(group))):
        found.append(ONE_SHOT)
    if any(REDISTRIBUTE.search(one) for one in around) and not any("simple_fsdp" in one for one in around):
        found = [name for name in found if name != "fsdp"]
    if not found and set(group.rows.call) <= SHARDED and only_infers(group.timeline):
        scatters = (group.timeline.collectives.name == "reduce_scatter").any()
        found += ["tensor-parallel"] if scatters else []
    functional = any(name.startswith(FUNCTIONAL) for name in around)
    if not found and functional and set(group.rows.call) == {"allreduce"} and only_infers(group.timeline):
        found.append("tensor-parallel")
    if not found and "all_to_all" in group.rows.call and group.timeline.ops.named(lambda name: LOOKUP in name).any():
        found.append("embeddings")  # where no annotation is around them
    return found


def _names_around(group: Group) -> set[str]:
    """The annotations and ops around a group's collectives, the files of its stack, and those of what backward
    repeats."""
    own = _marks(group) | {op for ops in group.rows.ops for op in ops} | {frame.file for frame in group.place.chain}
    return own | (names_in_forward(group) if set(group.rows.call) <= SHARDED else set())


def _marks(group: Group) -> set[str]:
    """The annotations around a group's collectives."""
    return {mark for marks in group.timeline.collectives.marks[group.rows.unit] for mark in marks}


def _are_large(group: Group) -> bool:
    """Whether a group's all-reduces are of many bytes and of few gradients, as far as the trace tells both."""
    gradients = int(group.timeline.ops.named(lambda name: name == GRADIENT).sum())
    few = 0 < gradients <= OF_ONE_LAYER * len(group.rows)
    return few and bool((group.rows.bytes >= 0).all()) and float(group.rows.bytes.mean()) >= LARGE_BYTES


def _kernels(group: Group) -> set[str]:
    """The names of the kernels that run a group's collectives."""
    names = (
        group.timeline.trace.rows["device"].texts["name"].take(group.timeline.collectives.device_row[group.rows.unit])
    )
    return set(names.objects().tolist())


def is_from_before(group: Group) -> bool:
    """Whether all were launched before the recording, which holds the launches of others: they are of no recorded
    step."""
    return bool(group.timeline.launched_before[group.rows.unit].all())


def waits_for_peer(group: Group) -> bool:
    """Whether the collectives mostly wait for another rank, as far as one rank shows it."""
    return mostly_wait(group.timeline.waiting_for_peers[group.rows.unit], group.rows.exposed)


def is_made_cheaper(fix: str) -> bool:
    """Whether a fix makes collectives cheaper, by a part that nothing tells, instead of hiding them."""
    entry = next((entry for entry in FOR_COLLECTIVES if entry.gave(fix)), None)
    return entry is not None and any(entry.when.startswith(begin) for begin in CHEAPER)


def _many_small(group: Group) -> bool:
    """Whether there are many collectives a step, and half of them are small."""
    rows = group.inside
    if len(rows) < MANY * max(group.steps, 1):
        return False
    known = bool((rows.bytes >= 0).all())
    middle = median(rows.bytes if known else rows.ran)
    return bool(middle <= (SMALL_BYTES if known else SHORT_NS))
