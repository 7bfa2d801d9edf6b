"""What a chain of ops says about a wait inside it. A chain is a tuple of names, outermost first."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from syncscope.schema.expressions import DYNAMIC_SHAPES, SCALAR_READS
from syncscope.timeline.intervals import Bools
from syncscope.timeline.places import Place
from syncscope.timeline.tables import Waits

Chain = tuple[str, ...]

NATIVE = frozenset({"aten", "prim", "prims", "inductor", "quantized", "sparse", "profiler"})
"""Namespaces of PyTorch's own operators."""

OPERATOR_CALL = "torch.ops"
"""The recorded entry point of operators called from Python, TorchScript included."""

COPIES = frozenset({
    "aten::to", "aten::_to_copy", "aten::copy_", "aten::_copy_from", "aten::_copy_from_and_resize", "aten::cuda",
    "aten::cpu", "aten::type", "aten::type_as", "aten::clone", "aten::contiguous", "aten::detach", "aten::detach_",
    "aten::alias", "aten::lift", "aten::lift_fresh", "aten::set_", "aten::set_data", "aten::tolist", "aten::tensor",
    "aten::as_tensor", "aten::scalar_tensor", "aten::new_tensor", "aten::empty", "aten::empty_like",
    "aten::empty_strided", "aten::pin_memory", "aten::_pin_memory", "aten::reshape", "aten::flatten", "aten::view",
    "aten::select", "aten::slice", "aten::expand", "aten::fill_", "aten::full", "aten::full_like", "aten::float",
    "aten::half", "aten::double", "aten::long", "aten::bool",
})  # fmt: skip
"""Ops that move or make a tensor and do nothing else."""

RECORDER = "record_param_comms"
"""What PyTorch runs around a collective only to record its arguments."""

DISPATCH = frozenset({RECORDER, "PythonSubclass", "PythonDispatchMode"})
"""What PyTorch records around ops that is no op: a collective's arguments, and the ways into Python of subclasses of
tensors and of modes (2.11)."""

COLLECTIVES = "c10d::"
"""Namespace of the collectives, which are PyTorch's own below ``torch.distributed``: all names in it are known."""

INDEXING = frozenset({
    "aten::index", "aten::index_put", "aten::index_put_", "aten::_index_put_impl_", "aten::_unsafe_index",
    "aten::_unsafe_index_put", "aten::index_select", "aten::index_fill_", "aten::index_add_", "aten::index_copy_",
    "aten::take", "aten::gather", "aten::scatter", "aten::scatter_",
})  # fmt: skip
"""Ops that ship an index on the host to the device."""


def ops_of(chain: Chain) -> Chain:
    """The dispatcher's ops of a chain: names with a namespace, without the autograd engine's own frames."""
    return tuple(op for op in chain if "::" in op and not op.startswith(("autograd::", "torch::autograd::")))


def known_op(chain: Chain, call: str) -> str:
    """The innermost op that a user knows: ``aten::item``, not the private ``aten::_local_scalar_dense`` inside it.
    Frames around ops, of autograd and of Python, stand for it only where they hold none. Without any, the ``call``."""
    chain = tuple(op for op in chain if op not in DISPATCH)
    inside = ops_of(chain) or chain
    public = [op for op in inside if op.startswith(COLLECTIVES) or not op.split("::")[-1].startswith("_")]
    return (public or inside or (call,))[-1]


def reads_scalar(chain: Chain) -> bool:
    return not SCALAR_READS.isdisjoint(chain)


def has_dynamic_shape(chain: Chain) -> bool:
    return not DYNAMIC_SHAPES.isdisjoint(chain)


def only_copies(chain: Chain) -> bool:
    """Whether it is a copy and what copies are made of. A copy inside an op of another kind is part of that op."""
    ops = ops_of(chain)
    return bool(ops) and all(op in COPIES or op in INDEXING for op in ops)


def is_foreign(op: str) -> bool:
    """Whether an operator belongs to another library."""
    return op.split("::")[0] not in NATIVE


def in_library(waits: Waits, places: Sequence[Place]) -> Bools:
    """Which waits are inside an operator of another library: what it does inside is not the program's choice.
    A wait that PyTorch warned of came from a Python line, which is then the better place to look."""
    foreign = matching(waits, lambda chain: any(is_foreign(op) for op in ops_of(chain)))
    bare = matching(waits, lambda chain: not chain)
    seen = [places[place] for place in waits.place.tolist()]
    warned = np.array([place.source == "hook" and not place.entry for place in seen], dtype=bool)
    called = np.array([place.entry == OPERATOR_CALL for place in seen], dtype=bool) & bare
    inside: Bools = (foreign & ~warned) | called
    return inside


def matching(waits: Waits, test: Callable[[Chain], bool]) -> Bools:
    """Which waits have a chain that passes a test. Each chain is tested once."""
    passes = {chain: test(chain) for chain in set(waits.ops)}
    return np.array([passes[chain] for chain in waits.ops], dtype=bool)
