"""The advice that several rules share on reads, copies and calls that wait, whatever the op.

The live guard knows only the name of the call, and uses ``for_call``.
"""

from __future__ import annotations

from msgspec.structs import replace

from syncscope.advice.entry import Advice, Section, choose
from syncscope.advice.indices import INDEXED
from syncscope.advice.operations import BY_OP

INFERENCE = "inference"
"""Stands for a trace without training."""

EVALUATION = "evaluation"
"""Stands for a phase that evaluates, of a program that trains."""

READ_IN_INFERENCE = Advice(
    INFERENCE,
    "Keep it on the device, or work it out on the host, where what it follows from is often known; else copy it with "
    ".to('cpu', non_blocking=True) and read it a step later, behind an event.",
    before="longest = int(lengths.max())        # lengths is on the device",
    after="longest = max(request.length for request in batch)",
)
"""For a value that is read where nothing is trained."""

READ_IN_EVALUATION = Advice(
    EVALUATION,
    "Add it up on the device, and read the sum once, behind the last batch; or copy it with .to('cpu', "
    "non_blocking=True) and read it a step later, behind an event.",
    before="""
    for x, y in batches:
        correct += (model(x).argmax(1) == y).sum().item()
    """,
    after="""
    for x, y in batches:
        correct += (model(x).argmax(1) == y).sum()   # stays on the device
    correct = correct.item()                         # one wait for all
    """,
)
"""For a value that is read where a program that trains evaluates."""

READ = Advice(
    "",
    "Keep it on the device (sum loss.detach()) and read it every so many steps, or copy it with .to('cpu', "
    "non_blocking=True) and read it a step later, behind an event.",
    before="total += loss.item()",
    after="""
    total += loss.detach()      # stays on the device
    if step % 100 == 0:
        print(total.item())     # one wait in a hundred steps
    """,
)
"""For a value that is read."""

NO_LOSS = "no-loss"
"""Stands for a value whose expression speaks of no loss."""

READ_VALUE = Advice(
    NO_LOSS,
    "Keep it on the device, where it can be added up as well, and read it every so many steps; or copy it with "
    ".to('cpu', non_blocking=True) and read it a step later, behind an event.",
    before="correct += (y.argmax(1) == target).sum().item()",
    after="""
    correct += (y.argmax(1) == target).sum()   # stays on the device
    if step % 100 == 0:
        print(correct.item())                  # one wait in a hundred steps
    """,
)
"""For a value that is no loss, such as an accuracy."""

CHOICE = "choice"
"""Stands for a value that the device chose for the host to go on with."""

READ_CHOICE = Advice(
    CHOICE,
    "Launch before the read what does not need the value, or go on with it on the device (x.gather(1, i), "
    "x.index_select(0, i.view(1))): where the host needs it at once, as the action of a game, the wait itself stays.",
    before="""
    action = q.argmax().item()
    loss = learn(batch)
    """,
    after="""
    action = q.argmax()
    loss = learn(batch)        # launched while the device chooses
    action = action.item()
    """,
)
"""For the place of the greatest value, or one that is drawn."""

SELDOM = "seldom"
"""Stands for a line that is run in few steps, or between them."""

READ_SELDOM = Advice(
    SELDOM,
    "Leave it, where it is read as seldom as now: each time is one wait. Where that is long, copy it with "
    ".to('cpu', non_blocking=True) and read it a step later, behind an event.",
)
"""For a value that is read once in many steps already."""

READ_MANY = "read-many"
"""Stands for a line that reads many values a step, or one after the other with nothing launched between them."""

READ_TOGETHER = Advice(
    READ_MANY,
    "Bring all its values to the host at once, before the loop (values = x.tolist()) or behind it "
    "(torch.stack(them).tolist(), where the loop computes them), or work with them on the device and read one result: "
    "it reads many, and each is a wait of its own. A counter that only the host needs is best a number of Python.",
    before="""
    for i in range(n):
        weights.append(1 / int(lengths[i]))
    """,
    after="""
    lengths = lengths.tolist()     # one wait for all
    for i in range(n):
        weights.append(1 / lengths[i])
    """,
)
"""For values that are read one by one, in a loop."""

