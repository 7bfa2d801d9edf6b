"""What to write instead: one table for all rules about waits and copies, by what the trace tells of them."""

from __future__ import annotations

from collections.abc import Iterator

from syncscope.rules.chains import NATIVE, ops_of
from syncscope.rules.grouping import Group
from syncscope.timeline.attribution import called
from syncscope.timeline.collective_waits import UNUSED
from syncscope.timeline.stacks import is_user

LIBRARIES = "<site-packages>/"

# Ops that go by several names.
UNIQUE = "|".join(
    f"aten::{name}"
    for name in ("unique", "_unique", "_unique2", "unique_dim", "unique_consecutive", "unique_dim_consecutive")
)
SPECTRAL = "|".join(
    f"aten::linalg_{name}" for name in ("svd", "svdvals", "eigh", "eigvalsh", "eig", "eigvals", "lstsq")
)
WRITE = "aten::index_put|aten::index_put_|aten::_index_put_impl_"

READ = (
    "Keep it on the device (sum loss.detach()) and read it every so many steps, or copy it with "
    ".to('cpu', non_blocking=True) and read it a step later, behind an event."
)
STACK = (
    "Stack them into one buffer where they are made (torch.stack on the host, or one slice each of a buffer pinned "
    "once), copy that with non_blocking=True, and split it on the device (unbind, views)."
)

