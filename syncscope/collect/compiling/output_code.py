"""Read the Python that Inductor wrote: which nodes of the graph each Triton kernel computes.

Inductor says so in comments, behind the call of a kernel and behind its definition. The text is only read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from syncscope.collect.sites.stacks import Line

SOURCES = re.compile(r"\s*# (?:[A-Z]\w+(?: Sorted)? )?Source Nodes: \[(?P<names>[^\]]*)\]")
"""``torch._inductor.utils.get_kernel_metadata``; "Topologically Sorted" or "Unsorted" from PyTorch 2.5 on."""
ORIGINAL = re.compile(r"# Original path: (?P<file>.+):(?P<line>\d+)\s*$")
"""Of a kernel that the program wrote itself, and calls in what is compiled."""
DEFINED = re.compile(r"(?P<variable>\w+) = async_compile\.triton\('(?P<kernel>\w+)'")
RUN = re.compile(r"\s+(?P<variable>\w+)\.run\(")
OTHER_CALL = re.compile(r"\s+(?:extern_kernels|torch\.ops)\.")
"""What a comment may be about instead."""
MAPPED = re.compile(r"#   (?P<name>\w+) => (?P<nodes>[\w, ]+)$", re.MULTILINE)
"""A name in ``SOURCES`` and the nodes of Inductor's graph that come from it."""
BACKWARD = re.compile(r"# AOT ID: \['\w*_backward'\]")


class Computed(NamedTuple):
    """What a kernel computes."""

    kernel: str
    """Its name, as in a trace."""
    nodes: tuple[str, ...] = ()
    """The names that ``sources_of`` has for nodes."""
    written: Line | None = None
    """Where the program wrote it."""


def read_kernels(text: str) -> Iterator[Computed]:
    """The kernels of one file of Inductor's, each once for every comment about it."""
    kernels: dict[str, str] = {}
    nodes: tuple[str, ...] = ()
    original: tuple[str, int] | None = None
    for line in text.splitlines():
        if sources := SOURCES.match(line):
            nodes = tuple(name.strip() for name in sources["names"].split(",") if name.strip())
        elif path := ORIGINAL.match(line):
            original = path["file"], int(path["line"])
        elif defined := DEFINED.match(line):
            name = kernels[defined["variable"]] = defined["kernel"]
            yield Computed(name, nodes, Line(*original, name) if original else None)
            nodes, original = (), None
        elif run := RUN.match(line):
            if run["variable"] in kernels and nodes:
                yield Computed(kernels[run["variable"]], nodes)
            nodes = ()
        elif OTHER_CALL.match(line):
            nodes = ()


def is_backward(text: str) -> bool:
    """Whether the file is of a backward."""
    return BACKWARD.match(text) is not None


def names_of_dynamo(text: str) -> set[str]:
    """The names in the file of a backward that are certainly those of nodes of Dynamo's graph: a node that has none is
    mapped to itself."""
    return {mapped["name"] for mapped in MAPPED.finditer(text) if mapped["name"] != mapped["nodes"]}


def sources_of(nodes: Iterable[Any]) -> dict[str, str]:
    """For nodes of a graph (``torch.fx.Node``), by the names that comments have for them, PyTorch's text of the stack
    that they come from."""
    found: dict[str, str] = {}
    for node in nodes:
        stack = node.meta.get("stack_trace")
        if isinstance(stack, str):
            found.setdefault(_name_in_comments(node), stack)
    return found


def _name_in_comments(node: Any) -> str:
    origins = node.meta.get("from_node")
    if not origins:
        return str(node.name)
    first = origins[0]
    return str(getattr(first, "name", None) or first[0])  # a pair before PyTorch 2.6
