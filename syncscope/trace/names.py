"""The names in traces: what a call does, what a copy moved, which collective a kernel runs.

:data:`CALLS` holds the calls of the three vendors side by side. Look calls up with :func:`role`, which ignores suffixes
that only say how the program was linked (``_ptsz``, ``_ptds``, ``_spt``, ``_v2``). On a categorical column,
``frame["name"].map(role)`` looks up every different name once, not every row.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Literal, NamedTuple

from syncscope.patterns import compile_later

Role = Literal[
    "stream-sync",
    "device-sync",
    "event-sync",
    "copy-sync",
    "device-alloc",
    "device-free",
    "host-alloc",
    "host-free",
    "launch",
    "graph-launch",
    "copy",
    "fill",
    "event-record",
    "event-query",
    "stream-wait-event",
    "",
]
"""What a call does. A ``*-sync`` call waits for the device whatever its arguments; ``""`` is not in the table."""


class Spellings(NamedTuple):
    """The calls of one role, by vendor."""

    cuda: tuple[str, ...] = ()
    hip: tuple[str, ...] = ()
    xpu: tuple[str, ...] = ()


CALLS: dict[Role, Spellings] = {
    # The host waits for one stream (queue).
    "stream-sync": Spellings(
        cuda=("cudaStreamSynchronize", "cuStreamSynchronize"),
        hip=("hipStreamSynchronize",),
        xpu=("urQueueFinish", "piQueueFinish", "zeCommandQueueSynchronize", "zeCommandListHostSynchronize"),
    ),
    # The host waits for everything on a device.
    "device-sync": Spellings(
        cuda=("cudaDeviceSynchronize", "cudaThreadSynchronize", "cuCtxSynchronize"),
        hip=("hipDeviceSynchronize", "hipCtxSynchronize"),
    ),
    # The host waits for one event (fence).
    "event-sync": Spellings(
        cuda=("cudaEventSynchronize", "cuEventSynchronize"),
        hip=("hipEventSynchronize",),
        xpu=("urEventWait", "piEventsWait", "zeEventHostSynchronize", "zeFenceHostSynchronize"),
    ),
    # A copy that returns only when it is done. PyTorch on ROCm copies with hipMemcpyWithStream.
    "copy-sync": Spellings(
        cuda=(
            "cudaMemcpy", "cudaMemcpy2D", "cudaMemcpy3D", "cudaMemcpyPeer", "cudaMemcpyToSymbol",
            "cudaMemcpyFromSymbol", "cudaMemcpyToArray", "cudaMemcpyFromArray", "cudaMemcpy2DToArray",
            "cudaMemcpy2DFromArray", "cuMemcpy", "cuMemcpyHtoD", "cuMemcpyDtoH", "cuMemcpyDtoD", "cuMemcpyHtoA",
            "cuMemcpyAtoH", "cuMemcpy2D", "cuMemcpy2DUnaligned", "cuMemcpy3D", "cuMemcpyPeer",
        ),
        hip=(
            "hipMemcpy", "hipMemcpyWithStream", "hipMemcpy2D", "hipMemcpy3D", "hipMemcpyPeer", "hipMemcpyToSymbol",
            "hipMemcpyFromSymbol", "hipMemcpyToArray", "hipMemcpyFromArray", "hipMemcpyHtoD", "hipMemcpyDtoH",
            "hipMemcpyDtoD", "hipMemcpyHtoA", "hipMemcpyAtoH", "hipMemcpyParam2D", "hipDrvMemcpy3D",
        ),
    ),
    # Device memory. Freeing it waits for the device; allocating it may.
    "device-alloc": Spellings(
        cuda=("cudaMalloc", "cudaMallocPitch", "cudaMalloc3D", "cudaMallocManaged", "cuMemAlloc", "cuMemAllocPitch",
              "cuMemAllocManaged", "cuMemCreate", "cuMemMap"),
        hip=("hipMalloc", "hipExtMallocWithFlags", "hipMallocManaged", "hipMallocPitch", "hipMemCreate", "hipMemMap"),
        xpu=("urUSMDeviceAlloc", "urUSMSharedAlloc", "piextUSMDeviceAlloc", "piextUSMSharedAlloc", "zeMemAllocDevice",
             "zeMemAllocShared"),
    ),
    "device-free": Spellings(
        cuda=("cudaFree", "cuMemFree", "cuMemUnmap", "cuMemRelease"),
        hip=("hipFree", "hipMemUnmap", "hipMemRelease"),
        xpu=("urUSMFree", "piextUSMFree", "zeMemFree"),
    ),
    # Page-locked host memory.
    "host-alloc": Spellings(
        cuda=("cudaHostAlloc", "cudaMallocHost", "cudaHostRegister", "cuMemHostAlloc", "cuMemAllocHost",
              "cuMemHostRegister"),
        hip=("hipHostMalloc", "hipHostAlloc", "hipMallocHost", "hipMemAllocHost", "hipHostRegister"),
        xpu=("urUSMHostAlloc", "piextUSMHostAlloc", "zeMemAllocHost"),
    ),
    "host-free": Spellings(
        cuda=("cudaFreeHost", "cudaHostUnregister", "cuMemFreeHost", "cuMemHostUnregister"),
        hip=("hipHostFree", "hipFreeHost", "hipHostUnregister"),
    ),
    "launch": Spellings(
        cuda=("cudaLaunchKernel", "cudaLaunchKernelExC", "cudaLaunchKernelEx", "cudaLaunch",
              "cudaLaunchCooperativeKernel", "cudaLaunchCooperativeKernelMultiDevice", "cuLaunchKernel",
              "cuLaunchKernelEx", "cuLaunchCooperativeKernel"),
        hip=("hipLaunchKernel", "hipExtLaunchKernel", "hipLaunchKernelExC", "hipLaunchCooperativeKernel",
             "hipLaunchCooperativeKernelMultiDevice", "hipModuleLaunchKernel", "hipExtModuleLaunchKernel",
             "hipHccModuleLaunchKernel", "hipDrvLaunchKernelEx", "hipModuleLaunchCooperativeKernel",
             "hipModuleLaunchCooperativeKernelMultiDevice", "hipExtLaunchMultiKernelMultiDevice"),
        xpu=("urEnqueueKernelLaunch", "urEnqueueKernelLaunchWithArgsExp", "urEnqueueCooperativeKernelLaunchExp",
             "piEnqueueKernelLaunch", "zeCommandListAppendLaunchKernel", "zeCommandListAppendLaunchCooperativeKernel",
             "zeCommandListAppendLaunchKernelWithArguments"),
    ),
    "graph-launch": Spellings(
        cuda=("cudaGraphLaunch", "cuGraphLaunch"),
        hip=("hipGraphLaunch",),
        xpu=("urEnqueueCommandBufferExp", "zeCommandListImmediateAppendCommandListsExp"),
    ),
    # A copy that is put on a stream. From or to pageable memory it may still block inside the call.
    "copy": Spellings(
        cuda=("cudaMemcpyAsync", "cudaMemcpy2DAsync", "cudaMemcpy3DAsync", "cudaMemcpyPeerAsync",
              "cudaMemcpy3DPeerAsync", "cudaMemcpyToSymbolAsync", "cudaMemcpyFromSymbolAsync", "cudaMemcpyBatchAsync",
              "cuMemcpyAsync", "cuMemcpyHtoDAsync", "cuMemcpyDtoHAsync", "cuMemcpyDtoDAsync", "cuMemcpy2DAsync",
              "cuMemcpy3DAsync", "cuMemcpyPeerAsync"),
        hip=("hipMemcpyAsync", "hipMemcpy2DAsync", "hipMemcpy3DAsync", "hipMemcpyPeerAsync",
             "hipMemcpyToSymbolAsync", "hipMemcpyFromSymbolAsync", "hipMemcpyHtoDAsync", "hipMemcpyDtoHAsync",
             "hipMemcpyDtoDAsync", "hipMemcpyParam2DAsync"),
        xpu=("urEnqueueUSMMemcpy", "urEnqueueUSMMemcpy2D", "piextUSMEnqueueMemcpy", "zeCommandListAppendMemoryCopy",
             "zeCommandListAppendMemoryCopyRegion"),
    ),
    "fill": Spellings(
        cuda=("cudaMemset", "cudaMemset2D", "cudaMemset3D", "cudaMemsetAsync", "cudaMemset2DAsync",
              "cudaMemset3DAsync", "cuMemsetD8", "cuMemsetD16", "cuMemsetD32", "cuMemsetD8Async", "cuMemsetD16Async",
              "cuMemsetD32Async"),
        hip=("hipMemset", "hipMemset2D", "hipMemset3D", "hipMemsetAsync", "hipMemset2DAsync", "hipMemset3DAsync",
             "hipMemsetD8", "hipMemsetD16", "hipMemsetD32", "hipMemsetD8Async", "hipMemsetD16Async",
             "hipMemsetD32Async"),
        xpu=("urEnqueueUSMFill", "urEnqueueUSMFill2D", "piextUSMEnqueueMemset", "zeCommandListAppendMemoryFill"),
    ),
    "event-record": Spellings(
        cuda=("cudaEventRecord", "cudaEventRecordWithFlags", "cuEventRecord", "cuEventRecordWithFlags"),
        hip=("hipEventRecord", "hipEventRecordWithFlags"),
        xpu=("urEnqueueEventsWaitWithBarrier", "piEnqueueEventsWaitWithBarrier", "zeCommandListAppendSignalEvent"),
    ),
    # Queries, and does not wait. The caching allocators poll with it.
    "event-query": Spellings(
        cuda=("cudaEventQuery", "cudaStreamQuery", "cuEventQuery", "cuStreamQuery"),
        hip=("hipEventQuery", "hipStreamQuery"),
        xpu=("zeEventQueryStatus",),
    ),
    # The device waits; the host does not.
    "stream-wait-event": Spellings(
        cuda=("cudaStreamWaitEvent", "cuStreamWaitEvent"),
        hip=("hipStreamWaitEvent",),
        xpu=("urEnqueueEventsWait", "piEnqueueEventsWait", "zeCommandListAppendWaitOnEvents"),
    ),
}  # fmt: skip
"""The calls by role. Under XPU a runtime call (``ur…``) contains the driver's (``ze…``), and a trace may hold both."""

