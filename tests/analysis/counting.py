"""Both phases of a rank, each trace that they load written down."""

from collections.abc import Callable
from pathlib import Path

import pytest

from syncscope.analysis import rank
from syncscope.trace import Trace
from syncscope.trace.reader import load_ranks

LOADS = "loads.txt"
"""The file beside the traces that names each as often as it is loaded."""


def analyze_rank(path: str, job: bytes, shown: str | None = None) -> rank.Rank:
    return _counting(Path(path).parent, lambda: rank.analyze_rank(path, job, shown))


def compare_rank(one: rank.Rank, peers: bytes) -> rank.Rank:
    (path,) = [info.path for info in rank.merge_results([one[0]]).report.traces]
    return _counting(Path(path).parent, lambda: rank.compare_rank(one, peers))


def _counting(folder: Path, work: Callable[[], rank.Rank]) -> rank.Rank:
    def counted(path: str, **options: object) -> tuple[Trace, ...]:
        with open(folder / LOADS, "a") as file:
            file.write(f"{Path(path).name}\n")
        return load_ranks(path, **options)  # type: ignore[arg-type]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rank, "load_ranks", counted)
        return work()
