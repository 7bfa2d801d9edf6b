"""The names of circumstances on which the advice to a starved device depends, and which of them a trace shows."""

from __future__ import annotations

from syncscope.advice import INFERENCE, UNCACHED
from syncscope.patterns import compile_later
from syncscope.rules.base.ended_by_copies import find_copies_after_work
from syncscope.rules.base.first_uses import is_before_first_launches, is_in_ops_that_launch_first
from syncscope.rules.base.host_math import DRAWS, ON_CPU, computes_on_cpu, draws_on_cpu
from syncscope.rules.base.idle_places import find_idle_place
from syncscope.rules.base.in_ops import is_in_short_ops
from syncscope.rules.base.late_begins import runs_on_one_stream
from syncscope.rules.base.program import (
    MODULE_CALL,
    ends_with_graph,
    is_beside_graph,
    name_compiled,
    never_trains,
    works_in_compiled,
    works_in_graph,
)
from syncscope.rules.base.recorded_graphs import count_recordings
from syncscope.rules.base.sampled_places import find_sampled_lines, is_mostly_inside
from syncscope.schema.expressions import called_name, makes_tensor_on_host, moves_new_tensor
from syncscope.schema.findings import Frame, Site
from syncscope.schema.recording import LOADER_START
from syncscope.timeline import Place, Timeline
from syncscope.timeline.allocations import is_uncached
from syncscope.timeline.intervals import Union
from syncscope.timeline.python_stacks import is_user

RECORDS = "records-graphs"
"""Stands for a program that records CUDA graphs in several of its calls."""

BACK_TO_BACK, SPACE_NS = "back-to-back", 10_000
"""The name for a device that waits for nothing: most of the time between its queued kernels is in spaces of less than
this."""

ONE_STREAM = "one-stream"
"""The name for a device on which one stream ran, and no collective, so that nothing there waits for something else."""

ALONE = "alone"
"""The name for a device on which no collective ran, so that it waits for no other rank."""


IN_COMPILED = "in-compiled"
"""The name for host work that enters and leaves what ``torch.compile`` made."""

IN_GRAPH = "in-graph"
"""The name for host work in the call of a compiled graph, between two of its kernels."""

IN_MODULE = "in-module"
"""The name for host work inside of a module that is called."""

IN_DATASET = "in-dataset"
"""The name for host work that makes a sample of a dataset in the thread that launches."""

DATASETS = compile_later(r"^<site-packages>/(?:torchvision/datasets|torch/utils/data|datasets|torch_geometric/data)/")
"""In the names of files of libraries that hold datasets."""

IN_COPY = "in-copy"
"""The name for host work at a call that copies from pageable memory to the device."""

MADE_ON_HOST = "made-on-host"
"""The name for host work that makes a tensor from numbers alone, which the device could do."""

IN_WALK = "in-walk"
"""The name for host work that walks through all parts of a model for its tensors."""

WALKS = frozenset({
    "buffers", "children", "modules", "named_buffers", "named_children", "named_modules", "named_parameters",
    "parameters", "state_dict",
})  # fmt: skip
"""Methods of a module that do."""

IN_STEP = "in-step"
"""The name for host work in PyTorch's own Python code of a step, or on gradients: the way from one launch to the
next."""

IN_LAUNCHER = "in-launcher"
"""The name for host work of a kernel language on its way to the next kernel."""

LAUNCHERS = compile_later(r"(?:^|/)(?:triton/(?:runtime|backends)|numba/cuda)/")
"""In the names of files of kernel languages that prepare each call of a kernel: what types its arguments have, which
version of it that asks for, and how it is launched."""

IN_OPS = "in-ops"
"""The name for host work that no code of the program is named for, most of which is the way through PyTorch's ops."""

UNSEEN, BEFORE_FIRST, IN_FIRST = "unseen", "before-first", "in-first"
"""The names for host work most of which nothing in the trace names, for such that is before first launches, and for
what lies in the ops that make them."""

OURS = "of-ours"
"""Stands for a recording of ``syncscope profile``, which has no Python stacks of what launches."""

BEFORE_COPIES = "before-copies"
"""The name for host work that nothing in the trace names, and most of which ends at copies to the device that have
lines."""

SAMPLED, SAMPLED_PARTLY, SAMPLED_STEP = "sampled", "sampled-partly", "sampled-step"
"""The names for host work that several lines share, as samples tell: none of them, some and all of what the step or its
model runs itself."""

ENDS_WORKERS = "ends-workers"
"""The name for host work that waits for the workers of a loader to end."""

LOADERS, END_OF_WORKERS = "torch/utils/data/dataloader.py", "_shutdown_workers"
"""Where PyTorch has its loaders, and the function there that ends their workers."""

STARTS_WORKERS = "starts-workers"
"""The name for data loading most of which is the start of a loader's workers."""

SPREAD = "spread"
"""The name for host work that several marks of the program inside of one share."""