SYNC_ROLES: frozenset[Role] = frozenset({"stream-sync", "device-sync", "event-sync", "copy-sync"})
"""Roles of calls that return only when the device has done something."""

MEMORY_ROLES: frozenset[Role] = frozenset({"device-alloc", "device-free", "host-alloc", "host-free"})
"""Roles of calls that may wait because memory is allocated or freed. A warm caching allocator makes no such calls."""

_ROLE_OF: dict[str, Role] = {name: role for role, vendors in CALLS.items() for names in vendors for name in names}
_LINKAGE = compile_later(r"(?:_(?:ptsz|ptds|spt)|_v\d+)+$")


def canonical(name: str) -> str:
    """A call's name without the suffixes of its linkage: ``cuMemcpyDtoH_v2_ptds`` → ``cuMemcpyDtoH``."""
    return name if name in _ROLE_OF else _LINKAGE.sub("", name)


def role(name: str) -> Role:
    """What the runtime or driver call ``name`` does, ``""`` when the table does not hold it."""
    return _ROLE_OF.get(canonical(name), "")


def shorten(name: str) -> str:
    """The call as a program writes it, where the table holds it: ``cudaStreamSynchronize_v3020``, as profilers other
    than Kineto call it, → ``cudaStreamSynchronize``."""
    return canonical(name) if role(name) else name