FIXES: dict[str, str] = {
    # ------------------------------------------------------------------------ rules with one answer, whatever is inside
    "SYN104": "Print a copy on the host (t.cpu(): one wait), print rarely, or print its shape and dtype only.",
    "SYN105 event": "Wait for the event just before the host reads what it stands for; to order streams, let the "
    "device wait (stream.wait_event), and read times once the run is over.",
    "SYN105 stream": "Remove it: PyTorch orders its work by itself. To order streams, let the device wait "
    "(stream.wait_stream, stream.wait_event).",
    "SYN105": "Remove it: PyTorch orders its work by itself. To time, record events and read them at the end; to order "
    "streams, let the device wait (stream.wait_stream, stream.wait_event).",
    "SYN106 empty_cache": "Leave empty_cache() out of the steps: it gives back the memory that the next step asks for.",
    "SYN106": "Keep shapes the same from step to step (pad, or sort into buckets), leave the allocator headroom, or "
    "try PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True.",
    "SYN107": "Nothing, if the host has nothing else to do; else load and log on other threads, or launch fewer and "
    "larger kernels (CUDA graphs, fused ops).",
    "SYN108": "Unset CUDA_LAUNCH_BLOCKING (on ROCm AMD_SERIALIZE_KERNEL): it is for finding the kernel that failed.",
    "SYN110 barrier()|c10d::barrier": "Remove it: collectives wait for each other by themselves. Where processes must "
    "meet, do it outside the steps.",
    f"SYN110 {UNUSED}": "Give every parameter a gradient, or freeze it (requires_grad=False), and leave "
    "find_unused_parameters out: only for a parameter that a step left out does DDP ask the device.",
    "SYN110": "Send tensors of a size that is known (all_gather_into_tensor), objects only every so many steps, or "
    "through a group of the host's own (dist.new_group(backend='gloo')).",
    "CPY202": "Leave the pinning out, or move it off this thread: DataLoader(pin_memory=True), or a buffer pinned once "
    "that the loading code fills.",
    "CPY203 DtoH": "Gather them on the device (torch.stack, torch.cat), copy the result once with non_blocking=True, "
    "and take it apart on the host.",
    "CPY203": STACK,
    "CPY204": "Do on the device what is done to it on the host (torch has the counterparts of most numpy calls), or "
    "keep it on the host altogether.",
    # --------------------------------------------------------------------- Python code of PyTorch that reads a value
    "torch/amp/grad_scaler.py get_scale": "Call get_scale() only where it is logged: it reads the scale back.",
    "torch/amp/grad_scaler.py": "Use the optimiser's fused=True, which checks for inf on the device, or bfloat16 "
    "without a scaler.",
    "torch/nn/utils/clip_grad.py": "Pass error_if_nonfinite=False, and look at the returned norm now and then.",
    "torch/distributions/distribution.py": "Pass validate_args=False (or, once the model works, "
    "torch.distributions.Distribution.set_default_validate_args(False)): every check reads its answer back.",
    "torch/optim/optimizer.py _get_value": "Keep the learning rate and the step count off the device, or pass "
    "capturable=True.",
    "torch/optim/lbfgs.py|torch/optim/_adafactor.py": "It looks at values on the host by design; AdamW with fused=True "
    "looks at none.",
    # ------------------------------------------------------------------------------------------- shapes from values
    "aten::repeat_interleave": "Pass output_size=, the sum of the repeats, from the host.",
    "aten::bincount": "Count into a tensor of known size: torch.zeros(n).scatter_add_(0, x, ones). minlength= does "
    "not help: the largest value is read all the same.",
    "aten::masked_select": "Keep the shape: torch.where(mask, x, 0), or multiply by the mask and divide by its sum.",
    f"{WRITE} aten::nonzero": "Write with x = torch.where(mask, values, x), or masked_fill_ of a Python number, "
    "instead of x[mask] = values.",
    "aten::index aten::nonzero": "Keep the shape: torch.where(mask, x, 0), or weight by the mask, instead of x[mask].",
    UNIQUE: "Do it on the host while loading the data, or work with a fixed upper bound on the count.",
    "ProdBackward0 aten::nonzero": "The gradient of prod() looks for zeros: where the factors are positive, "
    "torch.exp(torch.log(x).sum()) needs no look.",
    "aten::where aten::nonzero": "Use torch.where with three arguments, which keeps the shape.",
    "aten::nonzero|aten::nonzero_numpy|aten::argwhere": "Work with the mask itself (torch.where with three "
    "arguments), or torch.nonzero_static of a fixed size.",
    "SYN103": "Keep the shape and mark what counts (a mask, a fixed upper bound), so that nothing has to be counted.",
    # ------------------------------------------------------------------------------------------- ops that read a value
    "aten::one_hot": "Pass num_classes=.",
    "aten::histc": "Pass min= and max=: without them both are read back.",
    "aten::normal": "Sample as mean + std * torch.randn_like(std) (Normal.rsample does): torch.normal checks std on "
    "the host.",
    "aten::masked_fill|aten::masked_fill_": "Take the value from the device with x = torch.where(mask, value, x), or "
    "pass a Python number.",
    "aten::index_fill|aten::index_fill_": "Pass a Python number, or write the value with index_copy_.",
    "aten::linalg_inv|aten::inverse": "Call torch.linalg.inv_ex, and look at its info later.",
    "aten::linalg_cholesky|aten::cholesky": "Call torch.linalg.cholesky_ex, and look at its info later.",
    "aten::linalg_solve": "Call torch.linalg.solve_ex, and look at its info later.",
    "aten::linalg_lu_factor": "Call torch.linalg.lu_factor_ex, and look at its info later.",
    "aten::linalg_ldl_factor": "Call torch.linalg.ldl_factor_ex, and look at its info later.",
    SPECTRAL: "No form of it leaves the wait out: call it once for a batch of matrices, less often, or on the host "
    "where they are small.",
    "aten::_linalg_check_errors": "Use the _ex variant where there is one (torch.linalg.cholesky_ex, inv_ex, solve_ex, "
    "lu_factor_ex, ldl_factor_ex) and look at its info later.",
    "aten::equal": "Compare on the device, (a == b).all(), and read the answer later.",
    "aten::allclose": "Compare on the device, torch.isclose(a, b).all(), and read the answer later.",
    "aten::ctc_loss": "Pass the lengths as tuples: 5 waits instead of 8; no form of it is without.",
    "aten::is_nonzero": "Decide on the device (torch.where, or multiply by the condition), or look at it every so many "
    "steps; a loop that stops on it can ask every so many rounds.",
    "tensor()|as_tensor() aten::item": "Join values that are on the device with torch.stack, which leaves them there.",
    "[] aten::item": "Index with a tensor of one dimension (x.index_select(0, i.view(1))), which stays on the device; "
    "keep a slice's bound on the host, or mask instead of slicing.",
    "SYN102": READ,
    # ------------------------------------------------------------------------------------------------------- copies
    "tensor()|as_tensor()|asarray()|new_tensor()|aten::lift_fresh": "Make it on the device (torch.full, torch.arange "
    "with device=), or once outside the loop.",
    f"SYN101|CPY201 aten::index|{WRITE} aten::copy_": "Keep the index (and a value) on the device: move it once, "
    "before the loop; or index with Python ints and slices.",
    "SYN101|CPY201 many": STACK,
    "SYN101 DtoH": "Copy with .to('cpu', non_blocking=True) and wait on an event just before the values are read.",
    "SYN101 pinned": "Pass non_blocking=True: the source is pinned already.",
    "SYN101": "Copy from pinned memory (DataLoader(pin_memory=True), or a buffer pinned once) with non_blocking=True.",
    "CPY201 HtoD": "Pin the source where that costs nothing: DataLoader(pin_memory=True), or a buffer pinned once and "
    "reused; then pass non_blocking=True. Pinning each batch in this thread only moves the cost.",
    "CPY201": "Copy into a buffer pinned once, buffer.copy_(t, non_blocking=True), and wait on an event before "
    "reading.",
    # ------------------------------------------------------------------------------------------- inside other libraries
    "torchvision::nms": "Call torchvision.ops.batched_nms once for all images and classes.",
    "SYN109": "Call {op} less often (batched, or outside the loop), or look for a form of it that does not wait; if it "
    "must wait, expect it with a reason.",
}
"""Needle → sentence; the first that fits. A needle is words that all occur, in this order, among the ``names`` of a
finding's occurrences; ``|`` separates words that will do. ``{op}`` stands for the outermost op."""