STACK = Advice(
    "",
    "Stack them into one buffer where they are made (torch.stack on the host, or one slice each of a buffer "
    "pinned once), copy that with non_blocking=True, and split it on the device (unbind, views). What is the same in "
    "each step, such as a table, is copied once, outside of the loop.",
    before="parts = [part.to('cuda') for part in parts]",
    after="""
    torch.stack(parts, out=pinned)   # made once with pin_memory=True
    parts = pinned.to('cuda', non_blocking=True).unbind()
    """,
)
"""For many small copies."""

COPY_TO_HOST = Advice(
    "DtoH",
    "Copy with .to('cpu', non_blocking=True) and wait on an event just before the values are read. What only goes back "
    "to the device later, such as weights to fall back on, is best kept there (x.clone()).",
    before="results.append(y.cpu())",
    after="""
    kept = y.to('cpu', non_blocking=True)
    ready = torch.cuda.Event()
    ready.record()
    results.append((kept, ready))   # ready.synchronize() just before kept is read
    """,
)

TOGETHER_TO_HOST = Advice(
    "DtoH many",
    "Copy what is read at the same place at once: join the values on the device (torch.cat, torch.stack), copy the "
    "result with .to('cpu', non_blocking=True), and wait on one event just before it is read; or start each copy with "
    "non_blocking=True, and wait once behind the last of them.",
    before="""
    sent = counts.cpu().tolist()
    received = other_counts.cpu().tolist()
    """,
    after="""
    both = torch.stack([counts, other_counts]).to('cpu', non_blocking=True)
    ready = torch.cuda.Event()
    ready.record()
    ...                                      # what does not need them
    ready.synchronize()
    sent, received = both.tolist()
    """,
)
"""For many small copies to the host."""

ONE_VALUE = "one-value"
"""Stands for copies of no more than one value each."""

VALUES_TO_HOST = Advice(
    f"DtoH {ONE_VALUE}",
    "Each copy brings one value, and costs a wait: work with them on the device, or copy all of them to the host at "
    "once, and read them there; a single one can be copied with .to('cpu', non_blocking=True) and read a step later, "
    "behind an event.",
    before="""
    for value in values:            # on the device
        total += value.cpu()
    """,
    after="total = values.cpu().sum()   # one copy of all",
)
"""For values that are copied to the host one by one."""

LAST_TO_HOST = Advice(
    "DtoH last",
    "Nothing, where the call ends here: this is its result, which is read at once. Where calls follow each other, "
    "launch the next one first: copy with .to('cpu', non_blocking=True), and wait on an event just before the values "
    "are read.",
    before="""
    for batch in batches:
        results.append(model(batch).cpu())
    """,
    after="""
    for batch in batches:
        coming = model(batch).to('cpu', non_blocking=True)
        ready = torch.cuda.Event()
        ready.record()
        results.append((coming, ready))   # the next batch is launched before ready.synchronize()
    """,
)
"""For a result that is read at the end of what was recorded."""

COPY_TO_DEVICE = Advice(
    "",
    "Copy from pinned memory (DataLoader(pin_memory=True), or a buffer pinned once) with non_blocking=True; what is no "
    "batch and the program makes itself in each step, such as random numbers or a mask, is best made on the device.",
    before="""
    loader = DataLoader(data)
    x = batch.to('cuda')
    """,
    after="""
    loader = DataLoader(data, pin_memory=True)
    x = batch.to('cuda', non_blocking=True)
    """,
)

EITHER_WAY = Advice(
    "unseen",
    "To the device: copy from a buffer pinned once, with non_blocking=True. To the host: copy with non_blocking=True, "
    "too, and wait on an event just before the values are read. Rows of the device (ProfilerActivity.CUDA) tell which.",
    before="y = x.to(device)",
    after="y = x.to(device, non_blocking=True)   # x in pinned memory, or an event behind it",
)
"""For copies of which neither the trace nor a line says where they go."""

NO_BATCH = "no-batch"
"""Stands for copies that bring no batch, or one of a loader that pins already."""

SMALL_TO_DEVICE = Advice(
    NO_BATCH,
    "Make it on the device, copy it once outside the loop where it stays the same, and else copy it from pinned "
    "memory, a buffer made once, with non_blocking=True.",
    before="""
    for x in batches:
        y = model(x, torch.from_numpy(scales).to('cuda'))
    """,
    after="""
    scales = torch.from_numpy(scales).to('cuda')   # once
    for x in batches:
        y = model(x, scales)
    """,
)