# --------------------------------------------------------------------------------------------------- copies

Direction = Literal["HtoD", "DtoH", "DtoD", "HtoH", "PtoP", ""]
Memory = Literal["pageable", "pinned", ""]


class Copy(NamedTuple):
    """What a copy moved: its direction, and the kind of memory on the host side (``""`` unknown or none)."""

    direction: Direction
    memory: Memory


UNKNOWN_COPY = Copy("", "")

HIP_COPY_KINDS: dict[int, Direction] = {0: "HtoH", 1: "HtoD", 2: "DtoH", 3: "DtoD"}
"""``hipMemcpyKind`` of the launching call. Kind 4 leaves the direction to the pointers."""

# CUDA and ROCm: arrays (A) are device memory.
_LETTERS: dict[str, Direction] = {
    "HtoD": "HtoD", "HtoA": "HtoD",
    "DtoH": "DtoH", "AtoH": "DtoH",
    "DtoD": "DtoD", "DtoA": "DtoD", "AtoD": "DtoD", "AtoA": "DtoD",
    "HtoH": "HtoH", "PtoP": "PtoP",
}  # fmt: skip

# XPU: M is memory that the runtime did not allocate (pageable), H its host allocations (pinned), D a device,
# P another device, S memory that migrates, whose location is unknown.
_XPU_SIDES: dict[str, tuple[str, Memory]] = {
    "M": ("H", "pageable"),
    "H": ("H", "pinned"),
    "D": ("D", ""),
    "P": ("P", ""),
}