def fix(code: str, group: Group) -> str:
    """What to write instead of what ``group`` does, by the rule with this code."""
    ops = ops_of(group.ops)
    return sentence(list(names(code, group))).replace("{op}", ops[0] if ops else group.op or "it")


def sentence(known: list[str]) -> str:
    """The sentence of the first needle that fits ``known``."""
    return next(text for needle, text in FIXES.items() if _fits(needle, known))


def names(code: str, group: Group) -> Iterator[str]:
    """What is known of a group from the outside in: the rule, library files and functions below the user's line, the
    function called there (``tensor()``, or ``[]``), ops, what the wait waits for, direction and memory of the copy,
    and ``many`` for many small copies."""
    place, timeline = group.place, group.timeline
    yield code
    users = [number for number, frame in enumerate(place.chain) if is_user(frame.file)]
    for frame in place.chain[users[-1] + 1 if users else 0 :]:
        yield frame.file.removeprefix(LIBRARIES)
        yield frame.function.split(".")[-1]
    name = called(place.running) or place.entry
    yield name if name == "[]" else f"{name}()"
    for op in group.ops:
        yield op
        if code == "SYN109" and op in ops_of(group.ops) and op.split("::")[0] not in NATIVE:
            break  # what another library's operator does inside is not the program's choice
    wait, copy = (int(group.rows[column].iloc[0]) for column in ("wait", "copy"))
    if wait >= 0:
        yield str(timeline.waits["kind"].iloc[wait])
    if copy >= 0:
        yield str(timeline.copies["direction"].iloc[copy])
        yield str(timeline.copies["memory"].iloc[copy])
    if group.many_small:
        yield "many"


def _fits(needle: str, known: list[str]) -> bool:
    rest = iter(known)
    # Each word is looked for behind the one found before it, since asking an iterator uses it up.
    return all(any(name in word.split("|") for name in rest) for word in needle.split())
