"""Graphs of random numbers, in the files that the public programs read them from."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path

import numpy as np


def make_cora(folder: Path) -> None:
    """2708 papers (``gat`` draws its splits from so many), fewer words."""
    rng = np.random.default_rng(11)
    folder.mkdir()
    papers = 2708
    words = rng.integers(0, 2, (papers, 100))
    lines = [f"{paper} " + " ".join(map(str, row)) + f" label{paper % 7}\n" for paper, row in enumerate(words)]
    (folder / "cora.content").write_text("".join(lines))
    cites = np.unique(rng.integers(0, papers, (5000, 2)), axis=0)
    (folder / "cora.cites").write_text("".join(f"{cited} {citing}\n" for cited, citing in cites))


def make_proteins(folder: Path) -> None:
    """300 graphs in the files of the TU Dortmund collection."""
    rng = np.random.default_rng(17)
    folder.mkdir()
    sizes = rng.integers(10, 40, 300)
    first = np.cumsum(sizes) - sizes
    edges = [(begin + pair[0], begin + pair[1]) for begin, size in zip(first, sizes, strict=True)
             for pair in rng.integers(0, size, (3 * size, 2)) if pair[0] != pair[1]]  # fmt: skip
    edges = sorted({*edges, *((end, begin) for begin, end in edges)})
    (folder / "PROTEINS_A.txt").write_text("".join(f"{begin + 1}, {end + 1}\n" for begin, end in edges))
    for name, values in (
        ("graph_indicator", np.repeat(np.arange(1, len(sizes) + 1), sizes)),
        ("graph_labels", rng.integers(1, 3, len(sizes))),
        ("node_labels", rng.integers(0, 3, sizes.sum())),
    ):
        (folder / f"PROTEINS_{name}.txt").write_text("".join(f"{value}\n" for value in values))


def make_planetoid(folder: Path) -> None:
    """Cora's eight files, of random numbers."""
    from collections import defaultdict

    from scipy.sparse import csr_matrix

    rng = np.random.default_rng(25)
    folder.mkdir()
    nodes, tested, labelled = 2708, 1000, 140
    words = csr_matrix((rng.random((nodes, 300)) < 0.05).astype(np.float32))
    labels = np.eye(7, dtype=np.int32)[np.arange(nodes) % 7]
    graph = defaultdict(list)
    for one, other in rng.integers(0, nodes, (5000, 2)).tolist():
        graph[one].append(other)
        graph[other].append(one)
    known = nodes - tested
    parts = {
        "x": words[:labelled], "y": labels[:labelled], "allx": words[:known], "ally": labels[:known],
        "tx": words[known:], "ty": labels[known:], "graph": graph,
    }  # fmt: skip
    for name, part in parts.items():
        (folder / f"ind.cora.{name}").write_bytes(pickle.dumps(part, protocol=2))
    order = rng.permutation(np.arange(known, nodes))
    (folder / "ind.cora.test.index").write_text("".join(f"{node}\n" for node in order))


def make_triples(folder: Path) -> None:
    """What is related to what in which way, and which answers to a question are true, as KGEmb prepares them."""
    rng = np.random.default_rng(26)
    folder.mkdir()
    things, ways = 2000, 11
    known: dict[str, dict[tuple[int, int], list[int]]] = {"lhs": {}, "rhs": {}}
    for split, size in (("train", 20_000), ("valid", 300), ("test", 300)):
        triples = np.stack([rng.integers(0, limit, size) for limit in (things, ways, things)], axis=1)
        (folder / f"{split}.pickle").write_bytes(pickle.dumps(triples.astype("int64")))
        for one, way, other in triples.tolist():
            known["rhs"].setdefault((one, way), []).append(other)
            known["lhs"].setdefault((other, way + ways), []).append(one)
    (folder / "to_skip.pickle").write_bytes(pickle.dumps(known))


GRAPHS: dict[str, Callable[[Path], None]] = {
    "cora": make_cora,
    "proteins": make_proteins,
    "planetoid": make_planetoid,
    "triples": make_triples,
}