# Before Kineto named them: old ROCm, and Intel's own extension.
_WORDS: dict[str, Direction] = {
    "CopyHostToDevice": "HtoD",
    "CopyDeviceToHost": "DtoH",
    "CopyDeviceToDevice": "DtoD",
    "CopyHostToHost": "HtoH",
}

_CUDA_COPY = compile_later(r"Memcpy\s+([HDAP]to[HDAP])(?:\s+\((.*?)\s*->\s*(.*?)\))?")
_XPU_COPY = compile_later(r"(?:Memcpy\s+)?([MHDSP])2([MHDSP])\b")
_HOST_MEMORY: dict[str, Memory] = {"pageable": "pageable", "pinned": "pinned"}


@lru_cache(maxsize=4096)
def copy_of(name: str) -> Copy:
    """Direction and host memory of the copy that a device row called ``name`` made.

    ``Memcpy HtoD (Pageable -> Device)`` (CUDA; profilers other than Kineto write ``PAGEABLE``),
    ``Memcpy HtoD (Host -> Device)`` and ``CopyHostToDevice`` (ROCm, which does not say the memory's kind),
    ``Memcpy M2D (MEMORY(Unknown) -> DEVICE)`` (XPU).
    """
    if match := _CUDA_COPY.match(name):
        return Copy(_LETTERS.get(match[1], ""), _host_memory(match[2], match[3]))
    if match := _XPU_COPY.match(name):
        return _xpu_copy(match[1], match[2])
    return Copy(_WORDS.get(name, ""), "")


def _host_memory(source: str | None, target: str | None) -> Memory:
    kinds = {_HOST_MEMORY.get((side or "").lower(), "") for side in (source, target)}
    return "pageable" if "pageable" in kinds else "pinned" if "pinned" in kinds else ""


def _xpu_copy(source: str, target: str) -> Copy:
    if source not in _XPU_SIDES or target not in _XPU_SIDES:
        return UNKNOWN_COPY
    (from_side, from_memory), (to_side, to_memory) = _XPU_SIDES[source], _XPU_SIDES[target]
    if "P" in (from_side, to_side):
        return Copy("PtoP", "")
    memory = "pageable" if "pageable" in (from_memory, to_memory) else from_memory or to_memory
    return Copy(_LETTERS[f"{from_side}to{to_side}"], memory)


# ---------------------------------------------------------------------------------------------- collectives

# NCCL and RCCL spell one kernel a collective, algorithm and type: ncclDevKernel_AllReduce_Sum_f32_RING_LL,
# ncclKernel_AllGather_…, ncclSymkDevKernel_…, before 2.10 ncclAllReduceRingLLKernel_…. "Generic" runs any.
_NCCL = compile_later(r"\b[nr]ccl\w*Kernel\w*")
_NCCL_WORD = compile_later(r"AllReduce|AllGather|ReduceScatter|AllToAll|SendRecv|Broadcast|Reduce|Gather|Scatter")
# The hand-written kernels of inference servers (vLLM's, SGLang's, FlashInfer's, TensorRT-LLM's and AITER's, whose names
# ROCm may leave mangled) and those of torch's symmetric memory, which write to the peers' memory at once.
_DIRECT: tuple[tuple[re.Pattern[str], str], ...] = (
    (compile_later(r"cross_device_reduce|allreduce_fusion_kernel"), "allreduce"),
    (compile_later(r"(?:multimem|one_?shot|two_?shot)_?(all_?reduce|all_?gather|reduce_?scatter)", re.I), ""),
    (compile_later(r"\b(all_?reduce|all_?gather|reduce_?scatter)_(?:one_?shot|two_?shot)", re.I), ""),
    (compile_later(r"\b(?:trtllm\w*_allreduce\w*|ar_fusion)::\w*(?:allreduce|one_?shot|two_?shot)", re.I), "allreduce"),
    (compile_later(r"\bquickreduce::allreduce"), "allreduce"),
)  # fmt: skip
# oneCCL, MSCCL, DeepEP, Transformer Engine's userbuffers.
_OTHERS: tuple[tuple[re.Pattern[str], str], ...] = (
    (compile_later(r"\boneccl\w*?(all_?reduce|all_?gather|reduce_?scatter|broadcast|all_?to_?all)", re.I), ""),
    *_DIRECT,
    (compile_later(r"\bmscclKernel|\bmscclpp"), "collective"),
    (compile_later(r"\b(?:deep_)?ep::(?:\w+::)*(?:(?:cached_)?notify(?:_dispatch|_combine)?|dispatch|combine)\b"),
     "all_to_all"),
    (compile_later(r"\bkuserbuffers_(?:push|pull)(?:send|recv)"), "send_recv"),
    (compile_later(r"\buserbuffers_\w+_gpu_"), "collective"),
)  # fmt: skip
_COLLECTIVES = {
    "allreduce": "allreduce",
    "allgather": "allgather",
    "reducescatter": "reduce_scatter",
    "broadcast": "broadcast",
    "reduce": "reduce",
    "alltoall": "all_to_all",
    "alltoallv": "all_to_all",
    "alltoallpivot": "all_to_all",
    "gather": "gather",
    "scatter": "scatter",
    "sendrecv": "send_recv",
    "send": "send",
    "recv": "recv",
    "barrier": "barrier",
}
COLLECTIVES = frozenset((*_COLLECTIVES.values(), "collective"))
"""The names of collectives; ``collective`` is one whose kernel does not say which."""