PINNED_BEFORE = "pinned-before"
"""Stands for copies from pageable memory of a program whose loader pins its batches."""

UNPINNED = Advice(
    PINNED_BEFORE,
    "Do in collate_fn, or on the device, what is done to the batch before (torch.cat, indexing, .float(), a tensor of "
    "its labels): that makes a new tensor, which is pageable though the loader pins. Then pass non_blocking=True.",
    before="""
    x = torch.cat([next(one), next(other)])   # of loaders with pin_memory=True
    x = x.to('cuda')
    """,
    after="""
    parts = [next(one), next(other)]
    x = torch.cat([part.to('cuda', non_blocking=True) for part in parts])
    """,
)

WEIGHTS = "weights"
"""Stands for copies of a model's weights."""

MOVED_WEIGHTS = Advice(
    WEIGHTS,
    "The weights are moved once: later steps do not repeat it. For a faster start make the model on the device (with "
    "torch.device('cuda'): model = Model()), or load its weights there (torch.load(path, map_location='cuda')).",
    before="model = Model().to('cuda')",
    after="""
    with torch.device('cuda'):
        model = Model()
    """,
)

SAVED = Advice(
    "torch/serialization.py save",
    "Saving copies each tensor by itself, and waits for each: bring all of them to the host first with "
    ".to('cpu', non_blocking=True) and one wait behind the last, and write them in another thread; or save less often.",
    before="torch.save(model.state_dict(), path)",
    after="""
    state = {name: t.to('cpu', non_blocking=True) for name, t in model.state_dict().items()}
    torch.cuda.current_stream().synchronize()   # one wait for all
    writer.submit(torch.save, state, path)      # a ThreadPoolExecutor, while training goes on
    """,
)
"""For checkpoints."""

LOADED = Advice(
    "torch/serialization.py load",
    "Leave it where a checkpoint is loaded once: each of its tensors is copied by itself, and nothing repeats that. "
    "What is taken up again and again, such as the best weights, can stay in memory on the device.",
    before="""
    for trial in trials:
        model.load_state_dict(torch.load(path))
    """,
    after="""
    best = torch.load(path)              # once
    for trial in trials:
        model.load_state_dict(best)
    """,
)
"""For checkpoints that are loaded to the device."""

UNCACHED = "uncached"
"""Stands for a program without the caching allocator."""

SYNCHRONIZE = Advice(
    "",
    "Remove it: PyTorch orders its work by itself. To time, record events and read them at the end; to order "
    "streams, let the device wait (stream.wait_stream, stream.wait_event).",
)

TO_HOST_IN_BACKWARD = Advice(
    "ToCopyBackward0 DtoH",
    "Backward takes a gradient back to the host, where forward found the tensor: let the tensor that needs a gradient "
    "be one of the device, moved once before the loop, or detach it where nobody reads its gradient.",
    before="""
    x = points.requires_grad_()                # on the host
    loss = f(x.to('cuda'))
    """,
    after="""
    x = points.to('cuda').requires_grad_()     # once
    loss = f(x)
    """,
)
"""For gradients of tensors that are moved to the device inside of what is differentiated."""

COPIES: Section = (
    TO_HOST_IN_BACKWARD,
    *INDEXED,
    TOGETHER_TO_HOST,
    replace(STACK, when="many"),
)
"""Copies of an index, and many small ones."""

LIBRARIES: Section = (
    Advice(
        "torchvision::nms",
        "Call torchvision.ops.batched_nms once for all images and classes.",
        before="kept = [nms(b, s, 0.5) for b, s in zip(boxes, scores)]",
        after="kept = batched_nms(torch.cat(boxes), torch.cat(scores), image, 0.5)",
    ),
)
"""Operators of other libraries."""

_BY_CALL = {
    "item": READ,
    "tolist": READ,
    "cpu": COPY_TO_HOST,
    "to": COPY_TO_DEVICE,
    "cuda": COPY_TO_DEVICE,
    "copy_": COPY_TO_DEVICE,
    "synchronize": SYNCHRONIZE,
}


def for_call(name: str) -> Advice | None:
    """The advice for a call that waits, by the name of its method or function (``item``); ``None`` where unknown."""
    return _BY_CALL.get(name) or choose((*BY_OP, *LIBRARIES), [f"{name}()", f"aten::{name}"])
