"""What to do about a device that is idle, by the cause and its circumstances."""

from __future__ import annotations

from msgspec.structs import replace

from syncscope.advice import COPY_TO_DEVICE, INFERENCE, UNCACHED, Advice
from syncscope.rules.base.host_math import COMPUTES_ON_CPU, DRAWS_ON_CPU
from syncscope.rules.base.idle_circumstances import (
    ALONE,
    BACK_TO_BACK,
    BEFORE_COPIES,
    BEFORE_FIRST,
    BESIDE_GRAPH,
    ENDS_WORKERS,
    GRAPH_LAUNCH,
    IN_COMPILED,
    IN_COPY,
    IN_DATASET,
    IN_FIRST,
    IN_GRAPH,
    IN_LAUNCHER,
    IN_MODULE,
    IN_OPS,
    IN_STEP,
    IN_WALK,
    MADE_ON_HOST,
    ONE_STREAM,
    OURS,
    RECORDS,
    SAMPLED,
    SAMPLED_PARTLY,
    SAMPLED_STEP,
    SPREAD,
    STARTS_WORKERS,
    UNSEEN,
)
from syncscope.rules.base.late_begins import LATE
from syncscope.rules.base.launch_advice import OF_COMPILED

AHEAD = "ahead (in a loader's worker or another thread) or on the device"
ENDS_THERE = (
    "The copy is where that work ends, not what takes the time: nothing in the recording names the work itself; sample "
    "the program's Python (py-spy) to see it."
)
"""Of host work that ends at copies."""

