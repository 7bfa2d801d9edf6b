"""Chains of PyTorch's ops: what ran inside what, outermost first (``aten::item``, ``aten::_local_scalar_dense``)."""

from __future__ import annotations


def known_op(chain: tuple[str, ...], call: str) -> str:
    """The innermost op that a user knows: ``aten::item``, not the private ``aten::_local_scalar_dense`` inside it.
    Without any op, the runtime ``call``."""
    public = [op for op in chain if not op.split("::")[-1].startswith("_")]
    return (public or chain or (call,))[-1]