GRAPH_LAUNCH, BESIDE_GRAPH = "graph-launch", "beside-graph"
"""The names for a device that waits mostly for the launch of a graph, and for one that waits for other launches in a
program that launches graphs."""


def name_circumstances(timeline: Timeline) -> list[str]:
    """What the advice on a cause depends on."""
    queued = timeline.bubbles.due_to("queued on device")
    found = [UNCACHED] if is_uncached(timeline.waits, timeline.calls) else []
    if 2 * queued[queued < SPACE_NS].sum() > queued.sum():
        found.append(BACK_TO_BACK)
    if runs_on_one_stream(timeline):
        found.append(ONE_STREAM)
    elif not len(timeline.collectives):
        found.append(ALONE)
    if count_recordings(timeline):
        found.append(RECORDS)
    if _starts_workers(timeline):
        found.append(STARTS_WORKERS)
    if draws_on_cpu(timeline):
        found.append(DRAWS)
    if computes_on_cpu(timeline):
        found.append(ON_CPU)
    if works_in_graph(timeline):
        found.append(IN_GRAPH)
    if works_in_compiled(timeline):
        found.append(IN_COMPILED)
    waits = timeline.bubbles.due_to("launching")
    of_graphs = ends_with_graph(timeline)
    if len(waits) and 2 * waits[of_graphs].sum() > waits.sum():
        found.append(GRAPH_LAUNCH)
    elif 2 * waits[is_beside_graph(timeline)].sum() > waits.sum():
        found.append(BESIDE_GRAPH)
    else:
        found += name_compiled(timeline)
    return found


def name_host_work(timeline: Timeline) -> list[str]:
    """What the advice on host work depends on."""
    if is_in_ops_that_launch_first(timeline, "host work"):
        return [IN_FIRST]
    if is_mostly_inside(timeline, "host work", LOADERS, END_OF_WORKERS):
        return [ENDS_WORKERS]
    found = find_idle_place(timeline, "host work")
    ours = [OURS] if timeline.trace.recording is not None else []
    if found is None:
        return _name_without_place(timeline, ours)
    if found.spread:
        return [SPREAD, *ours]
    at = found.place.at
    if at is not None and LAUNCHERS.search(at.file):
        return [IN_LAUNCHER]
    if any(_is_of_dataset(frame) for frame in found.place.chain):
        return [IN_DATASET]
    if makes_tensor_on_host(found.place.running) or moves_new_tensor(found.place.running):
        return [MADE_ON_HOST]
    if _copies_to_device(timeline, found.place):
        return [IN_COPY]
    if called_name(found.place.running) in WALKS:
        return [IN_WALK]
    if found.place.runs_through(MODULE_CALL):
        return [IN_MODULE]
    return [IN_STEP] if found.of_step else []


def _name_without_place(timeline: Timeline, ours: list[str]) -> list[str]:
    """The same where nothing in the trace names code of the program for most of it."""
    if lines := find_sampled_lines(timeline, "host work"):
        of_step = sum(line.of_step for line in lines)
        return [SAMPLED_STEP if of_step == len(lines) else SAMPLED_PARTLY if of_step else SAMPLED]
    if find_copies_after_work(timeline) is not None:
        return [*([INFERENCE] if never_trains(timeline) else []), BEFORE_COPIES]
    if is_in_short_ops(timeline, "host work"):
        return [IN_OPS]
    return [UNSEEN, *ours, *([BEFORE_FIRST] if is_before_first_launches(timeline, "host work") else [])]


def _starts_workers(timeline: Timeline) -> bool:
    """Whether most of the time in which the device is idle while batches are fetched is that of starting loaders."""
    loads, bubbles = timeline.loads, timeline.bubbles
    waited = Union(bubbles.ts, bubbles.end).within(loads.ts, loads.end)
    return 2 * int(waited[loads.name == LOADER_START].sum()) > int(waited.sum())


def _is_of_dataset(frame: Frame) -> bool:
    """Whether a frame gets a sample by its number: in code of the program's own, or of a dataset of a library."""
    own = is_user(frame.file) or DATASETS.search(frame.file) is not None
    return own and frame.function.rpartition(".")[2] in ("__getitem__", "__getitems__")


def _copies_to_device(timeline: Timeline, place: Place) -> bool:
    """Whether a place is a call of ``to`` or ``cuda`` that copies from pageable memory to the device."""
    if place.site is None or called_name(place.running) not in ("to", "cuda"):
        return False
    copies = timeline.copies
    pageable = (copies.direction == "HtoD") & (copies.memory == "pageable")
    at = {timeline.places[number].site for number in set(copies.place[pageable].tolist())}
    return any(site is not None and _same_expression(site, place.site) for site in at)


def _same_expression(one: Site, other: Site) -> bool:
    return (one.file, one.line, one.expression) == (other.file, other.line, other.expression)