ADVICE = (
    Advice("wait", "Remove the waits named here first: the host can then launch ahead of the device."),
    Advice("warm-up", "Record later steps: what is done once says nothing of those that repeat."),
    Advice("single pause", "Record more steps to see whether it comes again: no other of these has it."),
    Advice(
        f"{STARTS_WORKERS} data loading",
        "Start the loader's workers once (persistent_workers=True), or keep one iterator and take its next batch: each "
        "iter(loader), and so each loop over it, starts them anew.",
        before="""
        loader = DataLoader(data, num_workers=4)
        for x in batches:
            ...
            y = next(iter(loader))          # four new processes each time
        """,
        after="""
        loader = DataLoader(data, num_workers=4, persistent_workers=True)
        """,
    ),
    Advice(
        "data loading",
        "Load ahead: more DataLoader workers, prefetch_factor, persistent_workers.",
        before="""
        loader = DataLoader(data, batch_size=64)            # loads in this thread
        """,
        after="""
        loader = DataLoader(data, batch_size=64, num_workers=8, prefetch_factor=4, persistent_workers=True)
        """,
    ),
    Advice(
        f"{UNCACHED} allocation",
        "The caching allocator is off, so the driver allocates and frees every tensor: leave out "
        "PYTORCH_NO_CUDA_MEMORY_CACHING.",
    ),
    Advice("allocation", "Let the caching allocator warm up; leave out empty_cache(), and fix shapes that change."),
    Advice("pageable copy", "Copy from pinned memory with non_blocking=True."),
    Advice(
        "host collective",
        "The host waits there for the other ranks, in a collective of the hosts' own (gloo): see which rank comes "
        "late and what it does before, and ask for what has to be agreed on a round ahead, with async_op=True or "
        "in a thread of its own.",
    ),
    Advice(
        "host idle",
        "See what keeps the host there (a sleep, or a thread, a process or a queue that it waits for), and have "
        "the next piece of work ready before this one is done.",
    ),
    Advice(
        "collective",
        "Start the collective earlier or with async_op=True, and keep object collectives and barriers out.",
    ),
    Advice(
        f"{GRAPH_LAUNCH} launching",
        "This is the launch of a graph itself, which takes the longer the more nodes it has: launch it while the "
        "device still runs what comes before it, and give it fewer nodes (kernels that torch.compile fuses).",
    ),
    Advice(
        f"{BESIDE_GRAPH} launching",
        "The program replays a graph already, and the device waits for the launches around it: take the "
        "preparation of its inputs into the graph or fuse it (torch.compile), or prepare the next round while the "
        "graph still runs.",
    ),
    *(replace(one, when=f"{one.when} launching") for one in OF_COMPILED),
    Advice(
        "launching",
        "Launch fewer and larger kernels: torch.compile, CUDA graphs, larger batches.",
    ),
    Advice(
        f"{RECORDS} host work",
        "CUDA graphs are recorded anew there: see why (TORCH_LOGS=cudagraphs; sizes that change, tensors at new "
        "addresses, torch.compiler.cudagraph_mark_step_begin() left out), or run each size once before, where that "
        "is only the warm-up.",
    ),
    DRAWS_ON_CPU,
    COMPUTES_ON_CPU,
    Advice(
        f"{IN_GRAPH} host work",
        "The host is inside of one compiled graph there, on its way to the next kernel: see what it does before it "
        "(a Triton kernel or an operator of the program's own may prepare each call anew), or have the graph "
        "replayed as a CUDA graph (torch.compile's mode='reduce-overhead').",
    ),
    Advice(
        f"{IN_COMPILED} host work",
        "The host enters and leaves compiled code there, which no other thread can do: give each call more to do "
        "(larger batches); where it is several parts, let it break into fewer (fullgraph=True names what breaks it), "
        "and keep what is done between them short.",
    ),
    Advice(
        f"{IN_FIRST} host work",
        "Most of it lies inside of PyTorch's own operators, before kernels that they launch for the first time: a "
        "library may start there, or choose or load them. Record later steps, and see whether it comes back.",
        asks_for_more=True,
    ),
    Advice(
        f"{INFERENCE} {BEFORE_COPIES} host work",
        f"Prepare what is copied there {AHEAD}, and gather several requests into one batch. {ENDS_THERE} In a server "
        "the time in which it waits for a request is part of it, too.",
    ),
    Advice(
        f"{BEFORE_COPIES} host work",
        f"Prepare what is copied there {AHEAD}; what stays the same only once. {ENDS_THERE}",
    ),
    Advice(
        f"{SAMPLED} host work",
        "Take the host's work out of the thread that launches (a loader's worker, another thread), most of which is "
        "{op}; or do it on the device, or where the device still has work queued. No single line has half of it.",
    ),
    Advice(
        f"{SAMPLED_PARTLY} host work",
        "Take {op} of the host's work out of the thread that launches (a loader's worker, another thread), or do it on "
        "the device. Most of the rest is Python of the step itself, which no other thread can run: launch less "
        "(foreach or fused optimizers and functions), or compile it (torch.compile).",
    ),
    Advice(
        f"{SAMPLED_STEP} host work",
        "Launch less (foreach or fused optimizers and functions), or compile the step or replay it as a CUDA graph "
        "(torch.compile), which runs none of its Python again: that is most of the host's work there, and no other "
        "thread can run it. Of this work: {op}.",
    ),
    Advice(
        f"{UNSEEN} {OURS} {BEFORE_FIRST} host work",
        "Nothing in the recording names most of the work that the host does there, and most of it comes before "
        "kernels that are launched for the first time: they may be loaded, compiled or chosen then. Record later "
        "steps (--warmup), and see whether it comes back.",
        asks_for_more=True,
    ),
    Advice(
        f"{UNSEEN} {OURS} host work",
        "Nothing in the recording names most of the work that the host does there: mark the parts of the step "
        "(torch.profiler.record_function), which --mode full records, or sample the program's Python (py-spy). "
        "What the next launch does not need can then go to another thread, or to where the device still has work "
        "queued.",
        asks_for_more=True,
    ),
    Advice(
        f"{SPREAD} {OURS} host work",
        "No single part that the program marks holds most of it: sample its Python (py-spy) to see what the host "
        "does there. What the next launch does not need can then go to another thread, or to where the device "
        "still has work queued.",
        asks_for_more=True,
    ),
    Advice(
        f"{UNSEEN} {BEFORE_FIRST} host work",
        "Nothing in the trace names most of the work that the host does there, and most of it comes before kernels "
        "that are launched for the first time: they may be loaded, compiled or chosen then. Record later steps, "
        "with Python stacks (with_stack=True), and see whether it comes back.",
        asks_for_more=True,
    ),
    Advice(
        f"{UNSEEN} host work",
        "Nothing in the trace names most of the work that the host does there: record Python stacks "
        "(with_stack=True), or mark the parts of the step (record_function). What the next launch does not need "
        "can then go to another thread, or to where the device still has work queued.",
        asks_for_more=True,
    ),
    Advice(
        f"{SPREAD} host work",
        "No single part that the program marks holds most of it: record Python stacks (with_stack=True) to see "
        "what the host does there. What the next launch does not need can then go to another thread, or to where "
        "the device still has work queued.",
        asks_for_more=True,
    ),
    Advice(
        f"{IN_LAUNCHER} host work",
        "This is the launcher of a kernel language, which looks at the arguments of each call anew, as no other "
        "thread can: replay the calls as a CUDA graph, or launch fewer and larger kernels.",
    ),
    Advice(
        f"{ENDS_WORKERS} host work",
        "Keep the loader's workers (persistent_workers=True), or one iterator whose next batch is taken: here the host "
        "waits for the workers to end, as at the end of each loop over a loader and of each next(iter(loader)), and "
        "the next one starts others.",
        before="x = next(iter(DataLoader(data, num_workers=4)))    # four processes that start and end",
        after="""
        batches = iter(DataLoader(data, num_workers=4))     # once
        x = next(batches)
        """,
    ),
    Advice(
        f"{IN_DATASET} host work",
        "Get the samples through a DataLoader with workers (num_workers), which make them ahead: here the thread that "
        "launches makes each one itself, while the device waits.",
        before="""
        for number in range(len(dataset)):
            y = model(dataset[number].to('cuda'))
        """,
        after="""
        for x in DataLoader(dataset, batch_size=None, num_workers=8, pin_memory=True):
            y = model(x.to('cuda', non_blocking=True))
        """,
    ),
    Advice(
        f"{IN_COPY} host work",
        "Copy from pinned memory (DataLoader(pin_memory=True), or a buffer pinned once) with non_blocking=True: the "
        "host prepares a copy there. What it converts for that is best converted in the loader's workers, or on the "
        "device.",
        before=COPY_TO_DEVICE.before,
        after=COPY_TO_DEVICE.after,
    ),
    Advice(
        f"{MADE_ON_HOST} host work",
        "Make the new tensor on the device, if it goes there (pass device=): the host fills it now, and then copies "
        "it. What stays the same is made once, outside of the loop.",
        before="targets = torch.ones(shape) * -1",
        after="targets = torch.full(shape, -1.0, device=x.device)",
    ),
    Advice(
        f"{IN_WALK} host work",
        "Collect the tensors once, before the loop: this walks through all parts of the model each time, and its "
        "tensors stay the same as long as none is replaced.",
        before="""
        for mine, new in zip(ema.state_dict().values(), model.state_dict().values()):
            mine.lerp_(new, 0.01)
        """,
        after="""
        mine, new = list(ema.state_dict().values()), list(model.state_dict().values())   # once
        torch._foreach_lerp_(mine, new, 0.01)
        """,
    ),
    Advice(
        f"{IN_MODULE} host work",
        "Compile the model or replay it as a CUDA graph (torch.compile), and keep out of forward() what can be done "
        "once: this is Python of the model itself, which no other thread can run, and a graph does not run again.",
    ),
    Advice(
        f"{IN_STEP} host work",
        "Launch less (foreach or fused optimizers and functions), or compile the step or replay it as a CUDA graph "
        "(torch.compile): this is Python of the step itself, on the way from one launch to the next, which no other "
        "thread can run, and which a graph does not run again.",
    ),
    Advice(
        f"{IN_OPS} host work",
        "Launch less (larger batches, foreach or fused optimizers and functions), or compile the step or replay it as "
        "a CUDA graph (torch.compile): for most of this time the host is inside of PyTorch's ops, on the way from one "
        "launch to the next, which no other thread can run.",
    ),
    Advice(
        "host work",
        "Move the work that the host does between launches out of the thread that launches, or to where the device "
        "still has work queued.",
        before="""
        for rows in source:
            tokens = tokenize(rows)                         # the device waits meanwhile
            train_on(tokens)
        """,
        after="""
        with ThreadPoolExecutor(1) as pool:
            ahead = pool.submit(tokenize, next(source))
            for rows in source:
                tokens, ahead = ahead.result(), pool.submit(tokenize, rows)
                train_on(tokens)                            # the next ones are made meanwhile
            train_on(ahead.result())
        """,
    ),
    Advice("launch latency", "Launch fewer, larger kernels: torch.compile, CUDA graphs, larger batches."),
    Advice(
        "shared queued on device",
        "The device was shared, and work was queued behind that of another process: record again on a device that "
        "nobody else uses.",
        asks_for_more=True,
    ),
    Advice(
        f"{BACK_TO_BACK} queued on device",
        "These are the spaces between kernels that are queued already: run fewer and larger ones, which "
        "torch.compile makes by fusing them, or larger batches.",
    ),
    Advice(
        f"{ONE_STREAM} queued on device",
        "Nothing that the host does changes most of it: the work was launched in time, and the device began it late "
        "though nothing else of this program ran, as when another process has the device, or it first loads a kernel's "
        "code. Record later steps on a device that nobody else uses, and see whether it comes back.",
        asks_for_more=True,
    ),
    Advice(
        f"{ALONE} queued on device",
        "Look at what the streams wait for: the events between them. Where the device begins late what was launched in "
        "time, as when another process has it, record on one that nobody else uses.",
    ),
    Advice(
        "queued on device",
        "Look at what the streams wait for: events between them, or a collective of another rank.",
    ),
    Advice(
        f"{LATE} unknown",
        "Record again on a device that nobody else uses: what was launched in time began late there again and again, "
        "though nothing else of this program ran. If it comes back, the file does not hold what the device did then.",
        asks_for_more=True,
    ),
    Advice(
        "recorded unknown",
        "Do not trust this part: the file does not hold what the device did then. Record again, with a warm-up "
        "before the window (torch.profiler.schedule), and nobody else on the device.",
        asks_for_more=True,
    ),
    Advice(
        "",
        "Record the runtime calls too (ProfilerActivity.CPU and CUDA), to see what the host did.",
        asks_for_more=True,
    ),
)