ONE_SIDED = ("broadcast", "reduce", "gather", "scatter", "send", "recv", "send_recv")
"""Collectives that ranks may leave at different times: who sends need not wait for those who receive."""


@lru_cache(maxsize=65536)
def collective_of(kernel: str, argument: str = "") -> str:
    """The collective that ``kernel`` runs (``allreduce``, ``reduce_scatter``, ``all_to_all`` …), ``""`` for compute.

    ``argument`` is the row's own ``Collective name``, which counts more where present. The result is ``collective``
    where the kernel's name does not say which (NCCL's ``Generic``).
    """
    if argument:
        return _plain(argument) or argument.lower()
    if "ccl" in kernel and (match := _NCCL.search(kernel)):
        word = _NCCL_WORD.search(match[0])
        return _plain(word[0]) if word else "collective"
    for pattern, name in _OTHERS:
        if match := pattern.search(kernel):
            return name or _plain(match[1])
    return ""


@lru_cache(maxsize=4096)
def is_direct_collective(kernel: str) -> bool:
    """Whether the kernel of a collective writes to the memory of the other devices at once, in one shot or two."""
    return any(pattern.search(kernel) for pattern, _ in _DIRECT)


# Ops of PyTorch's process groups and of vLLM's, traced collectives, the collector's names for methods, and what NCCL's
# process group records around each collective (``nccl:all_to_all``, ``nccl:send 0->1``), which older versions have
# without the op.
_STARTS_COLLECTIVE = compile_later(r"(?:c10d::|_?c10d_functional::|ProcessGroup\.|nccl:|vllm::)(\w+)")


def collective_of_call(call: str) -> str:
    """The collective that an op, a process group's method or an annotation of NCCL's stands for
    (``c10d::alltoall_base_``, ``ProcessGroup.allreduce``, ``nccl:all_to_all``), ``""`` for any other."""
    match = _STARTS_COLLECTIVE.match(call)
    return _plain(match[1]) if match else ""


# c10::ScalarType, as the arguments of collectives spell it.
_ITEM_SIZES = {
    **dict.fromkeys(("Byte", "Char", "Bool", "Float8_e4m3fn", "Float8_e5m2"), 1),
    **dict.fromkeys(("Short", "Half", "BFloat16"), 2),
    **dict.fromkeys(("Int", "Float"), 4),
    **dict.fromkeys(("Long", "Double", "ComplexFloat"), 8),
    "ComplexDouble": 16,
}


def item_size(dtype: str) -> int:
    """Bytes of one element of ``dtype`` (``Float``, ``BFloat16``), −1 for one that this table does not hold."""
    return _ITEM_SIZES.get(dtype, -1)


def _plain(name: str) -> str:
    """``_reduce_scatter_base``, ``ReduceScatter`` and ``reduce_scatter_tensor_coalesced`` are one collective."""
    word = re.sub(r"_(?:base|into_tensor|tensor|coalesced|single)", "", name.lower()).replace("_", "")
    return _COLLECTIVES.get(word, "")
